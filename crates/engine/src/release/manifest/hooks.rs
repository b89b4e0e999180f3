//! The hooks of a record.

use std::ops::ControlFlow;

use super::documents::position;
use super::objects::each_object;
use crate::effort::Effort;
use crate::release::hook::each_hook;

/// Steps to parse one byte of the list of hooks.
const HOOK_STEPS: u64 = 4;

/// The maximum number of hooks of a kind, because each one is looked up in the cluster. Charts have a few.
const MAX_HOOKS: usize = 100;

/// The object of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookObject {
    pub namespace: String,
    pub name: String,
}

/// The objects of a kind among the hooks in the JSON of a record's `hooks`. `namespace` is the namespace of hooks without one. An
/// object with a generated name is left out, because its name is unknown.
///
/// # Errors
/// The hooks cannot be parsed, more than 100 of them are of the kind, or it is more work than the review has left. The error
/// contains the position of the problem, never the text there.
pub fn hooks_of_kind(hooks: &str, kind: &str, namespace: &str, effort: &Effort) -> Result<Vec<HookObject>, String> {
    effort.take_text(hooks, HOOK_STEPS)?;
    let mut found = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_str(hooks);
    let read = each_hook(&mut deserializer, |hook| {
        if hook.kind == kind && !hook.name.is_empty() && found.len() <= MAX_HOOKS {
            found.push(hook);
        }
        Ok(())
    });
    read.and_then(|()| deserializer.end()).map_err(|error| position(&error))?;
    if found.len() > MAX_HOOKS {
        return Err(format!("more than {MAX_HOOKS} are {kind}s"));
    }
    let found = found.into_iter().map(|hook| {
        let mut own = namespace.to_owned();
        each_object(&hook.manifest, effort, |_| true, &mut |object| {
            own = object.heading.namespace_or(namespace).to_owned();
            Ok(ControlFlow::Break(()))
        })?;
        Ok(HookObject { namespace: own, name: hook.name.into_owned() })
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_found_among_the_hooks() {
        let hooks = r#"[{"name":"migrate","kind":"Job","manifest":"kind: Job\nmetadata: {name: migrate}","weight":1},
            {"name":"seed","kind":"Job","manifest":"metadata:\n  name: seed\n  namespace: db\n"},
            {"name":"notes","kind":"ConfigMap","manifest":"x: ["},{"name":"","kind":"Job"}]"#;
        let found: Vec<_> = hooks_of_kind(hooks, "Job", "shop", &Effort::of_review()).unwrap();
        let found: Vec<_> = found.iter().map(|job| (job.namespace.as_str(), job.name.as_str())).collect();
        assert_eq!(found, [("shop", "migrate"), ("db", "seed")]);
        assert_eq!(hooks_of_kind("null", "Job", "shop", &Effort::of_review()), Ok(Vec::new()));
    }

    #[test]
    fn the_number_of_jobs_is_limited() {
        let jobs = |count| format!("[{}{{}}]", r#"{"name":"a","kind":"Job"},"#.repeat(count));
        let found = |count| hooks_of_kind(&jobs(count), "Job", "shop", &Effort::of_review()).map(|jobs| jobs.len());
        assert_eq!(found(MAX_HOOKS), Ok(MAX_HOOKS));
        assert_eq!(found(MAX_HOOKS + 1), Err("more than 100 are Jobs".to_owned()));
    }

    #[test]
    fn an_error_contains_no_text_of_the_hook() {
        let secret = r#"[{"name":"a","kind":"Job","manifest":"password: hunter2\nmetadata: [\n"}]"#;
        for broken in [secret, r#"{"hunter2":1}"#] {
            let error = hooks_of_kind(broken, "Job", "shop", &Effort::of_review()).unwrap_err();
            assert!(error.contains("line") && !error.contains("hunter2"), "{error}");
        }
    }
}

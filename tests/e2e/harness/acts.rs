//! Acts by hand on the objects of a release, and the expected result of each.

use std::time::Duration;

use crate::harness::clients::Kubectl;
use crate::harness::namespace::Namespace;
use crate::harness::process::{Output, run};

const EDITOR: Duration = Duration::from_secs(60);

/// The expected result of an act.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Verdict {
    Passes,
    /// `manual-edit` refuses it because of this field, or these fields: `a and b`.
    Edits(&'static str),
    /// `manual-edit` refuses it and says this about it.
    Says(&'static str),
    Deletes,
    Scales,
}

/// Its name in failures, the arguments of kubectl with `NAMESPACE` for the namespace, and the expected result.
pub(crate) type Act = (&'static str, &'static [&'static str], Verdict);

/// A release whose objects are edited, and its state as messages show it.
pub(crate) struct Target<'n> {
    pub(crate) namespace: &'n Namespace<'n>,
    pub(crate) release: &'n str,
    /// For example `revision 1, deployed`.
    pub(crate) state: String,
}

impl<'n> Target<'n> {
    /// A release with no operation in flight.
    pub(crate) fn deployed(namespace: &'n Namespace<'n>, release: &'n str, revision: u32) -> Self {
        Self { namespace, release, state: format!("revision {revision}, deployed") }
    }

    /// Runs all acts and reports every unexpected result.
    #[track_caller]
    pub(crate) fn expect_all(&self, kubectl: &Kubectl, acts: &[Act]) {
        let wrong = acts.iter().filter_map(|(what, args, verdict)| {
            let args: Vec<_> = args.iter().map(|arg| arg.replace("NAMESPACE", self.namespace.name())).collect();
            let args: Vec<_> = args.iter().map(String::as_str).collect();
            self.judge(&kubectl.run(&args), *verdict).err().map(|why| format!("{what}: {why}"))
        });
        let wrong: Vec<_> = wrong.collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    }

    #[track_caller]
    pub(crate) fn expect(&self, output: &Output, verdict: Verdict) {
        self.judge(output, verdict).unwrap_or_else(|why| panic!("{why}"));
    }

    fn judge(&self, output: &Output, verdict: Verdict) -> Result<(), String> {
        let Some(refusal) = self.refusal(verdict) else {
            return if output.success() { Ok(()) } else { Err(format!("expected it to pass\n{output}")) };
        };
        let refused = !output.success() && !output.timed_out && output.stderr.contains("denied the request");
        if refused && output.stderr.contains(&refusal) {
            Ok(())
        } else {
            Err(format!("expected a refusal with {refusal:?}\n{output}"))
        }
    }

    /// The refusal's text, starting at the release.
    fn refusal(&self, verdict: Verdict) -> Option<String> {
        let Self { namespace, release, state } = self;
        let owner = format!("is managed by release {}/{release} ({state})", namespace.name());
        let through = format!("`helm upgrade {release} CHART -n {}`", namespace.name());
        let edited = |what: &str, rule: &str| {
            format!("{owner}: {what}. Change it through {through}, or ask for a ReleaseOverride. [{rule}]")
        };
        let declared = |fields: &str, rule: &str| {
            let verb = if fields.contains(" and ") { "are" } else { "is" };
            edited(&format!("{fields} {verb} declared by the chart"), rule)
        };
        match verdict {
            Verdict::Passes => None,
            Verdict::Edits(fields) => Some(declared(fields, "manual-edit")),
            Verdict::Says(what) => Some(edited(what, "manual-edit")),
            Verdict::Scales => Some(declared("spec.replicas", "manual-scale")),
            // A kind that is recreated where a field cannot be changed has a sentence more.
            Verdict::Deletes => Some(format!(
                "{owner}, and declared by the chart. Remove it through {through}, or ask for a ReleaseOverride."
            )),
        }
    }
}

/// `kubectl edit` by somebody who replaces a text by another.
#[track_caller]
pub(crate) fn edit(kubectl: &Kubectl, object: &str, from: &str, to: &str) -> Output {
    let mut edit = kubectl.command(&["edit", object]);
    let editor = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/harness/editor");
    edit.env("KUBE_EDITOR", editor).env("FROM", from).env("TO", to);
    run(edit, EDITOR)
}

//! What the rules share that keep an object from losing its children by accident.

use jiff::{SignedDuration, Timestamp};

use super::check::Step;
use super::undecided::{Undecided, ask};
use super::wording::command;
use crate::evidence::{Evidence, question};
use crate::losses::{Loss, Losses};
use crate::object::ALLOW_REMOVAL;
use crate::release::ReleaseRef;

/// How long after a change of its spec an object deletes what the change leaves out.
const EXPLAINED_FOR: SignedDuration = SignedDuration::from_mins(10);

/// How far the clock of the API server that noted the change may be ahead.
const AHEAD: SignedDuration = SignedDuration::from_secs(90);

/// The longest list of names in a command, in bytes.
const MOST_NAMES: usize = 600;

/// What the object has lost before. The request is noted with its verdict. `None` where no replica knows what the others have admitted.
pub(crate) fn known(evidence: &Evidence, loss: Loss) -> Result<Option<&Losses>, Undecided> {
    Ok(ask(evidence, question::Losses(loss))?.map(|known| &known.losses))
}

/// Whether a change of the spec at this time explains a deletion now.
pub(crate) fn explains(changed: Option<Timestamp>, now: Timestamp) -> bool {
    changed.is_some_and(|changed| (-AHEAD..EXPLAINED_FOR).contains(&now.duration_since(changed)))
}

/// Whether the value of [`ALLOW_REMOVAL`] names a child.
pub(crate) fn is_named(allowance: Option<&str>, child: &str) -> bool {
    allowance.is_some_and(|names| names.split(',').any(|name| name.trim() == child))
}

/// The step that lets these children go; `None` if they are too many for a command.
pub(crate) fn confirmation((resource, object): (&str, &ReleaseRef), children: &[&str]) -> Option<Step> {
    let names = children.join(",");
    if names.len() > MOST_NAMES {
        return None;
    }
    let assignment = format!("{ALLOW_REMOVAL}={names}");
    let ReleaseRef { namespace, name } = object;
    let words = ["kubectl", "annotate", resource, name, "-n", namespace, "--overwrite", &assignment];
    Some(Step::run("run {}", command(&words)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_annotation_names_whole_children() {
        assert!(is_named(Some("web, api"), "api") && is_named(Some("web"), "web"));
        for allowance in [None, Some(""), Some("webs"), Some("web*"), Some("*")] {
            assert!(!is_named(allowance, "web"), "{allowance:?}");
        }
    }

    #[test]
    fn the_spec_explains_for_ten_minutes() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let ago = |minutes| Some(now - SignedDuration::from_mins(minutes));
        assert!(explains(ago(9), now) && !explains(ago(10), now) && !explains(None, now));
        assert!(explains(ago(-1), now) && !explains(ago(-2), now), "people write managedFields too");
    }

    #[test]
    fn a_long_list_is_no_command() {
        let set = ReleaseRef::new("argocd", "web");
        assert!(confirmation(("applicationset", &set), &["a"; 300]).is_some());
        assert!(confirmation(("applicationset", &set), &["a"; 301]).is_none());
    }
}

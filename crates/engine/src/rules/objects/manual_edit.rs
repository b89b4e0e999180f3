//! The rule `manual-edit`.
//!
//! A field is declared if it is in the manifest of the newest deployed record, or of the record in flight. The ownership marks
//! are declared too. List items are matched by their keys, and values are compared by meaning. Setting a field back to its
//! declared value is not a change.

use super::case::ObjectCase;
use super::conflict::OwnershipConflict;
use crate::facts::ObjectChange;
use crate::json::FieldPath;
use crate::owners;
use crate::review::Operation;
use crate::rule::{FORBIDDEN, FailsClosed, Mode, Requests, Specification};
use crate::rules::check::{Check, Checked, Refusal, Rule};
use crate::rules::wording::{MAX_ENUMERATED, fields};

/// The rule `manual-edit`.
pub(crate) static RULE: Rule = Rule {
    specification: Specification {
        id: "manual-edit",
        owners: owners::ALL,
        mode: Mode::Enforce,
        status_code: FORBIDDEN,
        fails_closed: FailsClosed::Never,
        requests: Requests { operations: &[Operation::Update], kinds: &[] },
        summary: "A field that a release declares changes through the release.",
        why: "The next upgrade reverts half of a manual edit, and the chart no longer describes what runs.",
        allowed: "`kubectl rollout restart`; a label `team`; an injected sidecar; every field that the chart does not \
              declare; a field under `spec.driftDetection.ignore` of the HelmRelease.",
        refused: "`kubectl set image` of a container of the chart.",
        way_out: "Change the chart's values and upgrade. Add fields that belong to other tools to `ignore` in the policy.",
        settings: &["graceAfterFailure", "honourDriftIgnore", "whenSuspended"],
    },
    checks: &[Check::Object(check)],
};

fn check(case: &ObjectCase<'_>) -> Checked {
    if !matches!(case.write.change, ObjectChange::Edited { .. }) {
        return Ok(None);
    }
    match refusal_outside_exceptions(case)? {
        None if case.conflict()?.is_none() => Ok(case.suspicion()?.map(|suspicion| suspected(case, &suspicion))),
        refusal => Ok(refusal),
    }
}

/// The warning about fields that somebody else has written since the owner did.
fn suspected(case: &ObjectCase<'_>, suspicion: &OwnershipConflict) -> Refusal {
    let sentence = format!(
        "{} is managed by {}, and somebody else has written {} since: if its source declares it, this edit is undone.",
        case.subject(),
        suspicion.owner,
        fields(&suspicion.fields, MAX_ENUMERATED),
    );
    let refusal = Refusal::new(sentence, suspicion.through("change")).at_fields(&suspicion.fields);
    refusal.about(suspicion.release.clone()).into_advice()
}

/// The refusal of a change of declared fields without an exception. Scaling is such a change too.
pub(crate) fn refusal_outside_exceptions(case: &ObjectCase<'_>) -> Checked {
    let Some(conflict) = case.conflict()? else {
        return Ok(None);
    };
    let Some(left) = case.outside_exceptions(conflict)? else {
        return Ok(None);
    };
    case.unless_suspended(conflict, refusal(case, &left)).map(Some)
}

fn refusal(case: &ObjectCase<'_>, conflict: &OwnershipConflict) -> Refusal {
    let declared = declared(conflict);
    let mut sentence = format!("{} is managed by {}: {declared}.", case.subject(), conflict.owner);
    if let Some(exception) = &conflict.unusable_exception {
        sentence
            .push_str(&format!(" {exception} excepts nothing: it is longer than 1 KiB, needs Unicode, or is invalid."));
    }
    let ways_out = case.or_exempt(conflict.through("change"));
    Refusal::new(sentence, ways_out).at_fields(&conflict.fields).about(conflict.release.clone())
}

/// Nobody may add to these fields, even if the chart does not declare them: the garbage collector could delete the object, or
/// nobody could delete or change it.
const BINDING_FIELDS: [&str; 3] = ["metadata.finalizers", "metadata.ownerReferences", "immutable"];

/// Without these, nothing shows who wrote which field.
const MANAGED_FIELDS: &str = "metadata.managedFields";

/// `spec.replicas is declared by the chart`.
pub(crate) fn declared(conflict: &OwnershipConflict) -> String {
    let is_binding = |field: &&FieldPath| BINDING_FIELDS.contains(&field.to_string().as_str());
    let (binding, others): (Vec<_>, Vec<_>) = conflict.fields.iter().partition(is_binding);
    let (cleared, declared): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|field| field.to_string() == MANAGED_FIELDS);
    let verb = if declared.len() == 1 { "is" } else { "are" };
    let declarer = conflict.declarer;
    let sentences = [
        (declared, format!("{verb} declared by {declarer}")),
        (binding, "would take it out of the release's hands".to_owned()),
        (cleared, "shows who has written which field, and would no longer".to_owned()),
    ];
    let sentences = sentences.into_iter().filter(|(named, _)| !named.is_empty());
    let mut sentences: Vec<_> =
        sentences.map(|(named, what)| format!("{} {what}", fields(&named, MAX_ENUMERATED))).collect();
    sentences.extend(conflict.unreadable.as_deref().map(everything));
    sentences.join("; ")
}

/// Why all of an object counts as declared.
pub(crate) fn everything(unreadable: &str) -> String {
    format!("{unreadable}, so all of it counts as declared")
}

//! The annotations for the audit log of the API server, for a review with findings. The API server prefixes each key
//! with the name of the webhook and a slash, so a key must not contain a slash:
//!
//! | key | value |
//! |---|---|
//! | `verdict` | `denied`, `overridden`, `would-deny`, `warned` or `undecided`: the most severe of the findings |
//! | `rule` | the rules, for example `manual-edit,foreign-edit-in-transition` |
//! | `mode` | their modes in the same order, for example `audit,enforce` |
//! | `undecided` | why a rule could not be evaluated, in the same order as `rule`; absent if every rule was |
//! | `release` | namespace and name of the release, if one is known |
//! | `override` | the overrides that opened the rules, for example `shop/web-x7k2p` |
//! | `ticket` | the tickets that these overrides name, for example `OPS-1234` |
//! | `fields` | JSON pointers to the fields concerned, at most 20 in 1 KiB |
//! | `ways-out` | the ways out of the findings as JSON, as many as fit: `[{"rule": ..., "ways": [{"condition": ..., "steps": [...]}]}]` |
//!
//! The texts of the violations are already printable. The pointers become printable here.

use std::collections::BTreeSet;

use super::weighed::WeighedViolation;
use crate::release::ReleaseRef;
use crate::violation::MAX_POINTERS;
use crate::ways_out::to_json;

/// The maximum length of a value, in bytes. An audit event is one line of a log, and a chart may declare thousands of fields.
const MAX_VALUE_BYTES: usize = 1024;

/// The annotations of a review; none if nothing was found.
pub(super) fn annotations(judged: &[WeighedViolation]) -> Vec<(&'static str, String)> {
    let Some(verdict) = judged.iter().map(WeighedViolation::verdict).max() else {
        return Vec::new();
    };
    let list = |of: fn(&WeighedViolation) -> &'static str| joined(judged.iter().map(of));
    let release = judged.iter().find_map(|judged| judged.violation.release.as_ref()).map(ReleaseRef::to_string);
    let fields = joined(judged.iter().flat_map(|judged| judged.violation.shown_pointers()).take(MAX_POINTERS));
    let undecided = judged.iter().any(|judged| judged.violation.kind.is_undecided());
    let applied = || judged.iter().filter_map(|judged| judged.violation.overridden.as_ref());
    let overrides: BTreeSet<_> = applied().map(|applied| applied.name.as_str()).collect();
    let overrides = joined(overrides.into_iter());
    let tickets: BTreeSet<_> = applied().filter_map(|applied| applied.ticket.as_deref()).collect();
    let tickets = joined(tickets.into_iter());
    let ways_out = judged.iter().map(|judged| (judged.violation.rule.as_str(), &judged.violation.ways_out));
    let found = [
        ("verdict", Some(verdict.as_str().to_owned())),
        ("rule", Some(list(|judged| judged.violation.rule.as_str()))),
        ("mode", Some(list(|judged| judged.mode.as_str()))),
        ("undecided", undecided.then(|| list(|judged| judged.violation.kind.as_str()))),
        ("release", release),
        ("override", Some(overrides).filter(|overrides| !overrides.is_empty())),
        ("ticket", Some(tickets).filter(|tickets| !tickets.is_empty())),
        ("fields", Some(fields).filter(|fields| !fields.is_empty())),
        ("ways-out", to_json(ways_out, MAX_VALUE_BYTES)),
    ];
    found.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
}

/// Joins values with commas, as many as fit.
fn joined(values: impl Iterator<Item = impl AsRef<str>>) -> String {
    let mut text = String::new();
    for value in values {
        let value = value.as_ref();
        let comma = if text.is_empty() { "" } else { "," };
        if text.len() + comma.len() + value.len() > MAX_VALUE_BYTES {
            break;
        }
        text.push_str(comma);
        text.push_str(value);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::{Mode, RuleId};
    use crate::violation::{Violation, ViolationKind};

    fn judged(rule: RuleId, mode: Mode, kind: ViolationKind, pointers: Vec<String>) -> WeighedViolation {
        let release = Some(ReleaseRef::new("shop", "web"));
        let violation = Violation {
            rule,
            kind,
            sentence: "It is so.".into(),
            ways_out: "Do this.".into(),
            pointers,
            release,
            overridden: None,
            frozen: None,
        };
        WeighedViolation { violation, mode, refuses: mode == Mode::Enforce && kind == ViolationKind::Refused }
    }

    #[test]
    fn every_key_has_its_value_and_no_slash() {
        let found = annotations(&[
            judged(RuleId::known("manual-edit"), Mode::Audit, ViolationKind::Refused, vec!["/spec/replicas".into()]),
            judged(RuleId::known("retry-strategy"), Mode::Enforce, ViolationKind::Late, Vec::new()),
        ]);
        let expected = [
            ("verdict", "would-deny"),
            ("rule", "manual-edit,retry-strategy"),
            ("mode", "audit,enforce"),
            ("undecided", "refused,late"),
            ("release", "shop/web"),
            ("fields", "/spec/replicas"),
            (
                "ways-out",
                r#"[{"rule":"manual-edit","ways":[{"steps":[{"kind":"act","text":"Do this"}]}]},{"rule":"retry-strategy","ways":[{"steps":[{"kind":"act","text":"Do this"}]}]}]"#,
            ),
        ];
        assert_eq!(found, expected.map(|(key, value)| (key, value.to_owned())));
        assert!(found.iter().all(|(key, _)| !key.contains('/')));
        assert_eq!(annotations(&[]), []);
    }

    #[test]
    fn the_most_severe_finding_is_the_verdict() {
        let refused = |mode| judged(RuleId::known("manual-edit"), mode, ViolationKind::Refused, Vec::new());
        let verdict = |all: &[WeighedViolation]| annotations(all)[0].1.clone();
        assert_eq!(verdict(&[refused(Mode::Warn), refused(Mode::Enforce), refused(Mode::Audit)]), "denied");
        assert_eq!(verdict(&[refused(Mode::Warn), refused(Mode::Audit)]), "would-deny");
        assert_eq!(verdict(&[refused(Mode::Warn)]), "warned");
        assert_eq!(
            verdict(&[judged(RuleId::known("manual-edit"), Mode::Warn, ViolationKind::Unclear, Vec::new())]),
            "undecided"
        );
    }

    #[test]
    fn lists_of_fields_are_cut_between_fields() {
        let fields = |count: usize, length: usize| {
            let pointers = vec!["/".repeat(length); count];
            let found =
                annotations(&[judged(RuleId::known("manual-edit"), Mode::Audit, ViolationKind::Refused, pointers)]);
            found.into_iter().find(|(key, _)| *key == "fields").map(|(_, value)| value).unwrap_or_default()
        };
        assert_eq!(fields(50, 3).split(',').count(), MAX_POINTERS);
        assert!(fields(50, 300).len() <= MAX_VALUE_BYTES);
        // Five of them and four commas fill the value.
        assert_eq!((fields(5, 204).len(), fields(6, 204).len()), (MAX_VALUE_BYTES, MAX_VALUE_BYTES));
        assert!(fields(50, 300).split(',').all(|field| field.len() == 300));
    }
}

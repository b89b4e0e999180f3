//! The outcome of a review, from violations and modes.

mod annotations;
mod emergency;
mod verdict;
mod weighed;

use std::collections::HashSet;

pub use verdict::{BadVerdict, Verdict};
pub use weighed::WeighedViolation;

use annotations::annotations;

use super::policy::{OnUndecided, Policy, Removal, Scope};
use super::release_override::arrival;
use super::rule::{FailsClosed, Mode};
use super::text::{MAX_MESSAGE_BYTES, into_printable, printable, printable_lines};
use super::violation::{AppliedOverride, Violation, ViolationKind};

/// The maximum length of a warning that the API server does not cut, in characters.
const MAX_WARNING_CHARS: usize = 120;

/// The outcome of a request. Every text in it is printable and of bounded length.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    pub allowed: bool,
    /// 200, or the status code of the rule that refuses.
    pub code: u16,
    /// Why the request is refused, in at most 8 KiB; empty if the request is admitted.
    pub message: String,
    /// Why a ReleaseOverride or a Freeze is invalid. No rule decides this.
    pub objection: Option<String>,
    /// The end of the message: the command that opens the rules, if there is one.
    pub emergency: Option<String>,
    /// For the user, at most 120 characters each.
    pub warnings: Vec<String>,
    /// For the audit log of the API server: key and value.
    pub audit: Vec<(&'static str, String)>,
    /// Every violation, whether it refuses the request or not.
    pub violations: Vec<WeighedViolation>,
}

impl Outcome {
    /// The violations that refuse the request.
    pub fn refusals(&self) -> impl Iterator<Item = &WeighedViolation> {
        self.violations.iter().filter(|judged| judged.refuses)
    }

    /// The outcome for a probe: admitted, with the nonce of the probe as a warning.
    #[must_use]
    pub fn of_probe(nonce: &str) -> Self {
        Self { warnings: vec![arrival(nonce)], ..Self::of_own(None, Mode::Enforce) }
    }

    /// The outcome for a ReleaseOverride or a Freeze. No rule decides it: the object is admitted, or refused with an
    /// objection of one or more lines. If the policy is capped below `enforce`, an invalid object is admitted with a
    /// warning, and has no effect.
    #[must_use]
    pub fn of_own(objection: Option<String>, cap: Mode) -> Self {
        let objection = objection.map(|text| printable_lines(&text, MAX_MESSAGE_BYTES).into_owned());
        let allowed = objection.is_none() || cap < Mode::Enforce;
        let warned = objection.as_ref().filter(|_| allowed);
        Self {
            allowed,
            code: if allowed { 200 } else { 403 },
            message: objection.clone().filter(|_| !allowed).unwrap_or_default(),
            emergency: None,
            warnings: warned.map(|why| wrapped(&format!("The override is void. {why}"))).unwrap_or_default(),
            objection,
            audit: Vec::new(),
            violations: Vec::new(),
        }
    }
}

/// Applies the modes of a policy to the violations of a request. Violations of rules that are off are dropped.
#[must_use]
pub fn weigh(policy: &Policy, scope: &Scope<'_>, violations: Vec<Violation>) -> Vec<WeighedViolation> {
    let judged = violations.into_iter().map(|violation| {
        // For a scaled object, only the rule knows the release.
        let release = violation.release.as_ref().map(|release| release.name.as_str()).or(scope.release);
        let mode = policy.mode(violation.rule, &Scope { release, ..*scope });
        let mode = if violation.kind == ViolationKind::Advice { mode.min(Mode::Warn) } else { mode };
        let refuses = mode == Mode::Enforce && denies(policy, scope, &violation) && violation.overridden.is_none();
        WeighedViolation { violation, mode, refuses }
    });
    judged.filter(|judged| judged.mode != Mode::Off).collect()
}

/// Whether an enforced rule refuses a request with this violation.
fn denies(policy: &Policy, scope: &Scope<'_>, violation: &Violation) -> bool {
    let closed = match (violation.kind, violation.rule.specification().fails_closed) {
        (ViolationKind::Refused, _) => return true,
        (ViolationKind::Advice, _) => return false,
        // Only requests of the same user lead to an overload, so an overload must not admit what the rule refuses. Managers are
        // exempt, because they may write a lot at a time.
        (ViolationKind::Overloaded, _) => !policy.managers.contains(scope.actor.name),
        // An unclear answer would be the same at the next attempt.
        (ViolationKind::Unclear, FailsClosed::Always) => scope.creates_record,
        (_, FailsClosed::Always) => true,
        (ViolationKind::Unclear, FailsClosed::OnRemoval) => false,
        (_, FailsClosed::OnRemoval) => match scope.removal {
            Removal::Nothing => false,
            Removal::Possible => policy.protected.may_cover(scope.release),
            Removal::Protected => true,
        },
        (_, FailsClosed::OnRecordCreate) => scope.creates_record,
        (_, FailsClosed::Never) => false,
    };
    let default = if closed { OnUndecided::Deny } else { OnUndecided::Allow };
    policy.on_undecided(violation.rule).unwrap_or(default) == OnUndecided::Deny
}

impl Outcome {
    /// The outcome of the violations that the rules found.
    #[must_use]
    pub fn of(policy: &Policy, mut judged: Vec<WeighedViolation>) -> Self {
        // The texts are no longer compared, only shown.
        judged.iter_mut().for_each(|judged| judged.violation.make_printable());
        let refusing = || judged.iter().filter(|judged| judged.refuses).map(|judged| &judged.violation);
        let emergency = emergency::way_out(policy, refusing());
        let refused: Vec<_> = refusing().collect();
        let message = message(&refused, emergency.as_deref());
        let allowed = refused.is_empty();
        let code = refusing().map(|violation| violation.rule.specification().status_code).max();
        let warnings = warnings(&judged);
        Self {
            allowed,
            code: code.unwrap_or(200),
            message,
            objection: None,
            emergency,
            warnings,
            audit: annotations(&judged),
            violations: judged,
        }
    }
}

/// The message of a refusal. If it is too long, the sentences are cut to equal lengths. The next steps and the command at the end
/// are never cut, because users need them more than the ends of sentences.
fn message(refusing: &[&Violation], emergency: Option<&str>) -> String {
    let end = emergency.map(|command| format!(" {command}")).unwrap_or_default();
    let room = MAX_MESSAGE_BYTES.saturating_sub(end.len());
    let messages: Vec<_> = refusing.iter().map(|violation| violation.message()).collect();
    let complete = messages.join(" ");
    if complete.len() <= room {
        return complete + &end;
    }
    let sentences: usize = refusing.iter().map(|violation| violation.sentence.len()).sum();
    let share = (room + sentences).saturating_sub(complete.len()) / refusing.len().max(1);
    let shortened: Vec<_> = refusing.iter().map(|violation| violation.shortened_message(share)).collect();
    into_printable(shortened.join(" "), room) + &end
}

/// Warnings for violations that do not refuse. If one reason leaves several rules undecided, it appears once.
fn warnings(judged: &[WeighedViolation]) -> Vec<String> {
    let mut seen = HashSet::new();
    let warned = judged.iter().filter(|judged| !judged.refuses && judged.mode != Mode::Audit);
    let warned = warned.filter(|judged| seen.insert(judged.violation.sentence.as_str()));
    warned.flat_map(|judged| wrapped(&warning(&judged.violation))).collect()
}

/// The warning for a violation that does not refuse.
fn warning(violation: &Violation) -> String {
    match &violation.overridden {
        Some(AppliedOverride { name, reason, ticket, until }) => {
            let ticket = ticket.as_ref().map(|ticket| format!(" (ticket {ticket})")).unwrap_or_default();
            format!("{} is overridden by ReleaseOverride {name} until {until}: {reason}{ticket}", violation.rule)
        }
        None => violation.message(),
    }
}

/// Breaks a printable message at spaces into warnings of bounded length. The API server drops a warning that contains a control
/// character.
fn wrapped(message: &str) -> Vec<String> {
    const WARNING_PREFIX: &str = "interlock: ";
    let mut lines = Vec::new();
    let mut line = WARNING_PREFIX.to_owned();
    for word in message.split_whitespace() {
        let fits = line.chars().count() + 1 + word.chars().count() <= MAX_WARNING_CHARS;
        if !fits && line.len() > WARNING_PREFIX.len() {
            lines.push(std::mem::replace(&mut line, WARNING_PREFIX.to_owned()));
        }
        if line.len() > WARNING_PREFIX.len() {
            line.push(' ');
        }
        line.push_str(&printable(word, MAX_WARNING_CHARS - WARNING_PREFIX.len()));
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;
    use crate::facts::Actor;
    use crate::release::ReleaseRef;
    use crate::review::Operation;
    use crate::rule::RuleId;
    use crate::text::hostile::hostile;
    use crate::text::is_printable;
    use crate::violation::MAX_SENTENCE_BYTES;
    use crate::ways_out::WaysOut;

    fn apply(policy: &Policy, scope: &Scope<'_>, violations: Vec<Violation>) -> Outcome {
        Outcome::of(policy, weigh(policy, scope, violations))
    }

    fn policy(mode: &str, on_undecided: &str) -> Policy {
        let text = format!(
            "apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\nrules:\n  revision-order: {{mode: {mode}{on_undecided}}}\n"
        );
        Policy::parse(&text, Path::new("test")).unwrap()
    }

    fn violation(kind: ViolationKind) -> Violation {
        Violation {
            rule: RuleId::known("revision-order"),
            kind,
            sentence: "It is so.".into(),
            ways_out: "Do this.".into(),
            pointers: Vec::new(),
            release: None,
            overridden: None,
            frozen: None,
        }
    }

    fn scope(creates_record: bool) -> Scope<'static> {
        let actor = Actor::named("alice", &[]);
        Scope {
            actor,
            namespace: "shop",
            release: None,
            kind: "Secret",
            owner: None,
            operation: Operation::Create,
            creates_record,
            removal: Removal::Nothing,
        }
    }

    #[test]
    fn every_mode_and_kind_of_violation_has_its_outcome() {
        // (mode, setting, kind, is it a record's CREATE) -> (allowed, warned, judged)
        let deny = ", onUndecided: deny";
        let allow = ", onUndecided: allow";
        for (mode, setting, kind, creates, wanted) in [
            ("enforce", "", ViolationKind::Refused, false, (false, false, 1)),
            ("warn", "", ViolationKind::Refused, true, (true, true, 1)),
            ("audit", "", ViolationKind::Refused, true, (true, false, 1)),
            ("'off'", "", ViolationKind::Refused, true, (true, false, 0)),
            ("enforce", "", ViolationKind::Advice, true, (true, true, 1)),
            ("enforce", deny, ViolationKind::Advice, true, (true, true, 1)),
            ("audit", "", ViolationKind::Advice, true, (true, false, 1)),
            ("'off'", "", ViolationKind::Advice, true, (true, false, 0)),
            ("enforce", "", ViolationKind::Unavailable, true, (false, false, 1)),
            ("enforce", "", ViolationKind::Unavailable, false, (true, true, 1)),
            ("enforce", deny, ViolationKind::Unavailable, false, (false, false, 1)),
            ("enforce", allow, ViolationKind::Unavailable, true, (true, true, 1)),
            ("warn", deny, ViolationKind::Unavailable, true, (true, true, 1)),
            ("audit", deny, ViolationKind::Unavailable, true, (true, false, 1)),
            ("'off'", deny, ViolationKind::Unavailable, true, (true, false, 0)),
        ] {
            let outcome = apply(&policy(mode, setting), &scope(creates), vec![violation(kind)]);
            let got = (outcome.allowed, !outcome.warnings.is_empty(), outcome.violations.len());
            assert_eq!(got, wanted, "{mode}{setting} {kind:?} creates={creates}");
            assert_eq!(outcome.code, if outcome.allowed { 200 } else { 403 });
            assert_eq!(outcome.audit.is_empty(), outcome.violations.is_empty());
        }
    }

    #[test]
    fn commits_are_refused_if_unavailable_and_admitted_if_unclear() {
        let commit = |kind| Violation { rule: RuleId::known("dropped-bundles"), ..violation(kind) };
        let allowed = |policy: &Policy, kind| apply(policy, &scope(false), vec![commit(kind)]).allowed;
        let shipped = Policy::shipped().unwrap();
        assert!(!allowed(&shipped, ViolationKind::Unavailable) && allowed(&shipped, ViolationKind::Unclear));
        let head = "apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\nrules:\n  dropped-bundles: ";
        let open = Policy::parse(&format!("{head}{{onUndecided: allow}}\n"), Path::new("test")).unwrap();
        assert!(allowed(&open, ViolationKind::Unavailable));
        let closed = Policy::parse(&format!("{head}{{onUndecided: deny}}\n"), Path::new("test")).unwrap();
        assert!(!allowed(&closed, ViolationKind::Unclear));
    }

    #[test]
    fn every_refusal_ends_with_the_command_that_opens_the_rule() {
        let about =
            |release: ReleaseRef, rule| Violation { release: Some(release), rule, ..violation(ViolationKind::Refused) };
        let message = |policy: &Policy, violations: Vec<Violation>| {
            let message = apply(policy, &scope(false), violations).message;
            message.split_once("[record-deletion] ").map(|(_, end)| end.to_owned())
        };
        let web = || ReleaseRef::new("shop", "web");
        let both =
            || vec![about(web(), RuleId::known("revision-order")), about(web(), RuleId::known("record-deletion"))];
        let shipped = Policy::shipped().unwrap();
        assert_eq!(
            message(&shipped, both()).unwrap(),
            "In an emergency: interlock override shop/web --rule revision-order --rule record-deletion --for 30m --reason \
             \"...\""
        );
        // Several commands fit on one line in a shell.
        let two = vec![
            about(ReleaseRef::new("shop", "api"), RuleId::known("record-deletion")),
            about(web(), RuleId::known("freeze")),
        ];
        let text = apply(&shipped, &scope(false), two).message;
        assert!(text.contains("--reason \"...\" && interlock override shop/web --rule freeze"), "{text}");
        let extension = vec![about(ReleaseRef::new("", "argocd"), RuleId::known("record-deletion"))];
        let text = apply(&shipped, &scope(false), extension).message;
        assert!(text.contains("interlock override interlock-system/argocd --rule record-deletion"), "{text}");
        // A command is left out if it would not help, or if a shell would misinterpret it.
        let unknown = vec![violation(ViolationKind::Refused), about(web(), RuleId::known("record-deletion"))];
        let hostile = |name: &str| vec![about(ReleaseRef::new("shop", name), RuleId::known("record-deletion"))];
        for violations in [unknown, hostile("web; rm -rf ~"), hostile("$(id)"), hostile("--for"), hostile("")] {
            let outcome = apply(&shipped, &scope(false), violations);
            assert!(!outcome.allowed && outcome.emergency.is_none(), "{}", outcome.message);
        }
        let head = "apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\noverrides: ";
        let with = |settings: &str| Policy::parse(&format!("{head}{settings}\n"), Path::new("test")).unwrap();
        assert_eq!(apply(&with("{allowed: false}"), &scope(false), both()).emergency, None);
        let second = message(&with("{secondPerson: true}"), both()).unwrap();
        assert!(second.starts_with("In an emergency, another person can run: "), "{second}");
        for (settings, open_for) in [("20m", "20m"), ("1m30s", "1m30s"), ("1h", "30m")] {
            let short = message(&with(&format!("{{maxDuration: {settings}}}")), both()).unwrap();
            assert!(short.contains(&format!(" --for {open_for} --reason")), "{short}");
        }
    }

    #[test]
    fn an_overridden_violation_is_admitted_and_audited() {
        let applied = AppliedOverride {
            name: "shop/web-1".into(),
            reason: "a\u{7} b".into(),
            ticket: Some("OPS-\u{7}7".into()),
            until: jiff::Timestamp::UNIX_EPOCH,
        };
        let overridden = Violation { overridden: Some(applied), ..violation(ViolationKind::Refused) };
        let outcome = apply(&policy("enforce", ""), &scope(false), vec![overridden.clone(), overridden]);
        assert!(outcome.allowed && outcome.emergency.is_none());
        let warned = "interlock: revision-order is overridden by ReleaseOverride shop/web-1 until 1970-01-01T00:00:00Z: a\u{fffd} b";
        assert_eq!(outcome.warnings, [format!("{warned} (ticket OPS-\u{fffd}7)")]);
        assert!(outcome.audit.contains(&("ticket", "OPS-\u{fffd}7".to_owned())), "{:?}", outcome.audit);
        assert!(outcome.audit.contains(&("override", "shop/web-1".to_owned())), "{:?}", outcome.audit);
    }

    #[test]
    fn one_reason_for_several_undecided_rules_is_one_warning() {
        let twice = vec![violation(ViolationKind::Unavailable), violation(ViolationKind::Unavailable)];
        let outcome = apply(&policy("enforce", ""), &scope(false), twice);
        assert_eq!((outcome.warnings.len(), outcome.violations.len()), (1, 2));
    }

    #[test]
    fn a_request_without_violations_is_admitted_silently() {
        let outcome = apply(&policy("enforce", ""), &scope(true), Vec::new());
        assert!(outcome.allowed && outcome.warnings.is_empty() && outcome.audit.is_empty());
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn an_outcome_is_bounded_and_printable(
            texts in proptest::collection::vec((hostile(), hostile(), hostile(), hostile(), hostile(), any::<bool>()), 0..5),
            mode in prop_oneof![Just("enforce"), Just("warn"), Just("audit")],
        ) {
            let violations = texts.into_iter().map(|(sentence, way_out, namespace, name, pointer, overridden)| {
                let applied = || AppliedOverride {
                    name: name.clone(),
                    reason: sentence.clone(),
                    ticket: Some(sentence.clone()),
                    until: jiff::Timestamp::UNIX_EPOCH,
                };
                Violation {
                    overridden: overridden.then(applied),
                    release: Some(ReleaseRef::new(namespace, name)),
                    pointers: vec![pointer; 30],
                    sentence,
                    ways_out: WaysOut::from(&*way_out),
                    ..violation(ViolationKind::Refused)
                }
            });
            let outcome = apply(&policy(mode, ""), &scope(false), violations.collect());
            prop_assert!(outcome.message.len() <= MAX_MESSAGE_BYTES && is_printable(&outcome.message));
            prop_assert!(outcome.warnings.iter().all(|it| it.chars().count() <= MAX_WARNING_CHARS && is_printable(it)));
            prop_assert!(outcome.audit.iter().all(|(_, value)| value.len() <= 1024 && is_printable(value)));
            for WeighedViolation { violation, .. } in &outcome.violations {
                let release = violation.release.as_ref().map(ToString::to_string).unwrap_or_default();
                let shown = violation.shown_pointers().chain([violation.message(), release]);
                prop_assert!(shown.into_iter().all(|text| text.len() <= 5 << 10 && is_printable(&text)));
            }
            prop_assert_eq!(outcome.allowed, outcome.message.is_empty());
        }
    }

    #[test]
    fn a_long_refusal_loses_only_the_ends_of_sentences() {
        let about = |number: usize| Violation {
            sentence: format!("Sentence {number}: {}", "word ".repeat(100_000)),
            ways_out: WaysOut::from(&*format!("Way out {number}.")),
            release: Some(ReleaseRef::new("shop", "web")),
            ..violation(ViolationKind::Refused)
        };
        for many in [1, 2, 5, 20] {
            let outcome = apply(&policy("enforce", ""), &scope(false), (0..many).map(about).collect());
            let message = outcome.message;
            let wanted = (many * MAX_SENTENCE_BYTES).min(MAX_MESSAGE_BYTES - 200);
            assert!(message.len() > wanted && message.len() <= MAX_MESSAGE_BYTES, "{many}: {}", message.len());
            for number in 0..many {
                assert!(message.contains(&format!("Sentence {number}: word")), "{message}");
                assert!(message.contains(&format!("… Way out {number}. [revision-order]")), "{message}");
            }
            let command =
                "In an emergency: interlock override shop/web --rule revision-order --for 30m --reason \"...\"";
            assert!(message.ends_with(command), "{message}");
        }
        // A message of ordinary length is not changed.
        let ordinary = apply(&policy("enforce", ""), &scope(false), vec![violation(ViolationKind::Refused)]);
        assert_eq!(ordinary.message, "It is so. Do this. [revision-order]");
        let objection = Outcome::of_own(Some("\u{1b}".repeat(1 << 20)), Mode::Enforce).message;
        assert!(objection.len() <= MAX_MESSAGE_BYTES && is_printable(&objection));
    }

    #[test]
    fn warnings_are_cut_at_spaces_and_never_too_long() {
        let text = format!("{} {}", "word ".repeat(60), "x".repeat(300));
        let lines = wrapped(&text);
        assert!(lines.len() > 3);
        assert_eq!(wrapped(&"x".repeat(300)).len(), 1, "no empty warning before a word that is too long");
        assert!(lines.iter().all(|line| line.chars().count() <= MAX_WARNING_CHARS && line.starts_with("interlock: ")));
    }
}

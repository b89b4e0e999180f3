//! From violations and modes to the outcome of a review.

mod annotations;
mod emergency;
mod verdict;

use std::collections::HashSet;

pub use verdict::{BadVerdict, Verdict};

use annotations::annotations;

use super::policy::{Mode, OnUndecided, Policy, Scope};
use super::rules::{Kind, Relief, Violation};

/// The longest warning that the API server hands on whole, in characters.
const WARNING_LENGTH: usize = 120;

/// A violation with what the policy makes of it.
#[derive(Debug, PartialEq, Eq)]
pub struct Judged {
    /// What a rule found.
    pub violation: Violation,
    /// The mode of that rule.
    pub mode: Mode,
    /// Whether this one refuses the request.
    pub refuses: bool,
}

impl Judged {
    /// What it came to.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        Verdict::of(self.violation.kind, self.mode, self.refuses, self.violation.overridden.is_some())
    }
}

/// What becomes of a request.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Whether it is admitted.
    pub allowed: bool,
    /// 200, or that of the rule that refuses.
    pub code: u16,
    /// Why it is refused; empty otherwise.
    pub message: String,
    /// The end of that: the command that opens what refuses it, where there is one.
    pub emergency: Option<String>,
    /// For the user, at most 120 characters each.
    pub warnings: Vec<String>,
    /// For the audit log of the API server: key and value.
    pub audit: Vec<(&'static str, String)>,
    /// Every violation, whatever became of it.
    pub judged: Vec<Judged>,
}

impl Outcome {
    /// The violations that refuse the request.
    pub fn refusals(&self) -> impl Iterator<Item = &Judged> {
        self.judged.iter().filter(|judged| judged.refuses)
    }

    /// What is no matter of rules: an override that is as it must be, or what is wrong with it.
    #[must_use]
    pub fn of_override(objection: Option<String>) -> Self {
        Self {
            allowed: objection.is_none(),
            code: if objection.is_none() { 200 } else { 403 },
            message: objection.unwrap_or_default(),
            emergency: None,
            warnings: Vec::new(),
            audit: Vec::new(),
            judged: Vec::new(),
        }
    }
}

/// How the policy applies a violation, and whether that refuses the request. Where the policy does not say what becomes of
/// an undecided rule, it refuses the CREATE of a record, which is the one clean gate, and a commit of which nothing can be
/// learnt; it admits every other write.
pub(crate) fn applied(policy: &Policy, scope: &Scope<'_>, violation: &Violation) -> (Mode, bool) {
    let denied = |default| policy.on_undecided(violation.rule).unwrap_or(default) == OnUndecided::Deny;
    let denies = match violation.kind {
        Kind::Refused => true,
        Kind::Unavailable | Kind::Late | Kind::Overloaded if violation.rule.is_gate() => denied(OnUndecided::Deny),
        Kind::Unavailable | Kind::Late | Kind::Overloaded | Kind::Unclear => {
            denied(if scope.creates_record { OnUndecided::Deny } else { OnUndecided::Allow })
        }
    };
    // Of a scaled object only the rule has learnt which release it belongs to.
    let release = violation.release.as_ref().map(|release| release.name.as_str()).or(scope.release);
    let mode = policy.mode(violation.rule, &Scope { release, ..*scope });
    (mode, mode == Mode::Enforce && denies && violation.overridden.is_none())
}

/// Applies the modes of a policy to a request of some scope.
#[must_use]
pub fn apply(policy: &Policy, scope: &Scope<'_>, violations: Vec<Violation>) -> Outcome {
    let judged: Vec<Judged> = violations
        .into_iter()
        .map(|violation| {
            let (mode, refuses) = applied(policy, scope, &violation);
            Judged { mode, refuses, violation }
        })
        .filter(|judged| judged.mode != Mode::Off)
        .collect();
    let refusing = || judged.iter().filter(|judged| judged.refuses).map(|judged| &judged.violation);
    let emergency = emergency::way_out(policy, refusing());
    let message = refusing().map(Violation::message).chain(emergency.clone());
    let message = message.collect::<Vec<_>>().join(" ");
    // What keeps several rules from deciding is told once.
    let mut told = HashSet::new();
    let warned = judged.iter().filter(|judged| !judged.refuses && judged.mode != Mode::Audit);
    let warned = warned.filter(|judged| told.insert(judged.violation.sentence.as_str()));
    let warnings = warned.flat_map(|judged| wrapped(&warning(&judged.violation))).collect();
    let allowed = message.is_empty();
    let code = refusing().map(|violation| violation.rule.status_code()).max();
    Outcome { allowed, code: code.unwrap_or(200), message, emergency, warnings, audit: annotations(&judged), judged }
}

/// What the user is told of a violation that does not refuse.
fn warning(violation: &Violation) -> String {
    match &violation.overridden {
        Some(Relief { name, reason, until }) => {
            format!("{} is overridden by ReleaseOverride {name} until {until}: {reason}", violation.rule)
        }
        None => violation.message(),
    }
}

/// Breaks a message at spaces into warnings of bounded length.
fn wrapped(message: &str) -> Vec<String> {
    const HEAD: &str = "interlock: ";
    let mut lines = Vec::new();
    let mut line = HEAD.to_owned();
    for word in message.split_whitespace() {
        let fits = line.chars().count() + 1 + word.chars().count() <= WARNING_LENGTH;
        if !fits && line.len() > HEAD.len() {
            lines.push(std::mem::replace(&mut line, HEAD.to_owned()));
        }
        if line.len() > HEAD.len() {
            line.push(' ');
        }
        // The API server throws away a warning with a control character in it.
        line.extend(word.chars().filter(|letter| !letter.is_control()).take(WARNING_LENGTH - HEAD.len()));
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::engine::facts::{Actor, ActorKind};
    use crate::engine::release::ReleaseRef;
    use crate::engine::rules::RuleId;

    fn policy(mode: &str, on_undecided: &str) -> Policy {
        let text = format!(
            "apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\nrules:\n  revision-order: {{mode: {mode}{on_undecided}}}\n"
        );
        Policy::parse(&text, Path::new("test")).unwrap()
    }

    fn violation(kind: Kind) -> Violation {
        Violation {
            rule: RuleId::RevisionOrder,
            kind,
            sentence: "It is so.".into(),
            way_out: "Do this.".into(),
            pointers: Vec::new(),
            release: None,
            overridden: None,
        }
    }

    fn scope(creates_record: bool) -> Scope<'static> {
        let actor = Actor { name: "alice", kind: ActorKind::Person, groups: &[] };
        Scope { actor, namespace: "shop", release: None, kind: "Secret", owner: None, creates_record }
    }

    #[test]
    fn every_mode_with_every_kind_of_violation() {
        // (mode, setting, kind, is it a record's CREATE) -> (allowed, warned, judged)
        let deny = ", onUndecided: deny";
        let allow = ", onUndecided: allow";
        for (mode, setting, kind, creates, wanted) in [
            ("enforce", "", Kind::Refused, false, (false, false, 1)),
            ("warn", "", Kind::Refused, true, (true, true, 1)),
            ("audit", "", Kind::Refused, true, (true, false, 1)),
            ("'off'", "", Kind::Refused, true, (true, false, 0)),
            ("enforce", "", Kind::Unavailable, true, (false, false, 1)),
            ("enforce", "", Kind::Unavailable, false, (true, true, 1)),
            ("enforce", deny, Kind::Unavailable, false, (false, false, 1)),
            ("enforce", allow, Kind::Unavailable, true, (true, true, 1)),
            ("warn", deny, Kind::Unavailable, true, (true, true, 1)),
            ("audit", deny, Kind::Unavailable, true, (true, false, 1)),
            ("'off'", deny, Kind::Unavailable, true, (true, false, 0)),
        ] {
            let outcome = apply(&policy(mode, setting), &scope(creates), vec![violation(kind)]);
            let got = (outcome.allowed, !outcome.warnings.is_empty(), outcome.judged.len());
            assert_eq!(got, wanted, "{mode}{setting} {kind:?} creates={creates}");
            assert_eq!(outcome.code, if outcome.allowed { 200 } else { 403 });
            assert_eq!(outcome.audit.is_empty(), outcome.judged.is_empty());
        }
    }

    #[test]
    fn a_commit_of_which_nothing_can_be_learnt_is_refused_and_one_that_is_unclear_is_not() {
        let commit = |kind| Violation { rule: RuleId::DroppedBundles, ..violation(kind) };
        let allowed = |policy: &Policy, kind| apply(policy, &scope(false), vec![commit(kind)]).allowed;
        let shipped = Policy::shipped().unwrap();
        assert!(!allowed(&shipped, Kind::Unavailable) && allowed(&shipped, Kind::Unclear));
        let head = "apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\nrules:\n  dropped-bundles: ";
        let open = Policy::parse(&format!("{head}{{onUndecided: allow}}\n"), Path::new("test")).unwrap();
        assert!(allowed(&open, Kind::Unavailable));
        let closed = Policy::parse(&format!("{head}{{onUndecided: deny}}\n"), Path::new("test")).unwrap();
        assert!(!allowed(&closed, Kind::Unclear));
    }

    #[test]
    fn every_refusal_ends_with_the_command_that_opens_it() {
        let about = |release: ReleaseRef, rule| Violation { release: Some(release), rule, ..violation(Kind::Refused) };
        let message = |policy: &Policy, violations: Vec<Violation>| {
            let message = apply(policy, &scope(false), violations).message;
            message.split_once("[record-deletion] ").map(|(_, end)| end.to_owned())
        };
        let web = || ReleaseRef::new("shop", "web");
        let both = || vec![about(web(), RuleId::RevisionOrder), about(web(), RuleId::RecordDeletion)];
        let shipped = Policy::shipped().unwrap();
        assert_eq!(
            message(&shipped, both()).unwrap(),
            "In an emergency: interlock override shop/web --rule revision-order --rule record-deletion --for 30m --reason \
             \"...\""
        );
        let extension = vec![about(ReleaseRef::new("", "argocd"), RuleId::RecordDeletion)];
        let text = apply(&shipped, &scope(false), extension).message;
        assert!(text.contains("interlock override interlock-system/argocd --rule record-deletion"), "{text}");
        // Nothing that would not help, or that a shell would take for something else.
        let unknown = vec![violation(Kind::Refused), about(web(), RuleId::RecordDeletion)];
        let hostile = |name: &str| vec![about(ReleaseRef::new("shop", name), RuleId::RecordDeletion)];
        for violations in [unknown, hostile("web; rm -rf ~"), hostile("$(id)"), hostile("--for"), hostile("")] {
            let outcome = apply(&shipped, &scope(false), violations);
            assert!(!outcome.allowed && outcome.emergency.is_none(), "{}", outcome.message);
        }
        let head = "apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\noverrides: ";
        let with = |settings: &str| Policy::parse(&format!("{head}{settings}\n"), Path::new("test")).unwrap();
        assert_eq!(apply(&with("{allowed: false}"), &scope(false), both()).emergency, None);
        let second = message(&with("{secondPerson: true}"), both()).unwrap();
        assert!(second.starts_with("In an emergency, by somebody else than you: "), "{second}");
        for (settings, open_for) in [("20m", "20m"), ("1m30s", "1m30s"), ("1h", "30m")] {
            let short = message(&with(&format!("{{maxDuration: {settings}}}")), both()).unwrap();
            assert!(short.contains(&format!(" --for {open_for} --reason")), "{short}");
        }
    }

    #[test]
    fn what_is_overridden_is_admitted_with_its_traces() {
        let relief =
            Relief { name: "shop/web-1".into(), reason: "a\u{7} b".into(), until: jiff::Timestamp::UNIX_EPOCH };
        let overridden = Violation { overridden: Some(relief), ..violation(Kind::Refused) };
        let outcome = apply(&policy("enforce", ""), &scope(false), vec![overridden.clone(), overridden]);
        assert!(outcome.allowed && outcome.emergency.is_none());
        let warned =
            "interlock: revision-order is overridden by ReleaseOverride shop/web-1 until 1970-01-01T00:00:00Z: a b";
        assert_eq!(outcome.warnings, [warned]);
        assert!(outcome.audit.contains(&("override", "shop/web-1".to_owned())), "{:?}", outcome.audit);
    }

    #[test]
    fn what_several_rules_could_not_learn_is_warned_of_once() {
        let twice = vec![violation(Kind::Unavailable), violation(Kind::Unavailable)];
        let outcome = apply(&policy("enforce", ""), &scope(false), twice);
        assert_eq!((outcome.warnings.len(), outcome.judged.len()), (1, 2));
    }

    #[test]
    fn no_violation_is_an_admission_without_a_word() {
        let outcome = apply(&policy("enforce", ""), &scope(true), Vec::new());
        assert!(outcome.allowed && outcome.warnings.is_empty() && outcome.audit.is_empty());
    }

    #[test]
    fn warnings_are_cut_at_spaces_and_never_too_long() {
        let text = format!("{} {}", "word ".repeat(60), "x".repeat(300));
        let lines = wrapped(&text);
        assert!(lines.len() > 3);
        assert!(lines.iter().all(|line| line.chars().count() <= WARNING_LENGTH && line.starts_with("interlock: ")));
    }
}

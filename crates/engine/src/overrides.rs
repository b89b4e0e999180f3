//! Break-glass: which ReleaseOverrides may be stored, and which rules they open.

mod applied;

use jiff::{SignedDuration, Timestamp};

use super::facts::{Actor, ActorKind, Facts, OwnSpec, OwnWrite, Subject};
use super::object::is_dns_label;
use super::outcome::Outcome;
use super::policy::{Globs, OverrideSettings, Policy, ReasonPattern};
use super::release_override::{Override, OverrideSpec, VOID};
use super::rule::RuleId;
use super::stamp::creator;
use super::text::into_printable;

pub(crate) use applied::apply_overrides;

/// The longest annotation of a void override, in bytes.
const MAX_VOID_BYTES: usize = 200;

/// The tolerance for the length of a new override or Freeze: the clocks of its creator and of this process differ.
pub(crate) const CREATION_TOLERANCE: SignedDuration = SignedDuration::from_secs(120);

impl Override {
    /// When the override closes: at its own end, or earlier if the policy allows less time after its creation.
    #[must_use]
    pub fn closes(&self, policy: &OverrideSettings) -> Option<Timestamp> {
        let longest = self.created?.checked_add(policy.max_duration).ok()?;
        Some(self.spec.expires_at.min(longest))
    }

    /// Whether the override is open at a moment.
    #[must_use]
    pub fn is_in_force(&self, policy: &OverrideSettings, now: Timestamp) -> bool {
        let is_valid = !self.is_void && fault(&self.spec, &self.namespace).is_none();
        is_valid && policy.allowed && self.closes(policy).is_some_and(|end| now < end)
    }

    /// Whether the override ended so long ago that nobody keeps it. Its own end counts, even if the policy closed it
    /// earlier.
    #[must_use]
    pub fn is_past(&self, retention: SignedDuration, now: Timestamp) -> bool {
        // A time that cannot be computed is in the future.
        self.spec.expires_at.checked_add(retention).is_ok_and(|end| end <= now)
    }

    /// Whether the override opens a rule to a user at a moment.
    #[must_use]
    pub fn opens(&self, rule: RuleId, user: &str, policy: &OverrideSettings, now: Timestamp) -> bool {
        self.is_in_force(policy, now)
            && self.spec.rules.contains(&rule)
            && self.spec.users.as_ref().is_none_or(|users| globs(users).is_ok_and(|globs| globs.contains(user)))
            && (!policy.second_person || self.created_by.as_deref().is_some_and(|creator| creator != user))
    }
}

/// The outcome of a write to a ReleaseOverride: the answer to a probe, or whether the override may be stored.
#[must_use]
pub(crate) fn outcome(
    write: &OwnWrite<'_>,
    spec: &Result<OverrideSpec, String>,
    actor: &Actor<'_>,
    policy: &Policy,
    now: Timestamp,
) -> Outcome {
    match write.probe() {
        Some(nonce) => Outcome::of_probe(nonce),
        None => Outcome::of_own(objection(write, spec, actor, &policy.overrides, now), policy.cap),
    }
}

/// Why a ReleaseOverride must not be stored; `None` if it may. The webhook may have been unavailable when the override
/// was created, so each use checks everything again, except the pattern of the reason.
#[must_use]
pub(crate) fn objection(
    write: &OwnWrite<'_>,
    spec: &Result<OverrideSpec, String>,
    actor: &Actor<'_>,
    policy: &OverrideSettings,
    now: Timestamp,
) -> Option<String> {
    if let Some(objection) = creator::objection(write, actor.name) {
        return Some(objection);
    }
    let stored = write.before.as_ref().and_then(|before| before.annotation(VOID));
    if stored.is_some() && write.after.annotation(VOID) != stored {
        return Some(format!("The annotation {VOID} says why the override opens nothing. Create another one."));
    }
    invalid(write, spec, actor, policy, now)
}

/// The annotation of a void override; `None` if the override is valid, or if its error refuses it.
#[must_use]
pub fn void(facts: &Facts<'_>, policy: &Policy, now: Timestamp) -> Option<String> {
    let Subject::Own(write) = &facts.subject else { return None };
    let OwnSpec::Override(spec) = &write.spec else { return None };
    match &write.before {
        Some(before) => before.annotation(VOID).map(str::to_owned),
        None if policy.is_capped() => {
            let why = invalid(write, spec, &facts.actor, &policy.overrides, now);
            why.map(|why| into_printable(why, MAX_VOID_BYTES))
        }
        None => None,
    }
}

/// Why a new override is invalid.
fn invalid(
    write: &OwnWrite<'_>,
    spec: &Result<OverrideSpec, String>,
    actor: &Actor<'_>,
    policy: &OverrideSettings,
    now: Timestamp,
) -> Option<String> {
    if actor.kind == ActorKind::Interlock {
        return Some(
            "Interlock's own account may create overrides for its probes only, as dry runs. Create the override under the \
             account of the person who needs it."
                .to_owned(),
        );
    }
    // The definition of the resource makes the specification immutable.
    if write.before.is_some() {
        return None;
    }
    let namespace = write.namespace;
    if !policy.allowed {
        return Some(format!(
            "The policy allows no overrides in namespace {namespace}. Ask the people who maintain the policy."
        ));
    }
    let spec = match spec {
        Ok(spec) => spec,
        Err(why) => return Some(format!("The override cannot be parsed: {why}.")),
    };
    if let Some(fault) = fault(spec, namespace) {
        return Some(fault);
    }
    let left = spec.expires_at.duration_since(now);
    if !left.is_positive() {
        return Some(format!(
            "The override has already expired: it ended at {}, and it is {now} now.",
            spec.expires_at
        ));
    }
    if left > policy.max_duration.saturating_add(CREATION_TOLERANCE) {
        return Some(format!(
            "The override would be open for {:#}, but the policy allows at most {:#}. Set an earlier end. You can create \
             another override when this one has expired.",
            left.round(jiff::Unit::Minute).unwrap_or(left),
            policy.max_duration,
        ));
    }
    unmatched(&spec.reason, policy)
}

/// Why a specification is invalid, regardless of the policy and the time.
fn fault(spec: &OverrideSpec, namespace: &str) -> Option<String> {
    if let Err(error) = globs(spec.users.as_deref().unwrap_or_default()) {
        return Some(format!("The users of the override cannot be parsed: {error}."));
    }
    if !spec.reason.contains(char::is_alphanumeric) {
        return Some(
            "The override has no reason: write in `spec.reason` why it is needed, for the audit log.".to_owned(),
        );
    }
    if is_release_name(&spec.release) {
        return None;
    }
    Some(match spec.release.split_once('/') {
        Some((home, name)) if is_release_name(name) && is_dns_label(home) => {
            let elsewhere = if home == namespace { String::new() } else { format!(" in namespace {home}") };
            format!("The override names its release with the namespace. Create it{elsewhere} with `release: {name}`.")
        }
        _ => format!(
            "An override opens rules for one release, and `{}` is no name of one. Write the name alone, for example `release: web`.",
            spec.release
        ),
    })
}

/// Whether a release, an extension, a profile or a commit of Sveltos may have this name.
fn is_release_name(name: &str) -> bool {
    let ends = [name.bytes().next(), name.bytes().last()];
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        && ends.iter().all(|end| end.is_some_and(|byte| byte.is_ascii_alphanumeric()))
}

/// The patterns of the policy that a reason does not match, with an example for each.
fn unmatched(reason: &str, policy: &OverrideSettings) -> Option<String> {
    let missed: Vec<_> = policy.reason_patterns.iter().filter(|pattern| !pattern.matches(reason)).collect();
    if missed.is_empty() {
        return None;
    }
    let listed = |of: fn(&ReasonPattern) -> String| missed.iter().map(|it| of(it)).collect::<Vec<_>>().join(" and ");
    Some(format!(
        "The policy requires another reason for an override, for example {}. The reason must match {}.",
        listed(|pattern| format!("\"{}\"", pattern.example)),
        listed(|pattern| format!("`{}`", pattern.as_str())),
    ))
}

fn globs(users: &[String]) -> Result<Globs, String> {
    Globs::new(users.iter().map(String::as_str)).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_795_000_000;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(SECOND + seconds).unwrap()
    }

    fn made(users: Option<&[&str]>, expires: i64) -> Override {
        Override {
            namespace: "shop".into(),
            name: "web-1".into(),
            created: Some(at(0)),
            created_by: Some("alice".into()),
            is_void: false,
            spec: OverrideSpec {
                release: "web".into(),
                rules: vec![RuleId::known("manual-edit"), RuleId::known("manual-delete")],
                users: users.map(|users| users.iter().map(|&user| user.into()).collect()),
                reason: "incident 7".into(),
                ticket: None,
                expires_at: at(expires),
            },
        }
    }

    fn opens(it: &Override, rule: RuleId, user: &str, policy: &OverrideSettings, seconds: i64) -> bool {
        it.opens(rule, user, policy, at(seconds))
    }

    #[test]
    fn an_override_opens_its_rules_until_it_expires() {
        let (policy, it) = (OverrideSettings::default(), made(None, 60));
        assert!(opens(&it, RuleId::known("manual-edit"), "bob", &policy, 59));
        assert!(opens(&it, RuleId::known("manual-delete"), "alice", &policy, 0));
        assert!(!opens(&it, RuleId::known("manual-scale"), "bob", &policy, 59));
        assert!(!opens(&it, RuleId::known("manual-edit"), "bob", &policy, 60));
    }

    #[test]
    fn the_policy_ends_an_override_that_is_too_long() {
        let policy = OverrideSettings { max_duration: SignedDuration::from_secs(100), ..OverrideSettings::default() };
        let it = made(None, 86_400);
        assert!(opens(&it, RuleId::known("manual-edit"), "bob", &policy, 99));
        assert!(!opens(&it, RuleId::known("manual-edit"), "bob", &policy, 100));
        let undated = Override { created: None, ..it };
        assert!(!opens(&undated, RuleId::known("manual-edit"), "bob", &policy, 1));
    }

    #[test]
    fn an_override_is_kept_for_the_retention_after_its_end() {
        let (it, retention) = (made(None, 60), SignedDuration::from_secs(100));
        assert!(!it.is_past(retention, at(159)) && it.is_past(retention, at(160)));
        let mut endless = it;
        endless.spec.expires_at = Timestamp::MAX;
        assert!(!endless.is_past(retention, Timestamp::MAX));
    }

    #[test]
    fn a_void_or_invalid_override_opens_nothing() {
        let (policy, it) = (OverrideSettings::default(), made(None, 60));
        let with = |change: fn(&mut Override)| {
            let mut it = it.clone();
            change(&mut it);
            opens(&it, RuleId::known("manual-edit"), "bob", &policy, 1)
        };
        assert!(with(|_| {}));
        assert!(!with(|it| it.is_void = true));
        assert!(!with(|it| it.spec.reason = "     ".into()));
        assert!(!with(|it| it.spec.release = "*".into()));
    }

    #[test]
    fn a_policy_may_close_all_overrides() {
        let closed = OverrideSettings { allowed: false, ..OverrideSettings::default() };
        assert!(!opens(&made(None, 60), RuleId::known("manual-edit"), "bob", &closed, 1));
    }

    #[test]
    fn globs_select_the_users_of_an_override() {
        let policy = OverrideSettings::default();
        let it = made(Some(&["bob", "system:serviceaccount:ci:*"]), 60);
        assert!(opens(&it, RuleId::known("manual-edit"), "bob", &policy, 1));
        assert!(opens(&it, RuleId::known("manual-edit"), "system:serviceaccount:ci:bot", &policy, 1));
        assert!(!opens(&it, RuleId::known("manual-edit"), "alice", &policy, 1));
        assert!(
            !opens(&made(Some(&["{"]), 60), RuleId::known("manual-edit"), "{", &policy, 1),
            "a glob that does not compile"
        );
    }

    #[test]
    fn a_second_person_is_not_the_known_creator() {
        let policy = OverrideSettings { second_person: true, ..OverrideSettings::default() };
        let it = made(None, 60);
        assert!(!opens(&it, RuleId::known("manual-edit"), "alice", &policy, 1));
        assert!(opens(&it, RuleId::known("manual-edit"), "bob", &policy, 1));
        let by_alice_for_alice = made(Some(&["alice"]), 60);
        assert!(!opens(&by_alice_for_alice, RuleId::known("manual-edit"), "alice", &policy, 1));
        let unstamped = Override { created_by: None, ..it };
        assert!(!opens(&unstamped, RuleId::known("manual-edit"), "bob", &policy, 1));
        assert!(opens(&unstamped, RuleId::known("manual-edit"), "bob", &OverrideSettings::default(), 1));
    }
}

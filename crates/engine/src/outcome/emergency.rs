//! The break-glass command at the end of a refusal.

use std::collections::BTreeMap;

use jiff::SignedDuration;

use crate::object::{MAX_NAME_LENGTH, is_dns_subdomain};
use crate::policy::Policy;
use crate::release::ReleaseRef;
use crate::violation::Violation;

/// How long the command opens the rules, unless the policy allows less.
const EMERGENCY_DURATION: SignedDuration = SignedDuration::from_mins(30);

/// The sentence with the command that opens the rules that refuse a request. `None` if an override would not help: the policy
/// does not allow one, or the release of a violation is unknown.
pub(super) fn way_out<'v>(policy: &Policy, refusing: impl Iterator<Item = &'v Violation>) -> Option<String> {
    let mut rules: BTreeMap<ReleaseRef, Vec<&str>> = BTreeMap::new();
    for violation in refusing {
        let release = policy.overrides.home_of(violation.release.as_ref()?);
        // Users paste the command into a shell.
        if !policy.overrides_in(&release.namespace).allowed
            || !is_dns_subdomain(&release.namespace, MAX_NAME_LENGTH)
            || !is_dns_subdomain(&release.name, MAX_NAME_LENGTH)
        {
            return None;
        }
        let named = rules.entry(release).or_default();
        if !named.contains(&violation.rule.as_str()) {
            named.push(violation.rule.as_str());
        }
    }
    let mut second_person = false;
    let commands = rules.into_iter().map(|(release, rules)| {
        let bounds = policy.overrides_in(&release.namespace);
        second_person |= bounds.second_person;
        let open_for = format!("{:#}", EMERGENCY_DURATION.min(bounds.max_duration)).replace(' ', "");
        format!("interlock override {release} --rule {} --for {open_for} --reason \"...\"", rules.join(" --rule "))
    });
    let commands = commands.collect::<Vec<_>>().join(" && ");
    let by_whom = if second_person { ", another person can run" } else { "" };
    (!commands.is_empty()).then(|| format!("In an emergency{by_whom}: {commands}"))
}

//! A commit in pull mode without a protected release, for any reason. The agent removes what a commit does not contain.

use crate::owners::sveltos::RemoteRelease;
use crate::owners::sveltos::rules::dropped_bundles::removed;
use crate::release::ReleaseRef;
use crate::rules::check::{CheckedAll, WaysOut};
use crate::rules::declarations::case::DeclarationCase;
use crate::rules::protected_release::protection::{Protection, refusal};
use crate::rules::wording::{MAX_ENUMERATED, enumerated};

pub(crate) fn check(case: &DeclarationCase<'_>) -> CheckedAll {
    let protected = &case.policy.protected;
    if protected.names_nothing() {
        return Ok(Vec::new());
    }
    let covers = |release: &RemoteRelease| protected.covers(&ReleaseRef::new(&*release.namespace, &*release.name));
    let Some(removed) = removed::releases(case, covers)? else {
        return Ok(Vec::new());
    };
    let names = removed.releases.iter().map(ToString::to_string);
    let sentence = format!(
        "{} does not contain {}: the agent would remove what was delivered to cluster {}, and {} protects it.",
        removed.subject,
        enumerated(names, MAX_ENUMERATED),
        removed.cluster,
        Protection::Policy.words()
    );
    let mut ways_out = WaysOut::default();
    if !removed.is_withdrawn {
        let put_back = format!("put its chart back into {}, with the action Install", removed.profile);
        ways_out = ways_out.or(put_back.as_str()).note("The commit is admitted once every chart renders.");
    }
    Ok(vec![
        refusal(case.policy, removed.commit, &Protection::Policy, sentence, ways_out).at("/spec/configurationItem"),
    ])
}

//! The rule `extension-change-while-pending`.
//!
//! OLM resolves the next bundle from the last deployed one. An interrupted step must be finished before the next one, so recovery
//! starts with a pin to the interrupted version. Everything in `spec.source` affects the resolution, also the catalogs, and
//! whether OLM follows their upgrade graph.

use semver::Version;

use crate::evidence::{CandidateRecords, Freshness, StoredBody, question};
use crate::owners::OwnerWords;
use crate::owners::olm;
use crate::owners::olm::CLUSTER_EXTENSION;
use crate::owners::olm::ClusterExtension;
use crate::owners::olm::version_range::{VersionRange, version_of};
use crate::release::{Entry, Record};
use crate::review::Operation;
use crate::rule::{FORBIDDEN, FailsClosed, Mode, Requests, Specification};
use crate::rules::check::{Check, CheckedAll, Refusal, Rule, Step, WaysOut};
use crate::rules::declarations::case::DeclarationCase;
use crate::rules::home::records_of_extension;
use crate::rules::records::recovery::unstick;
use crate::rules::undecided::{Undecided, ask};
use crate::rules::wording;

/// The rule `extension-change-while-pending`.
pub(crate) static RULE: Rule = Rule {
    specification: Specification {
        id: "extension-change-while-pending",
        owners: &[olm::NAME],
        mode: Mode::Enforce,
        status_code: FORBIDDEN,
        fails_closed: FailsClosed::Never,
        requests: Requests { operations: &[Operation::Update], kinds: &[CLUSTER_EXTENSION] },
        summary: "A ClusterExtension keeps its source (version, channels, selector, upgrade policy) while an operation on it is in \
                  flight.",
        why: "OLM resolves the next bundle from the last deployed one, so it would skip an interrupted step.",
        allowed: "A change while the newest record is deployed or failed; pinning the version that is pending; the same range in \
                  another spelling (`1` and `1.x`).",
        refused: "`version: 3.0.0`, or another `selector`, while the upgrade to 2.0.0 is pending-upgrade.",
        way_out: "Pin the version that is pending until it is installed, then change to the next one.",
        settings: &[],
    },
    checks: &[Check::Declaration(check)],
};

pub(crate) fn check(case: &DeclarationCase<'_>) -> CheckedAll {
    let Some(written) = case.extension()?.filter(|written| !written.same_spec) else {
        return Ok(Vec::new());
    };
    let (Some(before), Some(after)) = (&written.before, &written.after) else {
        return Ok(Vec::new());
    };
    if after.metadata.deletion_timestamp.is_some() || before.has_revisions() {
        return Ok(Vec::new());
    }
    if before.spec.source.resolves_like(&after.spec.source, case.facts.effort)? {
        return Ok(Vec::new());
    }
    // A lagging cache is enough to find no conflict. Only the API server can confirm one.
    for freshness in [Freshness::Cached, Freshness::Live] {
        let Some((candidate, newest)) = pending(case, &written.name, freshness)? else {
            return Ok(Vec::new());
        };
        let pending = brought_in(case, candidate, newest)?;
        let version = pending.as_deref().and_then(|chart| version_of(chart, &after.spec.source.catalog.package_name));
        if pins(case, after, version.as_ref())? {
            return Ok(Vec::new());
        }
        if freshness == Freshness::Live {
            return Ok(vec![refusal(case, &written.name, pending.as_deref(), candidate, newest)]);
        }
    }
    Ok(Vec::new())
}

/// The newest record of an extension, if it is pending.
fn pending<'a>(
    case: &DeclarationCase<'a>,
    extension: &str,
    freshness: Freshness,
) -> Result<Option<(&'a CandidateRecords, &'a Entry)>, Undecided> {
    let found = ask(case.evidence, question::Extension { name: extension.to_owned(), freshness })?;
    let Some(candidate) = found.and_then(|found| records_of_extension(found, case.policy)) else {
        return Ok(None);
    };
    Ok(candidate.history.newest().filter(|newest| newest.status.is_pending()).map(|newest| (candidate, newest)))
}

/// The chart of the pending operation: from the stamp, or from the body if a large record does not have it at its start.
fn brought_in(
    case: &DeclarationCase<'_>,
    candidate: &CandidateRecords,
    newest: &Entry,
) -> Result<Option<String>, Undecided> {
    if let Some(stamped) = newest.stamps.chart() {
        return Ok(Some(stamped.to_owned()));
    }
    let CandidateRecords { storage, namespace, .. } = candidate;
    let body = question::Body { storage: *storage, namespace: namespace.clone(), object: newest.name.clone() };
    Ok(match ask(case.evidence, body)? {
        Some(StoredBody::Json(json)) => Record::read(json, case.facts.effort).ok().and_then(|record| record.chart()),
        Some(StoredBody::Broken(_)) | None => None,
    })
}

/// Whether the extension is pinned to the pending version, so that the next step finishes it. If that version is unknown, any
/// single version is accepted.
fn pins(case: &DeclarationCase<'_>, to: &ClusterExtension<'_>, pending: Option<&Version>) -> Result<bool, Undecided> {
    let Some(range) = VersionRange::parse(&to.spec.source.catalog.version) else {
        return Ok(false);
    };
    let effort = case.facts.effort;
    Ok(match pending {
        Some(pending) => range.is_only(pending, effort)?,
        None => range.single(effort)?.is_some(),
    })
}

fn refusal(
    case: &DeclarationCase<'_>,
    extension: &str,
    pending: Option<&str>,
    candidate: &CandidateRecords,
    newest: &Entry,
) -> Refusal {
    let state = wording::state(newest.status, newest.revision, newest.stamps.holder(), newest.started(), case.now);
    let chart = pending.map(|pending| format!(" to {pending}")).unwrap_or_default();
    let sentence = format!(
        "Cannot change what ClusterExtension {extension} resolves (version, channels, selector, upgradeConstraintPolicy): its \
         operation{chart} is {state}."
    );
    let words = OwnerWords { storage: candidate.storage, namespace: &candidate.namespace, release: extension };
    let wait = WaysOut::from(Step::wait("wait until the operation ends"));
    Refusal::new(sentence, wait.when("if it is stuck", unstick(words, newest.status))).at("/spec/source")
}

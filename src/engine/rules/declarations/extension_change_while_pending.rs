//! The rule `extension-change-while-pending`.
//!
//! OLM resolves the next bundle from the last deployed one. An interrupted step must be finished before another one starts, and the
//! person who recovers from it pins the version to the interrupted one first.

use super::case::DeclarationCase;
use crate::engine::evidence::{Freshness, Knowledge, Located, Query};
use crate::engine::olm::CatalogSource;
use crate::engine::release::{Entry, Record};
use crate::engine::rule::{FORBIDDEN, FailsClosed, Mode, ReleaseOwner, Specification};
use crate::engine::rules::check::{Check, CheckedAll, Refusal, Rule};
use crate::engine::rules::home::records_of_extension;
use crate::engine::rules::undecided::{Undecided, is_migrated, lookup};
use crate::engine::rules::wording;

/// The rule `extension-change-while-pending`.
pub(crate) static RULE: Rule = Rule {
    specification: Specification {
        id: "extension-change-while-pending",
        owners: &[ReleaseOwner::Olm],
        mode: Mode::Enforce,
        status_code: FORBIDDEN,
        fails_closed: FailsClosed::Never,
        summary: "A ClusterExtension keeps its version and channels while an operation on it is in flight.",
        why: "OLM resolves the next bundle from the last deployed one, so it would skip an interrupted step.",
        allowed: "A change while the newest record is deployed or failed; pinning the version that is pending.",
        refused: "`version: 3.0.0` while the upgrade to 2.0.0 is pending-upgrade.",
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
    let (from, to) = (&before.spec.source.catalog, &after.spec.source.catalog);
    if after.metadata.deletion_timestamp.is_some() || asks_for_the_same(from, to) {
        return Ok(Vec::new());
    }
    // A copy that lags behind may say that all is well; that it is not, only the API server itself can say.
    for freshness in [Freshness::Cached, Freshness::Live] {
        let Some((located, newest)) = pending(case, &written.name, freshness)? else {
            return Ok(Vec::new());
        };
        let pending = brought_in(case, located, newest)?;
        if pins(to, pending.as_deref()) {
            return Ok(Vec::new());
        }
        if freshness == Freshness::Live && !is_migrated(case.evidence, &written.name)? {
            return Ok(vec![refusal(case, &written.name, pending.as_deref(), located, newest)]);
        }
    }
    Ok(Vec::new())
}

fn asks_for_the_same(from: &CatalogSource<'_>, to: &CatalogSource<'_>) -> bool {
    (&from.package_name, &from.version, &from.channels) == (&to.package_name, &to.version, &to.channels)
}

/// The newest record of an extension, while it is pending.
fn pending<'a>(
    case: &DeclarationCase<'a>,
    extension: &str,
    freshness: Freshness,
) -> Result<Option<(&'a Located, &'a Entry)>, Undecided> {
    let found = match lookup(case.evidence, Query::Extension { name: extension.to_owned(), freshness })? {
        Some(Knowledge::Release(found)) => found,
        _ => return Ok(None),
    };
    let Some(located) = records_of_extension(found, case.policy) else {
        return Ok(None);
    };
    Ok(located.history.newest().filter(|newest| newest.status.is_pending()).map(|newest| (located, newest)))
}

/// What the pending operation brings in: as stamped, or, of a large record whose beginning does not tell, from its body.
fn brought_in(case: &DeclarationCase<'_>, located: &Located, newest: &Entry) -> Result<Option<String>, Undecided> {
    if let Some(stamped) = newest.stamps.chart() {
        return Ok(Some(stamped.to_owned()));
    }
    let Located { storage, namespace, .. } = located;
    let query = Query::Body { storage: *storage, namespace: namespace.clone(), object: newest.name.clone() };
    Ok(match lookup(case.evidence, query)? {
        Some(Knowledge::Body(json)) => Record::read(json, case.facts.effort).ok().and_then(|record| record.chart()),
        _ => None,
    })
}

/// Whether the extension is pinned to the version that is pending: so the next step finishes that one. Where nobody knows
/// which that is, any single version may be.
fn pins(to: &CatalogSource<'_>, pending: Option<&str>) -> bool {
    let version = to.version.trim_start_matches(['=', ' ', 'v']);
    match pending {
        _ if version.is_empty() => false,
        Some(pending) => pending.strip_suffix(version).is_some_and(|name| name.ends_with(['-', 'v'])),
        None => {
            version.split('.').count() == 3 && !version.contains([' ', ',', '|', '*', '<', '>', '~', '^', 'x', 'X'])
        }
    }
}

fn refusal(
    case: &DeclarationCase<'_>,
    extension: &str,
    pending: Option<&str>,
    located: &Located,
    newest: &Entry,
) -> Refusal {
    let state = wording::state(newest.status, newest.revision, newest.stamps.holder(), newest.started(), case.now);
    let chart = pending.map(|pending| format!(" to {pending}")).unwrap_or_default();
    let sentence = format!(
        "Cannot change the version or channels of ClusterExtension {extension}: its operation{chart} is {state}."
    );
    let way_out = format!(
        "Wait until the operation ends. If it is stuck, pin the version that is pending, check the workloads, and delete only \
         the record {}/{}: the next step then finishes the operation.",
        located.namespace, newest.name
    );
    Refusal::new(sentence, way_out).at("/spec/source/catalog")
}

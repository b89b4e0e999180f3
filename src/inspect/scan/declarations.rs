//! Problems with declarations: HelmReleases that manage the same release, and ConfigurationGroups that name missing
//! bundles.

use std::collections::{BTreeMap, HashSet};

use interlock_engine::object::ObjectKey;
use interlock_engine::owners::{
    BundleRef, COMMITS, ConfigurationGroup, DUPLICATES, Driver, HELM_RELEASES, RECREATE_COMMIT, SUSPEND_ALL_BUT_ONE,
};
use interlock_engine::release::ReleaseRef;
use interlock_engine::rules::wording::{MAX_ENUMERATED, enumerated};

use super::finding::Finding;
use super::finding_kind::FindingKind;

/// The releases that several HelmReleases manage, as the rule `duplicate-release` defines it.
pub(super) fn duplicates(drivers: &[Driver]) -> Vec<Finding> {
    let mut driven: BTreeMap<(&str, &str), Vec<&Driver>> = BTreeMap::new();
    for driver in drivers.iter().filter(|driver| !driver.suspended) {
        for release in driver.driven() {
            driven.entry((&release.namespace, &release.name)).or_default().push(driver);
        }
    }
    let mut found = Vec::new();
    for ((namespace, name), mut left) in driven {
        left.sort_by_key(|driver| (driver.created.is_none(), driver.created, &driver.namespace, &driver.name));
        while let Some(first) = left.first().copied() {
            let (together, others): (Vec<&Driver>, Vec<&Driver>) =
                left.into_iter().partition(|driver| driver.shares_cluster_with(first));
            left = others;
            let wanted = ReleaseRef::new(namespace, name);
            if together.len() > 1 && together.iter().any(|driver| driver.wants(&wanted)) {
                found.push(duplicate(ReleaseRef::new(namespace, name), &together));
            }
        }
    }
    found
}

/// The HelmReleases of one cluster that manage a release.
fn duplicate(release: ReleaseRef, drivers: &[&Driver]) -> Finding {
    let names = drivers.iter().map(|driver| format!("{}/{}", driver.namespace, driver.name));
    let named = enumerated(names, MAX_ENUMERATED);
    let newest = drivers.last().copied();
    let is_here = newest.is_some_and(|newest| newest.kube_config.is_none());
    let driven = if is_here { "this release".to_owned() } else { format!("{release} on another cluster") };
    let object = newest.map(|newest| ObjectKey::new(HELM_RELEASES.0, HELM_RELEASES.1, &newest.namespace, &newest.name));
    Finding {
        kind: FindingKind::DuplicateRelease,
        release: is_here.then_some(release),
        object,
        message: format!("HelmReleases {named} manage {driven}: {DUPLICATES}."),
        way_out: SUSPEND_ALL_BUT_ONE.to_owned(),
    }
}

/// The bundles that a group names and that must exist; none for a group that removes, is being torn down, is a dry run,
/// or is still being prepared.
///
/// # Errors
/// When the list of bundles cannot be parsed.
pub(super) fn needed(group: &ConfigurationGroup<'_>, namespace: &str) -> Result<Vec<BundleRef>, String> {
    let rests = !(group.removes()
        || group.is_teardown()
        || group.spec.dry_run
        || group.is_preparing()
        || group.metadata.deletion_timestamp.is_some());
    if rests { group.bundles(namespace) } else { Ok(Vec::new()) }
}

/// The finding for a group, if one of its bundles does not exist.
pub(super) fn dangling(
    group: &str,
    namespace: &str,
    needed: &[BundleRef],
    there: &HashSet<BundleRef>,
) -> Option<Finding> {
    let missing: Vec<_> = needed.iter().filter(|bundle| !there.contains(*bundle)).collect();
    if missing.is_empty() {
        return None;
    }
    let names = enumerated(missing.iter().map(|bundle| bundle.name.clone()), MAX_ENUMERATED);
    Some(Finding {
        kind: FindingKind::DanglingBundle,
        release: None,
        object: Some(ObjectKey::new(COMMITS.0, COMMITS.1, namespace, group)),
        message: format!("ConfigurationGroup {namespace}/{group} names bundles that do not exist: {names}."),
        way_out: RECREATE_COMMIT.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn driver(name: &str, spec: Value, status: Value, created: &str) -> Driver {
        let metadata = json!({"name": name, "namespace": "shop", "creationTimestamp": created});
        let read = serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": status}));
        Driver::from(&read.unwrap())
    }

    fn web(name: &str, more: Value) -> Driver {
        let mut spec = json!({"releaseName": "web"});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        driver(name, spec, json!({}), "2026-01-01T00:00:00Z")
    }

    fn duplicates_of(drivers: &[Driver]) -> Vec<(String, String)> {
        let found = duplicates(drivers);
        let release = |finding: &Finding| finding.release.as_ref().map(ToString::to_string).unwrap_or_default();
        found.iter().map(|finding| (release(finding), finding.message.clone())).collect()
    }

    #[test]
    fn colliding_helm_releases_are_named_oldest_first() {
        let old = driver("old", json!({"releaseName": "web"}), json!({}), "2025-01-01T00:00:00Z");
        let found = duplicates_of(&[web("new", json!({})), old]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, "shop/web");
        assert!(found[0].1.starts_with("HelmReleases shop/old and shop/new manage this release"), "{found:?}");
    }

    #[test]
    fn helm_releases_that_do_not_collide_are_no_finding() {
        let other_cluster = json!({"kubeConfig": {"secretRef": {"name": "far"}}});
        for other in [
            web("two", json!({"suspend": true})),
            web("two", json!({"releaseName": "api"})),
            web("two", json!({"storageNamespace": "records"})),
            web("two", other_cluster.clone()),
        ] {
            assert_eq!(duplicates_of(&[web("one", json!({})), other.clone()]), [], "{other:?}");
        }
        let far = [web("one", other_cluster.clone()), web("two", other_cluster), web("three", json!({}))];
        let [(release, message)] = duplicates_of(&far).try_into().unwrap();
        assert_eq!(release, "", "the release of that name in this cluster is another one");
        assert!(
            message.starts_with("HelmReleases shop/one and shop/two manage shop/web on another cluster:"),
            "{message}"
        );
    }

    #[test]
    fn a_helm_release_with_the_release_still_installed_collides() {
        let status = json!({"storageNamespace": "shop", "history": [{"name": "web", "status": "deployed"}]});
        let moved = driver("moved", json!({"releaseName": "site"}), status, "2026-01-01T00:00:00Z");
        assert_eq!(duplicates_of(&[moved.clone(), web("two", json!({}))]).len(), 1);
        assert_eq!(duplicates_of(&[moved]), []);
    }

    fn group(spec: Value) -> String {
        json!({"metadata": {"name": "g", "namespace": "civ"}, "spec": spec}).to_string()
    }

    #[test]
    fn a_group_at_rest_needs_its_bundles() {
        let items = json!([{"contentRef": {"name": "a"}}, {"contentRef": {"name": "b"}}]);
        let text = group(json!({"action": "Deploy", "updatePhase": "Ready", "configurationItem": items}));
        let needed = needed(&serde_json::from_str(&text).unwrap(), "civ").unwrap();
        let bundle = |name: &str| BundleRef { namespace: "civ".to_owned(), name: name.to_owned() };
        assert_eq!(needed, [bundle("a"), bundle("b")]);
        let there = |names: &[&str]| names.iter().map(|name| bundle(name)).collect::<HashSet<_>>();
        assert_eq!(dangling("g", "civ", &needed, &there(&["a", "b"])), None);
        let found = dangling("g", "civ", &needed, &there(&["b"])).unwrap();
        assert_eq!(found.message, "ConfigurationGroup civ/g names bundles that do not exist: a.");
        assert_eq!((found.namespace(), found.name()), ("civ", "g"));
    }

    #[test]
    fn a_group_that_removes_or_is_being_written_needs_none() {
        let items = json!([{"contentRef": {"name": "a"}}]);
        for (key, value) in [
            ("action", json!("Remove")),
            ("updatePhase", json!("Preparing")),
            ("sourceStatus", json!("Deleted")),
            ("dryRun", json!(true)),
        ] {
            let text = group(json!({key: value, "configurationItem": items}));
            assert_eq!(needed(&serde_json::from_str(&text).unwrap(), "civ"), Ok(Vec::new()), "{key}");
        }
    }
}

//! Releases with objects in one namespace and records in another: releases of Flux with a `storageNamespace`, and releases of OLM.

use std::collections::BTreeSet;

use interlock_engine::owners::Driver;
use interlock_engine::release::{History, ReleaseRef, Storage};

use crate::inspect::scan::gather;
use crate::inspect::scan::inventory::histories;
use crate::inspect::view::View;

/// The releases with objects in a namespace and records elsewhere, of one name or all. Without the right to read other namespaces,
/// releases of OLM are left out.
pub(super) async fn elsewhere(
    view: &View<'_>,
    namespace: &str,
    name: Option<&str>,
) -> Vec<(ReleaseRef, Storage, History)> {
    let mut found = Vec::new();
    for release in driven(view.world.drivers.as_deref().unwrap_or_default(), namespace) {
        if let Ok(history) = view.history(&release, Storage::Secret).await {
            found.push((release, Storage::Secret, history));
        }
    }
    if let Ok(inventory) = gather::extensions(&view.client, [None]).await {
        found.extend(histories(inventory.releases).filter(|(release, _, history)| {
            let target = history.newest().and_then(|newest| newest.stamps.target_namespace());
            release.namespace != namespace && target == Some(namespace)
        }));
    }
    found.retain(|(release, _, history)| history.newest().is_some() && name.is_none_or(|name| release.name == name));
    found
}

fn driven(drivers: &[Driver], namespace: &str) -> BTreeSet<ReleaseRef> {
    let installed = drivers.iter().filter_map(|driver| Some((driver, driver.installed()?)));
    let elsewhere = installed.filter(|(driver, release)| {
        release.namespace != namespace && driver.records_of(&release.name, namespace).is_some()
    });
    elsewhere.map(|(_, release)| release.clone()).collect()
}

#[cfg(test)]
mod tests {
    use interlock_engine::owners::flux::HelmRelease;
    use serde_json::json;

    use super::*;

    #[test]
    fn flux_releases_are_found_by_the_namespace_of_their_objects() {
        let driver = |name: &str, records: &str, objects: &str| {
            let object = json!({
                "metadata": {"name": name, "namespace": "flux-system"},
                "spec": {"storageNamespace": records, "targetNamespace": objects},
                "status": {
                    "storageNamespace": records, "history": [{"name": name, "namespace": objects, "status": "deployed"}],
                },
            });
            Driver::from(&serde_json::from_value::<HelmRelease>(object).unwrap())
        };
        let drivers = [driver("web", "records", "shop"), driver("api", "shop", "shop"), driver("db", "records", "bar")];
        assert_eq!(driven(&drivers, "shop").into_iter().collect::<Vec<_>>(), [ReleaseRef::new("records", "web")]);
    }
}

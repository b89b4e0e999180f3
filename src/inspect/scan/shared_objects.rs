//! Objects that two others apply. Whoever applied last holds them, so they change back and forth without a conflict, and whoever is
//! deleted first may delete them.

use std::collections::BTreeMap;

use interlock_engine::object::ObjectKey;
use interlock_engine::owners::{APPLYING, applied_objects};
use interlock_engine::release::ReleaseRef;
use interlock_engine::rules::wording::{MAX_ENUMERATED, enumerated};
use serde_json::value::RawValue;

use super::context::ScanContext;
use super::finding::Finding;
use super::finding_kind::FindingKind;
use super::gather::named;

/// The most objects that are compared. Each takes some 200 bytes.
const MOST_OBJECTS: usize = 50_000;

/// What applies an object: its kind, namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Applier {
    kind: &'static str,
    place: ReleaseRef,
}

/// The objects of all that apply some.
#[derive(Debug, Clone, Default)]
struct Applied {
    first: BTreeMap<ObjectKey, usize>,
    appliers: Vec<Applier>,
    /// By the appliers that share them.
    shared: BTreeMap<(usize, usize), Vec<ObjectKey>>,
    /// Whether some have not been compared, because there are too many.
    is_cut: bool,
}

impl Applied {
    /// Adds what applies objects, as the API server lists it.
    fn add(&mut self, kind: &'static str, item: &RawValue) {
        let Some((namespace, name)) = named(item) else { return };
        let index = self.appliers.len();
        self.appliers.push(Applier { kind, place: ReleaseRef::new(namespace, name) });
        for object in applied_objects(kind, item.get()) {
            match self.first.get(&object) {
                Some(first) => self.shared.entry((*first, index)).or_default().push(object),
                None if self.first.len() >= MOST_OBJECTS => self.is_cut = true,
                None => drop(self.first.insert(object, index)),
            }
        }
    }

    fn findings(self) -> Vec<Finding> {
        let appliers = &self.appliers;
        let title = |index: usize| {
            let Applier { kind, place } = &appliers[index];
            format!("{kind} {place}")
        };
        let of = |((first, second), objects): ((usize, usize), Vec<ObjectKey>)| {
            let subjects = objects.iter().map(|ObjectKey { kind, namespace, name, .. }| {
                if namespace.is_empty() { format!("{kind} {name}") } else { format!("{kind} {namespace}/{name}") }
            });
            let subjects = enumerated(subjects.collect::<Vec<_>>().into_iter(), MAX_ENUMERATED);
            Finding {
                kind: FindingKind::SharedObject,
                message: format!("{} and {} both apply {subjects}.", title(first), title(second)),
                release: Some(appliers[first].place.clone()),
                object: objects.into_iter().next(),
                way_out: "Take it out of the source of one of them. Keep it from being deleted there until the other has applied it."
                    .to_owned(),
            }
        };
        self.shared.into_iter().map(of).collect()
    }
}

impl ScanContext<'_> {
    /// The findings for objects that two others apply, and the kinds of these that are installed.
    pub(super) async fn shared_objects(&self) -> (Vec<Finding>, Vec<&'static str>) {
        let (mut applied, mut kinds) = (Applied::default(), Vec::new());
        for (group, kind) in APPLYING {
            let Some(listing) = self.listing(group, kind, self.options.reach.places(), kind).await else { continue };
            let listing = listing.complete();
            let listed = listing.fold(&self.client, || applied.clone(), |all, item| all.add(kind, item)).await;
            if let Some(listed) = self.or_gap(kind, listed) {
                applied = listed;
                kinds.push(kind);
            }
        }
        if applied.is_cut {
            self.gap("objects that two others apply", format!("there are more than {MOST_OBJECTS}"));
        }
        let mut found = applied.findings();
        found.retain(|finding| self.namespace().is_none_or(|namespace| finding.namespace() == namespace));
        (found, kinds)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn add(applied: &mut Applied, kind: &'static str, name: &str, mut object: serde_json::Value) {
        object["metadata"] = json!({"namespace": "team", "name": name});
        applied.add(kind, &serde_json::value::to_raw_value(&object).unwrap());
    }

    fn kustomization(ids: &[&str]) -> serde_json::Value {
        let entries: Vec<_> = ids.iter().map(|id| json!({"id": id, "v": "v1"})).collect();
        json!({"status": {"inventory": {"entries": entries}}})
    }

    fn application(server: &str) -> serde_json::Value {
        let listed = json!({"group": "apps", "kind": "Deployment", "namespace": "shop", "name": "web"});
        json!({"spec": {"destination": {"server": server}}, "status": {"resources": [listed]}})
    }

    #[test]
    fn objects_of_two_sources_are_found() {
        let web = "shop_web_apps_Deployment";
        let mut applied = Applied::default();
        add(&mut applied, "Kustomization", "one", kustomization(&[web, "shop_a__b__ConfigMap"]));
        add(&mut applied, "Kustomization", "other", kustomization(&["shop_a__b__ConfigMap", "_shop__Namespace"]));
        add(&mut applied, "Application", "argo", application("https://kubernetes.default.svc"));
        add(&mut applied, "Application", "remote", application("https://elsewhere.example"));
        let messages: Vec<_> = applied.findings().into_iter().map(|finding| finding.message).collect();
        assert_eq!(
            messages,
            [
                "Kustomization team/one and Kustomization team/other both apply ConfigMap shop/a:b.",
                "Kustomization team/one and Application team/argo both apply Deployment shop/web.",
            ]
        );
    }

    #[test]
    fn broken_inventories_are_no_objects() {
        let mut applied = Applied::default();
        for ids in [&["", "_", "a_b_c", "shop__apps_Deployment"][..], &["", "_", "a_b_c", "shop__apps_Deployment"]] {
            add(&mut applied, "Kustomization", "one", kustomization(ids));
        }
        add(&mut applied, "Kustomization", "one", json!({"status": 7}));
        assert_eq!(applied.findings().len(), 0);
    }
}

//! Objects that a Kustomization prunes.

use serde_json::{Value, json};

use super::{CONTROLLER, TENANT, refused};
use crate::object::ALLOW_REMOVAL;
use crate::rules::tests::scenario::{Cluster, Verdict};

const FORCE: &str = "kustomize.toolkit.fluxcd.io/force";

fn config(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": name, "namespace": "shop", "annotations": {},
            "labels": {"kustomize.toolkit.fluxcd.io/name": "shop", "kustomize.toolkit.fluxcd.io/namespace": "team"},
        },
    })
}

/// A Kustomization with an inventory of ConfigMaps, and its controller.
struct Source {
    cluster: Cluster,
    inventory: Vec<&'static str>,
    kustomization: Value,
}

impl Source {
    fn of(inventory: &[&'static str]) -> Self {
        let kustomization = json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {
                "name": "shop", "namespace": "team", "annotations": {},
                "managedFields": [{
                    "manager": "flux", "operation": "Update", "time": "2026-11-20T10:00:00Z", "fieldsV1": {"f:spec": {}},
                }],
            },
            "spec": {}, "status": {"inventory": {"entries": []}},
        });
        let mut source = Self { cluster: Cluster::new(), inventory: inventory.to_vec(), kustomization };
        source.applied("v1");
        source
    }

    /// What the status says after a reconciliation that went through.
    fn applied(&mut self, revision: &str) {
        let entries: Vec<_> =
            self.inventory.iter().map(|name| json!({"id": format!("shop_{name}__ConfigMap")})).collect();
        let status = json!({"inventory": {"entries": entries}, "lastAppliedRevision": revision});
        self.change("/status", status);
    }

    fn change(&mut self, pointer: &str, value: Value) {
        *self.kustomization.pointer_mut(pointer).unwrap() = value;
        self.cluster.given(self.kustomization.clone());
    }

    fn prune(&mut self, name: &str) -> Verdict {
        self.cluster.delete_object(CONTROLLER, config(name))
    }

    /// Which of these the controller can prune in one reconciliation.
    fn pruned(&mut self, names: &[&'static str]) -> Vec<&'static str> {
        names.iter().copied().filter(|name| self.prune(name).is_ok()).collect()
    }
}

#[test]
fn an_artifact_that_renders_to_nothing_prunes_up_to_the_share() {
    let all = ["a", "b", "c", "d", "e"];
    let mut source = Source::of(&all);
    assert_eq!(source.pruned(&all), ["a", "b"]);
    // The inventory stays as it is until everything is pruned.
    for minutes in [1, 10, 60] {
        source.cluster.later(60 * minutes);
        assert_eq!(source.pruned(&all[2..]), [""; 0]);
    }
    let message = source.cluster.findings(CONTROLLER, Some(config("e")), None).concat();
    for part in [
        "Kustomization team/shop would prune ConfigMap shop/e, and have 2 of 5 objects left",
        "kubectl annotate kustomization shop -n team --overwrite \
         interlock.dev/allow-removal=shop_c__ConfigMap,shop_d__ConfigMap,shop_e__ConfigMap",
        "flux reconcile kustomization shop -n team",
    ] {
        assert!(message.replace('\'', "").contains(part), "{part}: {message}");
    }
    source.change("/metadata/annotations", json!({ALLOW_REMOVAL: "shop_c__ConfigMap,shop_d__ConfigMap"}));
    assert_eq!(source.pruned(&all[2..]), ["c", "d"]);
}

#[test]
fn deletions_of_a_day_add_up_and_replaced_objects_do_not() {
    let mut source = Source::of(&["a", "b", "c", "d"]);
    for (revision, pruned, added) in [("v2", "a", "e"), ("v3", "b", "f"), ("v4", "c", "g")] {
        assert_eq!(source.prune(pruned), Ok(()), "{pruned}");
        source.inventory.retain(|name| *name != pruned);
        source.inventory.push(added);
        source.applied(revision);
    }
    for (revision, pruned) in [("v5", "d"), ("v6", "e")] {
        assert_eq!(source.prune(pruned), Ok(()), "{pruned}");
        source.inventory.retain(|name| *name != pruned);
        source.applied(revision);
    }
    assert_eq!(source.prune("f"), refused("dropped-inventory"));
    source.cluster.later(25 * 3_600);
    assert_eq!(source.prune("f"), Ok(()));
    source.inventory = vec!["g"];
    source.applied("v7");
    source.cluster.later(25 * 3_600);
    assert_eq!(source.prune("g"), refused("dropped-inventory"), "the last one");
}

#[test]
fn a_change_of_the_spec_explains_everything() {
    let all = ["a", "b", "c"];
    let mut source = Source::of(&all);
    let now = source.cluster.now.to_string();
    source.change("/metadata/managedFields/0/time", now.into());
    assert_eq!(source.pruned(&all), all);
}

#[test]
fn generated_objects_go_unless_others_are_kept() {
    let generated = "web-5g2f9h8k4m";
    let mut source = Source::of(&[generated]);
    assert_eq!(source.prune(generated), Ok(()));
    let mut source = Source::of(&["a", "b", generated]);
    assert_eq!(source.pruned(&["a", "b", generated]), ["a"]);
}

#[test]
fn what_is_created_anew_and_what_others_delete_is_not_counted() {
    let all = ["a", "b", "c"];
    let mut source = Source::of(&all);
    source.change("/spec", json!({"force": true}));
    assert_eq!(source.pruned(&all), all);
    source.change("/spec", json!({}));
    for name in all {
        let mut forced = config(name);
        forced["metadata"]["annotations"] = json!({FORCE: "enabled"});
        assert_eq!(source.cluster.delete_object(CONTROLLER, forced), Ok(()));
        // Of others, `manual-delete` says what it has to say.
        assert_eq!(source.cluster.delete_object(TENANT, config(name)), Ok(()));
    }
    source.change(
        "/metadata",
        json!({
            "name": "shop", "namespace": "team", "deletionTimestamp": "2026-11-20T10:00:00Z", "finalizers": ["flux"],
        }),
    );
    assert_eq!(source.pruned(&all), all, "it is being deleted");
}

#[test]
fn the_account_of_a_tenant_prunes_for_the_kustomization() {
    let all = ["a", "b", "c"];
    let mut source = Source::of(&all);
    source.change("/spec", json!({"serviceAccountName": "deployer"}));
    let verdicts = all.map(|name| source.cluster.delete_object(TENANT, config(name)));
    assert_eq!(verdicts, [Ok(()), refused("dropped-inventory"), refused("dropped-inventory")]);
}

/// A pruned object stays in the inventory until everything is pruned.
#[test]
fn an_accident_that_nobody_repairs_takes_no_more_the_next_day() {
    let mut left = vec!["a", "b", "c", "d", "e"];
    let mut source = Source::of(&left);
    for _ in 0..24 * 5 {
        let gone = source.pruned(&left.clone());
        left.retain(|name| !gone.contains(name));
        source.cluster.later(3_600);
    }
    assert_eq!(left, ["c", "d", "e"]);
}

#[test]
fn other_spellings_confirm_nothing() {
    let all = ["a", "b", "c", "d", "e"];
    let huge = "x".repeat(200_000);
    for allowance in ["*", "shop_a__ConfigMap;shop_b__ConfigMap shop_c__ConfigMap", huge.as_str()] {
        let mut source = Source::of(&all);
        source.change("/metadata/annotations", json!({ALLOW_REMOVAL: allowance}));
        assert_eq!(source.pruned(&all), ["a", "b"]);
    }
    let mut source = Source::of(&all);
    let mut twin = source.kustomization.clone();
    twin["metadata"]["namespace"] = "other".into();
    source.cluster.given(twin);
    assert_eq!(source.pruned(&all), ["a", "b"], "another one has the same name");
    source.cluster.later(-3_600);
    assert_eq!(source.pruned(&all[2..]), [""; 0], "the clock went back");
}

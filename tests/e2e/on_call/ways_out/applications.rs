//! Refusals about the operations of Applications of Argo CD.

use std::time::Duration;

use serde_json::{Value, json};

use super::Case;
use super::declarations::SPEC;
use super::freezes::{await_open, frozen};
use super::records::unstamped;
use super::scene::{Scene, kept, place};
use crate::harness::application_sets::ApplicationSet;
use crate::harness::applications::{Application, Sync};
use crate::harness::chart::Chart;
use crate::harness::eventually::eventually;
use crate::harness::kustomizations::Kustomization;
use crate::harness::process::Output;

/// Until it is known what else would go.
const WHILE: Duration = Duration::from_secs(60);

pub(super) const CASES: &[Case] = &[
    Case { rule: "concurrent-operation", owner: "Argo CD", arrange: removed_while_it_runs },
    Case { rule: "concurrent-operation", owner: "Argo CD", arrange: started_over_an_interrupted_one },
    Case { rule: "forged-status", owner: "Argo CD", arrange: status_of_an_application },
    Case { rule: "forged-stamp", owner: "Argo CD", arrange: forged_holder },
    Case { rule: "dropped-applications", owner: "Argo CD", arrange: generated_no_longer },
    Case { rule: "dropped-inventory", owner: "Kustomization", arrange: rendered_to_nothing },
];

fn sync() -> Value {
    json!({"operation": {"sync": {"revision": "main"}}})
}

/// Bob has started a sync, and it runs.
fn running(test: &str) -> &'static Application<'static> {
    let namespace = place(test);
    let shop = kept(Application::new(namespace, json!({}), Sync::Client));
    shop.patch(&namespace.kubectl("bob"), &sync()).expect_success();
    shop.begins();
    shop
}

fn scene(shop: &'static Application<'static>, refused: Output) -> Scene {
    Scene::new(shop.namespace(), Chart::new("demo"), "bob", refused).end(|_| Ok(()))
}

fn removed_while_it_runs() -> Scene {
    let shop = running("way-argo-removed");
    let remove = move || shop.patch(&shop.namespace().kubectl("bob"), &json!({"operation": null}));
    let ends = move || {
        shop.ends().expect_success();
    };
    scene(shop, remove()).wait(ends).retry(move |_| remove())
}

/// Its controller has died, and somebody has removed the operation while the webhook was away.
fn started_over_an_interrupted_one() -> Scene {
    let shop = running("way-argo-orphan");
    shop.orphan();
    scene(shop, shop.patch(&shop.namespace().kubectl("bob"), &sync()))
}

fn status_of_an_application() -> Scene {
    let namespace = place("way-argo-status");
    let shop = kept(Application::new(namespace, json!({}), Sync::Client));
    shop.list(&[("apps", "Deployment", "demo")]);
    let patch = move |patch: Value| shop.patch(&namespace.kubectl("bob"), &patch);
    scene(shop, patch(json!({"status": {"resources": []}})))
        .act(SPEC, move |_| patch(json!({"spec": {"project": "shop"}})))
}

/// While the mutating half is out of service, the client's own holder would arrive.
fn forged_holder() -> Scene {
    let namespace = place("way-argo-stamp");
    let shop = kept(Application::new(namespace, json!({}), Sync::Client));
    unstamped(namespace);
    let start = move |info: Value| {
        let operation = json!({"operation": {"sync": {"revision": "main"}, "info": info}});
        shop.patch(&namespace.kubectl("bob"), &operation)
    };
    let refused = eventually(WHILE, "the mutating half is not called for this namespace", || {
        let refused = start(json!([{"name": "interlock.dev/holder", "value": "alice"}]));
        if refused.success() {
            shop.patch(&namespace.kubectl("bob"), &json!({"operation": null})).expect_success();
            return Err(refused.to_string());
        }
        Ok(refused)
    });
    scene(shop, refused).act("do not set Interlock's stamps", move |_| start(json!([])))
}

/// An ApplicationSet generates nothing. Once it is repaired, it wants all of them again.
fn generated_no_longer() -> Scene {
    let namespace = place("way-argo-dropped");
    let set = kept(ApplicationSet::new(namespace, &["a", "b"]));
    let refused = eventually(WHILE, "the whole set is known", || {
        let refused = ["b", "a"].map(|name| set.drop(name)).into_iter().next_back().unwrap();
        if refused.stderr.contains("would lose") { Ok(refused) } else { Err(refused.to_string()) }
    });
    Scene::new(namespace, Chart::new("demo"), "bob", refused)
        .act("repair what it generates from", move |_| namespace.kubectl("bob").run(&["get", "applicationset/shops"]))
        .retry(move |_| set.drop("a"))
        .end(|_| Ok(()))
}

/// A source renders to nothing. Once it is repaired, nothing is to be pruned.
fn rendered_to_nothing() -> Scene {
    let namespace = place("way-source-nothing");
    let shop = kept(Kustomization::new(namespace, json!({})));
    shop.apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}})).expect_success();
    shop.list(&[("", "ConfigMap", "web")]);
    shop.changed_long_ago();
    Scene::new(namespace, Chart::new("demo"), "bob", shop.prune("configmap/web"))
        .act("repair its source", move |_| namespace.kubectl("bob").run(&["get", "kustomization/shop"]))
        .act("flux reconcile", move |_| shop.prune("configmap/web"))
        .retry(move |_| shop.prune("configmap/web"))
        .end(|_| Ok(()))
}

/// Argo CD starts a sync by itself, and tries again until it may.
pub(super) fn sync_in_a_freeze() -> Scene {
    await_open();
    let namespace = place("way-freeze-argo");
    let shop = kept(Application::new(namespace, json!({}), Sync::Client));
    scene(shop, frozen(|| shop.autosyncs())).retry(|_| shop.autosyncs())
}

//! Refusals about the operations of Applications of Argo CD.

use serde_json::{Value, json};

use super::Case;
use super::declarations::SPEC;
use super::freezes::{await_open, frozen};
use super::scene::{Scene, kept, place};
use crate::harness::applications::{Application, Sync};
use crate::harness::chart::Chart;
use crate::harness::process::Output;

pub(super) const CASES: &[Case] = &[
    Case { rule: "concurrent-operation", owner: "Argo CD", arrange: removed_while_it_runs },
    Case { rule: "concurrent-operation", owner: "Argo CD", arrange: started_over_an_interrupted_one },
    Case { rule: "forged-status", owner: "Argo CD", arrange: status_of_an_application },
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

/// Argo CD starts a sync by itself, and tries again until it may.
pub(super) fn sync_in_a_freeze() -> Scene {
    await_open();
    let namespace = place("way-freeze-argo");
    let shop = kept(Application::new(namespace, json!({}), Sync::Client));
    scene(shop, frozen(|| shop.autosyncs())).retry(|_| shop.autosyncs())
}

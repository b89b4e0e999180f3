//! An Application of Argo CD: its syncs by the library that the application-controller is built on.

use serde_json::{Value, json};

use crate::harness::applications::{Application, Sync};
use crate::harness::clients::Kubectl;
use crate::harness::eventually::within;

use super::super::chance::Chance;
use super::super::ending::Expect;
use super::super::place::Place;
use super::super::site::AWAY;

const LABEL: &[&str] = &["label", "configmap/web", "team=blue", "--overwrite"];

fn config(name: &str, mode: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"mode": mode}})
}

pub(super) fn live(place: &Place<'_>, chance: &mut Chance) -> Option<()> {
    let namespace = &place.namespace;
    place.create(&json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "shop", "namespace": namespace.name()},
        "spec": {"project": "default", "destination": {"namespace": namespace.name()}},
    }))?;
    let account = &place.site.controllers.argo;
    let sync = *chance.pick(&[Sync::Client, Sync::Server]);
    let shop = Application::existing(namespace, account, sync);
    let controller = place.kubectl_as(account);
    let declares = |mode: &str| [config("web", mode), config("rest", mode)];

    for mode in ["one", "two"] {
        synced(place, &shop, &controller, &declares(mode))?;
        let edit = ["patch", "configmap/web", "--type=merge", "-p", r#"{"data":{"mode":"by hand"}}"#];
        place.forbidden("Argo CD: edit a ConfigMap", &edit, &["manual-edit"], LABEL)?;
        place.forbidden("Argo CD: delete a ConfigMap", &["delete", "configmap/web"], &["manual-delete"], LABEL)?;
    }
    place.act("Argo CD: prune", Expect::Passes, &shop.prune(&[config("web", "two")]))
}

/// One operation: bob asks for it, the controller begins it, applies the objects and ends it, and nobody takes it away.
fn synced(place: &Place<'_>, shop: &Application<'_>, controller: &Kubectl, objects: &[Value]) -> Option<()> {
    let wanted = json!({"sync": {"revision": "main"}});
    let asked = shop.patch(&place.bob, &json!({"operation": wanted}));
    place.act("Argo CD: ask for a sync", Expect::Passes, &asked)?;
    let started = jiff::Timestamp::now().round(jiff::Unit::Second).ok()?.to_string();
    let operation = within(AWAY, "the Application says what is asked for", || {
        let read = controller.run(&["get", "applications.argoproj.io/shop", "-o", "json"]).into_result()?;
        Ok::<_, String>(read.json()["operation"].take())
    });
    let state = json!({"phase": "Running", "startedAt": started, "operation": operation.ok()?});
    let begun = shop.patch(controller, &json!({"status": {"operationState": state}}));
    place.act("Argo CD: begin a sync", Expect::Passes, &begun)?;
    let removed = shop.patch(&place.bob, &json!({"operation": null}));
    place.act("Argo CD: take a sync away", Expect::Refused(&["concurrent-operation"]), &removed)?;
    for object in objects {
        place.act("Argo CD: apply an object", Expect::Passes, &shop.apply(object))?;
    }
    let listed = |object: &Value| {
        let name = object["metadata"]["name"].clone();
        json!({"group": "", "kind": "ConfigMap", "namespace": place.namespace.name(), "name": name, "status": "Synced", "version": "v1"})
    };
    let resources: Vec<_> = objects.iter().map(listed).collect();
    let ended =
        json!({"operation": null, "status": {"resources": resources, "operationState": {"phase": "Succeeded"}}});
    place.act("Argo CD: end a sync", Expect::Passes, &shop.patch(controller, &ended))
}

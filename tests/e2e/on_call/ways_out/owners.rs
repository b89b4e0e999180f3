//! Releases as Flux and OLM leave them, and operations of anybody that wait.

use std::cell::RefCell;
use std::time::Duration;

use serde_json::{Value, json};

use super::plane;
use super::scene::{is_in_flight, kept, place};
use crate::harness::chart::Chart;
use crate::harness::controllers::{Flux, helm_controller};
use crate::harness::eventually::eventually;
use crate::harness::extension::{Extension, hooked};
use crate::harness::helm_releases::{helm_release, installed};
use crate::harness::namespace::Namespace;
use crate::harness::process::Running;
use crate::harness::records;

const WHILE: Duration = Duration::from_secs(60);

/// Flux has installed the release `demo` from the HelmRelease `demo`.
pub(super) fn deployed_by_flux(test: &str) -> (&'static Namespace<'static>, Chart, Flux) {
    let (namespace, chart) = (place(test), Chart::new("demo"));
    let object = helm_release(namespace.name(), "demo", json!({"releaseName": "demo", "timeout": "10s"}));
    namespace.kubectl("bob").with_file("create", &object, &[]).expect_success();
    let flux = Flux::new(&helm_controller(plane()), namespace, "demo").origin(namespace, "demo");
    flux.reconcile(&chart, &json!({})).expect_success();
    installed(namespace, "demo", namespace);
    (namespace, chart, flux)
}

/// OLM has installed version 1.0.0 of an extension, whose upgrades wait for a hook while pods hang.
pub(super) fn deployed_by_olm(test: &str) -> (&'static Extension, Chart) {
    let extension = Extension::new(plane(), test);
    let bob = extension.system.kubectl("bob");
    let (extension, chart) = (kept(extension.asked_for(&bob)), hooked());
    extension.olm.reconcile(&chart, &json!({"note": "one"})).expect_success();
    (extension, chart)
}

/// OLM's upgrade, while it waits for its hook. It waits for no other pods.
pub(super) fn upgrade_in_hook(extension: &Extension, chart: &Chart, values: &Value) -> Running {
    extension.objects.hang_pods();
    let upgrade = extension.olm.spawn(chart, values);
    eventually(WHILE, "the upgrade waits for its hook", || match extension_ended(extension) {
        Err(_) => Ok(()),
        Ok(()) => Err("it has not begun".to_owned()),
    });
    upgrade
}

/// One record of the extension is deployed, and no operation is in flight; or there is none.
pub(super) fn extension_ended(extension: &Extension) -> Result<(), String> {
    let records = extension.records();
    let in_flight = records.last().is_some_and(|newest| is_in_flight(&newest.body_status));
    let whole = records.is_empty() || (records::deployed(&records) == 1 && !in_flight);
    if whole { Ok(()) } else { Err(records::summary(&records)) }
}

/// The client of an operation that waits for pods; `None` once it has ended or died.
pub(super) type Client = &'static RefCell<Option<Running>>;

/// Lets an operation that waits for pods come to its end.
pub(super) fn ends(namespace: &'static Namespace<'static>, client: Client) -> impl Fn() + Copy {
    move || {
        namespace.ready_pods();
        if let Some(client) = client.take() {
            client.wait(WHILE).expect_success();
        }
    }
}

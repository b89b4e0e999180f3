//! A release of Flux: its helm-controller reconciles a HelmRelease, is killed in an upgrade, and goes on.

use std::time::Instant;

use serde_json::json;

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, Helm, HelmVersion};
use crate::harness::controllers::Flux;
use crate::harness::eventually::within;
use crate::harness::helm_releases::helm_release;

use super::super::chance::Chance;
use super::super::ending::Expect;
use super::super::place::Place;
use super::{FRESH, OPERATION};

const RELEASE: &str = "app";
const EDIT: &[&str] = &["patch", "configmap", RELEASE, "--type=merge", "-p", r#"{"data":{"note":"by hand"}}"#];
const LABEL: &[&str] = &["label", "deployment/app", "team=blue", "--overwrite"];

pub(super) fn live(place: &Place<'_>, chance: &mut Chance) -> Option<()> {
    let namespace = &place.namespace;
    place.create(&helm_release(namespace.name(), RELEASE, json!({})))?;
    let chart = Chart::new("demo");
    let flux =
        Flux::new(&place.site.controllers.flux, namespace, RELEASE).origin(namespace, RELEASE).waiting(OPERATION);
    let reconcile = |kind, note: &str| place.act(kind, Expect::Passes, &flux.reconcile(&chart, &json!({"note": note})));

    reconcile("Flux: install", "one")?;
    place.forbidden("Flux: edit a ConfigMap", EDIT, &["manual-edit"], LABEL)?;
    reconcile("Flux: upgrade", "two")?;
    place.forbidden(
        "Flux: delete a Service",
        &["delete", "service", RELEASE, "--wait=false"],
        &["manual-delete"],
        LABEL,
    )?;
    if chance.below(2) == 0 {
        killed(place, &flux, &chart)?;
        reconcile("Flux: unlock and upgrade", "three")?;
    }
    place.act("Flux: uninstall", Expect::Passes, &flux.uninstall())
}

/// Flux dies in an upgrade, and the stranger finds its record.
fn killed(place: &Place<'_>, flux: &Flux, chart: &Chart) -> Option<()> {
    place.hang_pods()?;
    let started = Instant::now();
    let mut upgrade = flux.spawn(chart, &json!({"note": "killed", "image": "killed"}));
    let pending = within(OPERATION, "the record is pending", || {
        let records = place.admin.run(&["get", "secrets", "-l", "owner=helm,status=pending-upgrade", "-o", "name"]);
        if !records.stdout.is_empty() || !upgrade.is_running() { Ok(()) } else { Err(records.to_string()) }
    });
    let is_killed = upgrade.is_running();
    drop(upgrade.kill());
    place.ready_pods()?;
    // An upgrade that ended by itself met a disturbance, which other acts show.
    pending.ok().filter(|()| is_killed)?;
    if started.elapsed() < FRESH {
        let plane = place.site.cluster.plane();
        let helm =
            Helm::new(HelmVersion::V4, Driver::Secret, &plane.person("bob"), place.namespace.name(), plane.dir());
        let rollback = helm.run(&["rollback", RELEASE, "1"]);
        place.act("Flux: rollback over an upgrade", Expect::Refused(&["pending-recovery"]), &rollback)?;
    }
    Some(())
}

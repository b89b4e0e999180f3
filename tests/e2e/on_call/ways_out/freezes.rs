//! Refusals in freezes that come and go while the tests run.

use std::ops::Range;
use std::sync::OnceLock;
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::applications::sync_in_a_freeze;
use super::owners::{deployed_by_flux, deployed_by_olm, extension_ended};
use super::scene::{Scene, place};
use super::{Case, plane};
use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion, Identity};
use crate::harness::controllers::account;
use crate::harness::eventually::{eventually, within};
use crate::harness::extension::COLLECTOR;
use crate::harness::process::Output;

pub(super) const CASES: &[Case] = &[
    Case { rule: "freeze", owner: "Helm", arrange: upgrade_with_helm },
    Case { rule: "freeze", owner: "Flux", arrange: upgrade_by_flux },
    Case { rule: "freeze", owner: "Sveltos", arrange: upgrade_by_sveltos },
    Case { rule: "freeze", owner: "OLM", arrange: upgrade_by_olm },
    Case { rule: "freeze", owner: "Argo CD", arrange: sync_in_a_freeze },
];

/// So long nothing is frozen, and then so long everything of these cases is.
const PHASE: SignedDuration = SignedDuration::from_secs(40);

/// Longer than all cases take.
const FREEZES: i32 = 30;

/// How far the clock of the webhook may be behind, at most.
const CLOCKS: SignedDuration = SignedDuration::from_secs(2);

/// Longer than two phases.
const TURN: Duration = Duration::from_secs(120);

/// When the first phase without a freeze began.
fn start() -> Timestamp {
    static START: OnceLock<Timestamp> = OnceLock::new();
    *START.get_or_init(|| Timestamp::from_second(Timestamp::now().as_second()).unwrap())
}

/// The freezes of a policy: of the releases in `way-freeze` namespaces, and of the extensions of that name.
pub(super) fn in_turn() -> String {
    let shown = |moment: Timestamp| moment.to_zoned(TimeZone::UTC).datetime();
    let list = (0..FREEZES).flat_map(|number| {
        let from = start() + PHASE * (2 * number + 1);
        let window = format!("reason: a test, timeZone: UTC, from: {}, to: {}", shown(from), shown(from + PHASE));
        ["namespaces", "releases"]
            .map(|scope| format!("\n  - {{name: {scope}-{number}, {window}, {scope}: [way-freeze*]}}"))
    });
    format!("freezes:{}", list.collect::<String>())
}

/// Waits for the beginning of a phase without a freeze, so that a release is deployed in it.
pub(super) fn await_open() {
    await_part("a phase without a freeze begins", SignedDuration::ZERO..PHASE / 4);
}

/// What is refused once a freeze has begun.
pub(super) fn frozen(act: impl FnOnce() -> Output) -> Output {
    await_part("a freeze begins", PHASE + CLOCKS..PHASE * 3 / 2);
    let refused = act();
    assert!(refused.to_string().contains("[freeze]"), "{refused}");
    refused
}

/// Waits for a part of the phase without a freeze and the freeze after it.
fn await_part(expected: &str, part: Range<SignedDuration>) {
    eventually(TURN, expected, || {
        let turns = Timestamp::now().duration_since(start()).as_secs();
        let into = SignedDuration::from_secs(turns % (2 * PHASE).as_secs());
        if part.contains(&into) { Ok(()) } else { Err(format!("{into:#} after a phase without a freeze began")) }
    });
}

fn upgrade_with_helm() -> Scene {
    upgrade_by("way-freeze-helm", &plane().person("bob"))
}

/// In push mode, addon-controller runs Helm under its own account, and again until it succeeds.
fn upgrade_by_sveltos() -> Scene {
    upgrade_by("way-freeze-sveltos", &account(plane(), "projectsveltos", "addon-controller"))
}

fn upgrade_by(test: &str, who: &Identity) -> Scene {
    await_open();
    let (namespace, chart) = (place(test), Chart::new("demo"));
    let path = chart.path().to_owned();
    let helm = namespace.helm_as(HelmVersion::V4, Driver::Secret, who);
    helm.ok(&["install", "demo", &path]);
    let refused = frozen(|| helm.run(&["upgrade", "demo", &path]));
    Scene::new(namespace, chart, "bob", refused).retry(move |_| helm.run(&["upgrade", "demo", &path]))
}

fn upgrade_by_flux() -> Scene {
    await_open();
    let (namespace, chart, flux) = deployed_by_flux("way-freeze-flux");
    let again = move |chart: &Chart| flux.reconcile(chart, &json!({"note": Timestamp::now().to_string()}));
    let refused = frozen(|| again(&chart));
    Scene::new(namespace, chart, "bob", refused).retry(move |scene| again(&scene.chart))
}

fn upgrade_by_olm() -> Scene {
    await_open();
    let (extension, chart) = deployed_by_olm("way-freeze-olm");
    let again = move |chart: &Chart| {
        extension.objects.ready_pods();
        extension.olm.reconcile(chart, &json!({"note": Timestamp::now().to_string()}))
    };
    let refused = frozen(|| again(&chart));
    Scene::new(&extension.objects, chart, "bob", refused)
        .retry(move |scene| again(&scene.chart))
        .end(|_| within(COLLECTOR, "one deployed record, or none", || extension_ended(extension)))
}

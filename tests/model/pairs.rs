//! Every pair of clients, within bounds, keeps every property.

use std::sync::Mutex;
use std::thread;

use interlock_engine::policy::Policy;

use crate::clients::flux::Remedy;
use crate::clients::helm::Way;
use crate::clients::person::Person;
use crate::clients::sveltos::Recovery;
use crate::cluster::{Cluster, Driver};
use crate::explore::{Explored, Explorer};
use crate::recording;
use crate::scopes::{
    Actor, DEEDS, Pair, change_control, collector, crossplane, fleet, flux, handover, helm, helm_in_config_maps,
    installed, klipper, mapkubeapis, nelm, olm, olm_collected, person, stranger, sveltos,
};
use crate::steps::{self, Followed};
use crate::users::User::{Alice, Bob, Flux, FluxTenant, Nelm, Pipeline};
use crate::ways_out;

/// Set to a number: every client of every pair begins so many operations more.
const DEEPER: &str = "INTERLOCK_MODEL_DEPTH";

/// Set to a part of a name: only these pairs.
const ONLY: &str = "INTERLOCK_MODEL_PAIR";

/// Set to a directory: a counterexample is written there as a recording for `interlock replay`.
const WRITE_TO: &str = "INTERLOCK_MODEL_RECORDINGS";

/// Each client alone, with all of its operations.
fn alone() -> Vec<Pair> {
    let clients = [
        helm(Alice, 1, Way::ALL),
        helm(Pipeline, 1, Way::ALL),
        flux(Flux, 2, Remedy::RollBack),
        flux(Flux, 2, Remedy::Uninstall),
        flux(FluxTenant, 2, Remedy::Retry),
        sveltos(Recovery::Deletes),
        sveltos(Recovery::Uninstalls),
        fleet(false),
        fleet(true),
        klipper(),
        nelm(Nelm),
        crossplane(),
    ];
    let name = |client: &Actor| format!("{} alone, as {}", client.name(), client.user().name());
    let alone = clients.into_iter().map(|client| Pair::new(&name(&client), [client], [2]));
    let elsewhere = [(helm_in_config_maps(Alice, 1, Way::USUAL), Driver::ConfigMap), (olm(&[1, 2, 3]), Driver::Olm)];
    let elsewhere = elsewhere
        .map(|(client, driver)| Pair::new(&name(&client), [client], [3]).from([Cluster::default(), installed(driver)]));
    alone.chain(elsewhere).collect()
}

/// The pairs with the most states by far.
fn largest() -> Vec<Pair> {
    let alice = || helm(Alice, 1, Way::USUAL);
    vec![
        Pair::new("helm and helm", [alice(), helm(Bob, 2, Way::USUAL)], [2, 2]),
        Pair::new("helm and nelm", [alice(), nelm(Nelm)], [1, 2]),
    ]
}

/// Helm beside everybody.
fn with_helm() -> Vec<Pair> {
    let alice = || helm(Alice, 1, Way::USUAL);
    let every = || helm(Alice, 1, Way::ALL);
    vec![
        Pair::new("helm and helm", [alice(), helm(Bob, 2, Way::USUAL)], [1, 1]).in_time(),
        Pair::new("helm twice under one account", [alice(), helm(Alice, 2, Way::USUAL)], [1, 1]),
        Pair::new("helm and a pipeline", [alice(), helm(Pipeline, 2, Way::USUAL)], [1, 1]),
        Pair::new("helm with both drivers", [alice(), helm_in_config_maps(Bob, 2, Way::USUAL)], [1, 1]),
        Pair::new("helm and kubectl", [every(), person(Bob, DEEDS)], [1, 1]),
        Pair::new("helm and a stranger", [alice(), stranger()], [1, 2]),
        Pair::new("helm with every flag, and helm", [every(), helm(Bob, 2, Way::USUAL)], [1, 1]),
    ]
}

/// Helm beside the controllers. Not in time: a manager whose uninstall is refused goes on to delete objects when the other operation
/// has ended.
fn helm_with_controllers() -> Vec<Pair> {
    let alice = || helm(Alice, 1, Way::USUAL);
    vec![
        Pair::new("helm and Flux", [alice(), flux(Flux, 2, Remedy::RollBack)], [1, 2]),
        Pair::new("helm and Sveltos", [alice(), sveltos(Recovery::Deletes)], [1, 2]),
        Pair::new("helm and Fleet", [alice(), fleet(false)], [1, 2]),
        Pair::new("helm and klipper", [alice(), klipper()], [1, 2]),
        Pair::new("helm and Crossplane", [alice(), crossplane()], [1, 2]),
        Pair::new("helm and mapkubeapis", [alice(), mapkubeapis(Bob)], [2, 1]),
    ]
}

/// Pairs without helm's command line.
fn without_helm() -> Vec<Pair> {
    let in_olm = || [Cluster::default(), installed(Driver::Olm)];
    let index = || Box::new(Person { user: Bob, driver: Driver::Olm, deeds: DEEDS }) as Actor;
    let rolls_back = || flux(Flux, 2, Remedy::RollBack);
    vec![
        Pair::new("Flux and Flux under another account", [rolls_back(), flux(FluxTenant, 1, Remedy::Retry)], [1, 1]),
        Pair::new("Flux and Sveltos", [rolls_back(), sveltos(Recovery::Deletes)], [1, 1]),
        Pair::new("Flux and Fleet", [rolls_back(), fleet(true)], [1, 1]),
        Pair::new("Flux and kubectl", [rolls_back(), person(Bob, DEEDS)], [1, 1]),
        Pair::new("Flux and a stranger", [rolls_back(), stranger()], [1, 1]),
        Pair::new("nelm and nelm", [nelm(Nelm), nelm(Pipeline)], [1, 1]),
        Pair::new("nelm and kubectl", [nelm(Nelm), person(Bob, DEEDS)], [1, 1]),
        Pair::new("OLM and kubectl", [olm(&[1, 2]), index()], [2, 1]).from(in_olm()),
        Pair::new("OLM and the garbage collector", [olm_collected(&[1, 2]), collector()], [2, 2]).from(in_olm()),
    ]
}

/// Flux for a HelmRelease: the stamp of the driver says whose operation is whose.
fn with_a_helm_release() -> Vec<Pair> {
    let flux = |user| flux(user, 2, Remedy::RollBack);
    vec![
        Pair::new("Flux whose HelmRelease gets another account", [handover(FluxTenant, 1), handover(Flux, 2)], [1, 2])
            .with_helm_release(FluxTenant),
        Pair::new("a pipeline and a HelmRelease", [helm(Pipeline, 1, Way::USUAL), flux(FluxTenant)], [1, 1])
            .with_helm_release(FluxTenant),
        Pair::new("a HelmRelease and Sveltos", [flux(FluxTenant), sveltos(Recovery::Deletes)], [1, 1])
            .with_helm_release(FluxTenant),
        Pair::new("a HelmRelease and kubectl", [flux(Flux), person(Bob, DEEDS)], [1, 1]).with_helm_release(Flux),
        Pair::new("a HelmRelease and a stranger", [flux(FluxTenant), stranger()], [1, 1]).with_helm_release(FluxTenant),
    ]
}

/// Every owner, while its release is frozen and protected and both end again.
fn under_change_control() -> Vec<Pair> {
    let beside =
        |name: &str, client| Pair::new(&format!("{name} under change control"), [client, change_control()], [2, 3]);
    vec![
        beside("helm", helm(Bob, 2, Way::USUAL)),
        beside("Flux", flux(Flux, 2, Remedy::RollBack)),
        beside("Flux that uninstalls", flux(Flux, 2, Remedy::Uninstall)),
        beside("Sveltos", sveltos(Recovery::Deletes)),
        beside("Sveltos that uninstalls", sveltos(Recovery::Uninstalls)),
        beside("OLM", olm(&[1, 2])).from([Cluster::default(), installed(Driver::Olm)]),
    ]
}

/// Two threads take one pair after the other. The largest come first, so that both end at about the same time.
#[test]
fn every_pair_of_clients_keeps_every_property() {
    let deeper = std::env::var(DEEPER).map_or(0, |deeper| deeper.parse().unwrap());
    let only = std::env::var(ONLY).unwrap_or_default();
    let pairs: Vec<Pair> = largest()
        .into_iter()
        .chain(alone())
        .chain(with_helm())
        .chain(helm_with_controllers())
        .chain(without_helm())
        .chain(with_a_helm_release())
        .chain(under_change_control())
        .filter(|pair| pair.name.contains(&only))
        .collect();
    let (next, explored) = (Mutex::new(pairs.iter()), Mutex::new(Vec::new()));
    let followed = Mutex::new(Followed::default());
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut explorer = Explorer::new(Policy::shipped().unwrap());
                while let Some(pair) = { next.lock().unwrap().next() } {
                    let found = explorer.explore(&pair.scope(deeper));
                    report(&pair.name, &found);
                    explored.lock().unwrap().push((pair.name.as_str(), found));
                }
                assert_eq!(ways_out::dead_end(&mut explorer), None);
                steps::follow_all(&mut explorer, &followed);
            });
        }
    });
    let explored = explored.into_inner().unwrap();
    let (states, edges) = explored.iter().fold((0, 0), |(s, e), (_, found)| (s + found.states, e + found.edges));
    println!("{states} states and {edges} edges in all");
    println!("{}", followed.into_inner().unwrap().text());
    let broken: Vec<_> =
        explored.iter().filter(|(_, found)| found.counterexample.is_some()).map(|(name, _)| name).collect();
    assert!(broken.is_empty(), "{broken:?}; the counterexamples are above");
}

fn report(name: &str, found: &Explored) {
    let Explored { states, edges, clusters, judged, took, .. } = found;
    println!(
        "{name}: {states} states, {edges} edges, {clusters} clusters, {judged} reviews, {:.1} s",
        took.as_secs_f64()
    );
    let Some(broken) = &found.counterexample else { return };
    println!("{}", recording::story(broken));
    if let Some(directory) = std::env::var_os(WRITE_TO) {
        let file = std::path::Path::new(&directory).join(format!("{}.jsonl", name.replace(' ', "-")));
        std::fs::write(file, recording::lines(broken).join("\n") + "\n").unwrap();
    }
}

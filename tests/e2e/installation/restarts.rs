//! Replicas end under load. A replica that is asked to end costs no write; one that is killed costs what it was answering.

use std::time::Duration;

use crate::harness::assets::progress;
use crate::harness::clients::{Driver, Helm, HelmVersion};
use crate::harness::cluster::{CHART, Cluster, IMAGE, NAMESPACE};
use crate::harness::eventually::eventually;
use crate::harness::load::{Load, Phase};
use crate::harness::namespace::Namespace;

const REPLICAS: usize = 3;
/// Writes a second: some are in flight at any moment, and other tests still get on.
const RATE: u32 = 30;
/// The node sends connections to a pod for a second after its SIGTERM, and on a busy machine the last of them arrives later.
const DRAIN_DELAY: [&str; 2] = ["--set=extraEnv[0].name=INTERLOCK_DRAIN_DELAY", "--set-string=extraEnv[0].value=2"];
/// How often every replica is replaced.
const ROUNDS: usize = 3;
/// How long anything may take on a busy machine.
const SOON: Duration = Duration::from_secs(90);
/// The number of right writes that show that all is well again.
const ENOUGH: u64 = 60;

#[test]
fn a_replica_that_is_asked_to_end_costs_nothing_and_one_that_is_killed_what_it_was_answering() {
    let cluster = Cluster::start("restarts");
    let plane = cluster.plane();
    let helm = Helm::new(HelmVersion::V4, Driver::Secret, &plane.admin(), NAMESPACE, plane.dir());
    let install = ["install", "interlock", CHART, IMAGE, "--create-namespace", "--wait", "--timeout=100s"];
    helm.ok(&[&install[..], &DRAIN_DELAY].concat());
    cluster.await_ready(REPLICAS);
    cluster.await_closed();
    let namespace = Namespace::new(plane, "restarts");
    let load = Load::start(&namespace, RATE);

    for round in 1..=ROUNDS {
        drop(load.phase());
        let refused = cluster.connections().refused();
        cluster.rolling_restart();
        await_writes(&load);
        let phase = load.phase();
        progress(&format!("every replica is replaced, round {round}: {phase}"));
        assert_eq!(phase.faults(), 0, "round {round}: {phase}");
        assert_eq!(cluster.connections().refused(), refused, "round {round}: a port closed too early");
    }
    for victim in 0..REPLICAS {
        let (phase, ended) = kill(&cluster, &load, victim);
        assert!(phase.failed_open_only(), "replica {victim}: {phase}");
        assert!(phase.faults() as u64 <= ended, "replica {victim}, {ended} connections ended: {phase}");
    }
    drop(load.phase());
    let before = cluster.connections().cut();
    cluster.connections().cut_all();
    await_writes(&load);
    let phase = load.phase();
    let cut = cluster.connections().cut() - before;
    progress(&format!("{cut} connections are cut: {phase}"));
    assert!(cut > 0 && phase.failed_open_only(), "{cut} connections are cut: {phase}");
    assert!(phase.faults() as u64 <= cut, "{cut} connections are cut: {phase}");
}

/// Returns the results of the writes, and how many connections the replica ended or refused.
fn kill(cluster: &Cluster, load: &Load, victim: usize) -> (Phase, u64) {
    drop(load.phase());
    let connections = cluster.connections();
    let counts = || [connections.lost(), connections.owing(), connections.refused()];
    let mut replicas = cluster.replicas();
    replicas.sort_by(|one, other| one.pod.cmp(&other.pod));
    let (killed, before) = (&replicas[victim], counts());
    killed.kill();
    eventually(SOON, "the container runs again", || {
        let now = cluster.replicas();
        let again = now.iter().any(|it| it.pod == killed.pod && it.restarts > killed.restarts && it.ready);
        if again { Ok(()) } else { Err(format!("{now:?}")) }
    });
    await_writes(load);
    let phase = load.phase();
    let after = counts();
    let [lost, owing, refused] = [0, 1, 2].map(|it| after[it] - before[it]);
    progress(&format!(
        "replica {victim} killed with {lost} connections, {owing} of them owing; {refused} refused: {phase}"
    ));
    (phase, lost + refused)
}

fn await_writes(load: &Load) {
    let enough = load.right() + ENOUGH;
    eventually(SOON, "writes go on", || {
        let right = load.right();
        if right >= enough { Ok(()) } else { Err(format!("{right} of {enough}")) }
    });
}

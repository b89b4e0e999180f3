//! Everything that can happen to an installation, one phase after another, under a steady load of writes. Failed and
//! wrongly decided writes are counted by the clients.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::assets::progress;
use crate::harness::clients::{Driver, Helm, HelmVersion};
use crate::harness::cluster::{CHART, Cluster, IMAGE, NAMESPACE};
use crate::harness::eventually::eventually;
use crate::harness::load::{Load, WORKERS};
use crate::harness::namespace::Namespace;
use crate::harness::process::run;

/// Another file with the same policy.
const POLICY: &str = concat!(include_str!("../../../policies/cluster.yaml"), "\n# Another text.\n");
const REPLICAS: usize = 3;
/// The default number of writes a second: some are in flight at any moment, and other tests still get on.
const RATE: u32 = 30;
/// Overrides the rate.
const RATE_VARIABLE: &str = "INTERLOCK_E2E_RATE";
/// Leaves are renewed within the test, but not so fast that one expires while the API server is away: a third of this is
/// longer than any outage here. CAs are used soon after they are published, and replicas drain faster than a cluster with
/// many nodes needs.
const TIMES: [&str; 6] = [
    "--set=extraEnv[0].name=INTERLOCK_LEAF_LIFETIME",
    "--set-string=extraEnv[0].value=60",
    "--set=extraEnv[1].name=INTERLOCK_CA_SETTLE",
    "--set-string=extraEnv[1].value=1",
    "--set=extraEnv[2].name=INTERLOCK_DRAIN_DELAY",
    "--set-string=extraEnv[2].value=3",
];
/// How long anything may take on a busy machine.
const SOON: Duration = Duration::from_secs(90);
/// The number of right writes that end a phase.
const ENOUGH: u64 = 60;

/// The faults that a phase may cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Price {
    Nothing,
    /// The requests of a killed replica, and the connections that it refuses until it leaves the Service.
    Replica,
    /// Writes that could not be judged until the damage was repaired.
    Moment,
    /// Writes while the API server is down, and reviews during which it went down.
    ApiServer,
}

#[test]
fn nothing_fails_under_load_while_everything_around_it_changes() {
    let rate = std::env::var(RATE_VARIABLE).ok().and_then(|rate| rate.parse().ok()).unwrap_or(RATE);
    let cluster = Cluster::start("storm");
    let plane = cluster.plane();
    let helm = Helm::new(HelmVersion::V4, Driver::Secret, &plane.admin(), NAMESPACE, plane.dir());
    let install = ["install", "interlock", CHART, IMAGE, "--create-namespace", "--wait", "--timeout=100s"];
    helm.ok(&[&install[..], &TIMES].concat());
    cluster.await_ready(REPLICAS);
    cluster.await_closed();
    let namespace = Namespace::new(plane, "load");
    let storm = Storm { cluster: &cluster, load: Load::start(&namespace, rate), rate };

    let nobody = cluster.connections().nobody();
    storm.phase("nothing happens", Price::Nothing, || ());
    for rotation in ["the CA is rotated", "the CA is rotated again"] {
        storm.phase(rotation, Price::Nothing, || storm.rotate());
    }
    for victim in 0..REPLICAS {
        storm.phase(&format!("replica {victim} is killed"), Price::Replica, || storm.kill(victim));
    }
    storm.phase("every replica is replaced", Price::Nothing, || cluster.rolling_restart());
    storm.phase("the policy is reloaded", Price::Nothing, || storm.reload());
    storm.phase("the caBundles are wiped", Price::Moment, || storm.wipe());
    storm.phase("the Secret of the CA is deleted", Price::Nothing, || storm.delete_secret());
    let replicas = || -> Vec<_> { cluster.replicas().into_iter().map(|it| (it.pod, it.pid)).collect() };
    let before = replicas();
    storm.phase("the API server is restarted", Price::ApiServer, || cluster.restart_api_server());
    storm.phase("the API server is killed", Price::ApiServer, || cluster.kill_api_server());
    cluster.await_ready(REPLICAS);
    assert_eq!(replicas(), before, "a replica was restarted");
    storm.phase("nothing happens again", Price::Nothing, || ());
    assert_eq!(cluster.connections().nobody(), nobody, "there was always somebody to connect to");
}

struct Storm<'c> {
    cluster: &'c Cluster,
    load: Load,
    /// Writes a second.
    rate: u32,
}

impl Storm<'_> {
    /// Acts under load, and checks the results of the writes during the act and for a while after.
    #[track_caller]
    fn phase(&self, what: &str, price: Price, act: impl FnOnce()) {
        let refused = self.cluster.connections().refused();
        drop(self.load.phase());
        act();
        let enough = self.load.right() + ENOUGH;
        eventually(SOON, "writes go on", || {
            let right = self.load.right();
            if right >= enough { Ok(()) } else { Err(format!("{right} of {enough}")) }
        });
        let phase = self.load.phase();
        progress(&format!("{what}: {phase}"));
        // Fewer than the writes of one second.
        let few = phase.faults() < self.rate as usize;
        match price {
            Price::Nothing => assert_eq!(phase.faults(), 0, "{what}: {phase}"),
            Price::ApiServer => assert!(few && phase.reached() && phase.failed_open_only(), "{what}: {phase}"),
            Price::Replica => {
                let refused = self.cluster.connections().refused() - refused;
                let lost = phase.faults() as u64;
                assert!(lost <= u64::from(WORKERS) + refused, "{what}, {refused} connections refused: {phase}");
                assert!(phase.failed_open_only(), "{what}: {phase}");
            }
            Price::Moment => assert!(few && phase.failed_open_only(), "{what}: {phase}"),
        }
    }

    /// `interlock certs rotate`, until the new CA signs.
    fn rotate(&self) {
        let before = self.secret()["data"]["current.crt"].clone();
        let plane = self.cluster.plane();
        run(plane.interlock(&plane.admin(), &["certs", "rotate", "--namespace", NAMESPACE]), SOON).expect_success();
        eventually(SOON, "another CA signs", || {
            let now = self.secret()["data"]["current.crt"].clone();
            if now == before { Err("the old one does".to_owned()) } else { Ok(()) }
        });
    }

    fn kill(&self, victim: usize) {
        let mut replicas = self.cluster.replicas();
        replicas.sort_by(|one, other| one.pod.cmp(&other.pod));
        replicas[victim].kill();
        let killed = &replicas[victim];
        eventually(SOON, "the container runs again", || {
            let now = self.cluster.replicas();
            let again = now.iter().any(|it| it.pod == killed.pod && it.restarts > killed.restarts && it.ready);
            if again { Ok(()) } else { Err(format!("{now:?}")) }
        });
    }

    fn reload(&self) {
        let loaded = || -> Vec<String> {
            let line = |log: String| log.lines().filter(|line| line.contains("policies")).count().to_string();
            self.cluster
                .replicas()
                .iter()
                .map(|it| line(std::fs::read_to_string(&it.log).unwrap_or_default()))
                .collect()
        };
        let before = loaded();
        self.cluster.edit_policies(POLICY);
        eventually(SOON, "every replica has read the policy again", || {
            let now = loaded();
            if now.iter().zip(&before).all(|(now, before)| now != before) { Ok(()) } else { Err(format!("{now:?}")) }
        });
    }

    fn wipe(&self) {
        for kind in ["validatingwebhookconfiguration", "mutatingwebhookconfiguration"] {
            let configuration = self.cluster.kubectl().get(&[kind, "interlock"]);
            let entries = configuration["webhooks"].as_array().map_or(0, Vec::len);
            let wipe = |entry| json!({"op": "remove", "path": format!("/webhooks/{entry}/clientConfig/caBundle")});
            let patch = Value::from_iter((0..entries).map(wipe)).to_string();
            self.cluster.kubectl().ok(&["patch", kind, "interlock", "--type=json", "-p", &patch]);
            eventually(SOON, "the caBundles are back", || {
                let now = self.cluster.kubectl().get(&[kind, "interlock"]);
                let whole = |entry: &Value| entry["clientConfig"]["caBundle"].is_string();
                if now["webhooks"].as_array().is_some_and(|entries| entries.iter().all(whole)) {
                    Ok(())
                } else {
                    Err(now["webhooks"].to_string())
                }
            });
        }
    }

    fn delete_secret(&self) {
        let before = self.secret()["metadata"]["uid"].clone();
        self.cluster.kubectl().ok(&["delete", "secret", "interlock-ca"]);
        eventually(SOON, "the Secret is back", || {
            let now = self.cluster.kubectl().find(&["secret", "interlock-ca"]);
            match now {
                Some(secret) if secret["metadata"]["uid"] != before => Ok(()),
                _ => Err("it is not".to_owned()),
            }
        });
    }

    fn secret(&self) -> Value {
        self.cluster.kubectl().get(&["secret", "interlock-ca"])
    }
}

//! Disturbances, one after the other, at random.

use std::fs;
use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::Value;

use crate::harness::clock::WrongClock;
use crate::harness::cluster::NAMESPACE;
use crate::harness::eventually::{eventually, within};
use crate::harness::kubelet::Replica;
use crate::harness::load::Load;
use crate::harness::process::run;

use super::chance::Chance;
use super::ledger::Price;
use super::load_account::LoadAccount;
use super::site::Site;

pub(crate) const REPLICAS: usize = 3;
/// How long a disturbance may last on a busy machine.
const SOON: Duration = Duration::from_secs(120);
/// A call that began during a disturbance has ended after this.
const AFTER: Duration = Duration::from_secs(4);
/// With so many CAs a rotation waits until older ones are retired, which takes longer than an act may.
const FULL_BUNDLE: usize = 8;
/// How far the clock of a replica is off, in seconds.
const SKEW: i64 = 120;
const BROKEN: &str = "apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\nrules: [broken\n";

pub(crate) struct Disturber<'d> {
    pub(crate) site: &'d Site<'d>,
    pub(crate) load: &'d Load,
    pub(crate) account: &'d LoadAccount,
    pub(crate) chance: Chance,
    /// The policy in force.
    pub(crate) policy: String,
    /// The library that shifts a clock.
    pub(crate) clock: WrongClock,
    /// How many policies were written.
    pub(crate) edits: u32,
}

type Act<'d> = fn(&mut Disturber<'d>);

impl<'d> Disturber<'d> {
    /// Names, how they are done, and their prices.
    const ALL: [(&'static str, Act<'d>, Price); 10] = [
        ("a replica killed (SIGKILL)", Self::kill, Price::Calls),
        ("a replica stopped and started", Self::stop, Price::Nothing),
        ("every replica replaced", Self::replace, Price::Nothing),
        ("the CA rotated", Self::rotate, Price::Nothing),
        ("the policy reloaded", Self::reload, Price::Nothing),
        ("a broken policy, then the old one", Self::break_policy, Price::Nothing),
        ("the API server restarted", Self::restart_api_server, Price::ApiServer),
        ("the API server killed (SIGKILL)", Self::kill_api_server, Price::ApiServer),
        ("every connection to the replicas cut", Self::cut, Price::Calls),
        ("a replica's clock two minutes off", Self::skew, Price::Nothing),
    ];

    /// Disturbs until the stop: each disturbance once in random order, then again.
    pub(crate) fn run(mut self) {
        loop {
            for (what, act, price) in self.chance.shuffled(&Self::ALL) {
                let pause = self.chance.between(Duration::from_secs(2), Duration::from_secs(10));
                self.site.sleep(pause);
                if self.site.is_stopped() {
                    return;
                }
                self.account.add("no disturbance", &self.load.phase(), Price::Nothing);
                let window = self.site.ledger.begin(what, price);
                act(&mut self);
                self.replicas();
                self.site.ledger.end(window);
                std::thread::sleep(AFTER);
                self.account.add(what, &self.load.phase(), price);
            }
        }
    }

    /// Waits until all replicas are ready.
    fn replicas(&self) -> Vec<Replica> {
        eventually(SOON, "every replica is ready", || {
            let now = self.site.cluster.replicas();
            if now.len() == REPLICAS && now.iter().all(|it| it.ready) { Ok(now) } else { Err(format!("{now:?}")) }
        })
    }

    fn victim(&mut self) -> Replica {
        let replicas = self.replicas();
        self.chance.pick(&replicas).clone()
    }

    fn kill(&mut self) {
        let victim = self.victim();
        victim.kill();
        eventually(SOON, "the container runs again", || {
            let now = self.site.cluster.replicas();
            let again = now.iter().any(|it| it.pod == victim.pod && it.restarts > victim.restarts && it.ready);
            if again { Ok(()) } else { Err(format!("{now:?}")) }
        });
    }

    /// Returns the replica that takes the place of the stopped one.
    fn stop_one(&mut self) -> Replica {
        let victim = self.victim();
        let before: Vec<_> = self.site.cluster.replicas().into_iter().map(|it| it.pod).collect();
        self.site.cluster.kubectl().ok(&["delete", "pod", &victim.pod, "--wait=false"]);
        eventually(SOON, "another replica is ready, and the old one is gone", || {
            let now = self.site.cluster.replicas();
            let new = now.iter().find(|it| it.ready && !before.contains(&it.pod));
            match new {
                Some(new) if now.iter().all(|it| it.pod != victim.pod) => Ok(new.clone()),
                _ => Err(format!("{now:?}")),
            }
        })
    }

    fn stop(&mut self) {
        self.stop_one();
    }

    fn replace(&mut self) {
        self.site.cluster.rolling_restart();
    }

    /// The next replica starts with a wrong clock, and keeps it until it ends.
    fn skew(&mut self) {
        let seconds = if self.chance.below(2) == 0 { SKEW } else { -SKEW };
        self.site.cluster.set_environment(&self.clock.ahead(seconds));
        let shifted = self.stop_one();
        self.site.cluster.set_environment(&[]);
        let log = fs::read_to_string(&shifted.log).unwrap_or_default();
        let times = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let first = times.filter_map(|line| line["timestamp"].as_str()?.parse::<Timestamp>().ok()).next();
        let off = first.map(|first| first.as_second() - Timestamp::now().as_second());
        // The replica started a few seconds ago.
        let is_off = off.is_some_and(|off| (off - seconds).abs() < SKEW / 2);
        assert!(is_off, "the clock of {} is off by {off:?} s instead of {seconds} s\n{log}", shifted.pod);
    }

    fn rotate(&mut self) {
        let data = || self.site.cluster.kubectl().get(&["secret", "interlock-ca"])["data"].take();
        let secret = || data()["current.crt"].take();
        let bundle = data()["bundle.crt"].as_str().and_then(|text| STANDARD.decode(text).ok()).unwrap_or_default();
        if String::from_utf8_lossy(&bundle).matches("BEGIN CERTIFICATE").count() >= FULL_BUNDLE {
            return;
        }
        let (before, plane) = (secret(), self.site.cluster.plane());
        run(plane.interlock(&plane.admin(), &["certs", "rotate", "--namespace", NAMESPACE]), SOON).expect_success();
        let signs = within(SOON, "another CA signs", || {
            if secret() == before { Err("the old one does".to_owned()) } else { Ok(()) }
        });
        self.site.duty("certificates rotated", signs);
    }

    /// Writes a policy and waits until every replica says something about it.
    fn write_policy(&mut self, text: &str) {
        let lines_in_logs = || -> Vec<usize> {
            let lines = |log: &Path| {
                let log = fs::read_to_string(log).unwrap_or_default();
                log.lines().filter(|line| line.contains("policies") || line.contains("cluster.yaml")).count()
            };
            self.site.cluster.replicas().iter().map(|it| lines(&it.log)).collect()
        };
        let before = lines_in_logs();
        self.site.cluster.edit_policies(text);
        eventually(SOON, "every replica has read the policy", || {
            let now = lines_in_logs();
            if now.iter().zip(&before).all(|(now, before)| now > before) { Ok(()) } else { Err(format!("{now:?}")) }
        });
    }

    fn reload(&mut self) {
        self.edits += 1;
        self.write_policy(&format!("{}\n# Text {}.\n", self.policy, self.edits));
    }

    fn break_policy(&mut self) {
        self.write_policy(BROKEN);
        std::thread::sleep(AFTER);
        self.reload();
    }

    fn restart_api_server(&mut self) {
        self.site.cluster.restart_api_server();
    }

    fn kill_api_server(&mut self) {
        self.site.cluster.kill_api_server();
    }

    fn cut(&mut self) {
        self.site.cluster.connections().cut_all();
    }
}

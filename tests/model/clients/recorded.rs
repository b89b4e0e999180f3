//! Each machine, alone, makes the writes of its client: as recorded on a real API server, or as written from its source
//! (`tests/recordings`).

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader};

use flate2::bufread::MultiGzDecoder;
use interlock_engine::release::Status;
use serde_json::Value;

use super::crossplane::Crossplane;
use super::fleet::Fleet;
use super::flux::{Flux, Remedy};
use super::helm::Helm;
use super::helm::Way::{Install, Upgrade, UpgradeHooks};
use super::klipper::Klipper;
use super::mapkubeapis::Mapkubeapis;
use super::nelm::Nelm;
use super::olm::Olm;
use super::sveltos::{Recovery, Sveltos};
use crate::client::{Act, Client, View, Write};
use crate::cluster::{Age, Body, Cluster, Driver, Object, Record, Revision};
use crate::users::User;

/// The writes to the records of a release by one user that must be admitted, in order.
fn recorded(name: &str, release: &str, user: User) -> Vec<String> {
    let path = |suffix: &str| format!("{}/tests/recordings/{name}.{suffix}", env!("CARGO_MANIFEST_DIR"));
    let expected: Value = serde_json::from_str(&std::fs::read_to_string(path("expect.json")).unwrap()).unwrap();
    let refused: BTreeSet<usize> =
        expected["deny"].as_object().unwrap().keys().map(|line| line.parse().unwrap()).collect();
    let file = MultiGzDecoder::new(BufReader::new(File::open(path("jsonl.gz")).unwrap()));
    let lines = BufReader::new(file).lines().enumerate();
    let admitted = lines.filter(|(index, _)| !refused.contains(&(index + 1)));
    admitted
        .filter_map(|(_, line)| text(&serde_json::from_str(&line.unwrap()).unwrap(), release, user.name()))
        .collect()
}

/// A write to a record in the words of [`Alone`].
fn text(line: &Value, release: &str, user: &str) -> Option<String> {
    let request = line.pointer("/review/request").filter(|request| request["userInfo"]["username"] == user)?;
    let status = |side: &str| request[side].pointer("/metadata/labels/status").and_then(Value::as_str);
    let object = if request["object"].is_null() { &request["oldObject"] } else { &request["object"] };
    let labels = &object["metadata"]["labels"];
    if labels["name"] != release || labels["version"].is_null() {
        return None;
    }
    let from = status("oldObject").unwrap_or("none");
    Some(format!("v{} {from} -> {}", labels["version"].as_str()?, status("object").unwrap_or("none")))
}

/// A client that nobody disturbs, and nobody judges.
struct Alone<'c> {
    client: &'c dyn Client,
    cluster: Cluster,
    memory: u16,
    writes: Vec<String>,
}

impl<'c> Alone<'c> {
    fn new(client: &'c dyn Client) -> Self {
        Self { client, cluster: Cluster::default(), memory: 0, writes: Vec::new() }
    }

    fn view(&self) -> View<'_> {
        View { cluster: &self.cluster, memory: self.memory, lives: 0 }
    }

    fn acts(&self, name: &str) -> Vec<Act> {
        let operations = self.client.begin(&self.view());
        let names: Vec<_> = operations.iter().map(|operation| operation.name).collect();
        let found = operations.iter().find(|operation| operation.name == name);
        found.unwrap_or_else(|| panic!("{name} is not among {names:?} after {:?}", self.writes)).acts.clone()
    }

    /// Whole operations.
    fn does(mut self, names: &[&str]) -> Self {
        for name in names {
            let acts = self.acts(name);
            self.act(acts);
        }
        self
    }

    /// An operation that is killed after so many writes.
    fn killed(mut self, name: &str, writes: usize) -> Self {
        let mut acts = self.acts(name);
        let is_write = |act: &Act| matches!(act, Act::Write(..));
        let end = (0..acts.len()).filter(|at| is_write(&acts[*at])).nth(writes);
        acts.truncate(end.unwrap());
        self.act(acts);
        self
    }

    /// Somebody else, or the same client by hand.
    fn then(mut self, write: &Write, is_told: bool) -> Self {
        let before = self.writes.len();
        self.write(write);
        if !is_told {
            self.writes.truncate(before);
        }
        self
    }

    fn act(&mut self, acts: Vec<Act>) {
        let mut rest: Vec<Act> = acts.into_iter().rev().collect();
        while let Some(act) = rest.pop() {
            match act {
                Act::Write(write, _) => self.write(&write),
                Act::Look(what, copies) => {
                    let ways = self.client.look(what, &copies, &self.view());
                    rest.extend(ways.into_iter().next().into_iter().flatten().rev());
                }
                Act::Remember(memory) => self.memory = memory,
            }
        }
    }

    fn write(&mut self, write: &Write) {
        let status = |cluster: &Cluster, driver: Driver, revision: Revision| {
            cluster.record(driver, revision).map_or("none", |record| record.status().as_str())
        };
        match *write {
            Write::Create(body) | Write::Update(body) => {
                let from = status(&self.cluster, body.driver, body.revision);
                self.writes.push(format!("v{} {from} -> {}", body.revision, body.status));
                self.cluster.put(Record {
                    body,
                    label: body.status,
                    created: Age::Just,
                    holder: None,
                    is_driven: false,
                    started: None,
                    ended: None,
                    interrupted: None,
                    left: false,
                    broken: false,
                });
            }
            Write::Delete(driver, revision) => {
                self.writes.push(format!("v{revision} {} -> none", status(&self.cluster, driver, revision)));
                self.cluster.remove(driver, revision);
            }
            Write::Apply(chart) => self.cluster.object = Some(Object::of(chart)),
            Write::Edit => self.cluster.object.iter_mut().for_each(|object| object.edited = true),
            Write::DeleteObject => self.cluster.object = None,
            Write::Put(other) => _ = self.cluster.others.insert(other),
            Write::Take(other) => _ = self.cluster.others.remove(&other),
            _ => {}
        }
    }

    #[track_caller]
    fn writes_like(self, name: &str, release: &str) {
        let mut recorded = recorded(name, release, self.client.user());
        // Pruning is Helm's, whose machine is of its own.
        if name == "flux" {
            recorded.retain(|write| !write.ends_with("-> none"));
        }
        assert_eq!(self.writes, recorded);
    }
}

#[test]
fn flux_writes_as_recorded() {
    let flux = |remedy| Flux { user: User::Flux, chart: 1, remedy, fails: true };
    let (rolls_back, retries) = (flux(Remedy::RollBack), flux(Remedy::Retry));
    let failing = ["upgrade, which fails", "roll back"];
    Alone::new(&rolls_back).does(&["install"]).does(&failing.repeat(4)).does(&["upgrade"]).writes_like("flux", "roll");
    let fails = ["upgrade, which fails"; 4];
    Alone::new(&retries).does(&["install"]).does(&fails).does(&["upgrade"]).writes_like("flux", "retry");
    Alone::new(&rolls_back)
        .does(&["install"])
        .killed("upgrade", 2)
        .does(&["unlock", "upgrade"])
        .killed("upgrade", 2)
        .does(&["unlock", "upgrade, which fails", "upgrade", "upgrade, ended by SIGTERM", "upgrade"])
        .writes_like("flux", "kill");
}

#[test]
fn olm_writes_as_recorded() {
    let olm = Olm { charts: &[1, 2], fails: true, unstuck_by: User::Alice };
    let alone = Alone::new(&olm).does(&["install", "upgrade", "upgrade, which fails", "upgrade"]);
    alone.writes_like("olm", "shopext");
    // It dies twice, and a person deletes the index.
    Alone::new(&olm)
        .killed("install", 2)
        .then(&Write::Delete(Driver::Olm, 1), false)
        .does(&["install"])
        .killed("upgrade", 3)
        .then(&Write::Delete(Driver::Olm, 2), false)
        .does(&["upgrade"])
        .writes_like("written/olm-crash-between", "shopext");
}

#[test]
fn sveltos_writes_as_its_source_says() {
    let sveltos = Sveltos { chart: 1, recovery: Recovery::Deletes, fails: true };
    Alone::new(&sveltos)
        .killed("install", 2)
        .does(&["recover", "install"])
        .killed("upgrade", 2)
        .does(&["recover", "upgrade"])
        .writes_like("written/sveltos-push", "web");
}

#[test]
fn fleet_writes_as_its_source_says() {
    let fleet = Fleet { chart: 1, keep_resources: false, fails: true };
    Alone::new(&fleet)
        .does(&["install", "upgrade, which fails", "upgrade"])
        .then(&Write::Edit, false)
        .does(&["correct drift, which fails", "upgrade"])
        .writes_like("written/fleet-rollback", "web");
    let fleet = Fleet { keep_resources: true, ..fleet };
    let names = ["install", "upgrade", "delete the bundle and keep its resources", "install"];
    Alone::new(&fleet).does(&names).writes_like("written/fleet-keep-resources", "web");
}

#[test]
fn klipper_writes_as_its_source_says() {
    let klipper = Klipper { chart: 1, fails: true };
    Alone::new(&klipper)
        .does(&["install"])
        .killed("delete the HelmChart", 1)
        .does(&["set-status, then upgrade"])
        .killed("upgrade", 2)
        .does(&["set-status, then upgrade"])
        .killed("upgrade", 3)
        .then(&Write::Delete(Driver::Secret, 5), true)
        .does(&["set-status, then upgrade"])
        .writes_like("written/klipper", "web");
}

#[test]
fn nelm_writes_as_its_source_says() {
    let nelm = Nelm { user: User::Nelm, chart: 1, fails: true };
    let mut alone = Alone::new(&nelm).does(&["install", "uninstall, which fails"]);
    // Alice goes on with it, upgrades, and dies in the next upgrade.
    let first = alone.cluster.newest(Driver::Secret).unwrap().body;
    let of = |revision, status| Body { revision, status, ..first };
    let (superseded, deployed) = (of(1, Status::Superseded), of(2, Status::Deployed));
    for body in [superseded, deployed, of(3, Status::PendingUpgrade)] {
        alone = alone.then(&Write::Update(body), false);
    }
    alone.does(&["upgrade"]).writes_like("written/nelm", "web");
}

#[test]
fn mapkubeapis_writes_as_recorded() {
    let map = Mapkubeapis { user: User::Alice };
    let helm = Helm { user: User::Alice, driver: Driver::Secret, chart: 1, ways: &[Install, Upgrade, UpgradeHooks] };
    let alone = Alone::new(&helm).does(&["install", "upgrade"]);
    let alone = Alone { client: &map, ..alone }.does(&["map"]);
    let alone = Alone { client: &helm, ..alone }.does(&["upgrade"]).killed("upgrade with hooks", 2);
    let writes = alone.writes.len();
    let alone = Alone { client: &map, ..alone }.does(&["map"]);
    // Over a pending record, which is refused.
    assert_eq!(alone.writes[writes..], ["v5 pending-upgrade -> superseded", "v6 none -> deployed"]);
    Alone { writes: alone.writes[..writes].to_vec(), ..alone }.writes_like("mapkubeapis", "shop");
}

#[test]
fn crossplane_writes_as_its_source_says() {
    let crossplane = Crossplane { chart: 1, fails: true };
    Alone::new(&crossplane)
        .does(&["install"])
        .killed("upgrade", 2)
        .does(&["roll back", "upgrade"])
        .writes_like("written/crossplane", "web");
}

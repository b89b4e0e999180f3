//! A ClusterExtension of OLM in namespaces of its own, driven by its controller, which tests can kill.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::chart::{Chart, HookKind, When};
use crate::harness::clients::Kubectl;
use crate::harness::controllers::{Olm, establish_kinds, operator_controller};
use crate::harness::decisions::expect_findings_only_of;
use crate::harness::eventually::eventually;
use crate::harness::gate::Gate;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::process::Output;
use crate::harness::records::{self, Record};

/// How long the garbage collector may take to discover a new kind and to collect.
pub(crate) const COLLECTOR: Duration = Duration::from_secs(120);

/// A record with [`noise`] in it takes five Secrets of this size.
pub(crate) const CHUNK: usize = 4096;

/// A record of a chart without noise fits into one Secret of this size.
pub(crate) const WHOLE: usize = 1 << 20;

/// An extension with two namespaces: one for the records, in the role of OLM's system namespace, and one for the
/// objects.
pub(crate) struct Extension {
    pub(crate) system: Namespace<'static>,
    pub(crate) objects: Namespace<'static>,
    pub(crate) name: String,
    pub(crate) olm: Olm,
}

impl Extension {
    /// An extension on a plane, with nothing installed yet.
    #[track_caller]
    pub(crate) fn new(plane: &'static Plane, test: &str) -> Self {
        establish_kinds(plane);
        let (system, objects) =
            (Namespace::new(plane, &format!("{test}-system")), Namespace::new(plane, &format!("{test}-app")));
        // ClusterExtensions are cluster-scoped, so the name must be unique.
        let name = objects.name().to_owned();
        let olm = Olm::new(&operator_controller(plane), &system, &objects, &name);
        Self { system, objects, name, olm }
    }

    /// Applies the ClusterExtension with this version of the bundle.
    #[track_caller]
    pub(crate) fn ask_for(&self, kubectl: &Kubectl, version: &str) -> Output {
        self.ask_with(kubectl, json!({"version": version}), &[])
    }

    /// Applies the ClusterExtension with these members of the catalog's source.
    #[track_caller]
    pub(crate) fn ask_with(&self, kubectl: &Kubectl, members: Value, args: &[&str]) -> Output {
        let mut catalog = json!({"packageName": "demo"});
        catalog.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        let description = json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "metadata": {"name": self.name},
            "spec": {
                "namespace": self.objects.name(),
                "source": {"sourceType": "Catalog", "catalog": catalog},
            },
        });
        kubectl.apply(&description, args)
    }

    /// Kills a reconcile before its n-th write of records.
    #[track_caller]
    pub(crate) fn kill_before(&self, olm: &Olm, chart: &Chart, values: &Value, step: usize) {
        let gate = Gate::before(&self.system, &operator_controller(self.system.plane()));
        let hold = gate.hold(step);
        let mut running = olm.spawn(chart, values);
        assert!(hold.reached_by(&mut running), "the reconcile ended before write {step}");
        running.kill();
        gate.open();
    }

    /// Applies the ClusterExtension with version 1.0.0. It owns all later records and objects; each record takes
    /// several Secrets.
    #[track_caller]
    pub(crate) fn asked_for(self, kubectl: &Kubectl) -> Self {
        self.ask_for(kubectl, "1.0.0").expect_success();
        let created = kubectl.get(&["clusterextension", &self.name]);
        let uid = created["metadata"]["uid"].as_str().expect("a stored object has a uid");
        let olm = self.olm.clone().owned_by(uid).chunk_size(CHUNK);
        Self { olm, ..self }
    }

    /// By revision.
    pub(crate) fn records(&self) -> Vec<Record> {
        records::read_chunked(&self.system.kubectl("admin"), &self.name)
    }

    #[track_caller]
    pub(crate) fn expect_records(&self, summary: &str) {
        assert_eq!(records::summary(&self.records()), summary);
    }

    /// The Secrets that hold records, with their resource versions.
    pub(crate) fn secrets(&self) -> BTreeMap<String, String> {
        let list = self.system.kubectl("admin").get(&["secret", "-l", "owner=operator-controller"]);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let secret = |secret: &Value| (text(&secret["metadata"]["name"]), text(&secret["metadata"]["resourceVersion"]));
        list["items"].as_array().unwrap().iter().map(secret).collect()
    }

    /// How many Secrets each record takes.
    pub(crate) fn parts(&self) -> Vec<usize> {
        let secrets = self.secrets();
        let part_of = |record: &Record| secrets.keys().filter(|name| name.starts_with(&record.object)).count();
        self.records().iter().map(part_of).collect()
    }

    /// Kills an upgrade of [`hooked`] while it waits for its hook. Pods hang from then on. The record is complete: OLM
    /// writes it before the hook starts.
    #[track_caller]
    pub(crate) fn kill_in_hook(&self, chart: &Chart, values: &Value, revision: u32) {
        self.objects.hang_pods();
        let upgrade = self.olm.spawn(chart, values);
        eventually(Duration::from_secs(60), "the hook's Job waits", || {
            let jobs = self.objects.kubectl("admin").get(&["job"]);
            // The Job of an earlier upgrade stays until this one's is created.
            let waits = |job: &Value| job["status"]["completionTime"].is_null();
            if jobs["items"].as_array().unwrap().iter().any(waits) { Ok(()) } else { Err("none".to_owned()) }
        });
        upgrade.kill();
        let newest = self.records().pop().map(|record| (record.revision, record.body_status));
        assert_eq!(newest, Some((revision, "pending-upgrade".to_owned())));
    }

    /// Waits until the garbage collector has deleted every record.
    #[track_caller]
    pub(crate) fn await_no_records(&self) {
        eventually(COLLECTOR, "no part of a record is left", || {
            let left = self.secrets();
            if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
        });
    }

    /// The webhook was asked about both namespaces, and has findings about these users only.
    #[track_caller]
    pub(crate) fn expect_findings_only_of(&self, culprits: &[&str]) {
        expect_findings_only_of(&self.system, culprits);
        expect_findings_only_of(&self.objects, culprits);
    }
}

/// A chart whose upgrades can be killed in a hook.
pub(crate) fn hooked() -> Chart {
    Chart::new("demo").hook(When::PreUpgrade, HookKind::Job)
}

/// Text that hardly compresses and is always the same.
pub(crate) fn noise() -> String {
    let mut state: u32 = 1;
    let next = |_| {
        // A linear congruential generator; its upper bits are the better ones.
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-."[(state >> 26) as usize])
    };
    (0..20_000).map(next).collect()
}

/// Values of a record that takes five Secrets of [`CHUNK`] bytes.
pub(crate) fn large(note: &str) -> Value {
    json!({"note": format!("{note} {}", noise())})
}

//! Refusals about the records of ClusterExtensions.

use std::io::Read;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};

use super::Case;
use super::owners::{deployed_by_olm, extension_ended};
use super::records::unstamped;
use super::scene::{Scene, kept};
use crate::harness::chart::Chart;
use crate::harness::eventually::{eventually, within};
use crate::harness::extension::{COLLECTOR, Extension};
use crate::harness::process::Output;

const WHILE: Duration = Duration::from_secs(60);

pub(super) const CASES: &[Case] = &[
    Case { rule: "concurrent-operation", owner: "OLM", arrange: second_operation },
    Case { rule: "pending-recovery", owner: "OLM", arrange: deletion_of_a_dead_record },
    Case { rule: "resume-interrupted", owner: "OLM", arrange: jump_over_an_interrupted_version },
    Case {
        rule: "revision-order",
        owner: "OLM",
        arrange: || edited("way-olm-order", |it| it.create(1, "pending-upgrade")),
    },
    Case { rule: "unusual-create", owner: "OLM", arrange: || edited("way-olm-create", |it| it.create(3, "deployed")) },
    Case { rule: "illegal-transition", owner: "OLM", arrange: || edited("way-olm-status", superseded_to_deployed) },
    Case { rule: "record-integrity", owner: "OLM", arrange: || edited("way-olm-label", relabelled) },
    Case { rule: "record-tampering", owner: "OLM", arrange: || edited("way-olm-body", other_manifest) },
    Case { rule: "record-deletion", owner: "OLM", arrange: deletion_of_the_deployed_record },
    Case { rule: "forged-stamp", owner: "OLM", arrange: forged_holder },
];

/// An extension, its chart, and the operator's next reconcile.
struct Installed {
    extension: &'static Extension,
    chart: Chart,
}

impl Installed {
    /// Version 1.0.0 is deployed.
    fn new(test: &str) -> Self {
        let (extension, chart) = deployed_by_olm(test);
        Self { extension, chart }
    }

    fn reconcile(&self, note: &str) -> Output {
        reconcile(self.extension, &self.chart, note)
    }

    /// The upgrade to version 2.0.0 was killed in its hook.
    fn killed(test: &str) -> Self {
        let it = Self::new(test);
        it.extension.ask_for(&it.extension.system.kubectl("bob"), "2.0.0").expect_success();
        it.chart.set_version("2.0.0");
        it.extension.kill_in_hook(&it.chart, &json!({"note": "two"}), 2);
        it
    }

    /// The object of a record.
    fn index(&self, revision: u64) -> String {
        format!("sh.helm.release.v1.{}.v{revision}", self.extension.name)
    }

    /// A record of bob's, from the first one.
    fn create(&self, revision: u64, status: &str) -> Output {
        let kubectl = self.extension.system.kubectl("bob");
        let newest = self.extension.records().last().map_or(1, |newest| u64::from(newest.revision));
        let mut index = kubectl.get(&["secret", &self.index(newest)]);
        edit(&mut index, |body| {
            body["version"] = revision.into();
            body["info"]["status"] = status.into();
        });
        let metadata = &mut index["metadata"];
        let name = self.index(revision);
        metadata["labels"]["key"] = name.clone().into();
        metadata["labels"]["version"] = revision.to_string().into();
        metadata["labels"]["status"] = status.into();
        metadata["name"] = name.into();
        for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields", "annotations"] {
            metadata.as_object_mut().map(|metadata| metadata.remove(field));
        }
        kubectl.with_file("create", &index, &[])
    }

    fn replace(&self, revision: u64, change: impl FnOnce(&mut Value)) -> Output {
        let kubectl = self.extension.system.kubectl("bob");
        let mut index = kubectl.get(&["secret", &self.index(revision)]);
        change(&mut index);
        kubectl.with_file("replace", &index, &[])
    }

    /// Bob's request is refused; the operator goes on with the next reconcile.
    fn refused(self, refused: Output) -> Scene {
        let extension = self.extension;
        Scene::new(&extension.objects, self.chart, "bob", refused)
            .heal(|_| {
                extension.objects.ready_pods();
                extension.objects.await_available(&extension.name);
            })
            .next(|scene| reconcile(extension, &scene.chart, "next"))
            .end(|_| within(COLLECTOR, "one deployed record, or none", || extension_ended(extension)))
    }
}

fn reconcile(extension: &Extension, chart: &Chart, note: &str) -> Output {
    extension.objects.ready_pods();
    extension.olm.reconcile(chart, &json!({"note": note}))
}

/// Changes the body of a record that fits into its index.
fn edit(index: &mut Value, change: impl FnOnce(&mut Value)) {
    let packed =
        STANDARD.decode(index["data"]["chunk"].as_str().unwrap_or_default()).expect("a Secret's data is base64");
    let mut json = Vec::new();
    GzDecoder::new(&packed[..]).read_to_end(&mut json).expect("the record has one part");
    let mut body = serde_json::from_slice(&json).expect("a body is stored as JSON");
    change(&mut body);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    serde_json::to_writer(&mut gzip, &body).expect("a value is JSON");
    index["data"]["chunk"] = STANDARD.encode(gzip.finish().expect("memory is writable")).into();
}

/// A request of bob's about the records of an extension with two revisions.
fn edited(test: &str, act: fn(&Installed) -> Output) -> Scene {
    let it = Installed::new(test);
    it.reconcile("two").expect_success();
    let refused = act(&it);
    it.refused(refused)
}

fn superseded_to_deployed(it: &Installed) -> Output {
    it.replace(1, |index| {
        edit(index, |body| body["info"]["status"] = "deployed".into());
        index["metadata"]["labels"]["status"] = "deployed".into();
    })
}

fn relabelled(it: &Installed) -> Output {
    it.extension.system.kubectl("bob").run(&["label", "secret", &it.index(1), "--overwrite", "status=deployed"])
}

fn other_manifest(it: &Installed) -> Output {
    it.replace(2, |index| edit(index, |body| body["manifest"] = "---\nkind: Secret\n".into()))
}

fn second_operation() -> Scene {
    let it = Installed::killed("way-olm-second");
    let refused = eventually(WHILE, "the operation counts as stuck", || {
        let refused = it.create(3, "pending-upgrade");
        if refused.stderr.contains("counts as stuck.") { Ok(refused) } else { Err(refused.to_string()) }
    });
    it.refused(refused)
}

fn deletion_of_a_dead_record() -> Scene {
    let it = Installed::killed("way-olm-dead");
    let refused = it.extension.system.kubectl("bob").run(&["delete", "secret", &it.index(2)]);
    it.refused(refused)
}

fn jump_over_an_interrupted_version() -> Scene {
    let it = Installed::killed("way-olm-resume");
    let (extension, index) = (it.extension, it.index(2));
    let bob = kept(extension.system.kubectl("bob"));
    extension.objects.ready_pods();
    extension.objects.await_available(&extension.name);
    eventually(WHILE, "bob deletes the stuck record", || bob.run(&["delete", "secret", &index]).into_result());
    eventually(COLLECTOR, "what was interrupted is noted", || {
        let newest = extension.records().pop().expect("the first record");
        if newest.annotations.contains_key("interlock.dev/interrupted") { Ok(()) } else { Err("it is not".to_owned()) }
    });
    let upgrade = |scene: &Scene, version: &str| {
        extension.ask_for(bob, version).expect_success();
        scene.chart.set_version(version);
        reconcile(extension, &scene.chart, version)
    };
    extension.ask_for(bob, "3.0.0").expect_success();
    it.chart.set_version("3.0.0");
    let refused = it.reconcile("3.0.0");
    let goes_on = move |scene: &Scene| {
        // What the pin asks for is OLM's own next step.
        scene.chart.set_version("2.0.0");
        reconcile(extension, &scene.chart, "2.0.0").expect_success();
        upgrade(scene, "3.0.0")
    };
    it.refused(refused).retry(goes_on).end(move |scene| {
        upgrade(scene, "3.0.0").into_result()?;
        extension_ended(extension)
    })
}

fn deletion_of_the_deployed_record() -> Scene {
    let it = Installed::new("way-olm-deletion");
    it.reconcile("two").expect_success();
    let (bob, first, second) = (kept(it.extension.system.kubectl("bob")), it.index(1), it.index(2));
    let refused = bob.run(&["delete", "secret", &second]);
    it.refused(refused)
        .act("delete one superseded or failed record by name", move |_| bob.run(&["delete", "secret", &first]))
}

fn forged_holder() -> Scene {
    let it = Installed::new("way-olm-stamp");
    unstamped(&it.extension.system);
    let (bob, secret) = (kept(it.extension.system.kubectl("bob")), it.index(1));
    let refused = eventually(WHILE, "the mutating half is not called for this namespace", || {
        let refused = bob.run(&["annotate", "secret", &secret, "--overwrite", "interlock.dev/holder=bob"]);
        if refused.success() { Err(refused.to_string()) } else { Ok(refused) }
    });
    it.refused(refused).act("do not set Interlock's stamps", move |_| {
        bob.run(&["annotate", "secret", &secret, "--overwrite", "team=blue"])
    })
}

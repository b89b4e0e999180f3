//! Records edited with kubectl: each refusal next to an allowed edit.

use serde_json::{Value, json};

use crate::harness::acts::edit;
use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::forging;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::process::Output;
use crate::harness::records::{self, V1, V2};

/// A release with a superseded and a deployed record.
fn two_revisions(test: &str, version: HelmVersion, driver: Driver) -> (Namespace<'static>, Chart) {
    let namespace = Namespace::new(Plane::shared(), test);
    let helm = namespace.helm(version, driver, "alice");
    let chart = Chart::new("demo");
    helm.ok(&["install", "demo", chart.path()]);
    helm.ok(&["upgrade", "demo", chart.path(), "--set=note=two"]);
    (namespace, chart)
}

#[test]
fn record_labels_cannot_be_edited_and_other_labels_can() {
    for driver in Driver::ALL {
        let (namespace, chart) = two_revisions("tamper-label", HelmVersion::V3, driver);
        let kubectl = namespace.kubectl("alice");
        let resource = driver.resource();
        for label in ["status=deployed", "name=other", "version=7", "owner-"] {
            let object = format!("{resource}/{V1}");
            kubectl.fails(&["label", &object, "--overwrite", label], &["denied the request", "[record-"]);
        }
        let patch = r#"{"metadata":{"labels":{"status":"failed"}}}"#;
        kubectl.fails(&["patch", resource, V2, "--type=merge", "-p", patch], &["[record-integrity]"]);
        kubectl.ok(&["label", &format!("{resource}/{V1}"), "team=blue"]);
        kubectl.ok(&["annotate", &format!("{resource}/{V1}"), "note=hello"]);
        assert_eq!(records::summary(&namespace.records(driver, "demo")), "1 superseded, 2 deployed");
        namespace.helm(HelmVersion::V4, driver, "alice").ok(&["upgrade", "demo", chart.path()]);
    }
}

/// Replaces a stored record by an edited copy.
fn replace(namespace: &Namespace<'_>, driver: Driver, name: &str, edit: impl FnOnce(&mut Value)) -> Output {
    let kubectl = namespace.kubectl("alice");
    let mut object = kubectl.get(&[driver.resource(), name]);
    edit(&mut object);
    kubectl.with_file("replace", &object, &[])
}

#[test]
fn the_body_of_a_record_cannot_be_edited() {
    for driver in Driver::ALL {
        let (namespace, _) = two_revisions("tamper-body", HelmVersion::V4, driver);
        type Edit = fn(&mut Value);
        let edits: [(&str, Edit); 7] = [
            ("[record-tampering]", |body| body["manifest"] = "---\nkind: Secret\n".into()),
            ("[record-tampering]", |body| body["config"] = json!({"replicas": 9})),
            ("[record-tampering]", |body| body["chart"]["metadata"]["version"] = "9.9.9".into()),
            ("[record-tampering]", |body| body["namespace"] = "elsewhere".into()),
            ("[record-integrity]", |body| body["name"] = "other".into()),
            ("[record-integrity]", |body| body["version"] = 9.into()),
            ("[record-integrity]", |body| body["info"]["status"] = "failed".into()),
        ];
        for (rule, edit) in edits {
            replace(&namespace, driver, V2, |object| forging::edit(object, driver, edit))
                .expect_failure(&["denied the request", rule]);
        }
        replace(&namespace, driver, V2, |object| object["data"]["release"] = "bm90IGEgcmVjb3Jk".into())
            .expect_failure(&["[record-integrity]"]);
        // Label and body at once, along an edge that no client makes.
        replace(&namespace, driver, V1, |object| {
            forging::edit(object, driver, |body| body["info"]["status"] = "deployed".into());
            object["metadata"]["labels"]["status"] = "deployed".into();
        })
        .expect_failure(&["[illegal-transition]"]);
        // Flux upgrades once more when only the description changes.
        replace(&namespace, driver, V2, |object| {
            forging::edit(object, driver, |body| body["info"]["description"] = "edited".into());
        })
        .expect_failure(&["[record-tampering]"]);
        // The allowed neighbour: the same body, encoded once more, as in the writes of hooks and tests.
        replace(&namespace, driver, V2, |object| forging::edit(object, driver, |_| ())).expect_success();
        assert_eq!(records::summary(&namespace.records(driver, "demo")), "1 superseded, 2 deployed");
    }
}

#[test]
fn kubectl_edit_of_a_record_is_refused() {
    let (namespace, _) = two_revisions("tamper-edit", HelmVersion::V3, Driver::Secret);
    let kubectl = namespace.kubectl("alice");
    let output = edit(&kubectl, &format!("secret/{V1}"), "status: superseded", "status: deployed");
    // kubectl saves the refused edit to a temporary file and prints the reason.
    output.expect_failure(&["[record-integrity]"]);
    assert_eq!(records::summary(&namespace.records(Driver::Secret, "demo")), "1 superseded, 2 deployed");
}

#[test]
fn records_cannot_be_created_by_hand() {
    for driver in Driver::ALL {
        let (namespace, chart) = two_revisions("tamper-create", HelmVersion::V3, driver);
        let kubectl = namespace.kubectl("alice");
        let create = |edit: &dyn Fn(&mut Value)| {
            let mut object = kubectl.get(&[driver.resource(), V2]);
            edit(&mut object);
            kubectl.with_file("create", &object, &[])
        };
        let helm = namespace.helm(HelmVersion::V3, driver, "alice");
        helm.ok(&["upgrade", "demo", chart.path(), "--history-max=2", "--set=note=three"]);
        // Revision 1 is pruned. An old revision cannot be created again in any status.
        for status in ["pending-upgrade", "superseded"] {
            create(&|object| forging::copy(object, driver, 1, status))
                .expect_failure(&["denied the request", "[revision-order]"]);
        }
        create(&|object| forging::copy(object, driver, 4, "deployed")).expect_failure(&["[unusual-create]"]);
        create(&|object| forging::copy(object, driver, 4, "failed")).expect_failure(&["[unusual-create]"]);
        // A body of another release under this record's name.
        create(&|object| {
            forging::copy(object, driver, 4, "pending-upgrade");
            forging::edit(object, driver, |body| body["name"] = "other".into());
        })
        .expect_failure(&["[record-integrity]"]);
        create(&|object| {
            forging::copy(object, driver, 4, "pending-upgrade");
            object["metadata"]["name"] = "innocent".into();
        })
        .expect_failure(&["[record-integrity]"]);
        helm.ok(&["upgrade", "demo", chart.path(), "--set=note=four"]);
    }
}

#[test]
fn the_holder_is_stamped_and_cannot_be_forged() {
    let (namespace, _) = two_revisions("stamps", HelmVersion::V4, Driver::Secret);
    let records = namespace.records(Driver::Secret, "demo");
    for record in &records {
        assert_eq!(record.annotations["interlock.dev/holder"], "alice");
        assert_eq!(record.annotations["interlock.dev/chart"], "demo-1.0.0");
        assert_eq!(record.annotations["interlock.dev/target-namespace"], namespace.name());
        assert!(record.annotations["interlock.dev/started"].ends_with('Z'));
    }
    let kubectl = namespace.kubectl("alice");
    let secret = format!("secret/{V2}");
    // The mutating half restores the old value.
    kubectl.ok(&["annotate", &secret, "--overwrite", "interlock.dev/holder=bob"]);
    kubectl.ok(&["annotate", &secret, "interlock.dev/started-"]);
    let mut created = kubectl.get(&["secret", V2]);
    forging::copy(&mut created, Driver::Secret, 3, "pending-upgrade");
    created["metadata"]["annotations"] = json!({"interlock.dev/holder": "bob", "mine": "kept"});
    kubectl.with_file("create", &created, &[]).expect_success();
    let after = namespace.records(Driver::Secret, "demo");
    assert_eq!(after[1].annotations, records[1].annotations);
    assert_eq!(after[2].annotations["interlock.dev/holder"], "alice");
    assert_eq!(after[2].annotations["mine"], "kept");
}

//! Edits by other users while an operation is in flight.

use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::decisions::expect_findings_only_of;
use crate::harness::in_flight::during_an_upgrade;
use crate::harness::records;

const RULE: &str = "[foreign-edit-in-transition]";
const WAIT: &str = "Wait until the operation ends. Then change it through ";

#[test]
fn only_the_holder_edits_what_an_upgrade_in_flight_declares() {
    for (version, driver) in [(HelmVersion::V3, Driver::ConfigMap), (HelmVersion::V4, Driver::Secret)] {
        let (namespace, upgrade) = during_an_upgrade("flight", version, driver, |namespace, _, _| {
            let bob = namespace.kubectl("bob");
            let owner = format!(
                "is managed by release {}/demo (pending-upgrade, revision 2, held by alice for ",
                namespace.name()
            );
            let image = "spec.template.spec.containers[app].image is declared by the chart.";
            let refused: [(&[&str], &str); 5] = [
                (&["set", "image", "deployment/demo", "app=bob:1"], image),
                (&["scale", "deployment/demo", "--replicas=5"], "spec.replicas is declared by the chart."),
                (&["delete", "configmap/demo"], "it is declared by the chart."),
                (&["delete", "deployments", "--all"], "it is declared by the chart."),
                (&["label", "service/demo", "app.kubernetes.io/managed-by-"], "is declared by the chart."),
            ];
            let driver = if driver == Driver::ConfigMap { "HELM_DRIVER=configmap " } else { "" };
            let through = format!("{WAIT}`{driver}helm upgrade demo CHART -n {}`", namespace.name());
            for (args, what) in refused {
                bob.fails(args, &["denied the request", &owner, what, &through, RULE]);
            }
            // The allowed neighbours: fields that nobody declares, and edits by the holder.
            bob.ok(&["annotate", "deployment/demo", "note=hello"]);
            let patch = r#"{"data":{"note":"mine"}}"#;
            namespace.kubectl("alice").ok(&["patch", "configmap/demo", "--type=merge", "-p", patch]);
        });
        upgrade.expect_success();
        let records = namespace.records(driver, "demo");
        assert_eq!(records::summary(&records), "1 superseded, 2 deployed");
        expect_findings_only_of(&namespace, &["bob"]);
        // When the operation has ended, the holder is treated like any other person.
        let alice = namespace.kubectl("alice");
        alice.fails(&["set", "image", "deployment/demo", "app=mine:1"], &["(revision 2, deployed)", "[manual-edit]"]);
    }
}

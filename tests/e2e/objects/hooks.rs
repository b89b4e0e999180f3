//! A hook of an upgrade deletes what the release declares, as it has to; another pod of its account does not.

use std::time::Duration;

use serde_json::json;

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::eventually::eventually;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::records;

const DEADLINE: Duration = Duration::from_secs(60);

const CLEAN: &str = r#"apiVersion: batch/v1
kind: Job
metadata:
  name: demo-clean
  annotations: {helm.sh/hook: pre-upgrade, helm.sh/hook-delete-policy: before-hook-creation}
spec:
  backoffLimit: 0
  template:
    spec:
      serviceAccountName: cleaner
      restartPolicy: Never
      containers: [{name: clean, image: clean}]
"#;

#[test]
fn a_hook_deletes_what_its_upgrade_declares_and_another_pod_of_its_account_does_not() {
    for version in HelmVersion::ALL {
        let namespace = Namespace::new(Plane::shared(), "hooks");
        namespace.service_account("cleaner");
        let (alice, admin) = (namespace.helm(version, Driver::Secret, "alice"), namespace.kubectl("admin"));
        let chart = Chart::new("demo").template("clean", CLEAN);
        alice.ok(&["install", "demo", chart.path()]);
        namespace.hang_pods();
        let upgrade = alice.spawn(&["upgrade", "demo", chart.path(), "--set=image=two", "--timeout=90s"]);
        let mut pod = String::new();
        eventually(DEADLINE, "the pod of the hook", || {
            let pods = admin.get(&["pods", "-l", "job-name=demo-clean"]);
            pod = pods["items"][0]["metadata"]["name"].as_str().ok_or_else(|| pods.to_string())?.to_owned();
            Ok(())
        });
        let neighbour = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "neighbour", "namespace": namespace.name()},
            "spec": {"serviceAccountName": "cleaner", "containers": [{"name": "a", "image": "a"}]},
        });
        admin.with_file("create", &neighbour, &[]).expect_success();
        let plane = namespace.plane();
        let in_pod = |pod: &str| namespace.kubectl_as(&plane.account_in_pod(namespace.name(), "cleaner", pod));
        for other in [in_pod("neighbour"), namespace.kubectl_as(&namespace.service_account("cleaner"))] {
            other.fails(
                &["delete", "configmap", "demo"],
                &["[foreign-edit-in-transition]", "it is declared by the chart"],
            );
        }
        in_pod(&pod).ok(&["delete", "configmap", "demo"]);
        in_pod(&pod).ok(&["scale", "deployment", "demo", "--replicas=0"]);
        namespace.ready_pods();
        upgrade.wait(DEADLINE).expect_success();
        assert_eq!(records::summary(&namespace.records(Driver::Secret, "demo")), "1 superseded, 2 deployed");
        namespace.await_existence("configmap/demo");
    }
}

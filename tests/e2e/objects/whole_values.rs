//! Values that are one value to Kubernetes, declared by a chart and edited by hand: selectors, empty maps and lists, lists without
//! merge keys. A label that the chart does not declare passes beside each refusal.

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;

const OBJECTS: &str = "\
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: closed}
spec:
  podSelector: {matchLabels: {app: web}}
  policyTypes: [Ingress]
  ingress: []
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: nothing}
rules: []
---
apiVersion: v1
kind: Service
metadata: {name: front}
spec:
  selector: {app: web}
  ports: [{port: 80}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: flags}
data: {empty: '', VERSION: '1.10'}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: worker}
spec:
  replicas: 0
  selector: {matchLabels: {app: worker}}
  template:
    metadata: {labels: {app: worker}}
    spec:
      nodeSelector: {disk: ssd}
      initContainers:
      - {name: first, image: registry.invalid/a:1}
      - {name: second, image: registry.invalid/b:1}
      containers:
      - name: app
        image: registry.invalid/c:1
        args: []
        env: [{name: VERSION, value: '1.10'}]
      volumes:
      - {name: scratch, emptyDir: {}}
      - {name: script, configMap: {name: flags, defaultMode: 0644}}
";

/// What bob does to an object, and the field that the refusal names.
const EDITS: [(&str, &str, &str); 10] = [
    ("networkpolicy/closed", r#"[{"op":"add","path":"/spec/ingress","value":[{}]}]"#, "spec.ingress"),
    (
        "networkpolicy/closed",
        r#"[{"op":"add","path":"/spec/podSelector/matchLabels/x","value":"y"}]"#,
        "spec.podSelector",
    ),
    (
        "role/nothing",
        r#"[{"op":"add","path":"/rules","value":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}]"#,
        "rules",
    ),
    ("service/front", r#"[{"op":"add","path":"/spec/selector/x","value":"y"}]"#, "spec.selector"),
    ("configmap/flags", r#"[{"op":"remove","path":"/data/empty"}]"#, "data.empty"),
    ("deployment/worker", r#"[{"op":"add","path":"/spec/template/spec/nodeSelector/x","value":"y"}]"#, "nodeSelector"),
    (
        "deployment/worker",
        r#"[{"op":"add","path":"/spec/template/spec/containers/0/args","value":["--x"]}]"#,
        "containers[app].args",
    ),
    (
        "deployment/worker",
        r#"[{"op":"replace","path":"/spec/template/spec/containers/0/env/0/value","value":"1.1"}]"#,
        "env[VERSION]",
    ),
    (
        "deployment/worker",
        r#"[{"op":"replace","path":"/spec/template/spec/volumes/0","value":{"name":"scratch","hostPath":{"path":"/"}}}]"#,
        "volumes[scratch]",
    ),
    (
        "deployment/worker",
        r#"[{"op":"move","from":"/spec/template/spec/initContainers/0","path":"/spec/template/spec/initContainers/1"}]"#,
        "initContainers",
    ),
];

#[test]
fn nothing_is_added_to_a_value_that_is_one_value_whichever_helm_wrote_it() {
    for (version, test) in [(HelmVersion::V3, "whole-helm3"), (HelmVersion::V4, "whole-helm4")] {
        let namespace = Namespace::new(Plane::shared(), test);
        let chart = Chart::new("whole").template("whole", OBJECTS);
        namespace.helm(version, Driver::Secret, "alice").ok(&["install", "whole", chart.path()]);
        let bob = namespace.kubectl("bob");
        for (object, patch, field) in EDITS {
            bob.fails(&["patch", object, "--type=json", "-p", patch], &[field, "[manual-edit]"]);
            bob.ok(&["label", object, "team=blue", "--overwrite"]);
        }
        // Helm reads 0644 as an octal number: setting another mode is refused, setting it back is no change.
        let mode = |mode: &str| {
            format!(
                r#"[{{"op":"replace","path":"/spec/template/spec/volumes/1/configMap/defaultMode","value":{mode}}}]"#
            )
        };
        bob.fails(&["patch", "deployment/worker", "--type=json", "-p", &mode("511")], &["[manual-edit]"]);
        bob.ok(&["patch", "deployment/worker", "--type=json", "-p", &mode("420")]);
    }
}

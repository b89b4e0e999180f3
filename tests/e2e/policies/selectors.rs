//! Policies that select namespaces by their labels: real helm, kubectl and API server.

use std::fs;
use std::time::Duration;

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::eventually::eventually;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::process::{Output, run};

const DEADLINE: Duration = Duration::from_secs(30);

/// Namespaces with `env: sandbox` may be edited, and nothing starts in those with `frozen: "true"`.
const POLICY: &str = r#"
rules:
  manual-edit:
    cases:
      - {when: {namespaceSelector: {matchLabels: {env: sandbox}}}, mode: warn}
freezes:
  - {name: audit, reason: the audit, timeZone: UTC, from: 2020-01-01, to: 2100-01-01, namespaceSelector: {matchLabels: {frozen: "true"}}}
"#;

/// Teams that may open nothing.
const TEAM: &str = r#"
apiVersion: interlock.dev/v1alpha1
kind: NamespacePolicy
namespaceSelector: {matchExpressions: [{key: team, operator: In, values: [payments]}]}
overrides: {allowed: false}
"#;

const EDIT: [&str; 6] = ["patch", "configmap", "demo", "--type=merge", "-p", r#"{"data":{"note":"bob"}}"#];

fn label(namespace: &Namespace<'_>, label: &str) {
    namespace.plane().kubectl(&namespace.plane().admin()).ok(&["label", "namespace", namespace.name(), label]);
}

/// Whether an output says this.
fn says(output: &Output, text: &str) -> Result<(), String> {
    if output.stderr.contains(text) { Ok(()) } else { Err(output.to_string()) }
}

#[test]
fn labels_of_namespaces_select_policies_and_a_changed_label_counts_without_a_restart() {
    let policy = format!("{}{POLICY}", include_str!("../../../policies/cluster.yaml"));
    let (plane, chart) = (Plane::start(&policy), Chart::new("demo"));
    let namespaces = plane.dir().join("policies/namespaces");
    fs::create_dir_all(&namespaces).unwrap();
    fs::write(namespaces.join("teams.yaml"), TEAM.trim_start()).unwrap();
    let [shop, other] = ["selected", "unselected"].map(|name| Namespace::new(&plane, name));
    for (namespace, version) in [(&shop, HelmVersion::V3), (&other, HelmVersion::V4)] {
        let helm = namespace.helm(version, Driver::Secret, "alice");
        helm.ok(&["install", "demo", chart.path()]);
        namespace.kubectl("bob").fails(&EDIT, &["[manual-edit]"]);
        helm.ok(&["upgrade", "demo", chart.path()]);
    }

    label(&shop, "env=sandbox");
    eventually(DEADLINE, "the case applies", || says(&shop.kubectl("bob").run(&EDIT), "Warning"));
    other.kubectl("bob").fails(&EDIT, &["[manual-edit]"]);

    label(&shop, "frozen=true");
    let in_shop = shop.helm(HelmVersion::V4, Driver::Secret, "alice");
    eventually(DEADLINE, "the freeze is in force", || {
        says(&in_shop.run(&["upgrade", "demo", chart.path()]), "the freeze audit is in force")
    });
    other.helm(HelmVersion::V4, Driver::Secret, "alice").ok(&["upgrade", "demo", chart.path()]);
    label(&shop, "frozen-");
    eventually(DEADLINE, "the freeze is over", || in_shop.run(&["upgrade", "demo", chart.path()]).into_result());

    plane.define("manifests/base/releaseoverrides.yaml");
    let open = |namespace: &Namespace<'_>| {
        let release = format!("{}/demo", namespace.name());
        let reason = ["--rule=manual-edit", "--for=10m", "--reason=incident 7"];
        run(plane.interlock(&plane.admin(), &[&["override", &release][..], &reason].concat()), DEADLINE)
    };
    eventually(DEADLINE, "an override opens the other release", || open(&other).into_result());
    label(&shop, "team=payments");
    eventually(DEADLINE, "the policy of the team is in force", || says(&open(&shop), "allows no overrides"));
    open(&other).expect_success();
}

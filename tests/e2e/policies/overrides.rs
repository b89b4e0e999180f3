//! Break-glass, from one refusal to the next: created by the real command, stored by a real API server.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion, Identity, Kubectl};
use crate::harness::eventually::eventually;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::process::{Output, run};

/// Long enough for the acts in between on a busy machine, short enough to wait for its end.
const SHORT: &str = "20s";

/// `interlock override` for the release `demo` of a namespace.
fn open(namespace: &Namespace<'_>, who: &Identity, args: &[&str]) -> Output {
    let release = format!("{}/demo", namespace.name());
    run(namespace.plane().interlock(who, &[&["override", &release], args].concat()), Duration::from_secs(60))
}

/// An edit of a declared field, with a new value each time.
fn edit(kubectl: &Kubectl, note: &str) -> Output {
    let patch = json!({"data": {"note": note}}).to_string();
    kubectl.run(&["patch", "configmap/demo", "--type=merge", "-p", &patch])
}

#[test]
fn a_refused_edit_passes_while_an_override_is_open_and_is_refused_again() {
    let plane = Plane::shared();
    let namespace = Namespace::new(plane, "overrides");
    let name = namespace.name();
    let (alice, bob) = (namespace.kubectl("alice"), namespace.kubectl("bob"));
    let chart = Chart::new("demo");
    namespace.helm(HelmVersion::V3, Driver::Secret, "alice").ok(&["install", "demo", chart.path()]);
    let command =
        format!("In an emergency: interlock override {name}/demo --rule manual-edit --for 30m --reason \"...\"");
    edit(&bob, "bob").expect_failure(&["[manual-edit]", &command]);

    // Without the definition there is no way out, and the command says so.
    let by_alice = plane.person("alice");
    let asked = ["--rule", "manual-edit", "--for", SHORT, "--reason", "incident 7", "--user", "bob"];
    let install = "kubectl apply -f manifests/base/releaseoverrides.yaml";
    open(&namespace, &by_alice, &asked)
        .expect_failure(&["the CustomResourceDefinition of ReleaseOverrides is not installed", install]);
    let definition = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/base/releaseoverrides.yaml");
    let admin = plane.kubectl(&plane.admin());
    admin.ok(&["apply", "-f", &definition.to_string_lossy()]);
    eventually(Duration::from_secs(60), "the definition is served", || {
        open(&namespace, &by_alice, &[&asked[..], &["--dry-run"]].concat()).into_result()
    });

    let made = open(&namespace, &by_alice, &asked).expect_success().stdout;
    assert!(made.contains("rules    manual-edit\n") && made.contains("users    bob\n"), "{made}");
    let admitted = edit(&bob, "bob again").expect_success();
    let warning = format!("interlock: manual-edit is overridden by ReleaseOverride {name}/demo-");
    assert!(admitted.stderr.contains(&warning) && admitted.stderr.contains("incident 7"), "{admitted}");
    // The override covers no other user and no other act.
    edit(&alice, "alice").expect_failure(&["[manual-edit]"]);
    bob.fails(&["delete", "service/demo"], &["[manual-delete]"]);
    // The dry run left nothing. The creator is stamped. The log shows the use.
    let stored = alice.get(&["releaseoverrides"]);
    let stored = stored["items"].as_array().unwrap();
    assert_eq!(stored.len(), 1, "{stored:?}");
    assert_eq!(stored[0]["metadata"]["annotations"]["interlock.dev/created-by"], "alice");
    let used = format!("\"overridden\":\"{name}/{}\"", stored[0]["metadata"]["name"].as_str().unwrap());
    assert!(plane.webhook().log().contains(&used), "{used}");

    limits(&namespace);

    let notes = (0..).map(|note| format!("note {note}")).take(1000).collect::<Vec<_>>();
    let mut notes = notes.iter();
    eventually(Duration::from_secs(60), "the override closes", || match edit(&bob, notes.next().unwrap()) {
        refused if refused.stderr.contains("[manual-edit]") => Ok(()),
        output => Err(output.to_string()),
    });
}

/// RBAC and the policy limit who may open what.
fn limits(namespace: &Namespace<'_>) {
    let plane = namespace.plane();
    let alice = plane.person("alice");
    let asked = |more: &[&'static str]| [&["--rule", "manual-edit", "--reason", "incident 7"], more].concat();
    open(namespace, &alice, &asked(&["--for", "5h"])).expect_failure(&["failed to create the override", "at most 4h"]);
    let short = ["--rule", "manual-edit", "--for", "30m", "--reason", "so"];
    open(namespace, &alice, &short).expect_failure(&["it has 2 characters; a reason has 5 to 500"]);
    let guest = plane.account(namespace.name(), "guest").unwrap();
    let forbidden = ["cannot create resource \"releaseoverrides\""];
    open(namespace, &guest, &asked(&["--for", "30m"])).expect_failure(&forbidden);
    // The shipped role, bound in this namespace only.
    let user = format!("--serviceaccount={}:guest", namespace.name());
    namespace.kubectl("admin").ok(&["create", "rolebinding", "guest", "--clusterrole=interlock-breakglass", &user]);
    let made = eventually(Duration::from_secs(30), "the role works", || {
        open(namespace, &guest, &asked(&["--for", "30m", "--user", "nobody", "-o", "json"])).into_result()
    });
    let mut made: Value = made.json();
    // Neither the specification nor its creator can change.
    let kubectl = namespace.kubectl("alice");
    made["metadata"]["annotations"]["interlock.dev/created-by"] = "bob".into();
    kubectl.with_file("replace", &made, &[]).expect_success();
    let stored = kubectl.get(&["rov", made["metadata"]["name"].as_str().unwrap()]);
    assert_eq!(stored["metadata"]["annotations"]["interlock.dev/created-by"], guest.user());
    let mut longer = stored;
    longer["spec"]["expiresAt"] = "2099-01-01T00:00:00Z".into();
    kubectl.with_file("replace", &longer, &[]).expect_failure(&["an override cannot be changed"]);
}

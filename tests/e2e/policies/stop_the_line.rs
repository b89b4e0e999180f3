//! A team stops the line of its namespace by `interlock freeze`, and lets it go on: real helm, a real API server, the shipped role.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, Helm, HelmVersion, Identity};
use crate::harness::eventually::eventually;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::process::{Output, run};

/// How soon a Freeze is in force, and how soon its end is.
const PROMPTLY: Duration = Duration::from_secs(2);

const DEADLINE: Duration = Duration::from_secs(60);

fn freeze(plane: &Plane, who: &Identity, args: &[&str]) -> Output {
    run(plane.interlock(who, &[&["freeze"], args].concat()), DEADLINE)
}

fn upgrade(helm: &Helm, chart: &Chart) -> Output {
    helm.run(&["upgrade", "demo", chart.path()])
}

/// The team of a namespace: an account that may create Freezes there and nothing else.
fn team(namespace: &Namespace<'_>) -> Identity {
    let team = namespace.plane().account(namespace.name(), "team").unwrap();
    let user = format!("--serviceaccount={}:team", namespace.name());
    namespace.kubectl("admin").ok(&["create", "rolebinding", "team", "--clusterrole=interlock-freeze", &user]);
    team
}

#[test]
fn a_team_stops_the_line_of_its_namespace_within_two_seconds_and_of_no_other() {
    let plane = Plane::start(include_str!("../../../policies/cluster.yaml"));
    let chart = Chart::new("demo");
    let [shop, billing] = ["stop-shop", "stop-billing"].map(|name| Namespace::new(&plane, name));
    let [in_shop, in_billing] = [&shop, &billing].map(|it| it.helm(HelmVersion::V4, Driver::Secret, "alice"));
    in_shop.ok(&["install", "demo", chart.path()]);
    in_billing.ok(&["install", "demo", chart.path()]);
    let team = team(&shop);
    let asked = |more: &[&'static str]| [&["--reason", "INC-7: the database is being restored"], more].concat();
    let missing = ["the CustomResourceDefinition of Freezes is not installed", "-f manifests/base/freezes.yaml"];
    freeze(&plane, &plane.admin(), &[&[shop.name()], &asked(&["--for=10m"])[..]].concat()).expect_failure(&missing);
    plane.define("manifests/base/freezes.yaml");
    eventually(DEADLINE, "the role works", || {
        freeze(&plane, &team, &[&[shop.name()], &asked(&["--for=10m", "--dry-run"])[..]].concat()).into_result()
    });
    // The watch begins when the definition is there, and a dry run stops nothing.
    upgrade(&in_shop, &chart).expect_success();
    let running = started(&shop, &chart);

    let made = freeze(&plane, &team, &[&[shop.name()], &asked(&["--for=10m"])[..]].concat()).expect_success();
    assert!(made.stdout.starts_with(&format!("Froze every release of namespace {} until ", shop.name())), "{made}");
    let since = Instant::now();
    let message = eventually(PROMPTLY, "the freeze is in force", || refused(&upgrade(&in_shop, &chart)));
    println!("refused {:?} after the creation", since.elapsed());
    let who = format!(", created by {}, is in force until ", team.user());
    assert!(message.contains(&who) && message.contains("(INC-7: the database is being restored)"), "{message}");
    in_shop.fails(&["rollback", "demo", "1"], &["[freeze]"]);
    let objects = shop.objects_of_demo();
    in_shop.fails(&["uninstall", "demo"], &["failed to delete release"]);
    assert_eq!(shop.objects_of_demo(), objects);
    // Nowhere else, and what has started goes on.
    upgrade(&in_billing, &chart).expect_success();
    freeze(&plane, &team, &[&[billing.name()], &asked(&["--for=10m"])[..]].concat())
        .expect_failure(&["failed to freeze namespace", "cannot create resource \"freezes\""]);
    shop.ready_pods();
    running.wait(DEADLINE).expect_success();

    told_by_commands(&shop, &team);
    limits(&shop, &team);
    ended(&plane, &shop, &team, &in_shop, &chart);
}

/// An upgrade of another release of a namespace that waits for its pods.
fn started(namespace: &Namespace<'_>, chart: &Chart) -> crate::harness::process::Running {
    let helm = namespace.helm(HelmVersion::V3, Driver::Secret, "alice");
    let other = |verb: &'static str| [verb, "other", chart.path()];
    helm.ok(&other("install"));
    namespace.hang_pods();
    let running = helm.spawn(&[&other("upgrade")[..], &["--set=image=two", "--wait", "--timeout=120s"]].concat());
    namespace.await_status(Driver::Secret, "other", 2, "pending-upgrade");
    running
}

fn refused(output: &Output) -> Result<String, String> {
    if output.stderr.contains("[freeze]") { Ok(output.stderr.clone()) } else { Err(output.to_string()) }
}

/// `explain` and `wait` name who froze what until when.
fn told_by_commands(namespace: &Namespace<'_>, team: &Identity) {
    let plane = namespace.plane();
    let explained = run(plane.interlock(&plane.admin(), &["explain", namespace.name()]), DEADLINE).expect_success();
    let freeze = explained.stdout.lines().find(|line| line.trim_start().starts_with("stop-")).unwrap_or_default();
    assert!(
        freeze.contains("in force until") && freeze.ends_with(&format!("created by {}", team.user())),
        "{explained}"
    );
    let release = format!("{}/demo", namespace.name());
    let policies = plane.dir().join("policies");
    let policies = format!("--policies={}", policies.display());
    let wait = ["wait", &release, "--until=open", "--timeout=0", &policies];
    let waited = run(plane.interlock(&plane.admin(), &wait), DEADLINE);
    assert!(waited.status.code() == Some(4) && waited.stdout.contains("created by"), "{waited}");
}

/// What the policy and the checks of policy files refuse, and who cannot be named.
fn limits(namespace: &Namespace<'_>, team: &Identity) {
    let plane = namespace.plane();
    let long = [namespace.name(), "--for=200h", "--reason=INC-7"];
    freeze(plane, team, &long).expect_failure(&["but the policy allows at most 7d"]);
    let kubectl = namespace.kubectl_as(team);
    let mut wrong = json!({
        "apiVersion": "interlock.dev/v1alpha1", "kind": "Freeze", "metadata": {"generateName": "stop-"},
        "spec": {"reason": "INC-7", "timeZone": "Europe/Berlim", "from": "2026-01-01", "to": "2026-01-02"},
    });
    let carets = ["did you mean `Europe/Berlin`?", "timeZone: Europe/Berlim\n", "  ^^^^^^^^^^^^^"];
    kubectl.with_file("create", &wrong, &[]).expect_failure(&carets);
    wrong["spec"]["timeZone"] = "UTC".into();
    kubectl.with_file("create", &wrong, &[]).expect_failure(&["The Freeze has already ended"]);
    // Its creator is who creates it, and its specification does not change.
    let (from, to) = ("2020-01-01", (jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1)).to_string());
    wrong["spec"] = json!({"reason": "INC-8", "timeZone": "UTC", "from": from, "to": to.split_once('.').unwrap().0});
    wrong["metadata"]["annotations"] = json!({"interlock.dev/created-by": "alice"});
    let made: Value = kubectl.with_file("create", &wrong, &["-o", "json"]).expect_success().json();
    assert_eq!(made["metadata"]["annotations"]["interlock.dev/created-by"], team.user());
    let mut changed = made;
    changed["spec"]["reason"] = "INC-9".into();
    namespace.kubectl("alice").with_file("replace", &changed, &[]).expect_failure(&["a Freeze cannot be changed"]);
}

/// A Freeze ends at once when it is deleted, and by itself when its time is over.
fn ended(plane: &Plane, namespace: &Namespace<'_>, team: &Identity, helm: &Helm, chart: &Chart) {
    let ended = freeze(plane, team, &["--end", namespace.name()]).expect_success().stdout;
    assert_eq!(ended.matches("Ended ").count(), 2, "{ended}");
    assert!(ended.contains(&format!(", created by {}: INC-7", team.user())), "{ended}");
    eventually(PROMPTLY, "the line goes on", || upgrade(helm, chart).into_result());
    freeze(plane, team, &[namespace.name(), "--for=10s", "--reason=INC-7"]).expect_success();
    eventually(PROMPTLY, "the freeze is in force", || refused(&upgrade(helm, chart)));
    eventually(DEADLINE, "the freeze is over", || upgrade(helm, chart).into_result());
    assert!(freeze(plane, team, &["--end", namespace.name()]).expect_success().stdout.starts_with("Ended "));
    assert_eq!(freeze(plane, team, &["--end", namespace.name()]).expect_success().stdout, "There is no such Freeze.\n");
}

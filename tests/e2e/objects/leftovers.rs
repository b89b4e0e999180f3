//! Objects with a release's marks that no release declares any more.

use crate::harness::acts::{Act, Target, Verdict};
use crate::harness::chart::{Chart, EXTRA, KEPT};
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;

use Verdict::{Deletes, Edits, Passes};

const EDIT: &[&str] = &["patch", "configmap", "kept", "--type=merge", "-p", r#"{"data":{"note":"bob"}}"#];
const DELETE: &[&str] = &["delete", "configmap", "kept"];

const LIVE: &[Act] = &[("an edit", EDIT, Edits("data.note")), ("a deletion", DELETE, Deletes)];
const FREE: &[Act] = &[("an edit", EDIT, Passes), ("a deletion", DELETE, Passes)];

#[test]
fn an_object_kept_by_an_uninstall_is_free() {
    for version in HelmVersion::ALL {
        let namespace = Namespace::new(Plane::shared(), "kept");
        let alice = namespace.helm(version, Driver::Secret, "alice");
        let kubectl = namespace.kubectl("bob");
        let chart = Chart::new("demo").template("kept", KEPT);
        for how in ["--keep-history", "--ignore-not-found"] {
            // `--replace`: the previous uninstall may have kept its history.
            alice.ok(&["install", "demo", chart.path(), "--replace"]);
            let revision = namespace.records(Driver::Secret, "demo").last().unwrap().revision;
            let target = Target::deployed(&namespace, "demo", revision);
            target.expect_all(&kubectl, LIVE);
            alice.ok(&["uninstall", "demo", how]);
            target.expect_all(&kubectl, FREE);
        }
    }
}

#[test]
fn an_object_dropped_but_kept_by_an_upgrade_is_free() {
    let namespace = Namespace::new(Plane::shared(), "dropped");
    let alice = namespace.helm(HelmVersion::V4, Driver::Secret, "alice");
    alice.ok(&["install", "demo", Chart::new("demo").template("kept", KEPT).path()]);
    alice.ok(&["upgrade", "demo", Chart::new("demo").path()]);
    let target = Target::deployed(&namespace, "demo", 2);
    target.expect_all(&namespace.kubectl("bob"), FREE);
    target.expect_all(&namespace.kubectl("bob"), &[("the rest", &["delete", "configmap", "demo"], Deletes)]);
}

#[test]
fn leftovers_of_a_failed_upgrade_can_be_deleted() {
    for version in HelmVersion::ALL {
        let namespace = Namespace::new(Plane::shared(), "left-behind");
        let alice = namespace.helm(version, Driver::Secret, "alice");
        let chart = Chart::new("demo").template("extra", EXTRA);
        alice.ok(&["install", "demo", chart.path()]);
        alice.fails(&["upgrade", "demo", chart.path(), "--set=extra=true,breakApply=true"], &["selector"]);
        let target = Target { namespace: &namespace, release: "demo", state: "revision 2, failed".to_owned() };
        target.expect_all(
            &namespace.kubectl("bob"),
            &[
                ("what the deployed revision does not have", &["delete", "configmap", "extra"], Passes),
                ("what it has", &["delete", "configmap", "demo"], Deletes),
            ],
        );
    }
}

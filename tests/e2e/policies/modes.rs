//! The same act under different policies: by mode, namespace and case, and while the files change.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::decisions::{Decision, decisions};
use crate::harness::eventually::eventually;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;

/// Longer than the interval at which the directory is read.
const TAKEN_UP: Duration = Duration::from_secs(45);

const HEAD: &str = "apiVersion: interlock.dev/v1alpha1\nkind: ";
const CLUSTER: &str = "ClusterPolicy\ndelegate: [manual-edit]\n";
const RULE: &str = "[manual-edit]";
const SET_IMAGE: [&str; 4] = ["set", "image", "deployment/demo", "app=bob:1"];

/// The directory of a plane's policies.
struct Policies<'p> {
    plane: &'p Plane,
    directory: PathBuf,
}

impl<'p> Policies<'p> {
    fn of(plane: &'p Plane) -> Self {
        let directory = plane.webhook().policies().to_owned();
        fs::create_dir_all(directory.join("namespaces")).unwrap();
        Self { plane, directory }
    }

    /// Writes a file as editors do: a new file, renamed over the old one.
    fn write(&self, file: &Path, text: &str) {
        let mut written = tempfile::NamedTempFile::new_in(&self.directory).unwrap();
        std::io::Write::write_all(&mut written, format!("{HEAD}{text}").as_bytes()).unwrap();
        written.persist(self.directory.join(file)).unwrap();
    }

    fn cluster(&self, text: &str) {
        self.write(Path::new("cluster.yaml"), &format!("{CLUSTER}{text}"));
    }

    fn namespace(&self, namespace: &Namespace<'_>, rules: &str) {
        let file = Path::new("namespaces").join(format!("{}.yaml", namespace.name()));
        self.write(&file, &format!("NamespacePolicy\nrules:\n  manual-edit: {rules}\n"));
    }

    /// Waits until the webhook reports this about its policies.
    #[track_caller]
    fn await_state(&self, says: &str) {
        eventually(TAKEN_UP, &format!("the policies are {says:?}"), || {
            let (code, message) = self.plane.webhook().admin("/readyz?verbose");
            if code == 200 && message.contains(says) { Ok(()) } else { Err(message) }
        });
    }
}

/// A namespace with the release `demo`.
fn released<'p>(plane: &'p Plane, chart: &Chart, name: &str) -> Namespace<'p> {
    let namespace = Namespace::new(plane, name);
    namespace.helm(HelmVersion::V4, Driver::Secret, "alice").ok(&["install", "demo", chart.path()]);
    namespace
}

/// Verdict and rules of a person's edits in the log, without dry runs.
fn edits(namespace: &Namespace<'_>, person: &str) -> Vec<(String, String)> {
    let edit = |decision: &Decision| decision.user == person && decision.operation == "UPDATE" && !decision.dry_run;
    let mut message: Vec<_> =
        decisions(namespace).into_iter().filter(edit).map(|decision| (decision.verdict, decision.rules)).collect();
    // The API server repeats a review.
    message.dedup();
    message
}

#[test]
fn the_same_act_under_every_mode_and_while_files_change() {
    let plane = Plane::start(&format!("{HEAD}{CLUSTER}"));
    let policies = Policies::of(&plane);
    let chart = Chart::new("demo");
    let [enforce, warn, audit, off] = ["enforce", "warn", "audit", "off"].map(|mode| released(&plane, &chart, mode));
    let case = "cases: [{when: {users: [ci-bot]}, mode: warn}]";
    policies.namespace(&enforce, &format!("{{mode: enforce, {case}}}"));
    for (namespace, mode) in [(&warn, "warn"), (&audit, "audit"), (&off, "off")] {
        policies.namespace(namespace, &format!("{{mode: {mode}}}"));
    }
    policies.await_state("4 namespaces with their own");

    let as_bob =
        |namespace: &Namespace<'_>, more: &[&str]| namespace.kubectl("bob").run(&[&SET_IMAGE[..], more].concat());
    as_bob(&enforce, &[]).expect_failure(&["denied the request", "is declared by the chart", RULE]);
    as_bob(&enforce, &["--dry-run=server"]).expect_failure(&["denied the request", RULE]);
    assert_eq!(edits(&enforce, "bob"), [("denied".to_owned(), "manual-edit=enforce".to_owned())]);
    enforce.kubectl("bob").ok(&["label", "deployment/demo", "team=blue"]);
    for (namespace, warned, rules) in
        [(&warn, true, "manual-edit=warn"), (&audit, false, "manual-edit=audit"), (&off, false, "")]
    {
        let output = as_bob(namespace, &[]);
        assert!(output.success() && output.stderr.contains(RULE) == warned, "{output}");
        assert_eq!(edits(namespace, "bob"), [("allowed".to_owned(), rules.to_owned())]);
    }
    // For other rules, the cluster's policy applies in these namespaces.
    off.kubectl("bob").fails(&["delete", "service/demo"], &["denied the request", "[manual-delete]"]);
    // The same act in the same namespace, by a user whom a case names.
    let warned = enforce.kubectl("ci-bot").run(&["set", "image", "deployment/demo", "app=ci:1"]);
    assert!(warned.success() && warned.stderr.contains(RULE), "{warned}");
    assert_eq!(edits(&enforce, "ci-bot"), [("allowed".to_owned(), "manual-edit=warn".to_owned())]);

    // Other namespaces keep their policies while the files of the cluster and of one namespace are wrong.
    policies.cluster("rules:\n  manual-delete: {mode: of}\n");
    policies.await_state("unknown value `of`; did you mean `off`?");
    as_bob(&enforce, &[]).expect_failure(&["denied the request", RULE]);
    off.kubectl("bob").fails(&["delete", "service/demo"], &["denied the request", "[manual-delete]"]);
    as_bob(&off, &["--dry-run=server"]).expect_success();
    let (_, metrics) = plane.webhook().admin("/metrics");
    assert!(metrics.contains("interlock_policy_errors 1\n"), "{metrics}");
    assert!(plane.webhook().log().contains("cluster.yaml:5:25: unknown value `of`"));

    policies.cluster("rules:\n  manual-delete: {mode: off}\n");
    policies.namespace(&off, "{mode: of}");
    policies.await_state("3 namespaces with their own; invalid files are ignored");
    off.kubectl("bob").ok(&["delete", "service/demo"]);
    off.kubectl("bob").fails(&["set", "image", "deployment/demo", "app=bob:2"], &["denied the request", RULE]);
    let output = warn.kubectl("bob").run(&["set", "image", "deployment/demo", "app=bob:2"]);
    assert!(output.success() && output.stderr.contains(RULE), "{output}");
}

//! Interlock where people already are: as a plugin of the real helm 3 and helm 4, as krew installs it for the real kubectl, and as
//! the commands of k9s.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::archive::{archive, packaging, published};
use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion, Identity};
use crate::harness::eventually::eventually;
use crate::harness::helm_releases::{self, helm_release, installed};
use crate::harness::in_flight::{impatient, killed, policy};
use crate::harness::k9s::K9s;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::process::{Output, Running, run};
use crate::harness::records::{self, V1, V2};

/// Installing the plugin copies a debug build of a hundred megabytes.
const DEADLINE: Duration = Duration::from_secs(180);

/// A helm with a home of its own, whose plugins no other test sees.
struct PluggedHelm<'n> {
    namespace: &'n Namespace<'n>,
    version: HelmVersion,
    home: tempfile::TempDir,
}

impl<'n> PluggedHelm<'n> {
    /// Installs the plugin from the archive's URL.
    #[track_caller]
    fn new(namespace: &'n Namespace<'n>, version: HelmVersion) -> Self {
        let helm = Self { namespace, version, home: tempfile::tempdir().unwrap() };
        let mut install = vec!["plugin", "install", published()];
        // The archive is not signed for helm, which helm 4 asks for.
        install.extend((version == HelmVersion::V4).then_some("--verify=false"));
        helm.run("bob", &install).expect_success();
        helm
    }

    /// `helm ARGS` without a flag of its own.
    fn command(&self, person: &str, args: &[&str]) -> Command {
        let like = self.namespace.helm(self.version, Driver::Secret, person).command(&[]);
        let mut command = Command::new(like.get_program());
        command.args(args);
        for (name, value) in like.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        for (variable, dir) in
            [("HELM_CACHE_HOME", "cache"), ("HELM_CONFIG_HOME", "config"), ("HELM_DATA_HOME", "data")]
        {
            command.env(variable, self.home.path().join(dir));
        }
        command
    }

    #[track_caller]
    fn run(&self, person: &str, args: &[&str]) -> Output {
        run(self.command(person, args), DEADLINE)
    }

    /// `helm interlock ARGS -n NAMESPACE`, as bob.
    #[track_caller]
    fn interlock(&self, args: &[&str]) -> Output {
        self.run("bob", &[&["interlock"], args, &["-n", self.namespace.name()]].concat())
    }
}

#[test]
fn helm_3_runs_the_plugin_with_its_namespace_cluster_and_identity() {
    helm_runs_the_plugin(HelmVersion::V3);
}

#[test]
fn helm_4_runs_the_plugin_with_its_namespace_cluster_and_identity() {
    helm_runs_the_plugin(HelmVersion::V4);
}

#[track_caller]
fn helm_runs_the_plugin(version: HelmVersion) {
    let namespace = killed(impatient(), "helm-plugin", version, Driver::Secret, true);
    let helm = PluggedHelm::new(&namespace, version);
    let listed = helm.run("bob", &["plugin", "list"]).expect_success();
    assert!(listed.stdout.contains("interlock") && listed.stdout.contains(env!("CARGO_PKG_VERSION")), "{listed}");
    let help = helm.run("bob", &["interlock", "status", "--help"]).expect_success();
    assert!(help.stdout.contains("Usage: helm interlock status") && help.stdout.contains("--kube-context"), "{help}");
    let completed = helm.run("bob", &["__complete", "interlock", "uns"]).expect_success();
    assert!(completed.stdout.lines().any(|line| line == "unstick"), "{completed}");

    // -n, before and after the name of the plugin, and by the variable.
    let named = format!("{}/demo ", namespace.name());
    let status = helm.interlock(&["status"]).expect_success();
    assert!(status.stdout.contains(&named) && status.stdout.contains("pending-upgrade"), "{status}");
    let before = helm.run("bob", &["-n", namespace.name(), "interlock", "status"]).expect_success();
    assert!(before.stdout.contains(&named), "{before}");
    let mut by_variable = helm.command("bob", &["interlock", "status"]);
    by_variable.env("HELM_NAMESPACE", namespace.name());
    assert!(run(by_variable, DEADLINE).expect_success().stdout.contains(&named));
    let elsewhere = helm.run("bob", &["interlock", "status", "-n", "default"]).expect_success();
    assert!(!elsewhere.stdout.contains(&named), "{elsewhere}");
    // Arguments that are not helm's arrive as they are.
    let all = helm.run("bob", &["interlock", "status", "-A", "-o", "json"]);
    assert!(all.json()["releases"].as_array().unwrap().iter().any(|row| row["namespace"] == namespace.name()), "{all}");
    let unknown = helm.interlock(&["no-such-command"]);
    assert!(unknown.status.code() == Some(2) && unknown.stderr.contains("'no-such-command'"), "{unknown}");

    identity_and_cluster(&helm);
    unstick(&helm);
}

/// `--kube-as-user`, `--kube-context` and `--kubeconfig`.
#[track_caller]
fn identity_and_cluster(helm: &PluggedHelm<'_>) {
    let denied = helm.interlock(&["status", "--kube-as-user", "mallory"]);
    assert!(denied.status.code() == Some(2) && denied.stderr.contains("User \"mallory\" cannot list"), "{denied}");

    let bob = helm.namespace.plane().person("bob");
    let kubeconfig = helm.home.path().join("kubeconfig");
    fs::copy(bob.kubeconfig(), &kubeconfig).unwrap();
    let path = kubeconfig.to_str().unwrap();
    let kubectl = helm.namespace.kubectl_as(&Identity::new("bob", &kubeconfig));
    let current = kubectl.ok(&["config", "current-context"]).stdout;
    kubectl.ok(&["config", "set-cluster", "away", "--server=https://127.0.0.1:1"]);
    kubectl.ok(&["config", "set-context", "away", "--cluster=away"]);
    kubectl.ok(&["config", "use-context", "away"]);
    let away = helm.interlock(&["status", "--kubeconfig", path]);
    assert!(away.status.code() == Some(2) && away.stderr.contains("onnect"), "{away}");
    let here = helm.interlock(&["status", "--kubeconfig", path, "--kube-context", current.trim_end()]);
    assert!(here.expect_success().stdout.contains("/demo "));
    let unknown = helm.interlock(&["status", "--kube-context", "nowhere"]);
    assert!(unknown.status.code() == Some(2) && unknown.stderr.contains("nowhere"), "{unknown}");
}

/// The release needs no namespace of its own, and helm passes on the exit codes.
#[track_caller]
fn unstick(helm: &PluggedHelm<'_>) {
    let policies = tempfile::tempdir().unwrap();
    fs::write(policies.path().join("cluster.yaml"), policy("staleAfter: 3s")).unwrap();
    // By the shipped policy the operation may still run.
    let fresh = helm.interlock(&["unstick", "demo", "--yes"]);
    assert_eq!(fresh.status.code(), Some(1), "{fresh}");
    assert!(fresh.stdout.contains("counts as stuck after 15 min"), "{fresh}");
    eventually(DEADLINE, "the release is unstuck", || {
        let policies = policies.path().to_str().unwrap();
        helm.interlock(&["unstick", "demo", "--yes", "--policies", policies]).into_result()
    });
    assert_eq!(records::summary(&helm.namespace.records(Driver::Secret, "demo")), "1 deployed");
}

/// Does what krew does with the manifest: compares the sum, unpacks, copies the files, and links the program as `kubectl-interlock`.
#[test]
fn kubectl_runs_the_plugin_as_krew_installs_it() {
    let namespace = Namespace::new(Plane::shared(), "krew");
    let chart = Chart::new("demo");
    namespace.helm(HelmVersion::V4, Driver::Secret, "alice").ok(&["install", "demo", chart.path()]);
    let mut make = Command::new(packaging("krew/manifest"));
    make.args(["https://example.com", "https://example.com/releases"]).arg(archive());
    let manifest: Value = serde_saphyr::from_str(&run(make, DEADLINE).expect_success().stdout).unwrap();
    let platform = &manifest["spec"]["platforms"][0];
    let mut sum = Command::new("sha256sum");
    sum.arg(archive());
    assert!(run(sum, DEADLINE).expect_success().stdout.starts_with(platform["sha256"].as_str().unwrap()));

    let krew = tempfile::tempdir().unwrap();
    let [unpacked, store, bin] = ["unpacked", "store", "bin"].map(|name| krew.path().join(name));
    for dir in [&unpacked, &store, &bin] {
        fs::create_dir(dir).unwrap();
    }
    let mut unpack = Command::new("tar");
    unpack.arg("-xzf").arg(archive()).arg("-C").arg(&unpacked);
    run(unpack, DEADLINE).expect_success();
    for file in platform["files"].as_array().unwrap() {
        let from = file["from"].as_str().unwrap();
        assert_eq!(file["to"], ".");
        fs::rename(unpacked.join(from), store.join(from)).unwrap();
    }
    let plugin = format!("kubectl-{}", manifest["metadata"]["name"].as_str().unwrap());
    symlink(store.join(platform["bin"].as_str().unwrap()), bin.join(plugin)).unwrap();

    let kubectl = |args: &[&str]| {
        let mut command = namespace.plane().kubectl(&namespace.plane().person("bob")).command(args);
        command.env("PATH", &bin);
        run(command, DEADLINE)
    };
    let listed = kubectl(&["plugin", "list"]).expect_success();
    assert!(listed.stdout.contains("kubectl-interlock"), "{listed}");
    let status = kubectl(&["interlock", "status", "-n", namespace.name()]).expect_success();
    assert!(status.stdout.contains(&format!("{}/demo ", namespace.name())), "{status}");
    let help = kubectl(&["interlock", "unstick", "--help"]).expect_success();
    assert!(help.stdout.contains("Usage: kubectl interlock unstick"), "{help}");
}

#[test]
fn k9s_shows_the_release_of_a_secret_and_of_a_helm_release() {
    let namespace = Namespace::new(helm_releases::shared(), "k9s-status");
    let here = namespace.name();
    let alice = namespace.kubectl("alice");
    let chart = Chart::new("demo");
    namespace.helm(HelmVersion::V3, Driver::Secret, "alice").ok(&["install", "demo", chart.path()]);
    for (name, spec) in [
        ("renamed", json!({"releaseName": "demo"})),
        ("targeted", json!({"targetNamespace": "elsewhere"})),
        ("stored", json!({"storageNamespace": format!("{here}-records")})),
    ] {
        alice.with_file("create", &helm_release(here, name, spec), &[]).expect_success();
    }
    let k9s = K9s::new(&namespace, "bob");
    let shown =
        |resource: &str, name: &str| run(k9s.command("interlock-status", resource, name), DEADLINE).expect_success();
    for (resource, name) in [("secrets", V1), ("helm", "demo"), ("helmreleases", "renamed")] {
        let one = shown(resource, name);
        assert!(one.stdout.contains("History\n     1  deployed"), "{one}");
    }
    // Of a Secret that is no record, the releases of the namespace.
    let all = shown("secrets", "registry-password");
    assert!(all.stdout.contains("RELEASE") && all.stdout.contains(&format!("{here}/demo ")), "{all}");
    // Without the HelmRelease, no release is guessed.
    for plugin in ["interlock-status", "interlock-unstick"] {
        let missing = run(k9s.command(plugin, "helmreleases", "demo"), DEADLINE);
        assert!(missing.stdout.contains("\"demo\" not found") && !missing.stdout.contains(here), "{missing}");
    }
    // As Flux names a release that it has not installed yet, and where it stores its records.
    for (name, release) in
        [("targeted", format!("{here}/elsewhere-targeted")), ("stored", format!("{here}-records/stored"))]
    {
        let none = shown("helmreleases", name);
        assert!(none.stdout.contains(&format!("there is no release {release}")), "{none}");
    }
    for (resource, name) in [("secrets", V1), ("helm", "demo"), ("helmreleases", "renamed")] {
        let calm = run(k9s.command("interlock-unstick", resource, name), DEADLINE);
        assert!(calm.stdout.contains(&format!("Nothing to do: revision 1 of {here}/demo is deployed")), "{calm}");
    }
}

#[test]
fn k9s_unsticks_the_release_of_a_secret_after_a_question() {
    let namespace = killed(impatient(), "k9s-unstick", HelmVersion::V4, Driver::Secret, true);
    let k9s = K9s::new(&namespace, "bob");
    let policies = tempfile::tempdir().unwrap();
    fs::write(policies.path().join("cluster.yaml"), policy("staleAfter: 3s")).unwrap();
    let answered = |answer: &str| {
        let mut command = k9s.command("interlock-unstick", "secrets", V2);
        command.env("INTERLOCK_POLICIES", policies.path());
        // As k9s gives it one: with Enter at the end.
        Running::on_terminal(command, &format!("{answer}\n\n")).wait(DEADLINE)
    };
    eventually(DEADLINE, "the release is stuck, and the question is asked", || {
        let output = answered("n");
        if output.stdout.contains("[y/N]") { Ok(()) } else { Err(output.to_string()) }
    });
    assert_eq!(records::summary(&namespace.records(Driver::Secret, "demo")), "1 deployed, 2 pending-upgrade");
    let unstuck = answered("y");
    assert!(unstuck.stdout.contains(&format!("Deleted the record {V2}")), "{unstuck}");
    assert!(unstuck.stdout.contains("Press Enter to return to k9s."), "{unstuck}");
    assert_eq!(records::summary(&namespace.records(Driver::Secret, "demo")), "1 deployed");
}

#[test]
fn k9s_explains_the_last_refusal_of_a_secret_and_of_a_helm_release() {
    let namespace = Namespace::new(helm_releases::shared(), "k9s-explain");
    let here = namespace.name();
    let alice = namespace.kubectl("alice");
    let chart = Chart::new("demo");
    namespace.helm(HelmVersion::V4, Driver::Secret, "alice").ok(&["install", "demo", chart.path()]);
    alice.with_file("create", &helm_release(here, "web", json!({})), &[]).expect_success();
    installed(&namespace, "web", &namespace);
    let k9s = K9s::new(&namespace, "bob");
    let explained = |resource: &str, name: &str| run(k9s.command("interlock-explain", resource, name), DEADLINE);
    let nothing = explained("secrets", V1).expect_success();
    assert!(nothing.stdout.contains(&format!("There is no Event of a refusal of secrets/{V1}")), "{nothing}");

    alice.fails(&["patch", "secret", V1, "--type=merge", "-p", r#"{"immutable":true}"#], &["[record-tampering]"]);
    expect_explained("record-tampering", || explained("secrets", V1));
    // The last one counts.
    alice.fails(&["delete", "secret", V1], &["[record-deletion]"]);
    expect_explained("record-deletion", || explained("secrets", V1));
    let renamed = r#"{"spec":{"releaseName":"shop"}}"#;
    alice.fails(&["patch", "helmrelease/web", "--type=merge", "-p", renamed], &["[retarget]"]);
    expect_explained("retarget", || explained("helmreleases", "web"));
}

/// Interlock writes the Event after its reply.
#[track_caller]
fn expect_explained(rule: &str, explain: impl Fn() -> Output) {
    eventually(DEADLINE, &format!("an explanation of {rule}"), || {
        let output = explain();
        let message = ["alice was denied: ", &format!("\n\n{rule}\n"), "\nWay out "];
        if message.iter().all(|text| output.stdout.contains(text)) { Ok(()) } else { Err(output.to_string()) }
    });
}

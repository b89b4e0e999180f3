//! Recordings of real clients, with the accounts that the shipped policy lists and with others.

use std::fs;
use std::io::Read;

use flate2::read::MultiGzDecoder;
use serde_json::Value;

use crate::harness::binary::{interlock, repository, stdout};

use super::{Adopted, round_trip, round_trip_of, wrong};

/// A recording with the classes of its accounts.
type Recording = (&'static str, &'static [(&'static str, &'static str)]);

const CLIENTS: [Recording; 4] = [
    ("helm", &[("alice", "person")]),
    ("mapkubeapis", &[("alice", "person"), ("admin", "person")]),
    ("written/nelm", &[("alice", "person"), ("bob", "person"), ("ci:werf", "pipeline")]),
    (
        "written/helm-finish-uninstall",
        &[("alice", "person"), ("bob", "person"), ("ci:deploy-4711", "pipeline"), ("ci:deploy-4712", "pipeline")],
    ),
];

const CONTROLLERS: [Recording; 3] = [
    (
        "flux",
        &[
            ("alice", "person"),
            ("bob", "person"),
            ("flux-system:helm-controller", "manager"),
            ("tenant:deployer", "manager"),
            ("tenant:deployer2", "manager"),
        ],
    ),
    (
        "olm",
        &[("alice", "person"), ("bob", "person"), ("olmv1-system:operator-controller-controller-manager", "manager")],
    ),
    ("sveltos-v1.7.0", &[("projectsveltos:addon-controller", "manager")]),
];

const APPLIERS: [Recording; 2] = [
    (
        "argocd-v3.5.1",
        &[
            ("alice", "person"),
            ("bob", "person"),
            ("argocd:argocd-application-controller", "manager"),
            ("argocd:argocd-applicationset-controller", "manager"),
            // People act through it.
            ("argocd:argocd-server", "person"),
        ],
    ),
    (
        "kustomize-v1.9.4",
        &[
            ("alice", "person"),
            ("bob", "person"),
            ("flux-system:kustomize-controller", "manager"),
            ("team:deployer", "manager"),
            ("ci:pipeline", "pipeline"),
        ],
    ),
];

const OTHERS: [Recording; 7] = [
    ("written/velero", &[("alice", "person"), ("velero:velero-server", "tool")]),
    ("written/fleet-rollback", &[("bob", "person"), ("cattle-fleet-system:fleet-agent", "manager")]),
    ("written/sveltos-push", &[("alice", "person"), ("projectsveltos:addon-controller", "manager")]),
    (
        "written/crossplane",
        &[("bob", "person"), ("ci:deploy-4712", "pipeline"), ("crossplane-system:provider-helm-1a2b3c", "manager")],
    ),
    ("written/klipper", &[("bob", "person"), ("shop:helm-web", "pipeline"), ("shop:helm-api", "pipeline")]),
    ("written/helm-hook-deletes", &[("bob", "person"), ("ci:deploy-4711", "pipeline"), ("shop:cleaner", "hook")]),
    (
        "written/flux-account-changes",
        &[
            ("alice", "person"),
            ("bob", "person"),
            ("shop:flux", "manager"),
            ("shop:flux-next", "manager"),
            ("shop:other", "manager"),
        ],
    ),
];

/// Every refused write of a recording is an incident or a question, because `tests/it/replay.rs` shows that none of them is honest. The
/// accounts have their classes.
fn compare((name, classes): &Recording) {
    let file = repository(&format!("tests/recordings/{name}.jsonl.gz"));
    let (first, _) = round_trip(&file);
    assert_eq!(wrong(&first, classes), Vec::<String>::new(), "{name}");
    let replayed = interlock(&["replay", "--as-recorded", "-o", "json", file.to_str().unwrap()]);
    let reviews = stdout(&replayed).lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let refused = reviews.filter(|review| review["allowed"] == false).count();
    assert_eq!(first.count("incidents") + first.count("decisions"), refused, "{name}");
    assert_eq!(first.count("disturbed"), 0, "{name}");
}

#[test]
fn clients_without_a_controller() {
    CLIENTS.iter().for_each(compare);
}

#[test]
fn controllers_with_records() {
    CONTROLLERS.iter().for_each(compare);
}

#[test]
fn controllers_without_records() {
    APPLIERS.iter().for_each(compare);
}

#[test]
fn restores_agents_jobs_and_hooks() {
    OTHERS.iter().for_each(compare);
}

/// The text of a recording in which accounts of another installation write.
fn renamed(recording: &str, account: &str, other: &str) -> String {
    let file = fs::File::open(repository(&format!("tests/recordings/{recording}.jsonl.gz"))).unwrap();
    let mut text = String::new();
    MultiGzDecoder::new(file).read_to_string(&mut text).unwrap();
    assert!(text.contains(account), "{recording}");
    text.replace(account, other)
}

#[test]
fn controllers_in_another_namespace_are_known_and_opened() {
    for (recording, account, other, class) in [
        ("kustomize-v1.9.4", "flux-system:kustomize-controller", "gitops:kustomize-controller", "manager"),
        ("argocd-v3.5.1", "argocd:argocd-application-controller", "cd:argocd-application-controller", "manager"),
        ("written/velero", "velero:velero-server", "backup:velero-server", "tool"),
    ] {
        let (first, policy) = round_trip_of(&renamed(recording, account, other));
        assert_eq!(first.classes()[&format!("system:serviceaccount:{other}")], class, "{recording}");
        assert!(policy.contains(&format!("  - 'system:serviceaccount:{other}'\n")), "{recording}\n{policy}");
        assert!(!first.findings("disturbed").is_empty() && first.count("incidents") > 0, "{recording}");
    }
}

/// What a person does in the recording, a pipeline does here: its edits are work, and what loses a release stays refused.
#[test]
fn a_pipeline_may_edit_and_may_not_lose_a_release() {
    let text = renamed("helm", "\"alice\"", "\"gitlab-runner\"");
    let (first, policy) = round_trip_of(&text);
    assert_eq!(first.classes()["gitlab-runner"], "pipeline");
    assert_eq!((first.count("disturbed"), first.count("incidents")), (10, 7));
    assert!(policy.contains("  - {name: gitlab-runner-adopted, users: ['gitlab-runner']}\n"), "{policy}");
}

#[test]
fn owners_without_releases_are_listed_with_their_objects_and_operations() {
    for (recording, wanted) in
        [("argocd-v3.5.1", "Application argocd/web 6 35"), ("kustomize-v1.9.4", "Kustomization flux-system/shop 8 0")]
    {
        let file = repository(&format!("tests/recordings/{recording}.jsonl.gz"));
        let Adopted { report } = super::adopted(&file, &[]);
        let owners = report["owners"].as_array().unwrap().iter().map(|owner| {
            let text = |key: &str| owner[key].as_str().unwrap();
            format!(
                "{} {}/{} {} {}",
                text("kind"),
                text("namespace"),
                text("name"),
                owner["objects"],
                owner["operations"]
            )
        });
        let owners: Vec<_> = owners.collect();
        assert!(owners.iter().any(|owner| owner == wanted), "{owners:?}");
    }
}

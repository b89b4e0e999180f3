//! Policies that change while reviews go on.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use interlock_engine::facts::Actor;
use interlock_engine::policy::{Policies, Removal, Scope};
use interlock_engine::policy_files::LoadedPolicies;
use interlock_engine::release::record::INFLATE_LIMIT;
use interlock_engine::review::Operation;
use interlock_engine::rule::Mode;
use interlock_engine::rules;
use prometheus_client::registry::Registry;
use release_interlock::budget::Budget;
use release_interlock::judge::Judge;
use release_interlock::readiness::Readiness;
use release_interlock::serve::https::admin;
use release_interlock::serve::openmetrics;
use release_interlock::serve::reload::metrics::PolicyMetrics;
use release_interlock::serve::reload::{Reload, ReloadStatus};
use release_interlock::world::memory::Memory;
use release_interlock::world::policy_directory;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::harness::client::{request, send};
use crate::harness::desk::Desk;
use crate::harness::fixtures::{body, gzip, review, secret};
use crate::harness::mounted::mount;
use ::http::{Method, StatusCode};

/// Shorter than the interval at which the directory is read without a notification.
const TOLD: Duration = Duration::from_secs(25);

fn policy(kind: &str, mode: &str) -> String {
    format!("apiVersion: interlock.dev/v1alpha1\nkind: {kind}\nrules:\n  illegal-transition: {{mode: {mode}}}\n")
}

struct Followed {
    directory: TempDir,
    policies: Arc<ArcSwap<Policies>>,
    metrics: Arc<PolicyMetrics>,
    state: watch::Receiver<ReloadStatus>,
    following: JoinHandle<()>,
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.following.abort();
    }
}

impl Followed {
    /// Follows a directory and replaces these policies by its content.
    fn new(directory: TempDir, policies: Arc<ArcSwap<Policies>>) -> Self {
        let files = policy_directory::read(directory.path());
        policies.store(Arc::new(LoadedPolicies::of(&files).into_policies().unwrap()));
        let metrics = Arc::new(PolicyMetrics::default());
        let reload = Reload::new(directory.path(), files, policies.clone(), metrics.clone());
        let state = reload.state();
        Self { directory, policies, metrics, state, following: tokio::spawn(reload.follow()) }
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.directory.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The state after the next change.
    async fn next(&mut self) -> ReloadStatus {
        timeout(TOLD, self.state.changed()).await.expect("expected the change to be seen").unwrap();
        self.state.borrow_and_update().clone()
    }

    /// The mode of `illegal-transition` in a namespace.
    fn mode(&self, namespace: &str) -> Mode {
        let actor = Actor::named("alice", &[]);
        let scope = Scope {
            actor,
            namespace,
            release: None,
            kind: "Secret",
            owner: None,
            operation: Operation::Update,
            creates_record: false,
            removal: Removal::Nothing,
        };
        self.policies.load().of(namespace).mode(rules::named("illegal-transition").unwrap(), &scope)
    }
}

fn shipped() -> Arc<ArcSwap<Policies>> {
    Arc::new(ArcSwap::from_pointee(policy_directory::load_or_shipped(None).unwrap()))
}

#[tokio::test]
async fn a_mounted_configmap_is_reloaded_at_every_swap() {
    let directory = tempfile::tempdir().unwrap();
    let cluster = |mode: &str| vec![("cluster.yaml", policy("ClusterPolicy", mode))];
    let shop = |mode: &str| vec![("shop.yaml", policy("NamespacePolicy", mode))];
    let namespaces = directory.path().join("namespaces");
    mount(directory.path(), 1, &cluster("audit"));
    mount(&namespaces, 1, &shop("audit"));
    let mut followed = Followed::new(directory, shipped());
    assert_eq!((followed.mode("bar"), followed.mode("shop")), (Mode::Audit, Mode::Audit));
    for (generation, mode) in [(2, Mode::Warn), (3, Mode::Enforce)] {
        mount(&namespaces, generation, &shop(mode.as_str()));
        assert!(followed.next().await.problems.is_empty());
        assert_eq!((followed.mode("bar"), followed.mode("shop")), (Mode::Audit, mode));
    }
    for (generation, mode) in [(2, Mode::Warn), (3, Mode::Enforce)] {
        mount(followed.directory.path(), generation, &cluster(mode.as_str()));
        assert!(followed.next().await.problems.is_empty());
        assert_eq!((followed.mode("bar"), followed.mode("shop")), (mode, Mode::Enforce));
    }
}

#[tokio::test]
async fn a_wrong_file_changes_nothing_but_what_is_told_of_it() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("cluster.yaml"), policy("ClusterPolicy", "warn")).unwrap();
    let mut followed = Followed::new(directory, shipped());
    let readiness = Readiness::new();
    let state = followed.state.clone();
    readiness.note("policies", move || state.borrow().to_string());
    let mut registry = Registry::with_prefix(openmetrics::PREFIX);
    followed.metrics.register(&mut registry);
    let admin = admin::router(readiness, Arc::new(registry));
    let printed = async |path: &str| {
        let answer = send(&admin, request(Method::GET, path, None, Bytes::new())).await;
        assert_eq!(answer.status, StatusCode::OK, "policies make nobody unready");
        String::from_utf8(answer.body.to_vec()).unwrap()
    };
    assert_eq!(printed("/readyz").await, "ok\n");
    assert!(printed("/metrics").await.contains("interlock_policy_loaded_timestamp_seconds 1"));

    followed.write("cluster.yaml", &policy("ClusterPolicy", "enforced"));
    let state = followed.next().await;
    assert!(!state.current && state.problems.len() == 1);
    assert_eq!(followed.mode("shop"), Mode::Warn);
    let ready = printed("/readyz?verbose").await;
    assert!(ready.starts_with("[i] policies: loaded ") && ready.ends_with("ok\n"), "{ready}");
    assert!(
        ready.contains("earlier ones stay in force") && ready.contains("cluster.yaml:4:30: unknown value `enforced`"),
        "{ready}"
    );
    let metrics = printed("/metrics").await;
    assert!(metrics.contains("interlock_policy_errors 1\n"), "{metrics}");
    assert!(metrics.contains("interlock_policy_reloads_total{result=\"bad\"} 1\n"), "{metrics}");

    followed.write("cluster.yaml", &policy("ClusterPolicy", "audit"));
    assert!(followed.next().await.current);
    assert_eq!(followed.mode("shop"), Mode::Audit);
    assert!(printed("/metrics").await.contains("interlock_policy_errors 0\n"));

    // A namespace with a wrong file gets the cluster's policy. Other namespaces keep theirs.
    followed.write("namespaces/shop.yaml", &policy("NamespacePolicy", "enforce"));
    assert_eq!(followed.next().await.namespaces, 1);
    followed.write("namespaces/bar.yaml", &policy("NamespacePolicy", "off"));
    let state = followed.next().await;
    assert!(state.current && state.namespaces == 1 && state.problems.len() == 1, "{state}");
    assert!(printed("/metrics").await.contains("interlock_policy_reloads_total{result=\"partly\"} 1\n"));
    // An unreadable file may still have its old content.
    let (link, bar) = (followed.directory.path().join("link"), followed.directory.path().join("namespaces/bar.yaml"));
    symlink("nowhere", &link).unwrap();
    fs::rename(&link, &bar).unwrap();
    let state = followed.next().await;
    assert!(!state.current && state.problems.len() == 1, "{state}");
    assert_eq!(followed.mode("shop"), Mode::Enforce);
    fs::remove_dir_all(followed.directory.path().join("namespaces")).unwrap();
    let state = followed.next().await;
    assert!(state.current && state.namespaces == 0 && state.problems.is_empty(), "{state}");

    fs::remove_file(followed.directory.path().join("cluster.yaml")).unwrap();
    let state = followed.next().await;
    assert!(!state.current && state.to_string().contains("cluster.yaml: failed to read it"), "{state}");
    assert_eq!(followed.mode("shop"), Mode::Audit);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_review_is_answered_wrongly_while_files_change() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("cluster.yaml"), policy("ClusterPolicy", "enforce")).unwrap();
    let judge = Judge::new(
        policy_directory::load_or_shipped(None).unwrap(),
        Arc::new(Memory::new(1 << 20)),
        Arc::new(Budget::new(2 * INFLATE_LIMIT)),
    );
    let mut followed = Followed::new(directory, judge.policies());
    let desk = Arc::new(Desk::of(judge));
    let record = |status: &str| secret(status, &gzip(body(status).as_bytes()));
    let forbidden = review("UPDATE", Some(&record("superseded")), Some(&record("deployed")));
    let ordinary = review("UPDATE", Some(&record("deployed")), Some(&record("superseded")));

    // Concurrent reviews are judged by one of the two good policies: refused or warned, never admitted silently.
    let (ended, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let load = (0..2).map(|_| {
        let (desk, forbidden, ordinary) = (desk.clone(), forbidden.clone(), ordinary.clone());
        let (ended, asked) = (ended.clone(), asked.clone());
        tokio::spawn(async move {
            while !ended.load(Ordering::Relaxed) {
                let (_, message) = desk.judge(&forbidden).await;
                assert!(message.contains("[illegal-transition]"), "{message}");
                assert_eq!(desk.judge(&ordinary).await, (true, String::new()));
                asked.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        })
    });
    let load: Vec<_> = load.collect();
    for (mode, allowed) in [("warn", true), ("wrong", true), ("enforce", false), ("{", false), ("warn", true)] {
        let before = asked.load(Ordering::Relaxed);
        followed.write("cluster.yaml", &policy("ClusterPolicy", mode));
        followed.next().await;
        assert_eq!(desk.judge(&forbidden).await.0, allowed, "{mode}");
        assert!(asked.load(Ordering::Relaxed) > before, "nobody asked meanwhile");
    }
    ended.store(true, Ordering::Relaxed);
    for task in load {
        task.await.unwrap();
    }
}

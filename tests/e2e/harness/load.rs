//! A steady load of writes on a plane, each with its expected verdict.
//!
//! One cycle is the life of a record of its own: `ci-bot` creates it, makes it `deployed` and `uninstalling`, and deletes it,
//! as helm would. In between, bob makes writes that must be refused, and allowed and forbidden edits of the objects of an
//! installed release.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::{Value, json};

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion, Identity};
use crate::harness::namespace::Namespace;
use crate::harness::records::encode;

/// Concurrent cycles: enough for the rate while a write takes less than a tenth of a second.
pub(crate) const WORKERS: u32 = 16;
/// Writes in a cycle.
const WRITES: u32 = 8;
/// Writes that pass through entries that fail open: admitted while no replica answers.
const OPEN: [&str; 2] = ["reopen: admitted", "edit: admitted"];
/// Interlock's message when the API server that asked does not answer its queries, or answers that it is going down.
const ALONE: [&str; 2] = ["Could not check ", "Try again once the API server answers."];
/// The release whose objects are edited, and its objects' name.
const RELEASE: &str = "base";
/// How many faults are kept with their text.
const KEPT: usize = 20;

/// The expected result of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    Passes,
    /// Refused by this rule.
    Refused(&'static str),
}

/// The result of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Got {
    Right,
    /// Admitted against the rules, refused against the rules, or refused for another reason.
    Wrong(String),
    /// The API server got no answer from the webhook, or the webhook none from the API server.
    Failed(String),
    /// The API server itself did not answer.
    Unreachable,
}

/// How the writes of one phase ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct Phase {
    /// Writes with the expected result, including refusals.
    pub(crate) right: u64,
    /// How many of the right ones were refusals.
    pub(crate) refused: u64,
    /// Decided wrongly.
    pub(crate) wrong: Vec<String>,
    /// Calls of the webhook that failed, or that it could not judge.
    pub(crate) failed: Vec<String>,
    /// Writes that found no API server.
    pub(crate) unreachable: u64,
    /// The slowest of the right ones.
    pub(crate) slowest: Duration,
    /// How long the phase took.
    pub(crate) took: Duration,
}

/// A running load. It ends when this value is dropped.
pub(crate) struct Load {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    stop: AtomicBool,
    current: Mutex<(Phase, Instant)>,
    cycles: AtomicU64,
}

impl Load {
    /// Installs the release whose objects are edited, and starts with this many writes a second.
    #[track_caller]
    pub(crate) fn start(namespace: &Namespace<'_>, rate: u32) -> Self {
        let chart = Chart::new(RELEASE);
        namespace.helm(HelmVersion::V4, Driver::Secret, "alice").ok(&["install", RELEASE, chart.path()]);
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            current: Mutex::new((Phase::default(), Instant::now())),
            cycles: AtomicU64::new(0),
        });
        let people = ["ci-bot", "bob"].map(|name| namespace.plane().person(name));
        let (name, theirs) = (namespace.name().to_owned(), Arc::clone(&shared));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(run(&people, &name, rate, &theirs));
        });
        Self { shared, thread: Some(thread) }
    }

    /// Ends a phase and begins the next.
    pub(crate) fn phase(&self) -> Phase {
        let mut current = self.shared.current();
        let (mut phase, began) = std::mem::replace(&mut *current, (Phase::default(), Instant::now()));
        phase.took = began.elapsed();
        phase
    }

    /// How many writes have ended as they must in this phase.
    pub(crate) fn right(&self) -> u64 {
        self.shared.current().0.right
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Phase {
    /// No allowed write was refused.
    pub(crate) fn let_in_only(&self) -> bool {
        self.wrong.iter().all(|wrong| wrong.ends_with(": admitted"))
    }

    /// Calls failed only because the API server itself did not answer.
    pub(crate) fn reached(&self) -> bool {
        self.failed.iter().all(|failed| ALONE.iter().all(|part| failed.contains(part)))
    }

    /// Wrong decisions occurred only at entries that fail open.
    pub(crate) fn failed_open_only(&self) -> bool {
        self.wrong.iter().all(|wrong| OPEN.contains(&wrong.as_str()))
    }

    /// Calls that failed or were decided wrongly.
    pub(crate) fn faults(&self) -> usize {
        self.wrong.len() + self.failed.len()
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { right, refused, wrong, failed, unreachable, slowest, took } = self;
        let rate = *right as f64 / took.as_secs_f64().max(0.001);
        write!(f, "{right} right ({refused} of them refusals, {rate:.0}/s, slowest {slowest:.0?})")?;
        write!(f, ", {} wrong, {} failed, {unreachable} without an API server", wrong.len(), failed.len())?;
        let mut kinds = BTreeMap::<&str, usize>::new();
        for fault in wrong.iter().chain(failed) {
            *kinds.entry(fault).or_default() += 1;
        }
        kinds.iter().take(KEPT).try_for_each(|(fault, count)| write!(f, "\n    {count} x {fault}"))
    }
}

impl Shared {
    fn current(&self) -> std::sync::MutexGuard<'_, (Phase, Instant)> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a write and records its result. `None` if the cycle cannot continue.
    async fn write<T>(&self, what: &str, expect: Expect, write: impl Future<Output = kube::Result<T>>) -> Option<()> {
        let started = Instant::now();
        let got = judge(expect, write.await.map(drop));
        self.note(what, expect, got, started.elapsed()).then_some(())
    }

    /// Returns whether the cycle may continue.
    fn note(&self, what: &str, expect: Expect, got: Got, took: Duration) -> bool {
        let mut current = self.current();
        let phase = &mut current.0;
        match got {
            Got::Right => {
                phase.right += 1;
                phase.refused += u64::from(expect != Expect::Passes);
                phase.slowest = phase.slowest.max(took);
                return true;
            }
            Got::Wrong(why) => phase.wrong.push(format!("{what}: {why}")),
            Got::Failed(why) => phase.failed.push(format!("{what}: {why}")),
            Got::Unreachable => phase.unreachable += 1,
        }
        false
    }
}

/// The clients of the two users who write.
struct Writers {
    owner: Api<Secret>,
    stranger: Api<Secret>,
    objects: Api<ConfigMap>,
}

async fn run(people: &[Identity; 2], namespace: &str, rate: u32, shared: &Shared) {
    let [owner, stranger] = people;
    let (owner, stranger) = (client(owner.kubeconfig()).await, client(stranger.kubeconfig()).await);
    let writers = Writers {
        owner: Api::namespaced(owner, namespace),
        stranger: Api::namespaced(stranger.clone(), namespace),
        objects: Api::namespaced(stranger, namespace),
    };
    // Each worker starts its share of the cycles. A worker that is late continues at once.
    let every = Duration::from_secs(1) * WORKERS * WRITES / rate;
    let worker = async |number: u32| {
        let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + every * number / WORKERS, every);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while !shared.stop.load(Ordering::Relaxed) {
            ticks.tick().await;
            writers.cycle(shared).await;
        }
    };
    futures_util::future::join_all((0..WORKERS).map(worker)).await;
}

async fn client(kubeconfig: &Path) -> Client {
    let read = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig of the plane");
    let mut config =
        Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.expect("a configuration");
    // Every write is counted once.
    config.default_retry = false;
    config.read_timeout = Some(Duration::from_secs(40));
    Client::try_from(config).expect("a client")
}

impl Writers {
    async fn cycle(&self, shared: &Shared) {
        let number = shared.cycles.fetch_add(1, Ordering::Relaxed);
        let release = format!("load-{number}");
        // A failed write would change the verdicts of later writes.
        _ = self.life(&release, shared).await;
    }

    async fn life(&self, release: &str, shared: &Shared) -> Option<()> {
        use Expect::{Passes, Refused};
        let (post, merge) = (PostParams::default(), PatchParams::default());
        let one = record_name(release, 1);
        let record = |revision, status| secret(release, revision, status);
        let Self { owner, stranger, objects } = self;

        let pending = record(1, "pending-install");
        shared.write("create", Passes, owner.create(&post, &pending)).await?;
        let overtaking = record(2, "pending-upgrade");
        shared.write("overtake", Refused("concurrent-operation"), stranger.create(&post, &overtaking)).await?;
        let deployed = record(1, "deployed");
        shared.write("deploy", Passes, owner.replace(&one, &post, &deployed)).await?;
        let reopened = record(1, "pending-upgrade");
        shared.write("reopen", Refused("illegal-transition"), stranger.replace(&one, &post, &reopened)).await?;
        let declared = Patch::Merge(json!({"data": {"note": release}}));
        shared.write("edit", Refused("manual-edit"), objects.patch(RELEASE, &merge, &declared)).await?;
        let undeclared = Patch::Merge(json!({"metadata": {"labels": {"team": release}}}));
        shared.write("label", Passes, objects.patch(RELEASE, &merge, &undeclared)).await?;
        let leaving = record(1, "uninstalling");
        shared.write("uninstall", Passes, owner.replace(&one, &post, &leaving)).await?;
        shared.write("purge", Passes, owner.delete(&one, &DeleteParams::default())).await
    }
}

fn judge(expect: Expect, result: kube::Result<()>) -> Got {
    match (expect, result) {
        (Expect::Passes, Ok(())) => Got::Right,
        (Expect::Refused(_), Ok(())) => Got::Wrong("admitted".to_owned()),
        (_, Err(kube::Error::Api(status))) => {
            let message = &status.message;
            let refused = message.contains("denied the request");
            match expect {
                Expect::Refused(rule) if refused && message.contains(&format!("[{rule}]")) => Got::Right,
                _ if message.contains("failed calling webhook") => Got::Failed(without_names(message)),
                _ if refused && ALONE.iter().all(|part| message.contains(part)) => Got::Failed(without_names(message)),
                // An API server that has just started does not know its roles yet.
                _ if status.code == 429 || status.code >= 500 || message.contains(" is forbidden: User ") => {
                    Got::Unreachable
                }
                _ => Got::Wrong(format!("{} {}", status.code, without_names(message))),
            }
        }
        (_, Err(_)) => Got::Unreachable,
    }
}

/// A message without the number of its release, so that equal messages are counted together.
fn without_names(message: &str) -> String {
    message.split("load-").enumerate().fold(String::new(), |text, (number, part)| {
        text + if number == 0 { part } else { part.trim_start_matches(|c: char| c.is_ascii_digit()) }
    })
}

fn record_name(release: &str, revision: u32) -> String {
    format!("sh.helm.release.v1.{release}.v{revision}")
}

/// A record as helm would write it.
fn secret(release: &str, revision: u32, status: &str) -> Secret {
    let body: Value = json!({
        "name": release,
        "info": {"first_deployed": "2026-11-22T00:00:00Z", "last_deployed": "2026-11-22T00:00:00Z", "status": status},
        "chart": {"metadata": {"name": "load", "version": "1.0.0", "apiVersion": "v2"}},
        "config": {},
        "manifest": "",
        "version": revision,
        "namespace": "default",
    });
    let labels = json!({
        "owner": "helm", "name": release, "version": revision.to_string(), "status": status,
    });
    serde_json::from_value(json!({
        "metadata": {"name": record_name(release, revision), "labels": labels},
        "type": "helm.sh/release.v1",
        "data": {"release": encode(&body, Driver::Secret)},
    }))
    .expect("a Secret")
}

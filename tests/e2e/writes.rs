//! Many writes of records side by side, half of which must be refused, and what became of each.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::clients::{Driver, Identity};
use crate::records::encode;

/// Messages that are kept of each sort.
const KEPT: usize = 5;

/// What became of the writes.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Admitted or refused, as each must be.
    pub(crate) right: u64,
    /// Admitted, though each must be refused.
    pub(crate) let_in: Sort,
    /// Refused, though each must be admitted.
    pub(crate) kept_out: Sort,
    /// The API server did not get a verdict.
    pub(crate) unjudged: Sort,
    /// The API server itself was not there, so that nothing was admitted.
    pub(crate) unreachable: Sort,
}

/// Writes that ended in one way.
#[derive(Debug, Default)]
pub(crate) struct Sort {
    pub(crate) count: u64,
    /// The first of them.
    messages: Vec<String>,
    /// The moments of the first and the last.
    span: Option<(Instant, Instant)>,
}

impl Sort {
    fn add(&mut self, message: String) {
        self.count += 1;
        if self.messages.len() < KEPT {
            self.messages.push(message);
        }
        let now = Instant::now();
        self.span = Some((self.span.map_or(now, |(first, _)| first), now));
    }

    /// From the first to the last.
    pub(crate) fn lasted(&self) -> Duration {
        self.span.map_or(Duration::ZERO, |(first, last)| last - first)
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} writes judged rightly", self.right)?;
        let sorts = [
            ("wrongly admitted", &self.let_in),
            ("wrongly refused", &self.kept_out),
            ("not judged", &self.unjudged),
            ("without an API server", &self.unreachable),
        ];
        for (name, sort) in sorts {
            if sort.count > 0 {
                write!(f, ", {} {name} within {:.1?}", sort.count, sort.lasted())?;
            }
        }
        Ok(())
    }
}

impl Tally {
    /// Those that were judged wrongly.
    pub(crate) fn wrong(&self) -> u64 {
        self.let_in.count + self.kept_out.count
    }

    fn add(&mut self, lawful: bool, end: kube::Result<Secret>) {
        match end {
            Ok(_) if lawful => self.right += 1,
            Ok(_) => self.let_in.add("admitted".to_owned()),
            Err(kube::Error::Api(status)) if status.message.contains("[unusual-create]") && !lawful => self.right += 1,
            Err(kube::Error::Api(status)) if status.message.contains("denied the request") => {
                self.kept_out.add(status.message);
            }
            Err(kube::Error::Api(status)) if status.message.contains("failed calling webhook") => {
                self.unjudged.add(status.message);
            }
            Err(error) => self.unreachable.add(error.to_string()),
        }
    }

    /// Every write got its verdict, and the right one.
    #[track_caller]
    pub(crate) fn expect_faultless(&self) {
        assert!(self.right > 0 && self.wrong() + self.unjudged.count == 0, "{self}\n{self:#?}");
    }
}

/// Writers that go on until they are told to stop.
pub(crate) struct Writes {
    runtime: Runtime,
    stop: Arc<AtomicBool>,
    tally: Arc<Mutex<Tally>>,
    writers: Vec<JoinHandle<()>>,
}

impl Writes {
    /// So many writers with a connection each, and each with this pause between two writes. Nothing is stored: the
    /// webhook is asked about a dry run like about any other write.
    #[track_caller]
    pub(crate) fn start(who: &Identity, namespace: &str, writers: usize, pause: Duration) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let (stop, tally) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Tally>>::default());
        let writers = (0..writers).map(|_| {
            let secrets = runtime.block_on(secrets(who, namespace)).expect("a client");
            runtime.spawn(write(secrets, stop.clone(), tally.clone(), pause))
        });
        let writers = writers.collect();
        Self { runtime, stop, tally, writers }
    }

    /// Lets each writer end its write, and returns what became of all.
    #[track_caller]
    pub(crate) fn stop(self) -> Tally {
        self.stop.store(true, Ordering::Relaxed);
        for writer in self.writers {
            self.runtime.block_on(writer).expect("a writer ends");
        }
        std::mem::take(&mut self.tally.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn secrets(who: &Identity, namespace: &str) -> Result<Api<Secret>, Box<dyn std::error::Error>> {
    let read = Kubeconfig::read_from(who.kubeconfig())?;
    let mut config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
    // What fails is to be seen.
    config.default_retry = false;
    Ok(Api::namespaced(Client::try_from(config)?, namespace))
}

async fn write(secrets: Api<Secret>, stop: Arc<AtomicBool>, tally: Arc<Mutex<Tally>>, pause: Duration) {
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    // A release that begins, and one that claims to be there already.
    let records = [record("pending-install"), record("deployed")];
    for (record, lawful) in records.iter().zip([true, false]).cycle() {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let end = secrets.create(&dry_run, record).await;
        tally.lock().unwrap_or_else(PoisonError::into_inner).add(lawful, end);
        sleep(pause).await;
    }
}

fn record(status: &str) -> Secret {
    let body = json!({"name": "writes", "version": 1, "namespace": "default", "info": {"status": status}});
    let labels = json!({"owner": "helm", "name": "writes", "version": "1", "status": status});
    let record = json!({
        "metadata": {"name": "sh.helm.release.v1.writes.v1", "labels": labels},
        "type": "helm.sh/release.v1",
        "data": {"release": encode(&body, Driver::Secret)},
    });
    serde_json::from_value(record).expect("a Secret")
}

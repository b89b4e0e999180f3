//! The life of one pod on the node, from its binding to its deletion.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Pod, Probe as Specified, ServiceAccount};
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::container::Process;
use super::probe::Probe;
use super::specification::{Start, container, has_token};
use super::status::{Report, State};
use super::volumes::{self, Content};
use super::{Node, Ports, Replica, TICK};

const CALL: Duration = Duration::from_secs(5);
/// The pause before a failed step is tried again.
const AGAIN: Duration = Duration::from_millis(500);
/// The pause before a container is restarted, from the second time on. A kubelet waits 10 s.
const BACKOFF: Duration = Duration::from_secs(1);
/// How long a pod that is ending still gets new connections: the change takes this long through the API server.
const NEWS: Duration = Duration::from_secs(1);

/// One pod.
struct Life {
    node: Arc<Node>,
    dir: PathBuf,
    /// Never used for connections: containers listen on 127.0.0.1.
    address: String,
    since: Timestamp,
    mounts: BTreeMap<String, Content>,
    container: Container,
    restarts: u32,
    /// When the container may start.
    next: Instant,
    /// When it got SIGTERM.
    ending: Option<Instant>,
    reported: Option<Report>,
}

enum Container {
    Waiting(String),
    Running { process: Process, numbers: [u16; 2], since: Timestamp, probes: Box<Probes> },
    Ended(i32, Timestamp),
}

struct Probes {
    startup: Option<Probe>,
    liveness: Option<Probe>,
    readiness: Option<Probe>,
}

/// Runs the pod until it is gone from the API server.
pub(super) async fn live(node: Arc<Node>, first: Arc<Pod>) {
    static ADDRESSES: AtomicU8 = AtomicU8::new(1);
    let name = first.name_any();
    let mut life = Life {
        dir: node.dir.join(&name),
        address: format!("10.244.0.{}", ADDRESSES.fetch_add(1, Ordering::Relaxed)),
        node,
        since: Timestamp::now(),
        mounts: BTreeMap::new(),
        container: Container::Waiting("not started yet".to_owned()),
        restarts: 0,
        next: Instant::now(),
        ending: None,
        reported: None,
    };
    while let Some(pod) = life.node.pod(&first) {
        if let Err(why) = life.look(&pod).await {
            // Written to the pod's log, because writing the status may be what fails.
            life.log(&why);
            sleep(AGAIN).await;
        }
        sleep(TICK).await;
    }
    life.node.replicas().remove(&name);
}

impl Life {
    async fn look(&mut self, pod: &Pod) -> Result<(), String> {
        if pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_none()) {
            return self.bind(pod).await;
        }
        if pod.metadata.deletion_timestamp.is_some() {
            self.end(pod).await?;
        } else if let Container::Waiting(_) = self.container
            && Instant::now() >= self.next
        {
            match self.start(pod).await {
                Ok(container) => self.container = container,
                Err(why) => {
                    self.log(&why);
                    self.container = Container::Waiting(why);
                    self.next = Instant::now() + AGAIN;
                }
            }
        }
        // Volumes follow their sources only while the container runs.
        let volumes = match self.container {
            Container::Running { .. } if self.ending.is_none() => self.write_volumes(pod),
            _ => Ok(()),
        };
        self.watch(pod).await;
        self.publish(pod);
        self.report(pod).await.and(volumes)
    }

    /// There is no scheduler. A pod without a node would be deleted without a grace period.
    async fn bind(&self, pod: &Pod) -> Result<(), String> {
        let name = pod.name_any();
        let binding = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name},
            "target": {"apiVersion": "v1", "kind": "Node", "name": "node"},
        });
        let api = self.node.api::<Pod>();
        let parameters = PostParams::default();
        let bound = api.create_subresource::<_, Value>("binding", &name, &parameters, &binding);
        call(bound).await.map(drop)
    }

    async fn start(&mut self, pod: &Pod) -> Result<Container, String> {
        let specified = container(pod)?;
        let probe = |probe: &Option<Specified>| probe.as_ref().map(Probe::new).transpose();
        let probes = Box::new(Probes {
            startup: probe(&specified.startup_probe)?,
            liveness: probe(&specified.liveness_probe)?,
            readiness: probe(&specified.readiness_probe)?,
        });
        self.write_volumes(pod)?;
        if let Some(image) = &self.node.image {
            image.install(&self.root())?;
        }
        let account = if has_token(pod) { self.account(&self.token(pod).await?)? } else { BTreeMap::new() };
        let start = Start::of(&self.node, pod, &self.root(), account)?;
        let process = Process::start(&start, &self.log_file())?;
        Ok(Container::Running { process, numbers: start.ports, since: Timestamp::now(), probes })
    }

    /// A token of the pod's account, bound to the pod.
    async fn token(&self, pod: &Pod) -> Result<String, String> {
        let account = pod.spec.as_ref().and_then(|spec| spec.service_account_name.as_deref()).unwrap_or("default");
        let request = TokenRequest {
            spec: TokenRequestSpec {
                bound_object_ref: Some(BoundObjectReference {
                    api_version: Some("v1".to_owned()),
                    kind: Some("Pod".to_owned()),
                    name: pod.metadata.name.clone(),
                    uid: pod.metadata.uid.clone(),
                }),
                expiration_seconds: Some(6 * 60 * 60),
                ..TokenRequestSpec::default()
            },
            ..TokenRequest::default()
        };
        let api = self.node.api::<ServiceAccount>();
        let made = call(api.create_token_request(account, &PostParams::default(), &request)).await?;
        Ok(made.status.ok_or("the API server gave no token")?.token)
    }

    /// Writes the files with which the pod finds the API server, and returns the variables that name them.
    fn account(&self, token: &str) -> Result<BTreeMap<String, String>, String> {
        let variables = match &self.node.image {
            Some(_) => self.mounted_account(token)?,
            None => [("INTERLOCK_KUBECONFIG", self.kubeconfig(token)?)].into(),
        };
        Ok(variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// What every pod of a cluster gets.
    fn mounted_account(&self, token: &str) -> Result<BTreeMap<&'static str, String>, String> {
        let ca = fs::read(&self.node.ca).map_err(|e| format!("cannot read {}: {e}", self.node.ca.display()))?;
        let files = [("token", token.into()), ("ca.crt", ca), ("namespace", self.node.namespace.clone().into_bytes())];
        let content = files.map(|(name, content)| (name.to_owned(), content)).into();
        let mount = self.root().join(volumes::ACCOUNT.trim_start_matches('/'));
        volumes::write(&mount, &content).map_err(|e| format!("cannot write {}: {e}", mount.display()))?;
        let address = self.node.server.trim_start_matches("https://").trim_end_matches('/');
        let (host, port) = address.rsplit_once(':').ok_or_else(|| format!("no port in {address}"))?;
        Ok([("KUBERNETES_SERVICE_HOST", host.to_owned()), ("KUBERNETES_SERVICE_PORT", port.to_owned())].into())
    }

    fn kubeconfig(&self, token: &str) -> Result<String, String> {
        let content = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": self.node.server, "certificate-authority": self.node.ca}}],
            "users": [{"name": "pod", "user": {"token": token}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "pod"}}],
            "current-context": "c",
        });
        let path = self.dir.join("kubeconfig");
        fs::write(&path, content.to_string()).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        Ok(path.display().to_string())
    }

    fn write_volumes(&mut self, pod: &Pod) -> Result<(), String> {
        let root = self.root();
        fs::create_dir_all(&root).map_err(|e| format!("cannot make {}: {e}", root.display()))?;
        for (mount, content) in volumes::contents(&self.node, pod)? {
            if self.mounts.get(&mount) != Some(&content) {
                let path = root.join(mount.trim_start_matches('/'));
                volumes::write(&path, &content).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
                self.mounts.insert(mount, content);
            }
        }
        Ok(())
    }

    /// Stops the container, kills it after its grace period, then deletes the pod.
    async fn end(&mut self, pod: &Pod) -> Result<(), String> {
        let grace = u64::try_from(pod.metadata.deletion_grace_period_seconds.unwrap_or(30)).unwrap_or(0);
        if let (Container::Running { .. }, None) = (&self.container, self.ending) {
            self.ending = Some(Instant::now());
            // First, so that the time in which the pod gets connections does not start after its own.
            self.publish(pod);
            if let Container::Running { process, .. } = &self.container {
                process.signal("TERM");
            }
            return Ok(());
        }
        match (&self.container, self.ending) {
            (Container::Running { process, .. }, Some(since)) => {
                if since.elapsed() > Duration::from_secs(grace) {
                    process.signal("KILL");
                }
                Ok(())
            }
            _ => {
                let only = Preconditions { uid: pod.uid(), resource_version: None };
                let now =
                    DeleteParams { grace_period_seconds: Some(0), preconditions: Some(only), ..Default::default() };
                call(self.node.api::<Pod>().delete(&pod.name_any(), &now)).await.map(drop)
            }
        }
    }

    /// Checks whether the container runs and probes it.
    async fn watch(&mut self, pod: &Pod) {
        let Container::Running { process, numbers, probes, .. } = &mut self.container else { return };
        if let Some(code) = process.ended() {
            let policy = pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref()).unwrap_or("Always");
            let again = policy == "Always" || (policy == "OnFailure" && code != 0);
            self.container = if again && self.ending.is_none() {
                // The first restart is immediate.
                self.next = Instant::now() + BACKOFF * self.restarts.min(10);
                self.restarts += 1;
                Container::Waiting(format!("back-off after exit code {code}"))
            } else {
                Container::Ended(code, Timestamp::now())
            };
            return;
        }
        let ports = Ports::of(pod, *numbers, process.said().addresses);
        let at = |probe: &Probe| ports.address(probe.port());
        if let Some(startup) = &mut probes.startup
            && startup.passes != Some(true)
        {
            startup.look(at(startup)).await;
            if startup.passes == Some(false) {
                process.signal("KILL");
            }
            return;
        }
        if let Some(liveness) = &mut probes.liveness {
            liveness.look(at(liveness)).await;
            if liveness.passes == Some(false) && self.ending.is_none() {
                process.signal("KILL");
            }
        }
        if let Some(readiness) = &mut probes.readiness {
            readiness.look(at(readiness)).await;
        }
    }

    /// Whether new connections may go to the pod.
    fn ready(&self) -> bool {
        let Container::Running { probes, process, .. } = &self.container else { return false };
        let gone = self.ending.is_some_and(|since| since.elapsed() > NEWS);
        let passes = |probe: &Option<Probe>| probe.as_ref().is_none_or(|probe| probe.passes == Some(true));
        !gone && process.said().pid.is_some() && passes(&probes.startup) && passes(&probes.readiness)
    }

    /// Publishes the pod to the balancer and to the test.
    fn publish(&self, pod: &Pod) {
        let name = pod.name_any();
        let replica = match &self.container {
            Container::Running { process, numbers, .. } => process.said().pid.map(|pid| Replica {
                pod: name.clone(),
                pid,
                ready: self.ready(),
                leaves: self.ending.map(|since| since + NEWS),
                restarts: self.restarts,
                ports: Ports::of(pod, *numbers, process.said().addresses),
                labels: pod.labels().clone(),
                log: self.log_file(),
            }),
            _ => None,
        };
        match replica {
            Some(replica) => self.node.replicas().insert(name, replica),
            None => self.node.replicas().remove(&name),
        };
    }

    async fn report(&mut self, pod: &Pod) -> Result<(), String> {
        let (state, probes) = match &self.container {
            Container::Waiting(why) => (State::Waiting(why.clone()), None),
            Container::Running { since, probes, .. } => (State::Running(*since), Some(probes)),
            Container::Ended(code, at) => (State::Ended(*code, *at), None),
        };
        let started =
            probes.is_some_and(|probes| probes.startup.as_ref().is_none_or(|probe| probe.passes == Some(true)));
        let failure = |probe: &Option<Probe>| probe.as_ref().map(|probe| probe.failure.clone()).unwrap_or_default();
        let message = probes.map(|probes| failure(if started { &probes.readiness } else { &probes.startup }));
        let report = Report {
            state,
            started,
            ready: self.ready() && self.ending.is_none(),
            restarts: self.restarts,
            message: message.unwrap_or_default(),
            address: self.address.clone(),
            since: self.since,
        };
        if self.reported.as_ref() == Some(&report) {
            return Ok(());
        }
        let patch = Patch::Merge(json!({"metadata": {"uid": pod.uid()}, "status": report.status(pod)}));
        let api = self.node.api::<Pod>();
        call(api.patch_status(&pod.name_any(), &PatchParams::default(), &patch)).await?;
        self.reported = Some(report);
        Ok(())
    }

    fn root(&self) -> PathBuf {
        self.dir.join("root")
    }

    fn log_file(&self) -> PathBuf {
        self.dir.join("log")
    }

    fn log(&self, line: &str) {
        let file = fs::create_dir_all(&self.dir)
            .and_then(|()| fs::File::options().create(true).append(true).open(self.log_file()));
        if let Ok(mut file) = file {
            let _ = writeln!(file, "kubelet: {line}");
        }
    }
}

async fn call<T>(call: impl Future<Output = kube::Result<T>>) -> Result<T, String> {
    match timeout(CALL, call).await {
        Ok(answer) => answer.map_err(|e| e.to_string()),
        Err(_) => Err("the API server does not answer".to_owned()),
    }
}

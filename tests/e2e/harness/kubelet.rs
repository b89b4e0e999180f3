//! A stand-in for the nodes of a cluster: runs the pods of one namespace as processes of this machine, and routes
//! connections to the namespace's Services.
//!
//! A pod gets what it specifies: arguments, environment, volumes, a token of its service account, probes, SIGTERM and a
//! grace period. It differs from a cluster: every container is the built `interlock`, or a given [`Image`]; it listens on free
//! ports of 127.0.0.1; without an image, paths below a mount are in the pod's own directory; probes run more often than
//! specified.

mod container;
pub(crate) mod image;
mod lifecycle;
mod probe;
mod specification;
mod status;
mod volumes;

use std::collections::{BTreeMap, HashSet};
use std::fmt::Debug;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, Service};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::reflector::{self, Store, reflector};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Config, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, sleep};

use container::Addresses;
use image::Image;

use crate::harness::balancer::{Connections, Route, balance};
use crate::harness::plane::Plane;
use crate::harness::process::signal;

/// The pause between two looks at a pod.
const TICK: Duration = Duration::from_millis(50);
/// How long all pods may take to end.
const END: Duration = Duration::from_secs(10);
/// Where nobody listens: port 9 is reserved for the discard protocol.
const CLOSED_PORT: u16 = 9;

/// The node of one namespace's pods. All of them are killed when this is dropped.
pub(crate) struct Kubelet {
    node: Arc<Node>,
    connections: Arc<Connections>,
    runtime: Option<Runtime>,
}

/// A pod whose container runs.
#[derive(Debug, Clone)]
pub(crate) struct Replica {
    pub(crate) pod: String,
    pub(crate) pid: u32,
    pub(crate) ready: bool,
    /// From then on, no new connection goes to a pod that is ending, however late the node looks at it again.
    leaves: Option<Instant>,
    pub(crate) restarts: u32,
    ports: Ports,
    labels: BTreeMap<String, String>,
    pub(crate) log: PathBuf,
}

impl Replica {
    /// SIGKILL; the kubelet will start the container again.
    pub(crate) fn kill(&self) {
        signal("KILL", self.pid);
    }
}

/// The real addresses of a container's ports.
#[derive(Debug, Clone)]
struct Ports {
    real: BTreeMap<u16, SocketAddr>,
    names: BTreeMap<String, u16>,
}

impl Ports {
    /// `numbers` are the specified ports for reviews and probes. They have no address before the process prints its
    /// own.
    fn of(pod: &Pod, numbers: [u16; 2], addresses: Option<Addresses>) -> Self {
        let real = addresses.map(|at| numbers.into_iter().zip([at.listen, at.admin]).collect());
        let ports =
            pod.spec.iter().flat_map(|spec| &spec.containers).flat_map(|container| container.ports.iter().flatten());
        let names = ports.filter_map(|port| Some((port.name.clone()?, u16::try_from(port.container_port).ok()?)));
        Self { real: real.unwrap_or_default(), names: names.collect() }
    }

    /// The real address of a port by name or number.
    fn address(&self, port: &IntOrString) -> Option<SocketAddr> {
        let number = match port {
            IntOrString::Int(number) => u16::try_from(*number).ok()?,
            IntOrString::String(name) => *self.names.get(name)?,
        };
        let closed = || SocketAddr::from((Ipv4Addr::LOCALHOST, CLOSED_PORT));
        // A pod refuses connections to every other port.
        (!self.real.is_empty()).then(|| self.real.get(&number).copied().unwrap_or_else(closed))
    }
}

struct Node {
    client: Client,
    namespace: String,
    /// URL and CA of the API server.
    server: String,
    ca: PathBuf,
    /// A directory for each pod.
    dir: PathBuf,
    pods: Store<Pod>,
    services: Store<Service>,
    config_maps: Store<ConfigMap>,
    secrets: Store<Secret>,
    replicas: Mutex<BTreeMap<String, Replica>>,
    turn: AtomicUsize,
    /// Whether every connection to a Service ends at a closed port.
    is_blocked: AtomicBool,
    /// Added to the environment of containers that start.
    environment: Mutex<BTreeMap<String, String>>,
    /// Runs in the containers, in place of the built `interlock`.
    image: Option<Image>,
}

impl Kubelet {
    /// Runs the namespace's pods, and routes connections from the proxy's socket to its Services.
    pub(crate) fn start(
        plane: &Plane,
        namespace: &str,
        proxy: UnixListener,
        image: Option<Image>,
    ) -> Result<Self, String> {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.map_err(|e| format!("cannot start a runtime: {e}"))?;
        let connections = Arc::new(Connections::default());
        let admin = plane.admin();
        let node = runtime.block_on(async {
            let read = Kubeconfig::read_from(admin.kubeconfig()).map_err(|e| e.to_string())?;
            let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
            let client = Client::try_from(config.map_err(|e| e.to_string())?).map_err(|e| e.to_string())?;
            let node = Arc::new(Node {
                pods: follow(&client, namespace),
                services: follow(&client, namespace),
                config_maps: follow(&client, namespace),
                secrets: follow(&client, namespace),
                client,
                namespace: namespace.to_owned(),
                server: plane.server().to_owned(),
                ca: plane.ca().to_owned(),
                dir: plane.dir().join("pods"),
                replicas: Mutex::default(),
                turn: AtomicUsize::new(0),
                is_blocked: AtomicBool::new(false),
                environment: Mutex::default(),
                image,
            });
            tokio::spawn(node.clone().run());
            proxy.set_nonblocking(true).map_err(|e| e.to_string())?;
            let listener = tokio::net::UnixListener::from_std(proxy).map_err(|e| e.to_string())?;
            let routes = node.clone();
            let route: Route = Arc::new(move |address| routes.route(address));
            tokio::spawn(balance(listener, route, connections.clone()));
            Ok::<_, String>(node)
        })?;
        Ok(Self { node, connections, runtime: Some(runtime) })
    }

    /// The pods whose containers run, by name.
    pub(crate) fn replicas(&self) -> Vec<Replica> {
        self.node.replicas().values().cloned().collect()
    }

    /// Adds variables to the containers that start from now on, in place of those added before.
    #[allow(dead_code, reason = "for examples/soak")]
    pub(crate) fn set_environment(&self, variables: &[(&str, String)]) {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        *self.node.environment.lock().unwrap_or_else(PoisonError::into_inner) = variables.collect();
    }

    /// Sends every new connection to a Service to a closed port, or no longer.
    #[allow(dead_code, reason = "the soak does not block the way")]
    pub(crate) fn block_way(&self, is_blocked: bool) {
        self.node.is_blocked.store(is_blocked, Ordering::Relaxed);
    }

    /// The connections to Services.
    pub(crate) fn connections(&self) -> &Connections {
        &self.connections
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        // Dropping the tasks kills their processes.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(END);
        }
    }
}

impl Node {
    async fn run(self: Arc<Self>) {
        let mut known = HashSet::new();
        loop {
            for pod in self.pods.state() {
                if known.insert(pod.uid()) {
                    tokio::spawn(lifecycle::live(self.clone(), pod));
                }
            }
            sleep(TICK).await;
        }
    }

    /// Where a connection to an address of a Service goes: to the ready pods in turn.
    fn route(&self, address: SocketAddr) -> Option<SocketAddr> {
        if self.is_blocked.load(Ordering::Relaxed) {
            return Some(SocketAddr::from((Ipv4Addr::LOCALHOST, CLOSED_PORT)));
        }
        let ip = address.ip().to_string();
        let cluster_ip = |service: &Service| service.spec.as_ref()?.cluster_ip.clone();
        let service = self.services.find(|service| cluster_ip(service).as_deref() == Some(&ip))?;
        let spec = service.spec.as_ref()?;
        let port = spec.ports.iter().flatten().find(|port| port.port == i32::from(address.port()))?;
        let target = port.target_port.clone().unwrap_or(IntOrString::Int(port.port));
        let selector = spec.selector.as_ref()?;
        let replicas = self.replicas();
        let ready: Vec<_> = replicas
            .values()
            .filter(|replica| replica.ready && replica.leaves.is_none_or(|at| Instant::now() < at))
            .filter(|replica| selector.iter().all(|(key, value)| replica.labels.get(key) == Some(value)))
            .filter_map(|replica| replica.ports.address(&target))
            .collect();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        ready.get(turn.checked_rem(ready.len())?).copied()
    }

    fn replicas(&self) -> MutexGuard<'_, BTreeMap<String, Replica>> {
        self.replicas.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// The pod as it is now, if it has the same uid.
    fn pod(&self, seen: &Pod) -> Option<Arc<Pod>> {
        let found = self.pods.find(|pod| pod.metadata.name == seen.metadata.name)?;
        (found.uid() == seen.uid()).then_some(found)
    }
}

/// A copy of the namespace's objects of one kind, kept by a watch.
fn follow<K>(client: &Client, namespace: &str) -> Store<K>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    K: Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let (store, writer) = reflector::store();
    let api = Api::<K>::namespaced(client.clone(), namespace);
    let events = reflector(writer, watcher(api, watcher::Config::default()).default_backoff());
    tokio::spawn(events.for_each(|_| async {}));
    store
}

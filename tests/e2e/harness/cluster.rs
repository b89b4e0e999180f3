//! A plane with a node: installed pods run, and the API server reaches them through their Service.

use std::fs;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use crate::harness::balancer::{Connections, write_egress};
use crate::harness::clients::Kubectl;
use crate::harness::eventually::eventually;
use crate::harness::kubelet::image::Image;
use crate::harness::kubelet::{Kubelet, Replica};
use crate::harness::plane::Plane;
use crate::harness::webhook::OPEN_UNTIL_CALLED;

/// Where Interlock is installed.
pub(crate) const NAMESPACE: &str = "interlock-system";

/// The chart of Interlock.
pub(crate) const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/manifests/chart");

/// The chart has no default registry. Pods run the program under test, whatever their image.
pub(crate) const IMAGE: &str = "--set=image.registry=registry.invalid";

/// How long replicas may take to get ready on a busy machine.
const READY: Duration = Duration::from_secs(60);

/// How many lines of a replica's log are shown.
const LAST: usize = 20;

/// Fields are dropped in this order: pods end before the API server that they call, and the API server before its
/// egress file is removed.
pub(crate) struct Cluster {
    kubelet: Kubelet,
    plane: Plane,
    _egress: TempDir,
}

impl Cluster {
    /// Nothing is installed yet.
    #[track_caller]
    pub(crate) fn start(name: &str) -> Self {
        Self::start_with(name, &[])
    }

    /// The same with further flags for `controlplane up`.
    #[track_caller]
    pub(crate) fn start_with(name: &str, more: &[String]) -> Self {
        Self::start_as(name, more, None)
    }

    /// The same with containers that run an unpacked image.
    #[allow(dead_code, reason = "the soak runs itself")]
    #[track_caller]
    pub(crate) fn of_image(name: &str, image: Image) -> Self {
        Self::start_as(name, &[], Some(image))
    }

    #[track_caller]
    fn start_as(name: &str, more: &[String], image: Option<Image>) -> Self {
        let egress = tempfile::tempdir().expect("a temporary directory");
        let (file, socket) = (egress.path().join("egress.json"), egress.path().join("proxy"));
        let proxy = UnixListener::bind(&socket).expect("a new socket");
        write_egress(&file, &socket).expect("a writable directory");
        let flags = [
            format!("--apiserver-flag=--egress-selector-config-file={}", file.display()),
            // Otherwise the API server waits for its watches to close before it ends.
            "--apiserver-flag=--shutdown-watch-termination-grace-period=2s".to_owned(),
            format!("--leave-pods-of={NAMESPACE}"),
        ];
        let plane = Plane::with_flags(name, &[&flags[..], more].concat());
        let kubelet = Kubelet::start(&plane, NAMESPACE, proxy, image).unwrap_or_else(|error| panic!("{error}"));
        Self { kubelet, plane, _egress: egress }
    }

    pub(crate) fn plane(&self) -> &Plane {
        &self.plane
    }

    /// kubectl as admin in Interlock's namespace.
    pub(crate) fn kubectl(&self) -> Kubectl {
        Kubectl::new(&self.plane.admin(), Some(NAMESPACE), self.plane.dir())
    }

    /// The pods whose containers run.
    pub(crate) fn replicas(&self) -> Vec<Replica> {
        self.kubelet.replicas()
    }

    /// Waits until exactly this many replicas run and are ready.
    #[track_caller]
    pub(crate) fn await_ready(&self, count: usize) -> Vec<Replica> {
        eventually(READY, &format!("{count} replicas are ready"), || {
            let replicas = self.replicas();
            let ready = replicas.iter().filter(|replica| replica.ready).count();
            if ready == count && replicas.len() == count { Ok(replicas) } else { Err(self.condition()) }
        })
    }

    /// Waits until the entries fail closed that an installation leaves open.
    #[track_caller]
    pub(crate) fn await_closed(&self) {
        eventually(READY, "the entries that waited for a review fail closed", || {
            let open = self.open_entries();
            if open.is_empty() { Ok(()) } else { Err(format!("{open:?} fail open\n{}", self.condition())) }
        });
    }

    /// The entries that fail open and wait for a review.
    #[track_caller]
    pub(crate) fn open_entries(&self) -> Vec<String> {
        let configuration = self.kubectl().get(&["validatingwebhookconfiguration", "interlock"]);
        let entries = configuration["webhooks"].as_array().expect("entries");
        let policy =
            |name: &str| &entries.iter().find(|entry| entry["name"] == name).expect("it exists")["failurePolicy"];
        let waiting = &configuration["metadata"]["annotations"][OPEN_UNTIL_CALLED];
        let waiting = waiting.as_str().into_iter().flat_map(|names| names.split(','));
        waiting.filter(|name| policy(name) != "Fail").map(str::to_owned).collect()
    }

    /// Sends every connection to the Service to a closed port, or no longer.
    #[allow(dead_code, reason = "the soak does not block the way")]
    pub(crate) fn block_way(&self, is_blocked: bool) {
        self.kubelet.block_way(is_blocked);
    }

    /// The pods' status in the API server, and their logs.
    fn condition(&self) -> String {
        let mut condition = self.kubectl().run(&["get", "pods", "-o", "wide"]).to_string();
        for replica in self.replicas() {
            let log = fs::read_to_string(&replica.log).unwrap_or_default();
            let from = log.lines().count().saturating_sub(LAST);
            condition += &format!("\n{} logged last:\n", replica.pod);
            condition.extend(log.lines().skip(from).flat_map(|line| [line, "\n"]));
        }
        condition
    }

    /// The connections of the API server to the Service.
    pub(crate) fn connections(&self) -> &Connections {
        self.kubelet.connections()
    }

    /// Adds variables to the containers that start from now on, in place of those added before.
    #[allow(dead_code, reason = "for examples/soak")]
    pub(crate) fn set_environment(&self, variables: &[(&str, String)]) {
        self.kubelet.set_environment(variables);
    }

    /// Replaces one replica after the other, as for a new version. Returns when all are replaced.
    #[track_caller]
    pub(crate) fn rolling_restart(&self) {
        let (kubectl, count) = (self.kubectl(), self.replicas().len());
        kubectl.ok(&["rollout", "restart", "deployment/interlock"]);
        kubectl.ok(&["rollout", "status", "deployment/interlock", "--timeout=100s"]);
        self.await_ready(count);
    }

    /// Changes `cluster.yaml` in the replicas' ConfigMap. Their volumes follow a moment later.
    #[track_caller]
    pub(crate) fn edit_policies(&self, yaml: &str) {
        let patch = json!({"data": {"cluster.yaml": yaml}}).to_string();
        self.kubectl().ok(&["patch", "configmap", "interlock-policies", "--type=merge", "-p", &patch]);
    }

    /// Stops the API server and starts it again; returns when it is ready.
    #[track_caller]
    pub(crate) fn restart_api_server(&self) {
        self.plane.restart_api_server();
    }

    /// Like `restart_api_server`, but with SIGKILL.
    #[track_caller]
    pub(crate) fn kill_api_server(&self) {
        self.plane.kill_api_server();
    }
}

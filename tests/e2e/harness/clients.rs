//! helm and kubectl, each under an identity.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::harness::assets::assets;
use crate::harness::kubectl_server;
use crate::harness::process::{Output, Running, run};

/// A client that takes longer hangs.
const DEADLINE: Duration = Duration::from_secs(120);

/// Commands of kubectl that start no program and never end their process.
const NEED_NO_PROCESS: [&str; 12] =
    ["annotate", "apply", "create", "delete", "get", "label", "patch", "replace", "rollout", "scale", "set", "wait"];

/// Who a client is to the API server.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    /// As in the webhook's `userInfo.username`.
    user: String,
    kubeconfig: PathBuf,
}

impl Identity {
    pub(crate) fn new(user: &str, kubeconfig: &Path) -> Self {
        Self { user: user.to_owned(), kubeconfig: kubeconfig.to_owned() }
    }

    pub(crate) fn user(&self) -> &str {
        &self.user
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum HelmVersion {
    V3,
    V4,
}

impl HelmVersion {
    pub(crate) const ALL: [Self; 2] = [Self::V3, Self::V4];

    /// The flag that undoes a failed upgrade or install. helm 4 renamed it.
    pub(crate) fn rollback_on_failure(self) -> &'static str {
        match self {
            Self::V3 => "--atomic",
            Self::V4 => "--rollback-on-failure",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Driver {
    Secret,
    ConfigMap,
}

impl Driver {
    pub(crate) const ALL: [Self; 2] = [Self::Secret, Self::ConfigMap];

    /// Both as the value of `HELM_DRIVER` and as the resource for kubectl.
    pub(crate) fn resource(self) -> &'static str {
        match self {
            Self::Secret => "secret",
            Self::ConfigMap => "configmap",
        }
    }
}

/// helm under an identity, in a namespace.
#[derive(Debug, Clone)]
pub(crate) struct Helm {
    version: HelmVersion,
    driver: Driver,
    who: Identity,
    namespace: String,
    /// Caches and configuration of the plane's clients.
    home: PathBuf,
}

impl Helm {
    pub(crate) fn new(version: HelmVersion, driver: Driver, who: &Identity, namespace: &str, home: &Path) -> Self {
        Self { version, driver, who: who.clone(), namespace: namespace.to_owned(), home: home.join("helm") }
    }

    pub(crate) fn version(&self) -> HelmVersion {
        self.version
    }

    pub(crate) fn driver(&self) -> Driver {
        self.driver
    }

    /// The same helm under another identity.
    pub(crate) fn by(&self, who: &Identity) -> Self {
        Self { who: who.clone(), ..self.clone() }
    }

    /// Runs `helm ARGS -n NAMESPACE` to its end, successful or not.
    #[track_caller]
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        run(self.command(args), DEADLINE)
    }

    #[track_caller]
    pub(crate) fn ok(&self, args: &[&str]) -> Output {
        self.run(args).expect_success()
    }

    /// Expects a failure with all of these texts on standard error.
    #[track_caller]
    pub(crate) fn fails(&self, args: &[&str], texts: &[&str]) -> Output {
        self.run(args).expect_failure(texts)
    }

    #[track_caller]
    pub(crate) fn spawn(&self, args: &[&str]) -> Running {
        Running::spawn(self.command(args))
    }

    /// The command, for a test that changes it before it runs.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let assets = assets();
        let mut command = Command::new(match self.version {
            HelmVersion::V3 => &assets.helm3,
            HelmVersion::V4 => &assets.helm4,
        });
        command.args(args).args(["-n", &self.namespace]);
        // That check against the API server's schemas takes most of the CPU time of helm, and writes nothing.
        if args.first().is_some_and(|verb| ["install", "upgrade"].contains(verb)) {
            command.arg("--disable-openapi-validation");
        }
        client_environment(&mut command, &self.who, &self.home);
        // helm links kubectl's translations, and reads those of the language at each start. These are the fewest, and helm prints none.
        command.env("LC_ALL", "zh_TW.UTF-8");
        command.env("HELM_DRIVER", self.driver.resource());
        for (variable, dir) in
            [("HELM_CACHE_HOME", "cache"), ("HELM_CONFIG_HOME", "config"), ("HELM_DATA_HOME", "data")]
        {
            command.env(variable, self.home.join(dir));
        }
        command
    }
}

/// kubectl under an identity, in a namespace or none.
#[derive(Debug, Clone)]
pub(crate) struct Kubectl {
    who: Identity,
    namespace: Option<String>,
    home: PathBuf,
}

impl Kubectl {
    pub(crate) fn new(who: &Identity, namespace: Option<&str>, home: &Path) -> Self {
        Self { who: who.clone(), namespace: namespace.map(str::to_owned), home: home.join("kubectl") }
    }

    #[track_caller]
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        let assets = assets();
        if !assets.kubectl_serves || !args.first().is_some_and(|verb| NEED_NO_PROCESS.contains(verb)) {
            return run(self.command(args), DEADLINE);
        }
        let (kubeconfig, cache) = (self.who.kubeconfig(), self.home.join("discovery"));
        let request = kubectl_server::Request { kubeconfig, cache: &cache, arguments: &self.arguments(args) };
        kubectl_server::run(&assets.kubectl, &request, DEADLINE)
    }

    #[track_caller]
    pub(crate) fn ok(&self, args: &[&str]) -> Output {
        self.run(args).expect_success()
    }

    #[track_caller]
    pub(crate) fn fails(&self, args: &[&str], texts: &[&str]) -> Output {
        self.run(args).expect_failure(texts)
    }

    /// `kubectl get ARGS -o json`.
    #[track_caller]
    pub(crate) fn get(&self, args: &[&str]) -> Value {
        let mut all = vec!["get", "-o", "json"];
        all.extend(args);
        self.ok(&all).json()
    }

    /// Like `get`, but `None` if the object does not exist.
    #[track_caller]
    pub(crate) fn find(&self, args: &[&str]) -> Option<Value> {
        let mut all = vec!["get", "-o", "json"];
        all.extend(args);
        let output = self.run(&all);
        if output.stderr.contains("(NotFound)") { None } else { Some(output.expect_success().json()) }
    }

    /// `kubectl apply` with this object.
    #[track_caller]
    pub(crate) fn apply(&self, object: &Value, args: &[&str]) -> Output {
        self.with_file("apply", object, args)
    }

    /// `kubectl VERB -f FILE ARGS` with this object in the file.
    #[track_caller]
    pub(crate) fn with_file(&self, verb: &str, object: &Value, args: &[&str]) -> Output {
        let mut file = tempfile::Builder::new().suffix(".json").tempfile().expect("a temporary file");
        serde_json::to_writer(&mut file, object).expect("a temporary file is writable");
        let path = file.path().to_string_lossy().into_owned();
        let mut all = vec![verb, "-f", &path];
        all.extend(args);
        self.run(&all)
    }

    /// A process of its own, which a test may change before it runs, interrupt or kill.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&assets().kubectl);
        command.args(self.arguments(args));
        client_environment(&mut command, &self.who, &self.home);
        command
    }

    fn arguments<'a>(&'a self, args: &[&'a str]) -> Vec<&'a str> {
        let namespace = self.namespace.as_deref().filter(|_| !args.contains(&"-n"));
        args.iter().copied().chain(namespace.into_iter().flat_map(|namespace| ["-n", namespace])).collect()
    }
}

/// Hides the developer's own configuration from a client.
pub(crate) fn client_environment(command: &mut Command, who: &Identity, home: &Path) {
    hide_configuration(command, home);
    command.env("KUBECONFIG", &who.kubeconfig);
    // All clients of the plane share one discovery cache.
    command.env("KUBECACHEDIR", home.join("discovery"));
}

/// Hides the developer's own configuration from a program in Go.
pub(crate) fn hide_configuration(command: &mut Command, home: &Path) {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("HELM_") || text.starts_with("KUBE") {
            command.env_remove(&name);
        }
    }
    command.env("HOME", home);
    // Clients are short-lived: garbage collection would take a fifth of their CPU time.
    command.env("GOGC", "800");
}

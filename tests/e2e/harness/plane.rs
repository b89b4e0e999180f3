//! A control plane that runs as long as the test process, with or without the webhook.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Value;

use crate::harness::assets::{interlock, prepared, progress, target_dir};
use crate::harness::clients::{Identity, Kubectl, client_environment};
use crate::harness::eventually::eventually;
use crate::harness::profile::{Reason, took};
use crate::harness::webhook::Webhook;

/// How long the API server may take until it serves a new definition.
const ESTABLISHED: Duration = Duration::from_secs(60);

/// Set to keep a plane's directory with its logs after the tests.
const KEEP: &str = "INTERLOCK_E2E_KEEP";

/// What `controlplane up` prints when it is ready.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ready {
    server: String,
    ca: PathBuf,
    kubeconfigs: BTreeMap<String, PathBuf>,
    audit_log: Option<PathBuf>,
}

/// A running control plane. It ends when this value is dropped, or with the test process: its standard input closes.
pub(crate) struct Plane {
    ready: Ready,
    webhook: Option<Webhook>,
    /// Dropped after the webhook, so that the webhook ends first.
    supervisor: Supervisor,
    /// Files of the clients, the webhook and the control plane. Dropped last, when no process writes there.
    dir: Dir,
}

struct Supervisor {
    child: Child,
    /// Commands go in, confirmations come out. `None` once it is to end.
    pipes: Mutex<Option<(ChildStdin, BufReader<ChildStdout>)>>,
}

impl Supervisor {
    /// Runs a command of the control plane.
    fn obey(&self, command: &str) -> Result<(), String> {
        let mut pipes = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
        let (stdin, stdout) = pipes.as_mut().ok_or("the control plane is about to end")?;
        let mut said = String::new();
        writeln!(stdin, "{command}")
            .and_then(|()| stdout.read_line(&mut said))
            .map_err(|e| format!("{command}: {e}"))?;
        if said.trim_end() == command {
            Ok(())
        } else {
            Err(format!("{command}: the control plane said {said:?}; its reason is on standard error above"))
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        *self.pipes.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let _ = self.child.wait();
    }
}

/// A plane's directory, removed with the plane. If it is to be kept or a test failed, a later run removes it.
struct Dir(PathBuf);

impl Drop for Dir {
    fn drop(&mut self) {
        if !keep() && !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

impl Plane {
    /// The plane of most tests: the webhook registered, with the policies that ship in `policies/`.
    #[track_caller]
    pub(crate) fn shared() -> &'static Self {
        static PLANE: OnceLock<Result<Plane, String>> = OnceLock::new();
        Self::once(&PLANE, || Self::shipped("shared"))
    }

    /// The same setup as a plane of its own, with a failure as a value.
    pub(crate) fn shipped(name: &str) -> Result<Self, String> {
        let policies = Path::new(env!("CARGO_MANIFEST_DIR")).join("policies");
        Self::boot(name, |plane| Webhook::start(plane, &policies, &[]).map(Some))
    }

    /// A plane whose registration tests may break, one after the other. Each test restores it.
    #[track_caller]
    pub(crate) fn breakable() -> MutexGuard<'static, Self> {
        static PLANE: OnceLock<Mutex<Plane>> = OnceLock::new();
        let plane =
            PLANE.get_or_init(|| Mutex::new(Self::shipped("failure").unwrap_or_else(|error| panic!("{error}"))));
        plane.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A plane without the webhook, to see what clients do without it. Its API server writes an audit log.
    #[track_caller]
    pub(crate) fn without_webhook() -> &'static Self {
        static PLANE: OnceLock<Result<Plane, String>> = OnceLock::new();
        Self::once(&PLANE, || Self::boot_with(&["--audit"], "bare", |_| Ok(None)))
    }

    /// A plane of the test's own with the webhook, which reads this as its `cluster.yaml`. Its API server writes an audit log.
    #[track_caller]
    pub(crate) fn audited(policy: &str) -> Self {
        Self::audited_with(policy, &[])
    }

    /// The same, with further arguments of the webhook.
    #[track_caller]
    pub(crate) fn audited_with(policy: &str, args: &'static [&'static str]) -> Self {
        let plane = Self::boot_with(&["--audit"], "audited", |plane| Self::own_webhook(plane, policy, args).map(Some));
        plane.unwrap_or_else(|error| panic!("{error}"))
    }

    /// A plane of the test's own without the webhook.
    #[track_caller]
    pub(crate) fn alone() -> Self {
        Self::boot("alone", |_| Ok(None)).unwrap_or_else(|error| panic!("{error}"))
    }

    /// A plane of the test's own without the webhook, with further flags for its API server.
    #[track_caller]
    pub(crate) fn with_api_server(name: &str, flags: &[String]) -> Self {
        let flags: Vec<_> = flags.iter().map(|flag| format!("--apiserver-flag={flag}")).collect();
        Self::with_flags(name, &flags)
    }

    /// A plane of the test's own without the webhook, with flags for `controlplane up`.
    #[track_caller]
    pub(crate) fn with_flags(name: &str, flags: &[String]) -> Self {
        let flags: Vec<_> = flags.iter().map(String::as_str).collect();
        Self::boot_with(&flags, name, |_| Ok(None)).unwrap_or_else(|error| panic!("{error}"))
    }

    /// A plane of the test's own, whose webhook reads this as its `cluster.yaml`.
    #[track_caller]
    pub(crate) fn start(policy: &str) -> Self {
        Self::start_with(policy, &[])
    }

    /// The same with further arguments for `interlock serve`.
    #[track_caller]
    pub(crate) fn start_with(policy: &str, arguments: &'static [&'static str]) -> Self {
        let plane = Self::boot("own", |plane| Self::own_webhook(plane, policy, arguments).map(Some));
        plane.unwrap_or_else(|error| panic!("{error}"))
    }

    fn own_webhook(plane: &Self, policy: &str, arguments: &'static [&'static str]) -> Result<Webhook, String> {
        let policies = plane.dir().join("policies");
        fs::create_dir_all(&policies)
            .and_then(|()| fs::write(policies.join("cluster.yaml"), policy))
            .map_err(|e| format!("cannot write {}: {e}", policies.display()))?;
        Webhook::start(plane, &policies, arguments)
    }

    #[track_caller]
    fn once(
        cell: &'static OnceLock<Result<Self, String>>,
        boot: impl FnOnce() -> Result<Self, String>,
    ) -> &'static Self {
        cell.get_or_init(boot).as_ref().unwrap_or_else(|error| panic!("{error}"))
    }

    fn boot(name: &str, webhook: impl FnOnce(&Self) -> Result<Option<Webhook>, String>) -> Result<Self, String> {
        Self::boot_with(&[], name, webhook)
    }

    fn boot_with(
        flags: &[&str],
        name: &str,
        webhook: impl FnOnce(&Self) -> Result<Option<Webhook>, String>,
    ) -> Result<Self, String> {
        let assets = prepared()?;
        let dir = Dir(plane_dir(name)?);
        let start = Instant::now();
        let mut up = Command::new(&assets.controlplane);
        up.arg("up").args(flags);
        if !keep() {
            up.arg("--temporary");
        }
        if let Some(apiserver) = &assets.kube_apiserver {
            up.arg("--kube-apiserver").arg(apiserver);
        }
        // Planes share few cores, and memory is cheaper than frequent garbage collection.
        up.env("GOGC", "300");
        // Ctrl-C on a terminal must reach only this process. The control plane shuts down when its input closes.
        up.process_group(0);
        up.arg(dir.0.join("controlplane")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = up.spawn().map_err(|e| format!("cannot start {}: {e}", assets.controlplane.display()))?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the control plane has no pipes".to_owned());
        };
        let mut stdout = BufReader::new(stdout);
        let mut line = String::new();
        let _ = stdout.read_line(&mut line);
        let supervisor = Supervisor { child, pipes: Mutex::new(Some((stdin, stdout))) };
        let ready = serde_json::from_str(&line).map_err(|e| {
            format!("the control plane did not start ({e}; it printed {line:?}); its reason is on standard error above")
        })?;
        let mut plane = Self { ready, webhook: None, supervisor, dir };
        plane.let_people_in()?;
        plane.webhook = webhook(&plane)?;
        took(|| Reason::ControlPlane, start.elapsed());
        progress(&format!("control plane `{name}` ready in {:.1?}", start.elapsed()));
        Ok(plane)
    }

    /// RBAC allows everything to everybody: admission is under test.
    fn let_people_in(&self) -> Result<(), String> {
        let output = self.kubectl(&self.admin()).run(&[
            "create",
            "clusterrolebinding",
            "people",
            "--clusterrole=cluster-admin",
            "--group=devs",
            "--group=ci",
        ]);
        if output.success() { Ok(()) } else { Err(format!("people cannot be given a role\n{output}")) }
    }

    /// `alice` and `bob` (group devs), `ci-bot` (group ci), `admin` (system:masters).
    #[track_caller]
    pub(crate) fn person(&self, name: &str) -> Identity {
        match self.ready.kubeconfigs.get(name) {
            Some(kubeconfig) => Identity::new(name, kubeconfig),
            None => panic!("nobody is called {name:?}, only {:?}", self.ready.kubeconfigs.keys()),
        }
    }

    pub(crate) fn admin(&self) -> Identity {
        self.person("admin")
    }

    /// A user of any name, with every right and in further groups. The administrator impersonates it.
    #[track_caller]
    pub(crate) fn named(&self, user: &str, groups: &[&str]) -> Identity {
        let admin = fs::read(self.admin().kubeconfig()).expect("the plane wrote it");
        let mut content: Value = serde_json::from_slice(&admin).expect("the plane writes JSON");
        content["users"][0]["user"]["as"] = user.into();
        // The group devs may do everything.
        content["users"][0]["user"]["as-groups"] = [&["devs"], groups].concat().into();
        let file = tempfile::Builder::new().prefix("named").suffix(".kubeconfig").tempfile_in(self.dir());
        let (mut file, path) = file.expect("a writable directory").keep().expect("a writable directory");
        file.write_all(content.to_string().as_bytes()).expect("a writable file");
        Identity::new(user, &path)
    }

    /// A service account with a real token and every right. Created if it does not exist.
    #[track_caller]
    pub(crate) fn service_account(&self, namespace: &str, name: &str) -> Identity {
        let admin = self.kubectl(&self.admin());
        let role = format!("{namespace}-{name}");
        let account = format!("--serviceaccount={namespace}:{name}");
        let bound = admin.run(&["create", "clusterrolebinding", &role, "--clusterrole=cluster-admin", &account]);
        assert!(bound.success() || bound.stderr.contains("already exists"), "expected a role binding\n{bound}");
        self.account(namespace, name).unwrap_or_else(|error| panic!("{error}"))
    }

    /// A service account with a real token and only the rights that it was granted. Created if it does not exist.
    pub(crate) fn account(&self, namespace: &str, name: &str) -> Result<Identity, String> {
        let admin = self.kubectl(&self.admin());
        let made = admin.run(&["create", "serviceaccount", name, "-n", namespace]);
        if !made.success() && !made.stderr.contains("already exists") {
            return Err(format!("expected a service account\n{made}"));
        }
        self.with_token((namespace, name), name, &["--duration=6h"])
    }

    /// A service account with a token that is bound to a pod, like those of its containers.
    #[track_caller]
    pub(crate) fn account_in_pod(&self, namespace: &str, name: &str, pod: &str) -> Identity {
        let bound = format!("--bound-object-name={pod}");
        let made = self.with_token((namespace, name), pod, &["--bound-object-kind=Pod", &bound]);
        made.unwrap_or_else(|error| panic!("{error}"))
    }

    fn with_token(&self, (namespace, name): (&str, &str), file: &str, flags: &[&str]) -> Result<Identity, String> {
        let admin = self.kubectl(&self.admin());
        let create = [&["create", "token", name, "-n", namespace], flags].concat();
        let token = admin.run(&create).into_result()?.stdout;
        let user = format!("system:serviceaccount:{namespace}:{name}");
        let kubeconfig = self.dir().join(format!("{namespace}.{file}.kubeconfig"));
        let content = serde_json::json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "controlplane", "cluster": {"server": self.ready.server, "certificate-authority": self.ready.ca}}],
            "users": [{"name": user, "user": {"token": token.trim()}}],
            "contexts": [{"name": user, "context": {"cluster": "controlplane", "user": user}}],
            "current-context": user,
        });
        // Written atomically: other tests may read the same account's file at the same time.
        let whole = || {
            let mut file = tempfile::NamedTempFile::new_in(self.dir())?;
            file.write_all(content.to_string().as_bytes())?;
            file.persist(&kubeconfig).map_err(|error| error.error)
        };
        whole().map_err(|e: std::io::Error| format!("cannot write {}: {e}", kubeconfig.display()))?;
        Ok(Identity::new(&user, &kubeconfig))
    }

    pub(crate) fn kubectl(&self, who: &Identity) -> Kubectl {
        Kubectl::new(who, None, self.dir())
    }

    /// `interlock ARGS` under an identity.
    pub(crate) fn interlock(&self, who: &Identity, args: &[&str]) -> Command {
        let mut command = Command::new(interlock().unwrap_or_else(|error| panic!("{error}")));
        command.args(args);
        client_environment(&mut command, who, self.dir());
        command
    }

    /// Installs the definitions in a file of the repository, and waits until they are served.
    #[track_caller]
    pub(crate) fn define(&self, file: &str) {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        let (admin, file) = (self.kubectl(&self.admin()), file.to_str().expect("the repository has a plain path"));
        admin.ok(&["apply", "-f", file]);
        // kubectl takes a definition that has no conditions yet for an error.
        eventually(ESTABLISHED, &format!("the definitions in {file} are established"), || {
            admin.run(&["wait", "--for=condition=Established", "--timeout=60s", "-f", file]).into_result()
        });
    }

    /// The webhook in front of this plane.
    #[track_caller]
    pub(crate) fn webhook(&self) -> &Webhook {
        self.webhook.as_ref().expect("this plane was started without the webhook")
    }

    /// The directory for the files of this plane's clients and webhook.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir.0
    }

    /// Every write, with its object.
    #[track_caller]
    pub(crate) fn audit_log(&self) -> &Path {
        self.ready.audit_log.as_deref().expect("this plane was started without an audit log")
    }

    pub(crate) fn ca(&self) -> &Path {
        &self.ready.ca
    }

    /// The API server's URL.
    pub(crate) fn server(&self) -> &str {
        &self.ready.server
    }

    /// Stops the API server, which finishes its requests, and restarts it on its port. Returns when it is ready.
    #[track_caller]
    pub(crate) fn restart_api_server(&self) {
        self.supervisor.obey("restart kube-apiserver").unwrap_or_else(|error| panic!("{error}"));
    }

    /// Like `restart_api_server`, but with SIGKILL.
    #[track_caller]
    pub(crate) fn kill_api_server(&self) {
        self.supervisor.obey("kill kube-apiserver").unwrap_or_else(|error| panic!("{error}"));
    }
}

fn keep() -> bool {
    std::env::var_os(KEEP).is_some()
}

/// Creates the directory `target/tmp/planes/PID-N-NAME`, and removes those of processes that have ended.
fn plane_dir(name: &str) -> Result<PathBuf, String> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let planes = target_dir().join("tmp/planes");
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    if count == 0 && !keep() {
        for entry in fs::read_dir(&planes).into_iter().flatten().flatten() {
            let file_name = entry.file_name();
            let pid = file_name.to_string_lossy().split('-').next().unwrap_or_default().to_owned();
            if !Path::new("/proc").join(pid).exists() {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
    let dir = planes.join(format!("{}-{count}-{name}", std::process::id()));
    fs::create_dir_all(&dir).map_err(|e| format!("cannot make {}: {e}", dir.display()))?;
    Ok(dir)
}

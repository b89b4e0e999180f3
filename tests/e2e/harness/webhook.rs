//! The built `interlock` in front of a plane: started, registered from `manifests/`, stopped and restarted.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::harness::assets::interlock;
use crate::harness::clients::{Driver, Identity};
use crate::harness::eventually::{eventually, within};
use crate::harness::plane::Plane;
use crate::harness::process::{leash, signal};
use crate::harness::profile::{Reason, took};
use crate::harness::records::encode;

/// An address where nobody listens: port 9 is reserved for the discard protocol.
pub(crate) const NOWHERE: &str = "https://127.0.0.1:9";

/// The registration of the validating half.
pub(crate) const VALIDATING: &str = "validating-webhooks.yaml";
/// The registration of the mutating half.
pub(crate) const MUTATING: &str = "mutating-webhooks.yaml";
const REGISTRATIONS: [&str; 2] = [VALIDATING, MUTATING];
/// The entries that are called for one dry run of a record's CREATE.
const PROBED: [&str; 2] = ["stamp.records.interlock.dev", "create-delete.records.interlock.dev"];
/// How long `serve` may take to print its ready line.
const READY: Duration = Duration::from_secs(20);
/// How long its caches and its certificate may take on a busy machine.
const SYNCED: Duration = Duration::from_secs(90);
/// How long `serve` may take to end after SIGTERM, including its drain.
const END: Duration = Duration::from_secs(40);

/// The line that `interlock serve` prints when it is ready.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Addresses {
    /// Where reviews go, as `127.0.0.1:PORT`.
    pub(crate) listen: String,
    /// Where `/livez`, `/readyz` and `/metrics` are.
    pub(crate) admin: String,
    /// The CA of the serving certificate. `None` if Interlock manages its certificates.
    pub(crate) ca: Option<PathBuf>,
}

/// One `interlock serve` with its registration.
pub(crate) struct Webhook {
    kubeconfig: PathBuf,
    /// Development certificates. `None` if Interlock manages its certificates.
    certs: Option<PathBuf>,
    policies: PathBuf,
    log: PathBuf,
    /// Further arguments.
    arguments: &'static [&'static str],
    /// Variables of the next start.
    environment: Mutex<Vec<(&'static str, String)>>,
    addresses: Addresses,
    /// `None` while it is stopped.
    process: Mutex<Option<Process>>,
}

struct Process {
    /// The shell that holds the server, see [`leash`].
    leash: Child,
    /// The server ends when this closes.
    _stdin: ChildStdin,
    /// Kept open: a server that writes to a closed pipe dies.
    _stdout: BufReader<ChildStdout>,
    pid: u32,
}

impl Webhook {
    /// Starts the server with the policies of a directory and registers it.
    pub(crate) fn start(plane: &Plane, policies: &Path, arguments: &'static [&'static str]) -> Result<Self, String> {
        let webhook = Self::replica(plane, policies, "interlock", arguments)?;
        let ca = webhook.addresses.ca.as_deref().ok_or("the webhook has no development CA")?;
        register(plane, &format!("https://{}", webhook.addresses.listen), ca)?;
        wait_until_called(plane, || webhook.log())?;
        Ok(webhook)
    }

    /// Starts a server that manages its own certificates. It is not registered.
    pub(crate) fn managed(
        plane: &Plane,
        policies: &Path,
        name: &str,
        arguments: &'static [&'static str],
    ) -> Result<Self, String> {
        Self::unregistered(plane, policies, name, None, arguments)
    }

    /// Starts a server that is not registered.
    pub(crate) fn replica(
        plane: &Plane,
        policies: &Path,
        name: &str,
        arguments: &'static [&'static str],
    ) -> Result<Self, String> {
        let certs = plane.dir().join(name).join("certs");
        Self::unregistered(plane, policies, name, Some(certs), arguments)
    }

    /// Starts a server under a given account. It is not registered.
    pub(crate) fn of(
        plane: &Plane,
        account: &Identity,
        policies: &Path,
        name: &str,
        arguments: &'static [&'static str],
    ) -> Result<Self, String> {
        let certs = plane.dir().join(name).join("certs");
        Self::under(plane, account, policies, name, Some(certs), arguments)
    }

    /// A server that is not registered, and cannot reach the API server.
    pub(crate) fn cut_off(plane: &Plane) -> Result<Self, String> {
        let kubeconfig = plane.dir().join("nowhere.kubeconfig");
        let nowhere = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "nowhere",
            "clusters": [{"name": "nowhere", "cluster": {"server": NOWHERE}}], "users": [],
            "contexts": [{"name": "nowhere", "context": {"cluster": "nowhere", "user": ""}}],
        });
        fs::write(&kubeconfig, nowhere.to_string())
            .map_err(|e| format!("cannot write {}: {e}", kubeconfig.display()))?;
        Self::of(plane, &Identity::new("nobody", &kubeconfig), plane.webhook().policies(), "cut-off", &[])
    }

    /// Registers it with the webhook configurations among these objects.
    pub(crate) fn register_by(&self, plane: &Plane, objects: &[Value]) -> Result<(), String> {
        let ca = self.addresses.ca.as_deref().ok_or("the webhook has no development CA")?;
        let ca = fs::read(ca).map_err(|e| format!("cannot read {}: {e}", ca.display()))?;
        let kinds = ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"];
        for registration in objects.iter().filter(|it| kinds.iter().any(|kind| it["kind"] == *kind)) {
            register_one(plane, registration.clone(), &|_| format!("https://{}", self.addresses.listen), Some(&ca))?;
        }
        Ok(())
    }

    fn unregistered(
        plane: &Plane,
        policies: &Path,
        name: &str,
        certs: Option<PathBuf>,
        arguments: &'static [&'static str],
    ) -> Result<Self, String> {
        Self::under(plane, &rights(plane)?, policies, name, certs, arguments)
    }

    fn under(
        plane: &Plane,
        account: &Identity,
        policies: &Path,
        name: &str,
        certs: Option<PathBuf>,
        arguments: &'static [&'static str],
    ) -> Result<Self, String> {
        let dir = plane.dir().join(name);
        fs::create_dir_all(&dir).map_err(|e| format!("cannot make {}: {e}", dir.display()))?;
        let kubeconfig = account.kubeconfig().to_owned();
        let (log, start) = (dir.join("log"), Instant::now());
        let (process, addresses) =
            launch(&kubeconfig, certs.as_deref(), policies, &log, ["127.0.0.1:0", "127.0.0.1:0"], arguments, &[])?;
        took(|| Reason::Webhook, start.elapsed());
        Ok(Self {
            kubeconfig,
            certs,
            policies: policies.to_owned(),
            log,
            arguments,
            environment: Mutex::default(),
            addresses,
            process: Mutex::new(Some(process)),
        })
    }

    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.addresses.listen)
    }

    /// The development CA that signed the serving certificate.
    #[track_caller]
    pub(crate) fn ca(&self) -> &Path {
        self.addresses.ca.as_deref().expect("this webhook was not started with a development CA")
    }

    /// Where reviews go, as `127.0.0.1:PORT`.
    pub(crate) fn listen(&self) -> &str {
        &self.addresses.listen
    }

    pub(crate) fn policies(&self) -> &Path {
        &self.policies
    }

    #[allow(dead_code, reason = "the playground prints it")]
    pub(crate) fn log_file(&self) -> &Path {
        &self.log
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// GET on the admin port: status code and body.
    #[track_caller]
    pub(crate) fn admin(&self, path: &str) -> (u16, String) {
        let ask = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(&self.addresses.admin)?;
            stream.set_read_timeout(Some(Duration::from_secs(5)))?;
            write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        let answer = ask().unwrap_or_else(|e| panic!("expected an answer to {path}: {e}\n{}", self.log()));
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let code = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        (code.unwrap_or_else(|| panic!("expected an HTTP answer to {path}: {answer}")), body.to_owned())
    }

    /// Waits until `/readyz` answers 200.
    #[track_caller]
    pub(crate) fn await_ready(&self) {
        eventually(SYNCED, "the webhook is ready", || match self.admin("/readyz?verbose") {
            (200, _) => Ok(()),
            other => Err(format!("{other:?}\n{}", self.log())),
        });
    }

    /// SIGTERM. Returns when the server has ended; it answers requests in flight first.
    #[track_caller]
    pub(crate) fn stop(&self) {
        self.end("TERM");
    }

    /// SIGKILL. Returns when the server has ended.
    #[track_caller]
    pub(crate) fn kill(&self) {
        self.end("KILL");
    }

    /// Restarts it on the same ports, with the same certificates and policies.
    #[track_caller]
    pub(crate) fn restart(&self) {
        let mut process = self.process();
        assert!(process.is_none(), "the webhook is still running");
        let Self { kubeconfig, certs, policies, log, arguments, addresses, .. } = self;
        let ports = [addresses.listen.as_str(), addresses.admin.as_str()];
        let environment = self.environment.lock().unwrap_or_else(PoisonError::into_inner);
        let launched = launch(kubeconfig, certs.as_deref(), policies, log, ports, arguments, &environment);
        *process = Some(launched.unwrap_or_else(|e| panic!("{e}")).0);
    }

    /// Restarts it with these variables.
    #[track_caller]
    pub(crate) fn restart_with(&self, environment: &[(&'static str, String)]) {
        *self.environment.lock().unwrap_or_else(PoisonError::into_inner) = environment.to_vec();
        self.restart();
    }

    #[track_caller]
    fn end(&self, how: &str) {
        let Some(mut process) = self.process().take() else { panic!("the webhook is not running") };
        signal(how, process.pid);
        eventually(END, &format!("the webhook ends after SIG{how}"), || match process.leash.try_wait() {
            Ok(Some(_)) => Ok(()),
            other => Err(format!("{other:?}; its log:\n{}", self.log())),
        });
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// SIGKILL: when a plane is dropped, no request is in flight.
impl Drop for Webhook {
    fn drop(&mut self) {
        if let Some(mut process) = self.process().take() {
            signal("KILL", process.pid);
            let _ = process.leash.wait();
        }
    }
}

/// Applies the manifests. Only `clientConfig` is replaced.
pub(crate) fn register(plane: &Plane, url: &str, ca: &Path) -> Result<(), String> {
    let ca = fs::read(ca).map_err(|e| format!("cannot read {}: {e}", ca.display()))?;
    register_at(plane, &|_| url.to_owned(), Some(&ca))
}

/// Like `register`, with a URL for each entry by its number. Without a CA the entries have no caBundle.
pub(crate) fn register_at(plane: &Plane, url: &dyn Fn(usize) -> String, ca: Option<&[u8]>) -> Result<(), String> {
    for name in REGISTRATIONS {
        register_one(plane, manifest(name)?, url, ca)?;
    }
    Ok(())
}

/// Like `register`, for one file.
pub(crate) fn register_file(plane: &Plane, file: &str, url: &str, ca: &Path) -> Result<(), String> {
    let ca = fs::read(ca).map_err(|e| format!("cannot read {}: {e}", ca.display()))?;
    register_one(plane, manifest(file)?, &|_| url.to_owned(), Some(&ca))
}

fn register_one(
    plane: &Plane,
    mut registration: Value,
    url: &dyn Fn(usize) -> String,
    ca: Option<&[u8]>,
) -> Result<(), String> {
    close(&mut registration);
    let entries = registration["webhooks"].as_array_mut().ok_or("a registration has no webhooks")?;
    for (number, entry) in entries.iter_mut().enumerate() {
        let path = entry["clientConfig"]["service"]["path"].as_str().unwrap_or_default().to_owned();
        entry["clientConfig"] = json!({"url": format!("{}{path}", url(number))});
        if let Some(ca) = ca {
            entry["clientConfig"]["caBundle"] = json!(STANDARD.encode(ca));
        }
    }
    let applied = plane.kubectl(&plane.admin()).apply(&registration, &[]).into_result();
    applied.map(|_| ()).map_err(|e| format!("{} was not accepted\n{e}", registration["kind"]))
}

/// The API server watches its configurations, so a registration takes effect some moments after it is accepted. The
/// server's own count of calls shows it, whatever the policy is.
pub(crate) fn wait_until_called(plane: &Plane, log: impl Fn() -> String) -> Result<(), String> {
    let body = json!({"name": "probe", "version": 1, "namespace": "default", "info": {"status": "pending-install"}});
    let record = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "sh.helm.release.v1.probe.v1",
            "namespace": "default",
            "labels": {"owner": "helm", "name": "probe", "version": "1", "status": "pending-install"},
        },
        "type": "helm.sh/release.v1",
        "data": {"release": encode(&body, Driver::Secret)},
    });
    let kubectl = plane.kubectl(&plane.admin());
    within(READY, "the API server calls every entry of the webhook", || {
        let probe = kubectl.with_file("create", &record, &["--dry-run=server"]);
        let metrics = kubectl.run(&["get", "--raw", "/metrics"]).into_result()?.stdout;
        let called = |entry: &str| {
            let entry = format!("name=\"{entry}\"");
            let mut lines =
                metrics.lines().filter(|line| line.starts_with("apiserver_admission_webhook_request_total{"));
            lines.any(|line| line.contains(&entry))
        };
        if PROBED.into_iter().all(called) && !probe.stderr.contains("failed calling webhook") {
            Ok(())
        } else {
            Err(format!("{probe}\nthe webhook's log:\n{}", log()))
        }
    })
}

/// The annotation with the entries that fail open until a review has arrived.
pub(crate) const OPEN_UNTIL_CALLED: &str = "interlock.dev/open-until-called";

/// Lets a registration be as it is once a review has arrived: the leader does the same some seconds later.
fn close(registration: &mut Value) {
    let Some(annotations) = registration["metadata"]["annotations"].as_object_mut() else { return };
    let Some(Value::String(open)) = annotations.remove(OPEN_UNTIL_CALLED) else { return };
    for entry in registration["webhooks"].as_array_mut().into_iter().flatten() {
        if open.split(',').any(|name| entry["name"] == name) {
            entry["failurePolicy"] = "Fail".into();
        }
    }
}

/// A registration of `manifests/base`, as it is once a review has arrived.
pub(crate) fn manifest(name: &str) -> Result<Value, String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/base").join(name);
    let text = fs::read_to_string(&file).map_err(|e| format!("cannot read {}: {e}", file.display()))?;
    let mut registration = serde_saphyr::from_str(&text).map_err(|e| format!("{} is not YAML: {e}", file.display()))?;
    close(&mut registration);
    Ok(registration)
}

/// Interlock's own account with exactly the rights that `manifests/` grant. If one is missing, tests fail.
fn rights(plane: &Plane) -> Result<Identity, String> {
    let admin = plane.kubectl(&plane.admin());
    for file in ["namespace.yaml", "rbac.yaml", "rbac-certificates.yaml", "rbac-people.yaml"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/base").join(file);
        admin.run(&["apply", "-f", &path.to_string_lossy()]).into_result()?;
    }
    plane.account("interlock-system", "interlock")
}

fn launch(
    kubeconfig: &Path,
    certs: Option<&Path>,
    policies: &Path,
    log: &Path,
    [listen, admin]: [&str; 2],
    arguments: &[&str],
    environment: &[(&str, String)],
) -> Result<(Process, Addresses), String> {
    let stderr = File::options().create(true).append(true).open(log);
    let stderr = stderr.map_err(|e| format!("cannot open {}: {e}", log.display()))?;
    let mut command = leash();
    // Not of the shell, which watches over the server.
    // Tests also read the decisions to admit.
    let log = "INTERLOCK_LOG=info,kube_client::client::builder=off,release_interlock::serve::report::log=debug";
    command.arg("env").arg(log).args(environment.iter().map(|(name, value)| format!("{name}={value}")));
    command.arg(interlock()?).arg("serve");
    command.arg("--kubeconfig").arg(kubeconfig);
    command.args(["--listen", listen, "--admin-listen", admin]);
    certs.iter().for_each(|certs| _ = command.arg("--certs").arg(certs));
    command.arg("--policies").arg(policies).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr);
    let mut leash = command.spawn().map_err(|e| format!("cannot start interlock: {e}"))?;
    let (Some(stdin), Some(stdout)) = (leash.stdin.take(), leash.stdout.take()) else {
        return Err("interlock has no pipes".to_owned());
    };
    let mut stdout = BufReader::new(stdout);
    // A server that hangs before it is ready is killed, which ends the reads below.
    let mut lines = [String::new(), String::new()];
    let reading = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            for line in &mut lines {
                if stdout.read_line(line).is_err() {
                    break;
                }
            }
        });
        let start = std::time::Instant::now();
        while !reader.is_finished() {
            if start.elapsed() > READY {
                let _ = leash.kill();
                // The server is the shell's child, not ours, and holds the pipe open.
                drop(stdin);
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Some(stdin)
    });
    let [pid, ready] = lines;
    let said = || {
        let log = fs::read_to_string(log).unwrap_or_default();
        format!("interlock serve printed {ready:?} in place of its ready line; its log:\n{log}")
    };
    let stdin = reading.ok_or_else(said)?;
    let addresses = serde_json::from_str(&ready).map_err(|_| said())?;
    let pid = pid.trim().parse().map_err(|_| said())?;
    Ok((Process { leash, _stdin: stdin, _stdout: stdout, pid }, addresses))
}

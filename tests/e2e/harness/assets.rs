//! The programs that the tests drive: built on first use into `target/controlplane/`, reused until their sources change.
//! Two environment variables choose other versions, see [`versions`].

mod build;
mod modules;
pub(crate) mod versions;

use std::fs::{self, File, TryLockError};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use build::{built, go};
use modules::{Module, published};
use versions::{DEFAULT_KUBERNETES, HELM, Versions};

#[derive(Debug, Clone)]
pub(crate) struct Assets {
    pub(crate) controlplane: PathBuf,
    pub(crate) kubectl: PathBuf,
    /// Whether it also runs many commands in one process. One from `KUBEBUILDER_ASSETS` does not.
    pub(crate) kubectl_serves: bool,
    pub(crate) helm3: PathBuf,
    pub(crate) helm4: PathBuf,
    /// Stands in for Flux's and OLM's controllers, see `tests/controllers`.
    pub(crate) controllers: PathBuf,
    /// Stands in for Argo CD's application-controller, see `tests/argo`.
    pub(crate) argo: PathBuf,
    /// An API server from `KUBEBUILDER_ASSETS`, in place of the built one.
    pub(crate) kube_apiserver: Option<PathBuf>,
}

/// The programs, built if necessary. A failed build is not repeated: every later call gets the same error.
pub(crate) fn prepared() -> Result<&'static Assets, String> {
    static ASSETS: OnceLock<Result<Assets, String>> = OnceLock::new();
    ASSETS.get_or_init(prepare).as_ref().map_err(String::clone)
}

/// Like `prepared`, but panics on failure.
#[track_caller]
pub(crate) fn assets() -> &'static Assets {
    prepared().unwrap_or_else(|error| panic!("{error}"))
}

/// Reads images: `tests/images`. Built apart from the others, because only the tests of the image need it.
#[track_caller]
pub(crate) fn image_reader() -> &'static Path {
    static READER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    built_apart(&READER, "images", "the reader of images", "seconds")
}

/// The Go readers that Interlock must agree with: `tests/readers`. Built apart from the others, like the reader of images.
#[allow(dead_code, reason = "for tests/it")]
#[track_caller]
pub(crate) fn go_readers() -> &'static Path {
    static READERS: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    built_apart(&READERS, "readers", "the readers of Go", "2 minutes on two cores the first time")
}

/// A Go program of `tests/`, which is built when it is asked for first.
#[track_caller]
fn built_apart(
    program: &'static OnceLock<Result<PathBuf, String>>,
    module: &str,
    what: &str,
    time: &str,
) -> &'static Path {
    let built = program.get_or_init(|| {
        let (dir, _lock) = locked_dir()?;
        build_module(&dir, module, what, time)
    });
    built.as_ref().unwrap_or_else(|error| panic!("{error}"))
}

/// Another `interlock` than that of this build, for example a release build under tests of a debug build.
const PROGRAM: &str = "INTERLOCK_E2E_PROGRAM";

/// The `interlock` under test. Cargo gives its path to tests, but not to examples: the playground and the soak are their own
/// `interlock`, see `examples/playground.rs`.
pub(crate) fn interlock() -> Result<PathBuf, String> {
    if let Some(program) = std::env::var_os(PROGRAM) {
        return Ok(program.into());
    }
    match option_env!("CARGO_BIN_EXE_interlock") {
        Some(program) => Ok(program.into()),
        None => std::env::current_exe().map_err(|e| format!("cannot tell which program this is: {e}")),
    }
}

/// A line of progress that libtest does not capture: a first build takes minutes.
pub(crate) fn progress(line: &str) {
    let _ = writeln!(std::io::stderr(), "e2e: {line}");
}

/// `target/`: Cargo gives its path to tests; an example looks for it above its own file.
pub(crate) fn target_dir() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        let message = option_env!("CARGO_TARGET_TMPDIR").and_then(|tmp| Path::new(tmp).parent()).map(Path::to_owned);
        let found = || {
            let program = std::env::current_exe().ok()?;
            program.ancestors().find(|dir| dir.join("CACHEDIR.TAG").is_file()).map(Path::to_owned)
        };
        message.or_else(found).unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target"))
    })
}

/// The directory of the programs, locked against other test processes that build.
fn locked_dir() -> Result<(PathBuf, File), String> {
    let dir = target_dir().join("controlplane");
    fs::create_dir_all(&dir).map_err(|e| format!("cannot make {}: {e}", dir.display()))?;
    let lock = File::create(dir.join("lock")).map_err(|e| format!("cannot make the lock in {}: {e}", dir.display()))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            progress("another test process is building the control plane; waiting for it");
            lock.lock().map_err(|e| format!("cannot lock {}: {e}", dir.display()))?;
        }
        Err(TryLockError::Error(e)) => return Err(format!("cannot lock {}: {e}", dir.display())),
    }
    Ok((dir, lock))
}

fn prepare() -> Result<Assets, String> {
    let (dir, _lock) = locked_dir()?;
    let versions = Versions::from_environment()?;
    let Versions { kubernetes, helm3, helm4 } = &versions;
    progress(&format!("Kubernetes {kubernetes}, helm {helm3} and {helm4}"));
    let controlplane = build_kubernetes(&dir, kubernetes, &CONTROL_PLANE)?;
    let given = kubebuilder("kubectl", &["version", "--client"], kubernetes);
    let kubectl_serves = given.is_none();
    let kubectl = given.map_or_else(|| build_kubernetes(&dir, kubernetes, &KUBECTL), Ok)?;
    let controllers =
        build_module(&dir, "controllers", "the controllers of Flux and OLM", "4 minutes on two cores the first time")?;
    let argo = build_module(&dir, "argo", "the syncs of Argo CD", "1 minute on two cores the first time")?;
    let [helm3, helm4] = [(3, helm3), (4, helm4)].map(|(major, version)| helm(&dir, major, version));
    Ok(Assets {
        controlplane,
        kubectl,
        kubectl_serves,
        helm3: helm3?,
        helm4: helm4?,
        controllers,
        argo,
        kube_apiserver: kubebuilder("kube-apiserver", &["--version"], kubernetes),
    })
}

/// The newest helm 4, without the rest.
#[allow(dead_code, reason = "for tests/it")]
pub(crate) fn helm4() -> Result<PathBuf, String> {
    let (dir, _lock) = locked_dir()?;
    helm(&dir, 4, HELM[1][1])
}

/// What `kubectl kustomize` of a Kubernetes runs: `tests/kustomize`, with the dependencies that this kubectl names.
#[allow(dead_code, reason = "for tests/it")]
pub(crate) fn kustomize(kubernetes: &str) -> Result<PathBuf, String> {
    let (dir, _lock) = locked_dir()?;
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kustomize");
    let (name, flags) = (format!("kustomize-{kubernetes}"), "-s -w");
    built(&dir, &name, &stamp_of(&sources, flags)?, || {
        let mut build = go("kustomize", &dir)?;
        progress(&format!(
            "building the kustomize of kubectl {kubernetes} (half a minute on two cores the first time)"
        ));
        let out = dir.join(format!("{name}.new"));
        let modules = published("k8s.io/kubectl", kubernetes)?.as_main(&dir.join(format!("{name}.modules")))?;
        build.current_dir(&sources).args(["build", "-trimpath", "-ldflags", flags, "-mod=mod", "-modfile"]);
        build.arg(modules).arg("-o").arg(&out).arg(".");
        Ok((build, out))
    })
}

/// The OpenAPI document of a Kubernetes, from its sources.
#[allow(dead_code, reason = "for tests/it")]
pub(crate) fn openapi(kubernetes: &str) -> Result<PathBuf, String> {
    let sources = Module::fetched("k8s.io/kubernetes", &format!("v{kubernetes}"))?.dir;
    Ok(sources.join("api/openapi-spec/swagger.json"))
}

/// A program of the module `tests/controlplane`.
struct KubernetesProgram {
    name: &'static str,
    package: &'static str,
    what: &'static str,
}

const CONTROL_PLANE: KubernetesProgram = KubernetesProgram {
    name: "controlplane",
    package: ".",
    what: "the control plane (etcd, kube-apiserver, kube-controller-manager; 5 to 10 minutes on two cores the first time)",
};

/// In a file of its own, because it starts in a third of the time.
const KUBECTL: KubernetesProgram =
    KubernetesProgram { name: "kubectl", package: "./kubectl", what: "kubectl (10 seconds after the control plane)" };

fn build_kubernetes(dir: &Path, kubernetes: &str, program: &KubernetesProgram) -> Result<PathBuf, String> {
    let KubernetesProgram { name, package, what } = program;
    let is_default = kubernetes == DEFAULT_KUBERNETES;
    let dir = if is_default { dir.to_owned() } else { dir.join(format!("kubernetes-{kubernetes}")) };
    fs::create_dir_all(&dir).map_err(|e| format!("cannot make {}: {e}", dir.display()))?;
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/controlplane");
    let [major, minor, _] = kubernetes.split('.').collect::<Vec<_>>()[..] else {
        return Err(format!("Kubernetes {kubernetes}: expected a version with three numbers"));
    };
    let version = "k8s.io/component-base/version";
    // Clients refuse a server without a version that parses.
    let flags = format!(
        "-s -w -X {version}.gitVersion=v{kubernetes} -X {version}.gitMajor={major} -X {version}.gitMinor={minor}"
    );
    let stamp = stamp_of(&sources, &flags)?;
    built(&dir, name, &stamp, || {
        let mut build = go(name, &dir)?;
        progress(&format!("building {what}, of Kubernetes {kubernetes}"));
        let out = dir.join(format!("{name}.new"));
        build.current_dir(&sources).args(["build", "-trimpath", "-ldflags", &flags, "-o"]).arg(&out);
        if !is_default {
            build.args(["-mod=mod", "-modfile"]).arg(modules::controlplane_on(kubernetes, &dir)?);
        }
        build.arg(package);
        Ok((build, out))
    })
}

/// Builds the module `tests/NAME`.
fn build_module(dir: &Path, name: &str, what: &str, takes: &str) -> Result<PathBuf, String> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name);
    let flags = "-s -w";
    built(dir, name, &stamp_of(&sources, flags)?, || {
        let mut build = go(what, dir)?;
        progress(&format!("building {what} ({takes})"));
        let out = dir.join(format!("{name}.new"));
        build.current_dir(&sources).args(["build", "-trimpath", "-ldflags", flags, "-o"]).arg(&out).arg(".");
        Ok((build, out))
    })
}

fn helm(dir: &Path, major: u32, version: &str) -> Result<PathBuf, String> {
    let is_default = HELM.iter().any(|[_, newest]| *newest == version);
    // Use an installed helm of the same minor version as the default: v3.22.0 and v3.22.4 write the same records.
    let wanted = if is_default { version.rsplit_once('.').map_or(version, |(minor, _)| minor) } else { version };
    let program = if is_default { format!("helm{major}") } else { format!("helm-{version}") };
    for name in [format!("helm{major}").as_str(), "helm"] {
        let installed = Command::new(name).args(["version", "--template", "{{.Version}}"]).output();
        if let Ok(installed) = installed
            && is_of(&format!("v{wanted}"), &String::from_utf8_lossy(&installed.stdout))
            && let Some(path) = on_path(name)
        {
            progress(&format!("using {} as {program}", path.display()));
            return Ok(path);
        }
    }
    let module = format!("helm.sh/helm/v{major}");
    // A build from the module cache has no version of its own.
    let flags = format!("-s -w -X {module}/internal/version.version=v{version}");
    built(dir, &program, &format!("{module}/cmd/helm@v{version} {flags}"), || {
        let mut build = go("helm", dir)?;
        progress(&format!("building helm {version} (2 minutes on two cores the first time)"));
        let source = Module::fetched(&module, &format!("v{version}"))?;
        let modules = source.as_main(&dir.join(format!("{program}.modules")))?;
        let out = dir.join(format!("{program}.new"));
        build.current_dir(&source.dir).args(["build", "-trimpath", "-ldflags", &flags, "-mod=mod", "-modfile"]);
        build.arg(modules).arg("-o").arg(&out).arg("./cmd/helm");
        Ok((build, out))
    })
}

/// Changes with every file of the module and every flag.
fn stamp_of(sources: &Path, flags: &str) -> Result<String, String> {
    let mut hasher = DefaultHasher::new();
    flags.hash(&mut hasher);
    hash_files(sources, &mut hasher).map_err(|e| format!("cannot read {}: {e}", sources.display()))?;
    Ok(format!("{:016x}", hasher.finish()))
}

fn hash_files(dir: &Path, hasher: &mut DefaultHasher) -> io::Result<()> {
    let mut paths: Vec<_> = fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            hash_files(&path, hasher)?;
        } else {
            (path.file_name(), fs::read(&path)?).hash(hasher);
        }
    }
    Ok(())
}

/// A program in `KUBEBUILDER_ASSETS`, if it has the minor version of the tests.
fn kubebuilder(name: &str, version_args: &[&str], kubernetes: &str) -> Option<PathBuf> {
    let program = PathBuf::from(std::env::var_os("KUBEBUILDER_ASSETS")?).join(name);
    let output = Command::new(&program).args(version_args).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.split_whitespace().find(|word| word.starts_with("v1.")).unwrap_or("an unknown version");
    let fits = kubernetes.rsplit_once('.').is_some_and(|(minor, _)| is_of(&format!("v{minor}"), version));
    progress(&format!("{} {} ({version})", if fits { "using" } else { "ignoring" }, program.display()));
    fits.then_some(program)
}

/// Whether `version` is `minor` or one of its patch releases.
fn is_of(minor: &str, version: &str) -> bool {
    version.trim().strip_prefix(minor).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn on_path(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(name)).find(|path| path.is_file())
}

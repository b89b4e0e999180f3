//! The image of `examples/image`: the same bytes from the same program, read by tools that are not ours, and run as pods that
//! have nothing but its root.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, Helm, HelmVersion};
use crate::harness::cluster::{Cluster, NAMESPACE};
use crate::harness::kubelet::image::{Image, inspect};
use crate::harness::namespace::Namespace;
use crate::harness::process::{Output, run};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const VERSION: &str = env!("CARGO_PKG_VERSION");
const DOCKERFILE: &str = include_str!("../../../Dockerfile");
const SBOM: &str = r#"{"bomFormat":"CycloneDX","specVersion":"1.5","version":1}"#;
const REVISION: &str = "0123456789abcdef0123456789abcdef01234567";
/// 2026-01-02T03:04:05Z
const CREATED: &str = "1767323045";
const REPLICAS: usize = 3;
/// Cargo may wait for another test's cargo, and links a program of 30 MB.
const BUILD: Duration = Duration::from_secs(600);
/// Compiles a line of C.
const COMPILE: Duration = Duration::from_secs(60);

#[test]
fn a_program_packed_elsewhere_and_later_is_the_same_image() {
    let [here, elsewhere] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let program = small_program(here.path(), &["-static"]);
    let copy = elsewhere.path().join("a copy");
    fs::copy(&program, &copy).unwrap();
    File::open(&copy).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    let one = pack(here.path(), &program, CREATED).expect_success();
    let other = pack(elsewhere.path(), &copy, CREATED).expect_success();
    assert_eq!(one.stdout, other.stdout, "the digests differ");
    assert_eq!(files(&here.path().join("image")), files(&elsewhere.path().join("image")));

    let later = tempfile::tempdir().unwrap();
    let other = pack(later.path(), &program, "1767323046").expect_success();
    assert_ne!(one.stdout, other.stdout, "the time of the commit is not in the image");
}

#[test]
fn a_program_that_needs_libraries_is_not_packed() {
    let dir = tempfile::tempdir().unwrap();
    let program = small_program(dir.path(), &[]);
    pack(dir.path(), &program, CREATED).expect_failure(&["the program is not static: it asks for "]);
    assert!(!dir.path().join("image").exists());
    let program = small_program(dir.path(), &["-static"]);
    pack(dir.path(), &program, CREATED).expect_success();
}

#[test]
fn another_reader_finds_the_image_valid_and_the_dockerfile_says_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let packed = pack(dir.path(), &small_program(dir.path(), &["-static"]), CREATED).expect_success();
    let layout = dir.path().join("image");
    let read = inspect(&layout, VERSION).expect_success().json();
    let (digest, configuration) = (packed.stdout.trim(), &read["configuration"]);
    assert_eq!(read["digest"], digest);
    assert_eq!(configuration["created"], "2026-01-02T03:04:05Z");
    let labels = &configuration["config"]["Labels"];
    assert_eq!(labels["org.opencontainers.image.revision"], REVISION);
    assert_eq!(labels["org.opencontainers.image.version"], VERSION);

    let settings = &configuration["config"];
    let ports = settings["ExposedPorts"].as_object().unwrap();
    let mut ports: Vec<_> = ports.keys().map(|port| port.trim_end_matches("/tcp")).collect();
    ports.reverse();
    let mut lines = vec![
        format!("USER {}", settings["User"].as_str().unwrap()),
        format!("EXPOSE {}", ports.join(" ")),
        format!("ENTRYPOINT {}", settings["Entrypoint"]),
        format!("CMD {}", settings["Cmd"]),
    ];
    lines.extend(labels.as_object().unwrap().iter().map(|(label, value)| match label.rsplit('.').next() {
        Some("revision") => format!("{label}=\"$REVISION\""),
        Some("created") => format!("{label}=\"$CREATED\""),
        _ => format!("{label}={value}"),
    }));
    let missing: Vec<_> = lines.iter().filter(|line| !DOCKERFILE.contains(*line)).collect();
    assert!(missing.is_empty(), "the Dockerfile does not say {missing:?}");
    expect_sbom(&layout, digest);

    inspect(&layout, "9.9.9").expect_failure(&["has 0 images of the name 9.9.9"]);
    let manifest = blob(&layout, digest);
    fs::write(&manifest, fs::read_to_string(&manifest).unwrap().replace(VERSION, "9.9.9")).unwrap();
    inspect(&layout, VERSION).expect_failure(&["is not valid", digest]);
}

/// The file of a digest.
fn blob(layout: &Path, digest: &str) -> PathBuf {
    layout.join("blobs").join(digest.replace(':', "/"))
}

/// The layout has a second manifest that refers to the image and has the SBOM as its only layer.
fn expect_sbom(layout: &Path, digest: &str) {
    let parse = |path: &Path| serde_json::from_slice::<Value>(&fs::read(path).unwrap()).unwrap();
    let referrer = &parse(&layout.join("index.json"))["manifests"][1];
    assert_eq!(referrer["artifactType"], "application/vnd.cyclonedx+json");
    let manifest = parse(&blob(layout, referrer["digest"].as_str().unwrap()));
    assert_eq!(manifest["subject"]["digest"], digest);
    let content = blob(layout, manifest["layers"][0]["digest"].as_str().unwrap());
    assert_eq!(fs::read_to_string(content).unwrap(), SBOM);
}

#[test]
fn the_image_runs_as_pods_from_its_root_alone() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let image = whole(dir.path());
    assert_eq!((image.program.as_str(), image.user.as_str()), ("/interlock", "65532:65532"));
    assert_eq!(files(image.root()).into_keys().collect::<Vec<_>>(), [PathBuf::from("interlock")]);
    // The same start as of the pods, whose errors are only in their logs.
    assert_eq!(image.run(&["--version"]).expect_success().stdout, format!("interlock {VERSION}\n"));

    let cluster = Cluster::of_image("image", image);
    let plane = cluster.plane();
    let helm = Helm::new(HelmVersion::V4, Driver::Secret, &plane.admin(), NAMESPACE, plane.dir());
    let chart = format!("{ROOT}/manifests/chart");
    helm.ok(&[
        "install",
        "interlock",
        &chart,
        "--set=image.registry=registry.invalid",
        "--create-namespace",
        "--wait",
        "--timeout=100s",
    ]);
    for replica in cluster.await_ready(REPLICAS) {
        expect_confined(replica.pid);
    }

    let there = Namespace::new(plane, "there");
    let (demo, kubectl) = (Chart::new("demo"), there.kubectl("alice"));
    there.helm(HelmVersion::V4, Driver::Secret, "alice").ok(&["install", "demo", demo.path()]);
    kubectl.fails(&["set", "image", "deployment/demo", "app=other"], &["[manual-edit]"]);
    kubectl.ok(&["label", "deployment/demo", "team=one"]);
    // Its Job runs another command of the same image, and helm waits for it.
    helm.ok(&["uninstall", "interlock", "--timeout=100s"]);
    kubectl.ok(&["set", "image", "deployment/demo", "app=other"]);
}

/// The process sees one file system, read-only, with the image and its mounts, and has no rights.
fn expect_confined(pid: u32) {
    let proc = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap();
    let names = |path: &str| {
        let entries = fs::read_dir(format!("/proc/{pid}/root{path}")).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(names("/"), ["etc", "interlock", "var"]);
    assert_eq!(names("/etc"), ["interlock"]);
    let mounts = proc("mountinfo");
    let options: Vec<_> = mounts.lines().map(|line| line.split(' ').skip(4).take(2).collect::<Vec<_>>()).collect();
    let is_read_only = options.len() == 1 && options[0][0] == "/" && options[0][1].starts_with("ro,");
    // root in a container may not mount. Then the owner of the files protects them.
    let root = fs::metadata(format!("/proc/{pid}/root/")).unwrap();
    let is_of_root = options.is_empty() && root.uid() == 0 && root.mode() & 0o022 == 0;
    assert!(is_read_only || is_of_root, "{:o} {mounts}", root.mode());
    let status = proc("status");
    assert!(status.contains("\nCapEff:\t0000000000000000\n"), "{status}");
    if rustix::process::geteuid().is_root() {
        assert!(status.contains("\nUid:\t65532\t65532\t65532\t65532\nGid:\t65532\t65532\t65532\t65532\n"), "{status}");
    }
}

/// An image with the whole of Interlock, unpacked.
fn whole(dir: &Path) -> Image {
    let program = dir.join("interlock");
    let emit = format!("--emit=link={}", program.display());
    let mut cargo = Command::new(env!("CARGO"));
    // The settings of the profile `test`, whose library is there already; `--profile test` would link a test.
    cargo.current_dir(ROOT).env("CARGO_PROFILE_DEV_OPT_LEVEL", "1").args([
        "rustc",
        "--quiet",
        "--example=static",
        "--",
    ]);
    cargo.args(["-Ctarget-feature=+crt-static", "-Cstrip=symbols", &emit]);
    let linked = run(cargo, BUILD);
    assert!(
        linked.success(),
        "cannot link a static program; it needs the C library as libc.a (Debian: libc6-dev, Fedora: glibc-static)\n{linked}"
    );
    pack(dir, &program, CREATED).expect_success();
    Image::unpacked(&dir.join("image"), VERSION, dir)
}

/// `cargo run --example image` in a directory, where it writes `image`.
fn pack(dir: &Path, program: &Path, created: &str) -> Output {
    fs::write(dir.join("sbom.json"), SBOM).unwrap();
    let manifest = format!("{ROOT}/Cargo.toml");
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["run", "--quiet", "--profile=test", "--manifest-path", &manifest, "--example=image", "--", "--program"])
        .arg(program);
    cargo.args(["--sbom=sbom.json", "--out=image", "--revision", REVISION, "--created", created]);
    cargo.current_dir(dir);
    run(cargo, BUILD)
}

/// A program that does nothing.
fn small_program(dir: &Path, flags: &[&str]) -> PathBuf {
    let (source, program) = (dir.join("main.c"), dir.join("program"));
    fs::write(&source, "int main(void) { return 0; }\n").unwrap();
    let mut cc = Command::new("cc");
    cc.args(flags).arg("-o").args([&program, &source]);
    run(cc, COMPILE).expect_success();
    program
}

/// All files below a directory.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(next) = dirs.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else {
                found.insert(path.strip_prefix(dir).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

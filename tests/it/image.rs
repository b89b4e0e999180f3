//! The image without a container engine, and the Dockerfile: both make the same image of the same program. The engine-less one is
//! read and run in `tests/e2e/installation/image.rs`.

#[path = "../../examples/image/archive.rs"]
mod archive;
#[path = "../../examples/image/blobs.rs"]
mod blobs;
#[path = "../../examples/image/pack.rs"]
mod pack;
#[path = "../../examples/image/program.rs"]
mod program;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::harness::binary::repository;
use archive::archive;
use blobs::sha256;
use pack::{Source, pack};

const NAME: &str = "registry.example.com/interlock:0.1.0";
const SBOM: &[u8] = br#"{"bomFormat":"CycloneDX"}"#;

/// The header of an ELF program without segments: for the packer, a static program of a machine.
fn program(machine: u8) -> Vec<u8> {
    let mut header = vec![0; 64];
    header[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    // An executable; the machine; the version; the size of this header.
    (header[16], header[18], header[20], header[52]) = (2, machine, 1, 64);
    header
}

/// `EM_X86_64` and `EM_AARCH64`.
const MACHINES: [(u8, &str); 2] = [(62, "amd64"), (183, "arm64")];

fn source(program: &[u8]) -> Source<'_> {
    Source { program, revision: "0123456789abcdef", created: Timestamp::from_second(1_767_323_045).unwrap() }
}

/// The files of a tar file, with their modes.
fn unpacked(tar: &[u8]) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut archive = tar::Archive::new(tar);
    let files = archive.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let (name, mode) = (entry.path().unwrap().to_str().unwrap().to_owned(), entry.header().mode().unwrap());
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        (name, (mode, content))
    });
    files.collect()
}

fn inflated(gzip: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    GzDecoder::new(gzip).read_to_end(&mut content).unwrap();
    content
}

/// The configuration of the image in the layout, and the files of its layer.
fn layout(program: &[u8]) -> (Value, BTreeMap<String, (u32, Vec<u8>)>) {
    let directory = tempfile::tempdir().unwrap();
    let layout = directory.path().join("image");
    let digest = pack(&source(program), SBOM, &layout).unwrap();
    let blob =
        |digest: &Value| fs::read(layout.join("blobs").join(digest.as_str().unwrap().replace(':', "/"))).unwrap();
    let manifest: Value = serde_json::from_slice(&blob(&digest.into())).unwrap();
    let configuration = serde_json::from_slice(&blob(&manifest["config"]["digest"])).unwrap();
    assert_eq!(manifest["layers"].as_array().unwrap().len(), 1);
    (configuration, unpacked(&inflated(&blob(&manifest["layers"][0]["digest"]))))
}

/// The configuration of the image in the archive, and the files of its layer.
fn archived(file: &Path) -> (Value, BTreeMap<String, (u32, Vec<u8>)>) {
    let files = unpacked(&fs::read(file).unwrap());
    let content = |name: &Value| files[name.as_str().unwrap()].1.as_slice();
    let manifest: Value = serde_json::from_slice(content(&"manifest.json".into())).unwrap();
    let [image] = manifest.as_array().unwrap().as_slice() else { panic!("{manifest}") };
    assert_eq!(image["RepoTags"], json!([NAME]));
    let [layer] = image["Layers"].as_array().unwrap().as_slice() else { panic!("{manifest}") };
    let configuration: Value = serde_json::from_slice(content(&image["Config"])).unwrap();
    // Engines compare these before they use the layer.
    let layer = inflated(content(layer));
    assert_eq!(configuration["rootfs"]["diff_ids"], json!([format!("sha256:{}", sha256(&layer))]));
    (configuration, unpacked(&layer))
}

#[test]
fn the_archive_has_the_image_of_the_layout_and_the_same_bytes_each_time() {
    let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    for (machine, architecture) in MACHINES {
        let program = program(machine);
        let files = directories.each_ref().map(|directory| directory.path().join(architecture));
        files.iter().for_each(|file| archive(&source(&program), NAME, file).unwrap());
        let [one, other] = files.each_ref().map(|file| fs::read(file).unwrap());
        assert!(one == other, "two archives of the same program differ");
        let (configuration, files) = archived(&files[0]);
        assert_eq!((&configuration, &files), (&layout(&program).0, &layout(&program).1));
        assert_eq!(configuration["architecture"], architecture);
        assert_eq!(files, BTreeMap::from([("interlock".to_owned(), (0o555, program))]));
    }
}

#[test]
fn an_archive_needs_a_tag_and_a_static_program_of_a_known_machine() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("image.tar");
    let printed = |program: &[u8], name: &str| archive(&source(program), name, &file).unwrap_err().to_string();
    for name in ["interlock", "registry.example.com:5000/interlock", "registry.example.com/interlock:"] {
        let printed = printed(&program(62), name);
        assert!(printed.contains(&format!("{name} has no tag: name the image REGISTRY/interlock:TAG")), "{printed}");
    }
    assert!(printed(&program(8), NAME).contains("there is no image for the machine 8"));
    assert!(printed(b"#!/bin/sh", NAME).contains("not a program for 64 bits"));
    assert!(!file.exists());
    archive(&source(&program(62)), NAME, &file).unwrap();
}

/// The instructions of the Dockerfile's last stage. A line that ends with a backslash goes on in the next one.
fn last_stage() -> Vec<(String, String)> {
    let text = fs::read_to_string(repository("Dockerfile")).unwrap().replace("\\\n", " ");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let instructions = lines.map(|line| {
        let (name, value) = line.split_once(' ').unwrap();
        (name.to_owned(), value.split_whitespace().collect::<Vec<_>>().join(" "))
    });
    let instructions: Vec<_> = instructions.collect();
    let last = instructions.iter().rposition(|(name, _)| name == "FROM").unwrap();
    instructions[last..].to_vec()
}

#[test]
fn the_dockerfile_makes_the_same_image() {
    let (configuration, _) = layout(&program(62));
    let settings = &configuration["config"];
    let ports: BTreeSet<_> = settings["ExposedPorts"].as_object().unwrap().keys().cloned().collect();
    let mut labels: BTreeSet<_> =
        settings["Labels"].as_object().unwrap().iter().map(|(label, value)| format!("{label}={value}")).collect();
    // The Dockerfile gets these two from the command line.
    for (label, value) in [("revision", "\"0123456789abcdef\""), ("created", "\"2026-01-02T03:04:05Z\"")] {
        let label = format!("org.opencontainers.image.{label}=");
        assert!(labels.remove(&(label.clone() + value)), "{labels:?} has no {label}{value}");
        labels
            .insert(format!("{label}\"${}\"", label.rsplit('.').next().unwrap().trim_end_matches('=').to_uppercase()));
    }
    let mut seen = BTreeSet::new();
    for (instruction, value) in last_stage() {
        let wanted = match instruction.as_str() {
            "FROM" => "scratch".to_owned(),
            // The file of the layer, in the same place.
            "COPY" => "--from=build /out/interlock /interlock".to_owned(),
            "WORKDIR" => settings["WorkingDir"].as_str().unwrap().to_owned(),
            "USER" => settings["User"].as_str().unwrap().to_owned(),
            "ENTRYPOINT" => settings["Entrypoint"].to_string(),
            "CMD" => settings["Cmd"].to_string(),
            "EXPOSE" => {
                let printed: BTreeSet<_> = value.split(' ').map(|port| format!("{port}/tcp")).collect();
                assert_eq!(printed, ports);
                value.clone()
            }
            "LABEL" => {
                let printed: BTreeSet<_> =
                    value.split("\" ").map(|label| format!("{}\"", label.trim_end_matches('"'))).collect();
                assert_eq!(printed, labels);
                value.clone()
            }
            "ARG" => continue,
            _ => panic!("the image of examples/image has nothing like {instruction} {value}"),
        };
        assert_eq!(value, wanted, "{instruction}");
        assert!(seen.insert(instruction.clone()), "{instruction} is there twice");
    }
    assert_eq!(settings.as_object().unwrap().len(), 6, "{settings}");
    assert_eq!(seen.len(), 8, "an instruction is missing: {seen:?}");
    assert!(fs::read_to_string(repository("Dockerfile")).unwrap().contains("install -D -m 555 "));
}

/// A container engine builds from the files that `.dockerignore` leaves it.
#[test]
fn the_dockerfile_gets_every_file_that_the_build_reads() {
    let ignore = fs::read_to_string(repository(".dockerignore")).unwrap();
    let mut lines = ignore.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(lines.next(), Some("*"));
    let kept: Vec<_> = lines.map(|line| line.strip_prefix('!').unwrap_or_else(|| panic!("{line}"))).collect();
    let is_kept = |file: &Path| kept.iter().any(|kept| file.starts_with(kept));

    let mut here = read_for_the_library();
    assert!(here.len() > 100, "{here:?}");
    // What cargo asks for: the manifest, the lock file, and the targets that the manifest names.
    let manifest = fs::read_to_string(repository("Cargo.toml")).unwrap();
    let targets = manifest.lines().filter_map(|line| line.strip_prefix("path = \"")?.strip_suffix('"'));
    here.extend(
        ["Cargo.toml", "Cargo.lock", "build.rs", "src/main.rs", "scripts/program"]
            .into_iter()
            .chain(targets)
            .map(PathBuf::from),
    );
    let missing: Vec<_> = here.iter().filter(|file| !is_kept(file)).collect();
    assert!(missing.is_empty(), "the build reads {missing:?}, which .dockerignore leaves out");
    let absent: Vec<_> = kept.iter().filter(|kept| !repository(kept).exists()).collect();
    assert!(absent.is_empty(), ".dockerignore names {absent:?}, which do not exist");
}

/// What the compiler read for the library of this build, which is all of the program but `src/main.rs`: cargo keeps the list beside this
/// test, and those of earlier builds.
fn read_for_the_library() -> Vec<PathBuf> {
    let (program, root) = (std::env::current_exe().unwrap(), repository(""));
    let lists = fs::read_dir(program.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path()).filter(|path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.starts_with("release_interlock-") && name.ends_with(".d")
    });
    // Clippy leaves lists too, and reads its own settings.
    let lists = lists.filter(|list| !fs::read_to_string(list).unwrap().contains("clippy.toml"));
    let newest = lists.max_by_key(|list| fs::metadata(list).unwrap().modified().unwrap()).unwrap();
    let text = fs::read_to_string(newest).unwrap();
    let (_, read) = text.lines().next().unwrap().split_once(": ").unwrap();
    let read = read.replace("\\ ", "\0");
    let read = read.split_whitespace().map(|file| PathBuf::from(file.replace('\0', " ")));
    read.filter_map(
        |file| if file.is_absolute() { file.strip_prefix(&root).ok().map(Path::to_owned) } else { Some(file) },
    )
    .collect()
}

//! The directory of policies: `cluster.yaml`, and `namespaces/NAMESPACE.yaml`.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::problem::{Problem, Source};

/// What a mounted ConfigMap can hold.
const FILE_BYTES: u64 = 1 << 20;

/// Where the policies of namespaces lie, below the directory.
pub const NAMESPACES: &str = "namespaces";

/// The texts of a directory of policies, as they were at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    pub(super) cluster: Option<Source>,
    /// By namespace, in order.
    pub(super) namespaces: Vec<(String, Source)>,
    /// What could not be read.
    pub(super) unreadable: Vec<Problem>,
}

impl Files {
    /// Reads a directory.
    #[must_use]
    pub fn read(directory: &Path) -> Self {
        let mut files = Self::default();
        files.cluster = files.text(directory.join("cluster.yaml"), "name the directory that holds it with --policies");
        let namespaces = directory.join(NAMESPACES);
        match listed(&namespaces) {
            Ok(paths) => paths.into_iter().for_each(|path| files.namespace(path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => files.unreadable(namespaces, &error, "let Interlock list it"),
        }
        files
    }

    /// The policy that is shipped with this binary.
    #[must_use]
    pub fn shipped() -> Self {
        let text = include_str!("../../policies/cluster.yaml").to_owned();
        Self { cluster: Some(Source { path: "policies/cluster.yaml".into(), text }), ..Self::default() }
    }

    /// The names of the files, in order.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.cluster.iter().chain(self.namespaces.iter().map(|(_, source)| source)).map(|source| source.path.as_path())
    }

    fn namespace(&mut self, path: PathBuf) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        match name.rsplit_once('.') {
            // The directories and links by which Kubernetes mounts a ConfigMap, and what editors leave.
            _ if name.starts_with('.') => {}
            Some((namespace, "yaml")) if is_label(namespace) => {
                let namespace = namespace.to_owned();
                let source = self.text(path, "let Interlock read it");
                self.namespaces.extend(source.map(|source| (namespace, source)));
            }
            Some((_, "yaml" | "yml")) => {
                let message = "is named for no namespace; name it NAMESPACE.yaml".to_owned();
                self.unreadable.push(Problem { file: path, place: None, message });
            }
            _ => {}
        }
    }

    fn text(&mut self, path: PathBuf, way_out: &str) -> Option<Source> {
        match text(&path) {
            Ok(text) => Some(Source { path, text }),
            Err(error) => {
                self.unreadable(path, &error, way_out);
                None
            }
        }
    }

    fn unreadable(&mut self, file: PathBuf, error: &io::Error, way_out: &str) {
        self.unreadable.push(Problem { file, place: None, message: format!("failed to read it: {error}; {way_out}") });
    }
}

fn listed(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths: Vec<_> = fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    paths.sort_unstable();
    Ok(paths)
}

fn text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    if File::open(path)?.take(FILE_BYTES + 1).read_to_string(&mut text)? as u64 > FILE_BYTES {
        return Err(io::Error::other("it has more than 1 MiB"));
    }
    Ok(text)
}

/// What Kubernetes lets a namespace be called.
fn is_label(name: &str) -> bool {
    let inner = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    (1..=63).contains(&name.len())
        && name.as_bytes().iter().all(inner)
        && !name.starts_with('-')
        && !name.ends_with('-')
}

//! The directory of policies: `cluster.yaml`, and `namespaces/NAMESPACE.yaml`.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::problem::{Problem, Source};

/// What a mounted ConfigMap can hold.
const FILE_BYTES: u64 = 1 << 20;

/// Where the policies of namespaces lie, below the directory.
pub const NAMESPACES: &str = "namespaces";

/// What lies beside them and is no policy of a namespace: the policy of the cluster, and what publishes it.
const OTHERS: [&str; 2] = ["cluster.yaml", "kustomization.yaml"];

/// How suites are called, which test policies.
const SUITE: &str = ".test.yaml";

/// The texts of a directory of policies, as they were at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    pub(super) cluster: Option<Source>,
    /// By namespace, in order.
    pub(super) namespaces: Vec<(String, Source)>,
    /// What could not be read, and may be as it was.
    pub(super) unread: Vec<Problem>,
    /// What is no text, or lies where nobody reads it.
    pub(super) wrong: Vec<Problem>,
}

impl Files {
    /// Reads a directory.
    #[must_use]
    pub fn read(directory: &Path) -> Self {
        let mut files = Self::default();
        files.cluster = files.text(directory.join("cluster.yaml"), "name the directory that holds it with --policies");
        files.each_of(directory, Self::misplaced);
        files.each_of(&directory.join(NAMESPACES), Self::namespace);
        files
    }

    /// The texts of the two ConfigMaps that are mounted as such a directory: what the keys of the first say, and those of the
    /// second, which is mounted at `namespaces/`.
    #[must_use]
    pub fn mounted(
        own: impl IntoIterator<Item = (String, String)>,
        namespaces: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        let cluster = own.into_iter().find(|(key, _)| key == "cluster.yaml");
        let cluster = cluster.map(|(key, text)| Source { path: key.into(), text });
        let mut files = Self { cluster, ..Self::default() };
        if files.cluster.is_none() {
            files.wrong("cluster.yaml".into(), "the ConfigMap has no key cluster.yaml; put the cluster's policy there");
        }
        for (key, text) in namespaces {
            let path = Path::new(NAMESPACES).join(&key);
            match key.strip_suffix(".yaml") {
                Some(namespace) if is_label(namespace) => {
                    files.namespaces.push((namespace.to_owned(), Source { path, text }));
                }
                _ => files.wrong(path, "is named for no namespace; name it NAMESPACE.yaml"),
            }
        }
        files
    }

    /// The policy that is shipped with this binary.
    #[must_use]
    pub fn shipped() -> Self {
        let text = include_str!("../../../policies/cluster.yaml").to_owned();
        Self { cluster: Some(Source { path: "policies/cluster.yaml".into(), text }), ..Self::default() }
    }

    /// The names of the files, in order.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.cluster.iter().chain(self.namespaces.iter().map(|(_, source)| source)).map(|source| source.path.as_path())
    }

    /// Looks at everything in a directory, in order.
    fn each_of(&mut self, directory: &Path, look: fn(&mut Self, PathBuf)) {
        match listed(directory) {
            Ok(paths) => paths.into_iter().for_each(|path| look(self, path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => self.unreadable(directory.to_owned(), &error, "let Interlock list it"),
        }
    }

    /// Tells of a file beside `cluster.yaml` that somebody may take for a policy in force.
    fn misplaced(&mut self, path: PathBuf) {
        let name = file_name(&path);
        let is_read = OTHERS.contains(&name) || name.ends_with(SUITE) || name.starts_with('.');
        if !is_read && (name.ends_with(".yaml") || name.ends_with(".yml")) {
            self.wrong(path, "is read by nobody here; a namespace's policy is namespaces/NAMESPACE.yaml");
        }
    }

    fn namespace(&mut self, path: PathBuf) {
        let name = file_name(&path);
        match name.rsplit_once('.') {
            // The directories and links by which Kubernetes mounts a ConfigMap, and what editors leave.
            _ if name.starts_with('.') => {}
            Some((namespace, "yaml")) if is_label(namespace) => {
                let namespace = namespace.to_owned();
                let source = self.text(path, "let Interlock read it");
                self.namespaces.extend(source.map(|source| (namespace, source)));
            }
            Some((_, "yaml" | "yml")) => {
                self.wrong(path, "is named for no namespace; name it NAMESPACE.yaml");
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
        let message = format!("failed to read it: {error}; {way_out}");
        match error.kind() {
            // It was read, and is no text.
            io::ErrorKind::InvalidData | io::ErrorKind::FileTooLarge => self.wrong(file, &message),
            _ => self.unread.push(Problem { file, place: None, message }),
        }
    }

    fn wrong(&mut self, file: PathBuf, message: &str) {
        self.wrong.push(Problem { file, place: None, message: message.to_owned() });
    }
}

fn file_name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

fn listed(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths: Vec<_> = fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    paths.sort_unstable();
    Ok(paths)
}

fn text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    if File::open(path)?.take(FILE_BYTES + 1).read_to_string(&mut text)? as u64 > FILE_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it has more than 1 MiB"));
    }
    Ok(text)
}

/// What Kubernetes lets a namespace be called.
pub(crate) fn is_label(name: &str) -> bool {
    let inner = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    (1..=63).contains(&name.len())
        && name.as_bytes().iter().all(inner)
        && !name.starts_with('-')
        && !name.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounted_texts_are_read_as_a_directory_is() {
        let text = |key: &str, text: &str| (key.to_owned(), text.to_owned());
        let own = [text("README", "x"), text("cluster.yaml", "a")];
        let files = Files::mounted(own, [text("shop.yaml", "b"), text("notes.txt", "x"), text("Shop.yaml", "x")]);
        assert_eq!(files.wrong.len(), 2);
        let paths: Vec<_> = files.paths().map(|path| path.to_string_lossy().into_owned()).collect();
        assert_eq!(paths, ["cluster.yaml", "namespaces/shop.yaml"]);
    }

    #[test]
    fn a_file_that_nobody_reads_is_told_of() {
        let directory = tempfile::tempdir().unwrap();
        for file in ["cluster.yaml", "shop.yaml", "suite.test.yaml", "schema.json", "kustomization.yaml", "cluster.yml"]
        {
            fs::write(directory.path().join(file), "x").unwrap();
        }
        let Files { wrong, unread, .. } = Files::read(directory.path());
        let told: Vec<_> = wrong.iter().map(|problem| file_name(&problem.file)).collect();
        assert_eq!((told, unread.len()), (vec!["cluster.yml", "shop.yaml"], 0));
        assert!(wrong[0].message.contains("namespaces/NAMESPACE.yaml"));
    }
}

//! The texts of policy files at one moment, from a directory or from ConfigMaps.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::problem::{Problem, SourceFile};
use crate::object::is_dns_label;
use crate::text::look_alike;

/// The subdirectory with the policies of namespaces.
pub const NAMESPACES_DIR: &str = "namespaces";

/// The shipped policy: every cluster policy states differences from it.
pub(super) const SHIPPED_POLICY: &str = include_str!("shipped.yaml");
pub(super) const SHIPPED_PATH: &str = "shipped.yaml";

/// The problem of a file in `namespaces/` whose name is not that of a namespace.
pub fn bad_file_name(name: &str) -> String {
    let look_alike = look_alike(name).map(|found| format!("; it {found}")).unwrap_or_default();
    format!("the file name is not a namespace; rename the file to NAMESPACE.yaml{look_alike}")
}

/// The texts of a directory of policies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicyFiles {
    pub(super) cluster: Option<SourceFile>,
    /// By namespace, in order.
    pub(super) namespaces: Vec<(String, SourceFile)>,
    /// Files that could not be read. Their content may be unchanged.
    pub(super) unread: Vec<Problem>,
    /// Files that are not text, or not in the right place.
    pub(super) wrong: Vec<Problem>,
}

impl PolicyFiles {
    /// The texts of the two ConfigMaps that are mounted as a directory of policies. The second is mounted at `namespaces/`.
    #[must_use]
    pub fn mounted(
        own: impl IntoIterator<Item = (String, String)>,
        namespaces: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        let cluster = own.into_iter().find(|(key, _)| key == "cluster.yaml");
        let cluster = cluster.map(|(key, text)| SourceFile { path: key.into(), text });
        let mut files = Self { cluster, ..Self::default() };
        if files.cluster.is_none() {
            let message = "the ConfigMap has no key cluster.yaml; put the cluster policy there";
            files.add_wrong("cluster.yaml".into(), message.to_owned());
        }
        for (key, text) in namespaces {
            let path = Path::new(NAMESPACES_DIR).join(&key);
            match key.strip_suffix(".yaml") {
                Some(namespace) if is_dns_label(namespace) => {
                    files.namespaces.push((namespace.to_owned(), SourceFile { path, text }));
                }
                _ => files.add_wrong(path, bad_file_name(&key)),
            }
        }
        files
    }

    /// The policy that is shipped with this binary.
    #[must_use]
    pub fn shipped() -> Self {
        let text = include_str!("../../../../policies/cluster.yaml").to_owned();
        Self { cluster: Some(SourceFile { path: "policies/cluster.yaml".into(), text }), ..Self::default() }
    }

    /// The names of the files, in order.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.cluster.iter().chain(self.namespaces.iter().map(|(_, source)| source)).map(|source| source.path.as_path())
    }

    /// A digest of the texts, in 12 hexadecimal digits. Directories do not count, because a file may be mounted
    /// anywhere.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut digest = Sha256::new();
        let own = self.cluster.iter().map(|source| ("", source));
        for (namespace, SourceFile { text, .. }) in
            own.chain(self.namespaces.iter().map(|(name, it)| (name.as_str(), it)))
        {
            [namespace, text].into_iter().for_each(|part| digest.update(Sha256::digest(part)));
        }
        digest.finalize().iter().take(6).fold(String::new(), |digits, byte| format!("{digits}{byte:02x}"))
    }

    /// Adds the text of the cluster policy.
    pub fn set_cluster(&mut self, path: PathBuf, text: String) {
        self.cluster = Some(SourceFile { path, text });
    }

    /// Adds the text of the policy of a namespace.
    pub fn add_namespace(&mut self, namespace: String, path: PathBuf, text: String) {
        self.namespaces.push((namespace, SourceFile { path, text }));
    }

    /// Adds a file that could not be read. The policies in force stay in force.
    pub fn add_unread(&mut self, file: PathBuf, message: String) {
        self.unread.push(Problem { file, location: None, message });
    }

    /// Adds a file that is entirely wrong.
    pub fn add_wrong(&mut self, file: PathBuf, message: String) {
        self.wrong.push(Problem { file, location: None, message });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounted_config_maps_are_read_like_a_directory() {
        let text = |key: &str, text: &str| (key.to_owned(), text.to_owned());
        let own = [text("README", "x"), text("cluster.yaml", "a")];
        let files = PolicyFiles::mounted(own, [text("shop.yaml", "b"), text("notes.txt", "x"), text("Shop.yaml", "x")]);
        assert_eq!(files.wrong.len(), 2);
        let paths: Vec<_> = files.paths().map(|path| path.to_string_lossy().into_owned()).collect();
        assert_eq!(paths, ["cluster.yaml", "namespaces/shop.yaml"]);
    }

    #[test]
    fn the_digest_depends_only_on_the_texts() {
        let digest = |namespaces: &[(&str, &str)]| {
            let namespaces = namespaces.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned()));
            PolicyFiles::mounted([("cluster.yaml".to_owned(), "a".to_owned())], namespaces).digest()
        };
        let mut read = PolicyFiles::default();
        read.set_cluster("/etc/policies/cluster.yaml".into(), "a".to_owned());
        assert_eq!(read.digest(), digest(&[]));
        assert_eq!(read.digest().len(), 12);
        let shop = digest(&[("shop.yaml", "b")]);
        for other in [digest(&[]), digest(&[("shop.yaml", "c")]), digest(&[("shops.yaml", "b")])] {
            assert_ne!(shop, other);
        }
    }
}

//! Complete policies with the origin of each setting, for `interlock policy show`.

use std::path::PathBuf;

use super::file::{Content, Node, PolicyKind, tree};
use super::files::PolicyFiles;
use super::in_force::SettingOrigin;
use super::loaded::LoadedPolicies;
use super::problem::{PolicyError, Problems, SourceFile};

/// A file, completed by the shipped policy.
#[derive(Debug)]
pub struct EffectivePolicy {
    pub file: PathBuf,
    pub settings: Vec<EffectiveSetting>,
}

/// A setting, or an entry of a list.
#[derive(Debug)]
pub struct EffectiveSetting {
    /// The keys, from the outermost one on.
    pub path: Vec<String>,
    /// As YAML, on one line.
    pub value: String,
    pub is_entry: bool,
    pub origin: SettingOrigin,
}

impl PolicyFiles {
    /// The cluster policy merged over the shipped one, and the policies of namespaces as they are.
    ///
    /// # Errors
    /// Every problem in the files.
    pub fn complete(&self) -> Result<Vec<EffectivePolicy>, PolicyError> {
        LoadedPolicies::of(self).into_policies()?;
        let cluster = self.cluster.iter().map(|source| (source, PolicyKind::Cluster));
        let namespaces = self.namespaces.iter().map(|(_, source)| (source, PolicyKind::Namespace));
        Ok(cluster.chain(namespaces).map(|(source, kind)| completed(source, kind)).collect())
    }
}

fn completed(source: &SourceFile, kind: PolicyKind) -> EffectivePolicy {
    let mut settings = Vec::new();
    if let Some(tree) = tree(source, kind, &mut Problems::of(source)) {
        collect(source, &tree, &mut Vec::new(), &mut settings);
    }
    EffectivePolicy { file: source.path.clone(), settings }
}

fn collect(source: &SourceFile, node: &Node, path: &mut Vec<String>, settings: &mut Vec<EffectiveSetting>) {
    let mut add = |node: &Node, is_entry| {
        let origin = SettingOrigin::of(source, node.span);
        settings.push(EffectiveSetting { path: path.clone(), value: node.to_string(), is_entry, origin });
    };
    match &node.content {
        Content::List(items) if !items.is_empty() => items.iter().for_each(|item| add(item, true)),
        Content::Mapping(entries) if !entries.is_empty() => {
            for entry in entries {
                path.push(entry.key.clone());
                collect(source, &entry.value, path, settings);
                path.pop();
            }
        }
        _ => add(node, false),
    }
}

//! `interlock policy show`: the complete policy, with the origin of each line.

use std::path::PathBuf;

use interlock_engine::policy_files::{EffectivePolicy, EffectiveSetting, PolicyFiles, SettingOrigin};
use serde_json::{Value, json};

use crate::cli::cluster::ClusterArguments;
use crate::cli::examples::examples;
use crate::cli::exit_status::ExitStatus;
use crate::cli::output::Output;
use crate::cli::policies_in_force::PoliciesInForce;
use crate::cli::runtime::block_on;
use crate::world::policy_directory;

/// Print the whole policy: what the files state, and what is shipped, with the origin of each line
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&["interlock policy show", "interlock policy show policies -o yaml"]))]
pub(super) struct Arguments {
    /// Directory with cluster.yaml [default: the policy of the installation in the cluster]
    directory: Option<PathBuf>,
    #[command(flatten)]
    cluster: ClusterArguments,
    #[command(flatten)]
    in_force: PoliciesInForce,
    /// Output format
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

impl Arguments {
    pub(super) fn run(&self) -> anyhow::Result<ExitStatus> {
        let files = match &self.directory {
            Some(directory) => policy_directory::read(directory),
            None => block_on(self.files())?,
        };
        let policies = files.complete()?;
        self.output.print(&json(&policies), || policies.iter().map(text).collect::<Vec<_>>().join("---\n"))?;
        Ok(ExitStatus::Success)
    }

    async fn files(&self) -> anyhow::Result<PolicyFiles> {
        if self.in_force.is_directory() {
            return Ok(self.in_force.without_cluster()?.files);
        }
        Ok(self.in_force.read(&self.cluster.client().await?).await?.files)
    }
}

/// The column of the origins, unless a line is longer.
const ORIGIN_COLUMN: usize = 60;

/// The policy as YAML. A policy file with this text has the same meaning.
fn text(policy: &EffectivePolicy) -> String {
    let (mut text, mut open) = (String::new(), Vec::new());
    for setting in &policy.settings {
        let EffectiveSetting { path, value, is_entry, origin } = setting;
        let (parents, line) = match path.split_last() {
            Some((key, parents)) if !is_entry => (parents, format!("{}{key}: {value}", indent(parents.len()))),
            _ => (path.as_slice(), format!("{}- {value}", indent(path.len()))),
        };
        let known = open.iter().zip(parents).take_while(|(open, key)| open == key).count();
        for (depth, key) in parents.iter().enumerate().skip(known) {
            text.push_str(&format!("{}{key}:\n", indent(depth)));
        }
        open = parents.to_vec();
        text.push_str(&format!("{line:<ORIGIN_COLUMN$}  # {}\n", shown(origin)));
    }
    text
}

fn indent(depth: usize) -> String {
    "  ".repeat(depth)
}

fn shown(origin: &SettingOrigin) -> String {
    match origin {
        SettingOrigin::Shipped => "shipped".to_owned(),
        SettingOrigin::File { file, line } => format!("{}:{line}", file.display()),
    }
}

fn json(policies: &[EffectivePolicy]) -> Value {
    json!({"policies": policies.iter().map(policy_json).collect::<Vec<_>>()})
}

fn policy_json(policy: &EffectivePolicy) -> Value {
    json!({"file": policy.file, "settings": policy.settings.iter().map(setting_json).collect::<Vec<_>>()})
}

fn setting_json(setting: &EffectiveSetting) -> Value {
    json!({"path": setting.path.join("."), "value": setting.value, "origin": shown(&setting.origin)})
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_shown_policy_has_the_same_meaning() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("cluster.yaml");
        let given = "# ours\napiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\nmanagers: [a]\ntools: {only: [b]}\n\
                     controllers: {only: []}\nfreezes:\n  - {name: a, reason: \"no, {really}: don't\", timeZone: UTC, weekdays: [friday]}\n\
                     rules:\n  manual-edit: {mode: 'off'}\n  manual-scale: {cases: {only: [{when: {users: [x]}, mode: warn}]}}\n";
        fs::write(&file, given).unwrap();
        let shown = text(&policy_directory::read(directory.path()).complete().unwrap().remove(0));
        assert!(
            shown.starts_with(&format!("{:<60}  # {}:2\n", "apiVersion: interlock.dev/v1alpha1", file.display())),
            "{shown}"
        );
        assert!(shown.contains(&format!("rules:\n  freeze:\n{:<60}  # shipped\n", "    mode: enforce")), "{shown}");
        let parsed = |text: &str| format!("{:?}", interlock_engine::policy::Policy::parse(text, &file).unwrap());
        assert_eq!(parsed(&shown), parsed(given));
    }
}

//! `policies/cluster.yaml`: read strictly, so that a typing error is an error and not a rule that is silently off.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use jiff::SignedDuration;
use serde::Deserialize;

use super::{Mode, OnUndecided, Policy, Recovery, RollbackWay, RuleSettings, UserGlobs};
use crate::rules::RuleId;

const API_VERSION: &str = "interlock.dev/v1alpha1";
const KIND: &str = "ClusterPolicy";

/// Why a policy cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The file cannot be read.
    #[error("failed to read the policy {}; name the directory that holds cluster.yaml with --policies", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not what the schema allows.
    #[error("the policy {} is not valid: {message}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong, with line and column where they are known.
        message: String,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    api_version: String,
    kind: String,
    #[serde(default)]
    rules: BTreeMap<RuleId, RuleFile>,
    #[serde(default)]
    managers: Vec<String>,
    #[serde(default)]
    tools: Vec<String>,
}

/// The settings of any rule. The ones of `pending-recovery` stand beside those that every rule has.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct RuleFile {
    mode: Mode,
    on_undecided: Option<OnUndecided>,
    stale_after: Option<String>,
    rollback: Option<RollbackWay>,
    roll_forward_only: Option<bool>,
}

pub(super) fn load(path: &Path) -> Result<Policy, PolicyError> {
    let text = fs::read_to_string(path).map_err(|source| PolicyError::Read { path: path.to_path_buf(), source })?;
    parse(&text, path)
}

pub(super) fn parse(text: &str, path: &Path) -> Result<Policy, PolicyError> {
    let invalid = |message: String| PolicyError::Invalid { path: path.to_path_buf(), message };
    let file: File = serde_saphyr::from_str(text).map_err(|error| invalid(error.to_string()))?;
    if (file.api_version.as_str(), file.kind.as_str()) != (API_VERSION, KIND) {
        let (kind, version) = (&file.kind, &file.api_version);
        return Err(invalid(format!("expected kind {KIND} of {API_VERSION}, got {kind} of {version}")));
    }
    let mut rules = [RuleSettings::default(); RuleId::ALL.len()];
    let mut recovery = Recovery::default();
    for (rule, settings) in &file.rules {
        rules[*rule as usize] = RuleSettings { mode: settings.mode, on_undecided: settings.on_undecided };
        if *rule == RuleId::PendingRecovery {
            recovery = recovery_of(settings).map_err(&invalid)?;
        } else if settings.stale_after.is_some() || settings.rollback.is_some() || settings.roll_forward_only.is_some()
        {
            let settings = "staleAfter, rollback and rollForwardOnly";
            return Err(invalid(format!("rules.{rule}: {settings} are settings of rules.pending-recovery")));
        }
    }
    let globs = |list: &[String], key: &str| {
        let set = UserGlobs::new(list.iter().map(String::as_str));
        set.map_err(|error| invalid(format!("{key}: {error}")))
    };
    Ok(Policy { rules, recovery, managers: globs(&file.managers, "managers")?, tools: globs(&file.tools, "tools")? })
}

fn recovery_of(settings: &RuleFile) -> Result<Recovery, String> {
    let shipped = Recovery::default();
    let stale_after = match &settings.stale_after {
        None => shipped.stale_after,
        Some(text) => text.parse::<SignedDuration>().ok().filter(SignedDuration::is_positive).ok_or_else(|| {
            format!("rules.pending-recovery.staleAfter: {text:?} is not a duration like 15m or 1h30m")
        })?,
    };
    Ok(Recovery {
        stale_after,
        rollback: settings.rollback.unwrap_or(shipped.rollback),
        roll_forward_only: settings.roll_forward_only.unwrap_or(shipped.roll_forward_only),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\n";

    fn read(rest: &str) -> Result<Policy, String> {
        parse(&format!("{HEAD}{rest}"), Path::new("p/cluster.yaml")).map_err(|error| error.to_string())
    }

    #[test]
    fn the_shipped_policy_enforces_every_rule() {
        let policy = Policy::shipped().unwrap();
        for rule in RuleId::ALL {
            assert_eq!(policy.rule(rule).mode, Mode::Enforce, "{rule}");
        }
        assert_eq!(policy.recovery, Recovery::default());
        assert!(policy.managers.contains("system:serviceaccount:flux-system:helm-controller"));
        assert!(!policy.managers.contains("alice"));
    }

    #[test]
    fn settings_are_read() {
        let policy = read(
            "rules:\n  pending-recovery: {staleAfter: 1h30m, rollback: never, rollForwardOnly: true, mode: warn}\n  \
             revision-order: {mode: off, onUndecided: allow}\ntools: ['system:serviceaccount:velero:*']\n",
        )
        .unwrap();
        assert_eq!(policy.recovery.stale_after, SignedDuration::from_mins(90));
        assert_eq!(policy.recovery.rollback, RollbackWay::Never);
        assert!(policy.recovery.roll_forward_only);
        assert_eq!(policy.rule(RuleId::PendingRecovery).mode, Mode::Warn);
        let order = policy.rule(RuleId::RevisionOrder);
        assert_eq!((order.mode, order.on_undecided), (Mode::Off, Some(OnUndecided::Allow)));
        assert_eq!(policy.rule(RuleId::RecordDeletion).mode, Mode::Enforce);
        assert!(policy.tools.contains("system:serviceaccount:velero:velero"));
    }

    #[test]
    fn errors_name_the_file_and_the_place() {
        for (rest, wanted) in [
            ("rulez: {}\n", "rulez"),
            ("rules:\n  manual-edits: {mode: warn}\n", "manual-edits"),
            ("rules:\n  revision-order: {mode: strict}\n", "strict"),
            ("rules:\n  revision-order: {staleAfter: 5m}\n", "rules.revision-order"),
            ("rules:\n  pending-recovery: {staleAfter: soon}\n", "staleAfter"),
            ("rules:\n  pending-recovery: {staleAfter: -5m}\n", "staleAfter"),
            ("tools: ['[']\n", "tools"),
            ("kind: Again\n", "kind"),
        ] {
            let error = read(rest).unwrap_err();
            assert!(error.contains("p/cluster.yaml") && error.contains(wanted), "{rest}: {error}");
        }
        let error = read("rules:\n  revision-order: {mode: strict}\n").unwrap_err();
        assert!(error.contains("line 4"), "{error}");
    }

    #[test]
    fn another_kind_is_refused() {
        let error = parse("apiVersion: v1\nkind: Pod\n", Path::new("x")).unwrap_err().to_string();
        assert!(error.contains("got Pod of v1"), "{error}");
    }
}

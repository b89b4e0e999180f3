//! What a HelmRelease asks for.

use jiff::SignedDuration;
use serde::Deserialize;
use serde_json::Value;

use super::duration;
use crate::engine::json::null_is_default;

/// `spec`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HelmReleaseSpec {
    /// The name of the release; empty for the default.
    pub release_name: String,
    /// The namespace of the objects; empty for the HelmRelease's own.
    pub target_namespace: String,
    /// The namespace of the records; empty for the HelmRelease's own.
    pub storage_namespace: String,
    /// Flux does nothing for a suspended one, whatever becomes of it; an action that is running goes on.
    pub suspend: bool,
    /// For each wait and each hook of every action; `None` for 5 minutes.
    #[serde(deserialize_with = "duration::read")]
    pub timeout: Option<SignedDuration>,
    /// How many records are kept; `None` for 5, 0 for all.
    pub max_history: Option<i64>,
    /// The account of the HelmRelease's namespace that Flux impersonates; empty for its own.
    pub service_account_name: String,
    /// The cluster that the release is on, as it is written; `None` for this one.
    pub kube_config: Option<Value>,
    /// The chart, in one of the ways to name it; its name is only known where it comes from a repository of charts.
    pub chart: Option<ChartTemplate>,
    /// How it is installed.
    #[serde(deserialize_with = "null_is_default")]
    pub install: InstallSpec,
    /// How it is upgraded.
    #[serde(deserialize_with = "null_is_default")]
    pub upgrade: UpgradeSpec,
    /// How it is rolled back.
    #[serde(deserialize_with = "null_is_default")]
    pub rollback: RollbackSpec,
    /// How it is tested.
    #[serde(deserialize_with = "null_is_default")]
    pub test: TestSpec,
    /// How it is uninstalled.
    #[serde(deserialize_with = "null_is_default")]
    pub uninstall: UninstallSpec,
}

/// `spec.chart`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ChartTemplate {
    /// What is in it.
    #[serde(deserialize_with = "null_is_default")]
    pub spec: ChartTemplateSpec,
}

/// `spec.chart.spec`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ChartTemplateSpec {
    /// A name in a repository of charts, or a path in another source.
    pub chart: String,
    /// Where it is from.
    #[serde(deserialize_with = "null_is_default")]
    pub source_ref: ChartSourceRef,
}

/// `spec.chart.spec.sourceRef`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ChartSourceRef {
    /// `HelmRepository`, `GitRepository` or `Bucket`.
    pub kind: String,
}

/// `spec.install`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InstallSpec {
    /// In place of `spec.timeout`.
    #[serde(deserialize_with = "duration::read")]
    pub timeout: Option<SignedDuration>,
    /// What is done after a failure.
    #[serde(deserialize_with = "null_is_default")]
    pub strategy: FailureStrategy,
    /// How a failure is remedied: always by an uninstall.
    #[serde(deserialize_with = "null_is_default")]
    pub remediation: Option<Remediation>,
    /// Whether a release may take the name of an uninstalled one whose records were kept.
    pub replace: bool,
    /// Whether the target namespace is made.
    pub create_namespace: bool,
}

/// `spec.upgrade`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UpgradeSpec {
    /// In place of `spec.timeout`.
    #[serde(deserialize_with = "duration::read")]
    pub timeout: Option<SignedDuration>,
    /// What is done after a failure.
    #[serde(deserialize_with = "null_is_default")]
    pub strategy: FailureStrategy,
    /// How a failure is remedied: by a rollback unless told otherwise.
    #[serde(deserialize_with = "null_is_default")]
    pub remediation: Option<Remediation>,
    /// Whether objects are replaced.
    pub force: bool,
    /// Whether the values of the revision before are taken over.
    pub preserve_values: bool,
    /// `enabled`, `disabled` or `auto`: as the revision before was applied.
    pub server_side_apply: String,
    /// `Reinstall` or `InPlaceUpdate`; empty for the first.
    pub chart_name_change_strategy: String,
}

/// `spec.rollback`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RollbackSpec {
    /// In place of `spec.timeout`.
    #[serde(deserialize_with = "duration::read")]
    pub timeout: Option<SignedDuration>,
    /// Whether objects are replaced.
    pub force: bool,
    /// Has no effect.
    pub recreate: bool,
    /// As for an upgrade.
    pub server_side_apply: String,
}

/// `spec.test`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct TestSpec {
    /// In place of `spec.timeout`.
    #[serde(deserialize_with = "duration::read")]
    pub timeout: Option<SignedDuration>,
}

/// `spec.uninstall`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UninstallSpec {
    /// In place of `spec.timeout`.
    #[serde(deserialize_with = "duration::read")]
    pub timeout: Option<SignedDuration>,
    /// Whether the records stay, the newest as `uninstalled`.
    pub keep_history: bool,
}

/// `spec.install.strategy` and `spec.upgrade.strategy`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FailureStrategy {
    /// `RemediateOnFailure` or `RetryOnFailure`; empty for what Flux was started with, the first as a rule.
    pub name: String,
    /// The pause between two tries; `None` for 5 minutes.
    #[serde(deserialize_with = "duration::read")]
    pub retry_interval: Option<SignedDuration>,
}

impl FailureStrategy {
    /// Whether a failure is followed by another try, without end.
    #[must_use]
    pub fn retries(&self) -> bool {
        self.name == "RetryOnFailure"
    }
}

/// `spec.install.remediation` and `spec.upgrade.remediation`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Remediation {
    /// How often it is tried again after the remedy; below 0 without end.
    pub retries: i64,
    /// Whether the last failure is remedied too; `None` where that depends on `retries` being positive.
    pub remediate_last_failure: Option<bool>,
    /// Of an upgrade: `rollback` or `uninstall`; empty for the first.
    pub strategy: String,
}

impl Remediation {
    /// Whether any failure is remedied.
    #[must_use]
    pub fn acts(&self) -> bool {
        self.retries != 0 || self.remediate_last_failure == Some(true)
    }
}

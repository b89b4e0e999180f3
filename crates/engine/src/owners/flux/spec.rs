//! `spec` of a HelmRelease.

use jiff::SignedDuration;
use serde::Deserialize;

use super::{KubeConfig, duration};
use crate::json::null_is_default;

/// `spec`, without the parts that can be large: values, and drift detection (see [`DriftSpec`](super::DriftSpec)).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HelmReleaseSpec {
    /// The name of the release; empty for the default.
    pub release_name: String,
    /// The namespace of the objects; empty for the HelmRelease's own.
    pub target_namespace: String,
    /// The namespace of the records; empty for the HelmRelease's own.
    pub storage_namespace: String,
    /// Flux does not act on a suspended HelmRelease, not even if it is deleted. A running action continues.
    pub suspend: bool,
    /// For each wait and each hook of every action; `None` for 5 minutes.
    #[serde(deserialize_with = "duration::read")]
    pub timeout: Option<SignedDuration>,
    /// The number of records that are kept; `None` for 5, 0 for all.
    pub max_history: Option<i64>,
    /// The service account, in the namespace of the HelmRelease, that Flux impersonates; empty for Flux's own account.
    pub service_account_name: String,
    /// The cluster of the release; `None` for this cluster.
    pub kube_config: Option<KubeConfig>,
    /// The chart, if it is specified this way. Its name is known only if it comes from a chart repository.
    pub chart: Option<ChartTemplate>,
    /// The source of the chart, if it is specified this way.
    pub chart_ref: Option<ChartSourceRef>,
    #[serde(deserialize_with = "null_is_default")]
    pub install: InstallSpec,
    #[serde(deserialize_with = "null_is_default")]
    pub upgrade: UpgradeSpec,
    #[serde(deserialize_with = "null_is_default")]
    pub rollback: RollbackSpec,
    #[serde(deserialize_with = "null_is_default")]
    pub test: TestSpec,
    #[serde(deserialize_with = "null_is_default")]
    pub uninstall: UninstallSpec,
}

/// `spec.chart`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ChartTemplate {
    #[serde(deserialize_with = "null_is_default")]
    pub spec: ChartTemplateSpec,
}

/// `spec.chart.spec`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ChartTemplateSpec {
    /// A name in a repository of charts, or a path in another source.
    pub chart: String,
    #[serde(deserialize_with = "null_is_default")]
    pub source_ref: ChartSourceRef,
}

/// `spec.chart.spec.sourceRef`, and `spec.chartRef`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ChartSourceRef {
    /// For example `HelmRepository`, `GitRepository` or `OCIRepository`.
    pub kind: String,
    pub name: String,
    /// Empty for the HelmRelease's namespace.
    pub namespace: String,
}

/// `spec.install`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InstallSpec {
    /// Overrides `spec.timeout`.
    #[serde(deserialize_with = "duration::read")]
    pub timeout: Option<SignedDuration>,
    #[serde(deserialize_with = "null_is_default")]
    pub strategy: FailureStrategy,
    /// How failures are remediated: always by an uninstall.
    #[serde(deserialize_with = "null_is_default")]
    pub remediation: Option<Remediation>,
    /// Whether a release may use the name of an uninstalled release whose records were kept.
    pub replace: bool,
    /// Whether Flux creates the target namespace.
    pub create_namespace: bool,
}

/// `spec.upgrade`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UpgradeSpec {
    /// Overrides `spec.timeout`.
    #[serde(deserialize_with = "duration::read")]
    pub timeout: Option<SignedDuration>,
    #[serde(deserialize_with = "null_is_default")]
    pub strategy: FailureStrategy,
    /// How failures are remediated: by a rollback unless `strategy` says otherwise.
    #[serde(deserialize_with = "null_is_default")]
    pub remediation: Option<Remediation>,
    /// Whether objects are replaced.
    pub force: bool,
    /// Whether the values of the previous revision are reused.
    pub preserve_values: bool,
    /// `enabled`, `disabled` or `auto`, which means as in the previous revision.
    pub server_side_apply: String,
    /// `Reinstall` or `InPlaceUpdate`; empty for `Reinstall`.
    pub chart_name_change_strategy: String,
}

/// `spec.rollback`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RollbackSpec {
    /// Overrides `spec.timeout`.
    #[serde(deserialize_with = "duration::read")]
    pub timeout: Option<SignedDuration>,
    /// Whether objects are replaced.
    pub force: bool,
    /// Has no effect.
    pub recreate: bool,
    /// `enabled`, `disabled` or `auto`, which means as in the previous revision.
    pub server_side_apply: String,
}

/// `spec.test`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct TestSpec {
    /// Overrides `spec.timeout`.
    #[serde(deserialize_with = "duration::read")]
    pub timeout: Option<SignedDuration>,
}

/// `spec.uninstall`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UninstallSpec {
    /// Overrides `spec.timeout`.
    #[serde(deserialize_with = "duration::read")]
    pub timeout: Option<SignedDuration>,
    /// Whether the records are kept, the newest as `uninstalled`.
    pub keep_history: bool,
}

/// `spec.install.strategy` and `spec.upgrade.strategy`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FailureStrategy {
    /// `RemediateOnFailure` or `RetryOnFailure`; empty for the default from Flux's flags, usually `RemediateOnFailure`.
    pub name: String,
    /// The pause between two attempts; `None` for 5 minutes.
    #[serde(deserialize_with = "duration::read")]
    pub retry_interval: Option<SignedDuration>,
}

impl FailureStrategy {
    /// Whether Flux retries a failed action without limit.
    #[must_use]
    pub fn retries(&self) -> bool {
        self.name == "RetryOnFailure"
    }
}

/// `spec.install.remediation` and `spec.upgrade.remediation`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Remediation {
    /// The number of retries after a remediation; negative for no limit.
    pub retries: i64,
    /// Whether the last failure is remediated too; if `None`, only if `retries` is positive.
    pub remediate_last_failure: Option<bool>,
    /// For an upgrade: `rollback` or `uninstall`; empty for `rollback`.
    pub strategy: String,
}

impl Remediation {
    /// Whether any failure is remediated.
    #[must_use]
    pub fn acts(&self) -> bool {
        self.retries != 0 || self.remediate_last_failure == Some(true)
    }

    /// Whether anything but the number of retries is set.
    #[must_use]
    pub fn is_more_than_retries(&self) -> bool {
        self.remediate_last_failure.is_some() || !self.strategy.is_empty()
    }
}

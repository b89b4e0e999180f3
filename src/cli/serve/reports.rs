//! The arguments for reports in the cluster.

use std::time::Duration;

use clap::ValueEnum;
use jiff::SignedDuration;

use crate::cli::duration::some_seconds;
use crate::cluster_name::ClusterName;
use crate::serve::report::openreports::{Flavour, ReportSettings};
use crate::world::kubernetes::Reach;

/// The arguments for reports.
#[derive(Debug, clap::Args)]
pub(super) struct ReportArguments {
    /// API for reports about releases, if it is installed
    #[arg(long, value_enum, default_value_t = Api::Openreports, env = "INTERLOCK_REPORTS")]
    reports: Api,
    /// How long a report keeps an event
    #[arg(long, value_name = "DURATION", default_value = "24h", env = "INTERLOCK_REPORT_RETENTION", value_parser = some_seconds)]
    report_retention: Duration,
    /// Time between two rounds of writing reports
    #[arg(long, value_name = "DURATION", default_value = "5s", env = "INTERLOCK_REPORT_ROUND", hide = true,
          value_parser = some_seconds)]
    report_round: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Api {
    /// Report of openreports.io/v1alpha1.
    Openreports,
    /// PolicyReport of wgpolicyk8s.io/v1alpha2.
    Wgpolicy,
    /// No reports.
    Off,
}

impl ReportArguments {
    /// The settings of reports. `None` if reports are off.
    pub(super) fn settings(
        &self,
        namespace: &str,
        reach: &Reach,
        cluster: Option<&ClusterName>,
    ) -> Option<ReportSettings> {
        let flavour = match self.reports {
            Api::Openreports => Flavour::OpenReports,
            Api::Wgpolicy => Flavour::WgPolicy,
            Api::Off => return None,
        };
        Some(ReportSettings {
            flavour,
            retention: SignedDuration::try_from(self.report_retention).unwrap_or(SignedDuration::MAX),
            round: self.report_round,
            namespace: namespace.to_owned(),
            reach: reach.clone(),
            cluster: cluster.cloned(),
        })
    }
}

//! The arguments for reports in the cluster.

use std::time::Duration;

use clap::ValueEnum;
use jiff::SignedDuration;

use crate::serve::report::openreports::{Flavour, Settings};
use crate::world::kubernetes::Reach;

/// The arguments for reports.
#[derive(Debug, clap::Args)]
pub(super) struct ReportArguments {
    /// API for reports about releases, if it is installed
    #[arg(long, value_enum, default_value_t = Api::Openreports, env = "INTERLOCK_REPORTS")]
    reports: Api,
    /// Seconds for which a report keeps an event
    #[arg(long, value_name = "SECONDS", default_value_t = 86_400, env = "INTERLOCK_REPORT_RETENTION",
          value_parser = clap::value_parser!(u32).range(1..))]
    report_retention: u32,
    /// Seconds between two rounds of writing reports
    #[arg(long, value_name = "SECONDS", default_value_t = 5, env = "INTERLOCK_REPORT_ROUND", hide = true,
          value_parser = clap::value_parser!(u32).range(1..))]
    report_round: u32,
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
    /// The settings of reports; `None` if they are off.
    pub(super) fn settings(&self, namespace: &str, reach: &Reach) -> Option<Settings> {
        let flavour = match self.reports {
            Api::Openreports => Flavour::OpenReports,
            Api::Wgpolicy => Flavour::WgPolicy,
            Api::Off => return None,
        };
        Some(Settings {
            flavour,
            retention: SignedDuration::from_secs(self.report_retention.into()),
            round: Duration::from_secs(self.report_round.into()),
            namespace: namespace.to_owned(),
            reach: reach.clone(),
        })
    }
}

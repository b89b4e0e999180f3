//! A commit with its ClusterSummary, and phrases for refusals of commits.

use crate::object::ObjectKey;
use crate::owners::sveltos::rules::group_commit::{GroupCommit, SummaryCommit};
use crate::owners::sveltos::{self, ClusterSummary, Feature, RemoteRelease, SveltosCluster};
use crate::policy::OnFirstInstall;
use crate::rules::check::{CheckedAll, Refusal, WaysOut};
use crate::rules::declarations::case::DeclarationCase;
use crate::rules::undecided::Undecided;
use crate::rules::wording::{MAX_ENUMERATED, enumerated};

/// A commit of one feature, with the ClusterSummary that shows what it must contain.
pub(super) struct Delivery<'d, 'a> {
    pub(super) case: &'a DeclarationCase<'a>,
    pub(super) commit: &'d GroupCommit<'a>,
    pub(super) of_summary: &'d SummaryCommit<'a>,
    pub(super) feature: Feature,
}

impl<'d, 'a> Delivery<'d, 'a> {
    pub(super) fn summary(&self) -> &'d ClusterSummary<'a> {
        &self.of_summary.summary
    }

    /// Requires that an agent acts on the group. Checked only before a refusal: without an agent, a group has no effect.
    pub(super) fn expect_agent(&self) -> Result<(), Undecided> {
        let spec = &self.summary().spec;
        let cluster = match spec.cluster_type.as_ref() {
            // Cluster API's clusters have no pull mode.
            "Capi" => None,
            _ => self.case.read::<SveltosCluster>(ObjectKey::new(
                sveltos::LIB_GROUP,
                sveltos::SVELTOS_CLUSTER,
                &spec.cluster_namespace,
                &spec.cluster_name,
            ))?,
        };
        if cluster.is_some_and(|cluster| cluster.spec.pull_mode) {
            return Ok(());
        }
        Err(Undecided::Unclear {
            why: format!("cluster {} is not a SveltosCluster with spec.pullMode", self.cluster()),
            way_out: "Only clusters in pull mode have ConfigurationGroups.",
        })
    }

    /// The result for a commit that lacks parts which were never delivered. Nothing is lost, but the profile can become
    /// Provisioned without them.
    pub(super) fn first_install(&self, left_out: &str) -> CheckedAll {
        if self.case.policy.dropped_bundles.first_install == OnFirstInstall::Allow {
            return Ok(Vec::new());
        }
        let sentence = format!(
            "{} leaves out {left_out}, never delivered to cluster {} before: its first install would be incomplete.",
            self.of_summary.subject(),
            self.cluster()
        );
        Ok(vec![self.refusal(sentence, WaysOut::default())])
    }

    /// `the agent would remove what was delivered to cluster civ/prod`, or what it does instead.
    pub(super) fn consequence(&self) -> String {
        let cluster = self.cluster();
        if self.commit.group.spec.leave_policies {
            return format!("nothing would manage any longer what was delivered to cluster {cluster}");
        }
        format!("the agent would remove what was delivered to cluster {cluster}")
    }

    /// A refusal about the list of bundles, with the ways out.
    pub(super) fn refusal(&self, sentence: String, ways_out: WaysOut) -> Refusal {
        let context = format!("Nothing was changed on the cluster. {}", self.of_summary.retries(self.feature));
        self.of_summary.refusal(sentence, WaysOut::default().note(context).and(ways_out)).at("/spec/configurationItem")
    }

    /// `civ/prod`.
    pub(super) fn cluster(&self) -> String {
        self.summary().cluster()
    }
}

/// `release shop/web`, `releases shop/web, shop/cache and 3 more`.
pub(super) fn listed(releases: &[RemoteRelease]) -> String {
    format!("{} {}", noun(releases), enumerated(releases.iter().map(ToString::to_string), MAX_ENUMERATED))
}

pub(super) fn noun(releases: &[RemoteRelease]) -> &'static str {
    if releases.len() == 1 { "release" } else { "releases" }
}

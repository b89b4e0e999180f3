//! The rule `dropped-bundles`.
//!
//! The agent removes what an earlier commit delivered and this one does not name, and addon-controller up to 1.8.0 commits what it
//! has when a chart fails.
//!
//! Judged by completeness, release by release, never by difference: between rollouts there is no earlier group to compare with,
//! fewer bundles can be a complete chart, and an empty list is correct after the last chart was removed. A release without its last
//! bundle, and a commit without the bundle of a Flux source that is gone and not optional, are incomplete too.
//!
//! Not covered: a profile whose only chart is managed by another profile commits an empty list, correctly. Whether the agent then
//! leaves the release to its new owner depends on the marks of its objects.

mod delivered;
mod explained;
mod releases;
mod required;
mod sources;

use super::case::DeclarationCase;
use super::group_commit::GroupCommit;
use crate::engine::object::ObjectKey;
use crate::engine::policy::OnFirstInstall;
use crate::engine::rule::{FailsClosed, Mode, Specification, UNPROCESSABLE};
use crate::engine::rules::check::{Check, CheckedAll, Refusal, Rule};
use crate::engine::rules::undecided::Undecided;
use crate::engine::rules::wording::{MAX_ENUMERATED, enumerated};
use crate::engine::sveltos::{self, ClusterSummary, Feature, RemoteRelease, SveltosCluster};

/// The rule `dropped-bundles`.
pub(crate) static RULE: Rule = Rule {
    specification: Specification {
        id: "dropped-bundles",
        mode: Mode::Enforce,
        status_code: UNPROCESSABLE,
        fails_closed: FailsClosed::Always,
        summary: "A commit of Sveltos drops nothing that was delivered and is still wanted.",
        why: "The agent removes what a commit no longer names, and addon-controller up to 1.8.0 commits an incomplete \
              list when a chart fails to stage.",
        allowed: "An upgrade to fewer bundles; a chart that was removed from the profile; a first install that is \
              incomplete.",
        refused: "A ConfigurationGroup without any item after the first chart failed.",
        way_out: "Repair what failed to stage. If a chart renders to nothing on purpose, name its release in the annotation \
              interlock.dev/may-render-nothing.",
        settings: &["unexplained", "firstInstall"],
    },
    checks: &[Check::Declaration(check)],
};

/// A commit with the ClusterSummary that shows what it must contain.
struct Delivery<'a> {
    case: &'a DeclarationCase<'a>,
    commit: GroupCommit<'a>,
    summary: ClusterSummary<'a>,
}

pub(crate) fn check(case: &DeclarationCase<'_>) -> CheckedAll {
    let Some(commit) = GroupCommit::delivering(case)? else {
        return Ok(Vec::new());
    };
    let Some(summary) = commit.summary()? else {
        let why = match commit.requestor() {
            Some(_) => format!("{} does not exist, so nothing shows what it must contain", commit.summary_name()),
            None => "it does not name its ClusterSummary, which shows what it must contain".to_owned(),
        };
        return Err(Undecided::Unclear { why, way_out: "Let addon-controller write ConfigurationGroups." });
    };
    if summary.metadata.deletion_timestamp.is_some() {
        return Ok(Vec::new());
    }
    let delivery = Delivery { case, commit, summary };
    match delivery.commit.feature {
        Feature::Helm => releases::check(&delivery),
        Feature::Resources => sources::check(&delivery),
    }
}

impl Delivery<'_> {
    /// Requires that an agent acts on the group. Checked only before a refusal: without an agent a group has no effect.
    fn expect_agent(&self) -> Result<(), Undecided> {
        let spec = &self.summary.spec;
        let cluster = match spec.cluster_type.as_ref() {
            // Cluster API has no clusters in pull mode.
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

    /// The result for a commit that leaves out what was never delivered: nothing is lost, but the profile can become Provisioned
    /// without it.
    fn first_install(&self, left_out: &str) -> CheckedAll {
        if self.case.policy.dropped_bundles.first_install == OnFirstInstall::Allow {
            return Ok(Vec::new());
        }
        let sentence = format!(
            "{} leaves out {left_out}, never delivered to cluster {} before: its first install would be incomplete.",
            self.commit.subject(),
            self.cluster()
        );
        Ok(vec![Refusal::new(sentence, NOTHING_CHANGED).at("/spec/configurationItem")])
    }

    /// `civ/prod`.
    fn cluster(&self) -> String {
        format!("{}/{}", self.summary.spec.cluster_namespace, self.summary.spec.cluster_name)
    }
}

/// What happens after a refusal.
const NOTHING_CHANGED: &str = "Nothing was changed on the cluster. Sveltos retries within a minute.";

/// `release shop/web`, `releases shop/web, shop/cache and 3 more`.
fn listed(releases: &[RemoteRelease]) -> String {
    format!("{} {}", noun(releases), enumerated(releases.iter().map(ToString::to_string), MAX_ENUMERATED))
}

fn noun(releases: &[RemoteRelease]) -> &'static str {
    if releases.len() == 1 { "release" } else { "releases" }
}

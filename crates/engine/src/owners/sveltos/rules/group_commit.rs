//! A commit of Sveltos: a write of a ConfigurationGroup that changes what the agent of a managed cluster does.
//!
//! The author of a group chooses its contents: labels, ClusterSummary, profile, and whether it is a teardown. So the
//! ClusterSummary decides. It must belong to the group's profile and cluster, because the agent removes what it deployed for the
//! profile that the group names.

use std::borrow::Cow;

use crate::facts::DeclarationWrite;
use crate::object::ObjectKey;
use crate::owners::sveltos::{
    self, Bundle, BundleRef, ClusterSummary, Commit, ConfigurationGroup, Feature, ProfileRef, Requestor,
};
use crate::release::ReleaseRef;
use crate::rules::check::{Refusal, WaysOut};
use crate::rules::declarations::case::{DeclarationCase, unread};
use crate::rules::undecided::Undecided;
use crate::rules::wording::capitalized;

/// A write of a profile's group that changes something.
pub(crate) struct GroupCommit<'a> {
    case: &'a DeclarationCase<'a>,
    written: &'a DeclarationWrite<'a, ConfigurationGroup<'a>>,
    pub(crate) group: &'a ConfigurationGroup<'a>,
    requestor: Requestor<'a>,
}

/// A commit with the ClusterSummary that shows what it must contain.
pub(crate) struct SummaryCommit<'a> {
    pub(crate) summary: ClusterSummary<'a>,
    /// The name of the commit.
    name: Commit,
    namespace: &'a str,
    profile: ProfileRef<'a>,
}

impl<'a> GroupCommit<'a> {
    /// The commit of a request. `None` for groups of other controllers, and for writes without effect: the agent's finalizers, an
    /// unchanged list. These need no query. A group that is being deleted counts: the agent sees it until its finalizers are gone.
    pub(crate) fn of(case: &'a DeclarationCase<'a>) -> Result<Option<Self>, Undecided> {
        let Some(written) = case.group()? else {
            return Ok(None);
        };
        let (Some(group), before) = (&written.after, written.before.as_ref()) else {
            return Ok(None);
        };
        let has_same_marks = |before| Requestor::of(group, None).has_marks_of(&Requestor::of(before, None));
        let is_same = written.same_spec && before.is_some_and(has_same_marks);
        let requestor = Requestor::of(group, before);
        let changing = requestor.is_profile() && !is_same;
        Ok(changing.then_some(Self { case, written, group, requestor }))
    }

    /// The commit of a request, if the agent would treat its bundles as complete. `None` for a commit that removes everything, is a dry run (often partial), or still waits for bundles.
    pub(crate) fn delivering(case: &'a DeclarationCase<'a>) -> Result<Option<Self>, Undecided> {
        Ok(Self::of(case)?.filter(Self::delivers))
    }

    /// Like [`Self::delivering`], but also a commit that removes everything. After either, the agent may remove something.
    pub(crate) fn removing_or_delivering(case: &'a DeclarationCase<'a>) -> Result<Option<Self>, Undecided> {
        Ok(Self::of(case)?.filter(|commit| commit.group.removes() || commit.delivers()))
    }

    fn delivers(&self) -> bool {
        let is_off = self.group.removes() || self.group.spec.dry_run;
        !is_off && !self.waits()
    }

    /// Whether the bundles are still being written and nothing else changes. Sveltos writes such a group for each bundle. The
    /// list is that of the previous commit, which was checked then.
    fn waits(&self) -> bool {
        let group = self.group;
        let is_commit_before = |before: &ConfigurationGroup<'_>| {
            group.same_items(before)
                && (before.spec.dry_run, before.removes(), before.is_teardown())
                    == (group.spec.dry_run, group.removes(), group.is_teardown())
                && self.requestor.has_marks_of(&Requestor::of(before, None))
        };
        group.is_preparing() && self.written.before.as_ref().is_some_and(is_commit_before)
    }

    /// The features that the commit may have, also those of the previous commit: a group that changes its feature no longer
    /// contains what it contained.
    pub(crate) fn features(&self) -> Vec<Feature> {
        let before = self.written.before.as_ref().map_or(&[][..], |before| Requestor::of(before, None).features());
        let mut features = self.requestor.features().to_vec();
        features.extend(before.iter().filter(|feature| !self.requestor.features().contains(feature)));
        features
    }

    /// Whether the agent leaves on the cluster what a withdrawn profile deployed.
    pub(crate) fn leaves_behind(&self) -> bool {
        self.group.spec.leave_policies && (self.group.removes() || self.group.is_teardown())
    }

    /// The ClusterSummary of the commit, read from the API server: the controller wrote its status milliseconds ago. `None` if it
    /// does not exist. If the group names none or a wrong one, the ClusterSummary of its profile and cluster is used.
    pub(crate) fn summary(&self) -> Result<Option<SummaryCommit<'a>>, Undecided> {
        let requestor = &self.requestor;
        let named = self.read(requestor.summary().map(Cow::Borrowed))?;
        let is_wrong = |named: &SummaryCommit<'_>| {
            requestor.is_contradicted_by(&named.summary.spec.cluster_name, named.summary.profile())
        };
        if named.as_ref().is_some_and(|named| !is_wrong(named)) {
            return Ok(named);
        }
        let expected = requestor.expected_summary().filter(|expected| requestor.summary() != Some(expected));
        let expected = self.read(expected.map(Cow::Owned))?;
        // If a wrong ClusterSummary is being deleted, that does not prove a teardown of this profile.
        Ok(expected.or(named.filter(|named| !named.is_being_deleted())))
    }

    fn read(&self, summary: Option<Cow<'a, str>>) -> Result<Option<SummaryCommit<'a>>, Undecided> {
        let Some(name) = summary else {
            return Ok(None);
        };
        let namespace = self.written.namespace;
        let key = ObjectKey::new(sveltos::CONFIG_GROUP, sveltos::CLUSTER_SUMMARY, namespace, &name);
        let read = self.case.read::<ClusterSummary<'a>>(key)?;
        Ok(read.map(|summary| {
            let given = self.requestor.profile;
            let (kind, profile) = summary.profile().unwrap_or((&given.kind, &given.name));
            let home = if kind == "Profile" { Cow::Borrowed(namespace) } else { Cow::default() };
            let profile = ProfileRef { kind: kind.to_owned().into(), namespace: home, name: profile.to_owned().into() };
            let name = self.requestor.commit_of_summary(namespace, &name);
            SummaryCommit { summary, name, namespace, profile }
        }))
    }

    /// The names of the commit's bundles: those in the namespace of the group, and others. The agent reads no other namespace.
    pub(crate) fn named(&self) -> Result<(Vec<BundleRef>, Vec<BundleRef>), Undecided> {
        let named = self.named_in(self.group)?;
        Ok(named.into_iter().partition(|bundle| bundle.namespace == self.written.namespace))
    }

    /// The commit's bundles in the namespace of the group; `None` for one that does not exist.
    pub(crate) fn bundles(&self) -> Result<&'a [Option<Bundle>], Undecided> {
        self.case.bundles(&self.named()?.0)
    }

    /// The bundles of the previous commit that still exist; none if it delivered nothing.
    pub(crate) fn bundles_before(&self) -> Result<&'a [Option<Bundle>], Undecided> {
        let before = self.written.before.as_ref().filter(|before| !before.removes() && !before.spec.dry_run);
        before.map_or(Ok(&[]), |before| self.case.bundles(&self.named_in(before)?))
    }

    fn named_in(&self, group: &ConfigurationGroup<'_>) -> Result<Vec<BundleRef>, Undecided> {
        group
            .bundles(self.written.namespace)
            .map_err(|why| unread(&format!("its list of bundles cannot be parsed ({why})")))
    }

    /// Why the required content of the commit is unknown.
    pub(crate) fn unknown(&self) -> String {
        format!("{}, so nothing shows what it must contain", self.lacks_summary())
    }

    /// Why the commit has no ClusterSummary.
    pub(crate) fn lacks_summary(&self) -> String {
        match self.requestor.summary() {
            Some(name) => {
                let name = format!("{} {}/{name}", sveltos::CLUSTER_SUMMARY, self.written.namespace);
                format!("{name} does not exist, or is that of another profile or cluster")
            }
            None => "it does not name its ClusterSummary".to_owned(),
        }
    }
}

impl SummaryCommit<'_> {
    /// Whether the profile no longer wants anything on the cluster. Only then does Sveltos tell the agent to remove everything.
    pub(crate) fn is_being_deleted(&self) -> bool {
        self.summary.metadata.deletion_timestamp.is_some()
    }

    /// `The Helm commit of ClusterSummary civ/shop-sveltos-prod for ClusterProfile shop`.
    pub(crate) fn subject(&self) -> String {
        format!("{} for {}", capitalized(&self.name.to_string()), self.profile_name())
    }

    /// `ClusterSummary civ/shop-sveltos-prod`.
    pub(crate) fn summary_name(&self) -> String {
        let ObjectKey { kind, namespace, name, .. } = &self.name.object;
        format!("{kind} {namespace}/{name}")
    }

    /// `ClusterProfile shop`, `Profile civ/shop`.
    pub(crate) fn profile_name(&self) -> String {
        let ProfileRef { kind, namespace, name } = &self.profile;
        let kind = if kind.is_empty() { "profile" } else { kind.as_ref() };
        let scope = if namespace.is_empty() { "" } else { "/" };
        format!("{kind} {namespace}{scope}{name}")
    }

    /// The profile, which wants something on the cluster.
    pub(crate) fn profile(&self) -> &ProfileRef<'_> {
        &self.profile
    }

    /// A refusal of the commit. It is about the commit's ClusterSummary, regardless of the group's contents.
    pub(crate) fn refusal(&self, sentence: String, ways_out: impl Into<WaysOut>) -> Refusal {
        Refusal::new(sentence, ways_out).about(self.release())
    }

    /// The commit, as overrides name it.
    pub(crate) fn release(&self) -> ReleaseRef {
        self.name.release(self.namespace)
    }

    /// What Sveltos does after a refusal of this feature.
    pub(crate) fn retries(&self, feature: Feature) -> String {
        match self.summary.failures_until_it_stops(feature) {
            None => "Sveltos retries within a minute.".to_owned(),
            Some(most) => format!(
                "Sveltos may have stopped trying: maxConsecutiveFailures is {most}. Any change of the profile's spec makes it try \
                 again."
            ),
        }
    }
}

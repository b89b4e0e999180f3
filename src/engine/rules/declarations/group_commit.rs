//! A commit of Sveltos: a write of a ConfigurationGroup that changes what the agent of a managed cluster does.

use super::case::{DeclarationCase, unread};
use crate::engine::facts::DeclarationWrite;
use crate::engine::object::ObjectKey;
use crate::engine::rules::undecided::Undecided;
use crate::engine::sveltos::{self, Bundle, BundleRef, ClusterSummary, ConfigurationGroup, Feature};

/// The write of a group whose specification changes, for a feature that rules cover.
pub(crate) struct GroupCommit<'a> {
    case: &'a DeclarationCase<'a>,
    written: &'a DeclarationWrite<'a, ConfigurationGroup<'a>>,
    pub(crate) group: &'a ConfigurationGroup<'a>,
    pub(crate) feature: Feature,
}

impl<'a> GroupCommit<'a> {
    /// The commit of a request. `None` for groups of other requestors and features, and for writes that change nothing: the
    /// finalizers of the agent, the same list written again, a group that is being deleted. These need no query.
    pub(crate) fn of(case: &'a DeclarationCase<'a>) -> Result<Option<Self>, Undecided> {
        let Some(written) = case.group()?.filter(|written| !written.same_spec) else {
            return Ok(None);
        };
        let (Some(group), before) = (&written.after, &written.before) else {
            return Ok(None);
        };
        // A write that removes the label still concerns the group.
        let feature = group.feature().or_else(|| before.as_ref().and_then(ConfigurationGroup::feature));
        let changing = feature.filter(|_| group.metadata.deletion_timestamp.is_none());
        Ok(changing.map(|feature| Self { case, written, group, feature }))
    }

    /// The commit of a request whose bundles the agent would take as complete. Also `None` for a commit that removes everything,
    /// is part of a teardown (which names at most what runs before a removal), is a dry run (often partial), or whose list does not
    /// change while its bundles are still being written.
    pub(crate) fn delivering(case: &'a DeclarationCase<'a>) -> Result<Option<Self>, Undecided> {
        let delivers = |commit: &Self| {
            let group = commit.group;
            let same_items = commit.written.before.as_ref().is_some_and(|before| group.same_items(before));
            !(group.removes()
                || group.is_teardown()
                || group.spec.dry_run
                // One for each bundle that is written; the list is that of the commit before, which was judged then.
                || (group.is_preparing() && same_items))
        };
        Ok(Self::of(case)?.filter(delivers))
    }

    /// The ClusterSummary that requested it, read from the API server: the controller wrote its status milliseconds ago. `None` if
    /// it does not exist.
    pub(crate) fn summary(&self) -> Result<Option<ClusterSummary<'a>>, Undecided> {
        let Some(name) = self.requestor() else {
            return Ok(None);
        };
        self.case.read(ObjectKey::new(sveltos::CONFIG_GROUP, sveltos::CLUSTER_SUMMARY, self.written.namespace, name))
    }

    /// The names of its bundles.
    pub(crate) fn named(&self) -> Result<Vec<BundleRef>, Undecided> {
        self.named_in(self.group)
    }

    /// Its bundles; `None` for one that does not exist.
    pub(crate) fn bundles(&self) -> Result<&'a [Option<Bundle>], Undecided> {
        self.case.bundles(&self.named()?)
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

    /// The name of the ClusterSummary.
    pub(crate) fn requestor(&self) -> Option<&'a str> {
        self.group.requestor().or_else(|| self.written.before.as_ref()?.requestor())
    }

    /// `ConfigurationGroup civ/config-abc of ClusterProfile shop`.
    pub(crate) fn subject(&self) -> String {
        format!("{} of {}", self.case.subject(), self.profile())
    }

    /// `ClusterProfile shop`, `Profile civ/shop`.
    pub(crate) fn profile(&self) -> String {
        let profile = &self.group.spec.source_ref;
        let kind = if profile.kind.is_empty() { "profile" } else { profile.kind.as_ref() };
        let scope = if profile.namespace.is_empty() { "" } else { "/" };
        format!("{kind} {}{scope}{}", profile.namespace, profile.name)
    }

    /// `ClusterSummary civ/shop-sveltos-prod`.
    pub(crate) fn summary_name(&self) -> String {
        format!("{} {}/{}", sveltos::CLUSTER_SUMMARY, self.written.namespace, self.requestor().unwrap_or_default())
    }
}

//! Converts the file of the cluster to its policy. Wrong values are already reported, and count as absent.

use std::sync::Arc;

use super::file::{IgnoredFile, PipelineFile, PolicyFile, ProtectedFile, ScalableResourceFile, namespaces};
use super::problem::Problems;
use super::{freezes, settings};
use crate::policy::{Accounts, IgnoredFields, Pipeline, Policy, Protected, ProtectedReleases, ScalableResource};
use crate::rule::Mode;

pub(super) fn policy(file: &PolicyFile, problems: &mut Problems<'_>) -> Policy {
    let listed = file.rules().flat_map(|(_, rule)| rule.resources.items()).filter_map(scalable_resource);
    let mut policy = Policy {
        cap: file.cap.value().map_or(Mode::Enforce, |cap| cap.mode()),
        protected: Protected { by_cluster: file.protected.value().map(protected), ..Protected::default() },
        managers: file.managers.globs().cloned().unwrap_or_default(),
        tools: file.tools.globs().cloned().unwrap_or_default(),
        controllers: file.controllers.globs().cloned().unwrap_or_default(),
        accounts: Arc::new(accounts(file)),
        ignore: file.ignore.items().iter().filter_map(ignored).collect(),
        scalable_resources: ScalableResource::built_in().into_iter().chain(listed).collect(),
        freezes: freezes::of_file(file, None).collect(),
        report_labels: file.report_labels.items().to_vec(),
        ..Policy::default()
    };
    settings::set(file, &mut policy, problems, |_, _| None);
    policy
}

pub(super) fn accounts(file: &PolicyFile) -> Accounts {
    let platform = file.platform.globs().cloned().unwrap_or_default();
    Accounts::new(platform, file.pipelines.items().iter().filter_map(pipeline).collect())
}

fn pipeline(file: &PipelineFile) -> Option<Pipeline> {
    Some(Pipeline {
        name: file.name.value()?.clone(),
        users: file.users.globs().cloned(),
        groups: file.groups.globs().cloned(),
        holder: file.holder.value().cloned().unwrap_or_default(),
    })
}

fn protected(file: &ProtectedFile) -> ProtectedReleases {
    ProtectedReleases {
        releases: file.releases.globs().cloned(),
        namespaces: namespaces(&file.namespaces, &file.namespace_selector),
    }
}

fn ignored(file: &IgnoredFile) -> Option<IgnoredFields> {
    let target = file.target.value();
    Some(IgnoredFields {
        paths: file.paths.value()?.clone(),
        kinds: target.and_then(|target| target.kind.globs().cloned()),
        names: target.and_then(|target| target.name.globs().cloned()),
        namespaces: target.and_then(|target| target.namespace.globs().cloned()),
    })
}

fn scalable_resource(file: &ScalableResourceFile) -> Option<ScalableResource> {
    Some(ScalableResource {
        group: file.group.value().cloned().unwrap_or_default(),
        resource: file.resource.value()?.clone(),
        kind: file.kind.value()?.clone(),
        replicas: file.replicas.value().cloned().unwrap_or_else(ScalableResource::usual_replicas),
    })
}

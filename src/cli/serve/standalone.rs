//! The webhook without a cluster. It keeps the objects of admitted requests in memory.

use std::sync::Arc;

use super::arguments::Arguments;
use super::policies::PolicySource;
use super::running::Running;
use super::shared::{Shared, traced};
use crate::judge::Judge;
use crate::serve::page::{OverviewPage, PageSource};
use crate::serve::report::Reporter;
use crate::serve::webhook::Webhook;
use crate::world::OverrideFile;
use crate::world::memory::Memory;

/// The memory for these objects, in bytes.
const MEMORY_BYTES: usize = 64 << 20;

pub(super) fn standalone(
    arguments: &Arguments,
    PolicySource { policies, directory }: PolicySource,
    shared: &Shared,
) -> anyhow::Result<Running> {
    let memory = Arc::new(Memory::new(MEMORY_BYTES).noting_losses().sharing(shared.decodes.clone()));
    let judge = Judge::new(policies, traced(memory.clone()), shared.decodes.clone());
    directory.follow(&judge, shared);
    if let Some(path) = &arguments.overrides {
        tokio::spawn(OverrideFile::open(path.clone(), memory.clone())?.follow());
    }
    let certificates = arguments.certificates.load(None, &shared.metrics.certificates, &shared.readiness)?;
    let refusals = arguments.page.then(Arc::default);
    let page = refusals.clone().map(|refusals| {
        let (world, policies, clock) = (memory.clone(), judge.policies(), Arc::default());
        let cluster_name = shared.cluster_name.clone();
        OverviewPage::new(PageSource { world, policies, clock, refusals, cluster_name, cluster: None })
    });
    let reporter = Reporter::new(shared.metrics.reports.clone()).with_refusals(refusals);
    Ok(Running {
        webhook: Webhook::standalone(judge, reporter, memory),
        certificates,
        page,
        peers: Arc::default(),
        background: None,
    })
}

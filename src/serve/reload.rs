//! Policies that change under a running server: followed by a watch of their directory and by looking at the texts now and
//! then, taken up when they are good, and otherwise left as they were.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use tokio::sync::watch;

use super::report::metrics::{Metrics, Reloaded};
use crate::engine::policy::{LoadedPolicies, NAMESPACES_DIR, Policies, PolicyFiles, Problem};
use crate::file_watch;

/// The problems that are told in the state, at most.
const TOLD: usize = 10;

/// Follows a directory of policies.
pub struct Reload {
    directory: PathBuf,
    files: PolicyFiles,
    policies: Arc<ArcSwap<Policies>>,
    metrics: Arc<Metrics>,
    state: watch::Sender<State>,
}

/// What is in force, and what is wrong with the files as they are now.
#[derive(Debug, Clone)]
pub struct State {
    /// When what is in force was taken up.
    pub loaded: Timestamp,
    /// How many namespaces have a policy of their own.
    pub namespaces: usize,
    /// Whether the files of now are in force, without those that are wrong; otherwise older ones are.
    pub current: bool,
    /// What is wrong with the files of now.
    pub problems: Vec<Problem>,
}

impl Reload {
    /// Follows from these texts on, which are in force.
    #[must_use]
    pub fn new(directory: &Path, files: PolicyFiles, policies: Arc<ArcSwap<Policies>>, metrics: Arc<Metrics>) -> Self {
        let (loaded, namespaces) = (Timestamp::now(), policies.load().namespaces().count());
        metrics.policies().loaded(loaded);
        let state = watch::Sender::new(State { loaded, namespaces, current: true, problems: Vec::new() });
        Self { directory: directory.to_owned(), files, policies, metrics, state }
    }

    /// What is in force, now and later.
    #[must_use]
    pub fn state(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    /// Follows until it is dropped.
    pub async fn follow(mut self) {
        let directories = [self.directory.clone(), self.directory.join(NAMESPACES_DIR)];
        loop {
            let files = file_watch::next(&self.files, &directories, || PolicyFiles::read(&self.directory)).await;
            self.take(files, Timestamp::now());
        }
    }

    /// Puts texts in force where they are good. The file of a namespace that is not leaves that namespace the policy of the
    /// cluster; a wrong file of the cluster leaves everything as it was.
    fn take(&mut self, files: PolicyFiles, now: Timestamp) {
        let LoadedPolicies { policies, problems } = LoadedPolicies::of(&files);
        self.files = files;
        for problem in &problems {
            tracing::error!(%problem, "a policy file is wrong");
        }
        let mut state = self.state.borrow().clone();
        state.current = policies.is_some();
        if let Some(policies) = policies {
            (state.loaded, state.namespaces) = (now, policies.namespaces().count());
            self.policies.store(Arc::new(policies));
            self.metrics.policies().loaded(now);
        }
        let result = match (state.current, problems.is_empty()) {
            (true, true) => Reloaded::Good,
            (true, false) => Reloaded::Partly,
            (false, _) => Reloaded::Bad,
        };
        self.metrics.policies().reloaded(result, problems.len());
        state.problems = problems;
        match result {
            Reloaded::Good => tracing::info!(policies = %state, "policies reloaded"),
            Reloaded::Partly | Reloaded::Bad => tracing::error!(policies = %state, "policies reloaded with errors"),
        }
        self.state.send_replace(state);
    }
}

/// On one line, for the log and for `/readyz?verbose`.
impl fmt::Display for State {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "loaded {:.0}, {} namespaces with their own", self.loaded, self.namespaces)?;
        if self.problems.is_empty() {
            return Ok(());
        }
        let kept = if self.current {
            "; wrong files are left out, their namespaces have the policy of the cluster"
        } else {
            "; the files of now are wrong, so older ones stay in force"
        };
        out.write_str(kept)?;
        self.problems.iter().take(TOLD).try_for_each(|problem| write!(out, "; {problem}"))?;
        match self.problems.len().saturating_sub(TOLD) {
            0 => Ok(()),
            more => write!(out, "; and {more} more"),
        }
    }
}

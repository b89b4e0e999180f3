//! Reloads policies: follows their directory by a watch and by regular reads. Only valid changes come into force.

pub mod metrics;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use interlock_engine::policy::Policies;
use interlock_engine::policy_files::{LoadedPolicies, NAMESPACES_DIR, PolicyFiles, Problem};
use jiff::Timestamp;
use tokio::sync::watch;

use crate::file_watch;
use crate::world::policy_directory;
use metrics::{PolicyMetrics, ReloadResult};

/// How many problems the log and `/readyz?verbose` show.
const MAX_PROBLEMS_SHOWN: usize = 10;

/// How many warnings are logged at each load. `interlock policy check` prints all of them.
const MAX_WARNINGS_LOGGED: usize = 100;

/// Follows a directory of policies.
pub struct Reload {
    directory: PathBuf,
    files: PolicyFiles,
    policies: Arc<ArcSwap<Policies>>,
    metrics: Arc<PolicyMetrics>,
    state: watch::Sender<ReloadStatus>,
}

/// The policies in force, and the problems of the current files.
#[derive(Debug, Clone)]
pub struct ReloadStatus {
    /// When the policies in force were loaded.
    pub loaded: Timestamp,
    /// How many namespaces have their own policy.
    pub namespaces: usize,
    /// Whether the current files are in force, except invalid ones. If not, earlier files are in force.
    pub current: bool,
    /// The problems of the current files.
    pub problems: Vec<Problem>,
}

impl Reload {
    /// Follows a directory whose `files` are already in force.
    #[must_use]
    pub fn new(
        directory: &Path,
        files: PolicyFiles,
        policies: Arc<ArcSwap<Policies>>,
        metrics: Arc<PolicyMetrics>,
    ) -> Self {
        let (loaded, namespaces) = (Timestamp::now(), policies.load().namespaces().count());
        metrics.set_loaded(loaded);
        let state = watch::Sender::new(ReloadStatus { loaded, namespaces, current: true, problems: Vec::new() });
        Self { directory: directory.to_owned(), files, policies, metrics, state }
    }

    /// The policies in force, now and after each change.
    #[must_use]
    pub fn state(&self) -> watch::Receiver<ReloadStatus> {
        self.state.subscribe()
    }

    /// Follows the directory until the future is dropped.
    pub async fn follow(mut self) {
        let directories = [self.directory.clone(), self.directory.join(NAMESPACES_DIR)];
        loop {
            let files =
                file_watch::changed(&self.files, &directories, || policy_directory::read(&self.directory)).await;
            self.take(files, Timestamp::now());
        }
    }

    /// Puts valid files in force. If the file of a namespace is invalid, the policy of the cluster applies to this namespace. If a file of
    /// the cluster is invalid, the policies in force stay.
    fn take(&mut self, files: PolicyFiles, now: Timestamp) {
        let LoadedPolicies { policies, problems, warnings } = LoadedPolicies::of(&files);
        self.files = files;
        for problem in &problems {
            tracing::error!(%problem, "a policy file is invalid");
        }
        log_warnings(&warnings);
        let mut state = self.state.borrow().clone();
        state.current = policies.is_some();
        if let Some(policies) = policies {
            (state.loaded, state.namespaces) = (now, policies.namespaces().count());
            let policies = policies.following(&self.policies.load());
            self.policies.store(Arc::new(policies));
            self.metrics.set_loaded(now);
        }
        let result = match (state.current, problems.is_empty()) {
            (true, true) => ReloadResult::Good,
            (true, false) => ReloadResult::Partly,
            (false, _) => ReloadResult::Bad,
        };
        self.metrics.count_reload(result, problems.len());
        state.problems = problems;
        match result {
            ReloadResult::Good => tracing::info!(policies = %state, "policies reloaded"),
            ReloadResult::Partly | ReloadResult::Bad => {
                tracing::error!(policies = %state, "policies reloaded with errors")
            }
        }
        self.state.send_replace(state);
    }
}

/// Logs settings that are probably not as intended.
pub fn log_warnings(warnings: &[Problem]) {
    for problem in warnings.iter().take(MAX_WARNINGS_LOGGED) {
        tracing::warn!(%problem, "a setting of a policy file is probably not what was meant");
    }
}

/// One line, for the log and for `/readyz?verbose`.
impl fmt::Display for ReloadStatus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "loaded {:.0}, {} namespaces with their own", self.loaded, self.namespaces)?;
        if self.problems.is_empty() {
            return Ok(());
        }
        let in_force = if self.current {
            "; invalid files are ignored, and the policy of the cluster applies to their namespaces"
        } else {
            "; the current files are invalid, so the earlier ones stay in force"
        };
        out.write_str(in_force)?;
        self.problems.iter().take(MAX_PROBLEMS_SHOWN).try_for_each(|problem| write!(out, "; {problem}"))?;
        match self.problems.len().saturating_sub(MAX_PROBLEMS_SHOWN) {
            0 => Ok(()),
            more => write!(out, "; and {more} more"),
        }
    }
}

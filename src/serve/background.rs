//! Tasks that run beside the server, and finish their work when it shuts down.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How long shutdown waits for a task.
const FINISH_TIMEOUT: Duration = Duration::from_secs(2);

/// A running task. Ends on drop. [`Self::finish`] first lets the task finish its work.
#[derive(Debug)]
#[must_use]
pub struct BackgroundTask {
    /// A set, because a set aborts its task on drop.
    task: JoinSet<()>,
    leaving: watch::Sender<bool>,
}

impl BackgroundTask {
    /// Starts a task, which gets a value that becomes `true` when the server shuts down.
    pub(super) fn start<F>(run: impl FnOnce(watch::Receiver<bool>) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (leaving, left) = watch::channel(false);
        let mut task = JoinSet::new();
        task.spawn(run(left));
        Self { task, leaving }
    }

    /// Ends the task, and waits for its last work, if the API server answers in time.
    pub(crate) async fn finish(mut self) {
        _ = self.leaving.send(true);
        _ = timeout(FINISH_TIMEOUT, self.task.join_next()).await;
    }
}

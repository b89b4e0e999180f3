//! The runtime of a command on one thread.

/// A runtime for commands that only await what is ready.
pub(super) fn block_on<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(future)
}

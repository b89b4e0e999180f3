//! What was read from the API server for the page, kept for a while: a page that many people watch must not become a load.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

/// How long a list is shown. A cluster may have thousands of these objects, and the API server sends them completely.
pub(super) const FRESH: Duration = Duration::from_secs(15);

/// How long the page waits for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the API server answers in time, or the reason why there is nothing. `what` it should do is a verb with its object.
pub(super) async fn in_time<T>(what: &str, read: impl Future<Output = T>) -> Result<T, String> {
    timeout(PATIENCE, read).await.map_err(|_| format!("the API server did not {what} within {} s", PATIENCE.as_secs()))
}

/// The last value, read again after [`FRESH`], by one reader at a time.
#[derive(Debug)]
pub(super) struct Cached<T>(Mutex<Option<(Instant, T)>>);

impl<T> Default for Cached<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> Cached<T> {
    pub(super) async fn or_read(&self, read: impl Future<Output = T>) -> T {
        let mut last = self.0.lock().await;
        if let Some((_, known)) = last.as_ref().filter(|(read, _)| read.elapsed() < FRESH) {
            return known.clone();
        }
        let value = read.await;
        *last = Some((Instant::now(), value.clone()));
        value
    }
}

//! Files that change while the server runs: when they have changed, and are complete again.
//!
//! A mounted ConfigMap or Secret changes by the swap of a symbolic link, which a watch of its files would miss. And there
//! may be no watch at all: some file systems support none, and the number of watches is limited. So the content decides.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;
use tokio::time::sleep;

/// How often files are read without an event of the watch.
const POLL_INTERVAL: Duration = Duration::from_secs(30);

/// How long contents must stay the same: editors and `kubectl cp` write in several steps.
const SETTLE_TIME: Duration = Duration::from_millis(100);

/// How often contents that keep changing are read before they are used anyway.
const MAX_READS: usize = 50;

/// Resolves with the content once it differs from what is `known` and stays the same. The first of the `directories` must
/// exist to be watched.
pub(crate) async fn changed<T: PartialEq>(known: &T, directories: &[PathBuf], read: impl Fn() -> T) -> T {
    loop {
        // Created anew each time, before the read: directories appear, disappear and are replaced by others of the same
        // name.
        let event = Arc::new(Notify::new());
        let watch = watch(directories, &event);
        if let Err(error) = &watch {
            let every = POLL_INTERVAL.as_secs();
            tracing::debug!(%error, ?directories, "failed to watch files; looking at them every {every} s");
        }
        if let Some(content) = settled(known, &read).await {
            return content;
        }
        tokio::select! {
            () = event.notified() => {}
            () = sleep(POLL_INTERVAL) => {}
        }
    }
}

/// The content once it stays the same; `None` if it is the known content.
async fn settled<T: PartialEq>(known: &T, read: impl Fn() -> T) -> Option<T> {
    let mut content = read();
    for _ in 0..MAX_READS {
        if content == *known {
            return None;
        }
        sleep(SETTLE_TIME).await;
        let now = read();
        if now == content {
            break;
        }
        content = now;
    }
    Some(content)
}

/// Notifies of changes in the directories for as long as the watcher is kept.
fn watch(directories: &[PathBuf], event: &Arc<Notify>) -> notify::Result<RecommendedWatcher> {
    let wake = Arc::clone(event);
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // Our own reads are not changes.
        if event.map_or(true, |event| !event.kind.is_access()) {
            wake.notify_one();
        }
    })?;
    let there = |(number, directory): &(usize, &PathBuf)| *number == 0 || directory.is_dir();
    for (_, directory) in directories.iter().enumerate().filter(there) {
        watcher.watch(directory, RecursiveMode::NonRecursive)?;
    }
    Ok(watcher)
}

/// The directory of a file.
pub(crate) fn parent_directory(file: &Path) -> PathBuf {
    match file.parent() {
        Some(parent) if parent != Path::new("") => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

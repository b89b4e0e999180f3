//! Detects that files have changed and are complete again.
//!
//! A mounted ConfigMap or Secret changes by the swap of a symbolic link, which a watch of its files would miss. A watch may also be
//! unavailable: some file systems support none, and the number of watches is limited. So the content decides.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;
use tokio::time::sleep;

/// How often files are read without an event of the watch.
const POLL_INTERVAL: Duration = Duration::from_secs(30);

/// How long contents must stay the same. Editors and `kubectl cp` write in several steps.
const SETTLE_TIME: Duration = Duration::from_millis(100);

/// The maximum number of reads of contents that keep changing. Then the last contents are used.
const MAX_READS: usize = 50;

/// Waits until the content differs from `known` and stays the same, and returns the content. Missing directories are not watched.
/// The first of `directories` must exist to be watched.
pub(crate) async fn changed<T: PartialEq>(known: &T, directories: &[PathBuf], read: impl Fn() -> T) -> T {
    loop {
        // Created anew before each read: directories appear, disappear, and are replaced by others of the same name.
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

/// Reads until the content stays the same; `None` if the content is known.
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

/// Notifies of changes in the directories until the watcher is dropped.
fn watch(directories: &[PathBuf], event: &Arc<Notify>) -> notify::Result<RecommendedWatcher> {
    let wake = Arc::clone(event);
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // Our own reads are not changes.
        if event.map_or(true, |event| !event.kind.is_access()) {
            wake.notify_one();
        }
    })?;
    for (number, directory) in directories.iter().enumerate() {
        if number == 0 || directory.is_dir() {
            watcher.watch(directory, RecursiveMode::NonRecursive)?;
        }
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

//! Files that change under a running server: when they have, and are whole again.
//!
//! A mounted ConfigMap or Secret changes by the swap of a symbolic link, which a watch of its files would miss; and a watch
//! can be missing altogether, on some file systems and where the system has no more of them. So what counts is the content.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;
use tokio::time::sleep;

/// How often files are looked at without being told.
const POLL: Duration = Duration::from_secs(30);

/// How long contents must stay the same: editors and `kubectl cp` write in several steps.
const SETTLE: Duration = Duration::from_millis(100);

/// Contents that never stay the same are taken all the same after so many looks.
const LOOKS: usize = 50;

/// What is read, once it is another than what is `known` and stays the same. The first of the `directories` must be there
/// to be watched.
pub(crate) async fn next<T: PartialEq>(known: &T, directories: &[PathBuf], read: impl Fn() -> T) -> T {
    loop {
        // Made anew each time, before looking: directories come, go, and are swapped for others under the same name.
        let changed = Arc::new(Notify::new());
        let watch = watch(directories, &changed);
        if let Err(error) = &watch {
            let every = POLL.as_secs();
            tracing::debug!(%error, ?directories, "failed to watch files; looking at them every {every} s");
        }
        if let Some(content) = settled(known, &read).await {
            return content;
        }
        tokio::select! {
            () = changed.notified() => {}
            () = sleep(POLL) => {}
        }
    }
}

/// The content once it stays the same; `None` where it is the one that is known.
async fn settled<T: PartialEq>(known: &T, read: impl Fn() -> T) -> Option<T> {
    let mut content = read();
    for _ in 0..LOOKS {
        if content == *known {
            return None;
        }
        sleep(SETTLE).await;
        let now = read();
        if now == content {
            break;
        }
        content = now;
    }
    Some(content)
}

/// Tells of changes in the directories for as long as the watcher is kept.
fn watch(directories: &[PathBuf], changed: &Arc<Notify>) -> notify::Result<RecommendedWatcher> {
    let told = Arc::clone(changed);
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // Our own reading is no change.
        if event.map_or(true, |event| !event.kind.is_access()) {
            told.notify_one();
        }
    })?;
    let there = |(number, directory): &(usize, &PathBuf)| *number == 0 || directory.is_dir();
    for (_, directory) in directories.iter().enumerate().filter(there) {
        watcher.watch(directory, RecursiveMode::NonRecursive)?;
    }
    Ok(watcher)
}

/// The directory that a file is in.
pub(crate) fn directory(file: &Path) -> PathBuf {
    match file.parent() {
        Some(parent) if parent != Path::new("") => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

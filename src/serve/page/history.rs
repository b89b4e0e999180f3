//! The history of one release: the changes that the records of the cluster show. The page links to it.

use interlock_engine::owners::CARRIERS;
use kube::Client;
use tokio::sync::Mutex;

use super::cached::in_time;
use crate::inspect::changes::{Change, Covered, Wanted, merged, of_cluster};

/// The longest history that is shown.
const SHOWN: usize = 200;

/// Reads histories, one at a time.
pub(crate) struct HistoryReader {
    client: Client,
    turn: Mutex<()>,
}

/// The changes, newest first, and what could not be read.
#[derive(Debug, Default)]
pub(super) struct FoundHistory {
    pub(super) changes: Vec<Change>,
    pub(super) gaps: Vec<String>,
}

impl HistoryReader {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, turn: Mutex::default() }
    }

    /// The history of a release, or of an object whose kind has this plural.
    pub(super) async fn read(&self, namespace: &str, plural: Option<&str>, name: &str) -> FoundHistory {
        let carrier = plural.and_then(|plural| CARRIERS.iter().find(|carrier| carrier.plural == plural));
        let (namespace, release) = (Some(namespace.to_owned()), Some(name.to_owned()));
        let wanted = Wanted { namespace, release, carrier, ..Wanted::default() };
        let read = async {
            let _turn = self.turn.lock().await;
            of_cluster(&self.client, &wanted).await
        };
        match in_time("answer", read).await.flatten() {
            Ok((changes, gaps)) => {
                let mut changes = merged(changes, &Covered::default());
                changes.reverse();
                changes.truncate(SHOWN);
                let gaps = gaps.into_iter().map(|gap| format!("{}: {}", gap.what, gap.why)).collect();
                FoundHistory { changes, gaps }
            }
            Err(why) => FoundHistory { gaps: vec![why], ..FoundHistory::default() },
        }
    }
}

//! The history of one release, for a link of the page: what the records of the cluster tell of its changes.

use interlock_engine::owners::CARRIERS;
use kube::Client;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::cached::PATIENCE;
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
pub(super) struct Told {
    pub(super) changes: Vec<Change>,
    pub(super) gaps: Vec<String>,
}

impl HistoryReader {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, turn: Mutex::default() }
    }

    /// The history of a release, or of an object whose kind has this plural.
    pub(super) async fn read(&self, namespace: &str, plural: Option<&str>, name: &str) -> Told {
        let carrier = plural.and_then(|plural| CARRIERS.iter().find(|carrier| carrier.plural == plural));
        let (namespace, release) = (Some(namespace.to_owned()), Some(name.to_owned()));
        let wanted = Wanted { namespace, release, carrier, ..Wanted::default() };
        let read = async {
            let _turn = self.turn.lock().await;
            of_cluster(&self.client, &wanted).await
        };
        match timeout(PATIENCE, read).await {
            Ok(Ok((changes, gaps))) => {
                let mut changes = merged(changes, &Covered::default());
                changes.reverse();
                changes.truncate(SHOWN);
                let gaps = gaps.into_iter().map(|gap| format!("{}: {}", gap.what, gap.why)).collect();
                Told { changes, gaps }
            }
            Ok(Err(why)) => Told { gaps: vec![why], ..Told::default() },
            Err(_) => {
                let why = format!("the API server did not answer within {} s", PATIENCE.as_secs());
                Told { gaps: vec![why], ..Told::default() }
            }
        }
    }
}

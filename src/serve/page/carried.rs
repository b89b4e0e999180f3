//! The operations that objects carry themselves. There are no copies of these objects: they are listed.

use interlock_engine::policy::Policies;
use jiff::Timestamp;
use kube::Client;

use super::cached::{Cached, in_time};
use super::snapshot::SHOWN;
use crate::inspect::diagnosis::Stuck;
use crate::inspect::scan::Gap;
use crate::inspect::status::{OperationSummary, operations};
use crate::world::kubernetes::Reach;

/// The operations that have not ended.
#[derive(Debug, Clone, Default)]
pub(super) struct CarriedOperations {
    /// Stuck ones first, then by start.
    pub(super) rows: Vec<OperationSummary>,
    pub(super) total: usize,
    /// What could not be read.
    pub(super) gaps: Vec<Gap>,
}

/// Lists them in the namespaces in reach, while somebody looks at the page.
pub(crate) struct CarriedOperationsList {
    client: Client,
    reach: Reach,
    last: Cached<CarriedOperations>,
}

impl CarriedOperationsList {
    pub(crate) fn new(client: Client, reach: Reach) -> Self {
        Self { client, reach, last: Cached::default() }
    }

    /// The operations as of a few seconds ago.
    pub(super) async fn current(&self, policies: &Policies, now: Timestamp) -> CarriedOperations {
        self.last.or_read(self.read(policies, now)).await
    }

    async fn read(&self, policies: &Policies, now: Timestamp) -> CarriedOperations {
        let places: Vec<_> = self.reach.places().collect();
        let listed = in_time("send them", operations(&self.client, places, policies, now)).await;
        let (mut rows, gaps) = listed.unwrap_or_else(|why| (Vec::new(), vec![Gap::new("operations", why)]));
        let total = rows.len();
        rows.sort_by_key(|row| (row.stuck == Stuck::No, row.since.is_none(), row.since));
        rows.truncate(SHOWN);
        CarriedOperations { rows, total, gaps }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use interlock_engine::policy::Policy;
    use serde_json::{Value, json};
    use tokio::time::advance;

    use super::super::cached::FRESH;
    use super::*;
    use crate::world::kubernetes::fake;

    /// A sync that began so many minutes after nine.
    fn running(name: &str, minute: i64) -> Value {
        let operation = json!({"sync": {}, "info": [{"name": "interlock.dev/holder", "value": "bob"}]});
        let state =
            json!({"phase": "Running", "startedAt": format!("2026-11-21T09:{minute:02}:00Z"), "operation": operation});
        json!({"metadata": {"name": name, "namespace": "argocd"}, "operation": operation,
            "status": {"operationState": state}})
    }

    /// An API server with these objects, and the number of lists. Without objects, it refuses to list them.
    fn list_of(objects: Option<Vec<Value>>) -> (CarriedOperationsList, Arc<AtomicUsize>) {
        let lists = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&lists);
        let client = fake::client(move |head, _| {
            let group = json!({"groupVersion": "argoproj.io/v1alpha1", "version": "v1alpha1"});
            let resource = json!({"name": "applications", "singularName": "application", "namespaced": true,
                "kind": "Application", "verbs": ["list"]});
            match (head.uri.path(), &objects) {
                ("/apis", _) => {
                    let group = json!({"name": "argoproj.io", "versions": [group], "preferredVersion": group});
                    (200, json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [group]}))
                }
                ("/apis/argoproj.io/v1alpha1", _) => (
                    200,
                    json!({"kind": "APIResourceList", "groupVersion": "argoproj.io/v1alpha1", "resources": [resource]}),
                ),
                ("/apis/argoproj.io/v1alpha1/applications", Some(objects)) => {
                    counted.fetch_add(1, Ordering::Relaxed);
                    (200, json!({"metadata": {}, "items": objects}))
                }
                ("/apis/argoproj.io/v1alpha1/applications", None) => {
                    (403, json!({"kind": "Status", "apiVersion": "v1", "code": 403, "reason": "Forbidden"}))
                }
                (path, _) => panic!("{path}"),
            }
        });
        (CarriedOperationsList::new(client, Reach::default()), lists)
    }

    #[tokio::test(start_paused = true)]
    async fn stuck_operations_come_first_and_the_list_is_read_once_in_a_while() {
        let policies = Policies::from(Policy::shipped().unwrap());
        let now = "2026-11-21T10:00:00Z".parse().unwrap();
        let (list, lists) = list_of(Some(vec![running("young", 59), running("old", 20), running("older", 10)]));
        for times in [1, 1, 2] {
            let found = list.current(&policies, now).await;
            let rows: Vec<_> = found.rows.iter().map(|row| (&*row.name, row.holder.as_deref(), row.stuck)).collect();
            let bob = Some("bob");
            assert_eq!(rows, [("older", bob, Stuck::Yes), ("old", bob, Stuck::Yes), ("young", bob, Stuck::No)]);
            assert_eq!((found.total, found.gaps.len(), lists.load(Ordering::Relaxed)), (3, 0, times));
            advance(FRESH / 2).await;
        }
        let refused = list_of(None).0.current(&policies, now).await;
        assert_eq!((refused.total, refused.gaps.len()), (0, 1));
    }
}

//! Labels of Namespaces that are copied to Events and reports, so that readers know the team of a release. The policy names the labels in
//! `reportLabels`.
//!
//! Only the writers of Events and reports read Namespaces; reviews do not. A Namespace is read again after half a minute, so a changed label
//! appears with this delay.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use interlock_engine::policy::Policies;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::Api;
use kube::{Client, Error};
use quick_cache::sync::Cache;
use tokio::time::Instant;

use crate::log_limit::LogLimit;
use crate::world::kubernetes::api_error::reason;

/// How long the labels of a Namespace are used before they are read again.
const FRESH: Duration = Duration::from_secs(30);

/// How many Namespaces are remembered. Each takes some KiB at most.
const MAX_NAMESPACES: usize = 1_000;

type Labels = BTreeMap<String, String>;

/// The labels of Namespaces that the policy names.
pub struct NamespaceLabels {
    client: Client,
    policies: Arc<ArcSwap<Policies>>,
    known: Cache<String, KnownLabels>,
    log_limit: LogLimit,
}

#[derive(Debug, Clone)]
struct KnownLabels {
    read: Instant,
    /// The keys in the policy at the time of the read.
    keys: Vec<String>,
    labels: Labels,
}

impl NamespaceLabels {
    /// Labels by the policies in force. The client must not be used for urgent requests.
    #[must_use]
    pub fn new(client: Client, policies: Arc<ArcSwap<Policies>>) -> Self {
        Self { client, policies, known: Cache::new(MAX_NAMESPACES), log_limit: LogLimit::new() }
    }

    /// The labels of a namespace. None for an empty name. If the Namespace cannot be read, returns the labels of the last read, or none: an
    /// Event or a report without labels is better than no Event or report.
    pub(super) async fn of(&self, namespace: &str) -> Labels {
        let keys = self.policies.load().of("").report_labels.clone();
        if keys.is_empty() || namespace.is_empty() {
            return Labels::new();
        }
        let known = self.known.get(namespace).filter(|known| known.keys == keys);
        if let Some(known) = known.as_ref().filter(|known| known.read.elapsed() < FRESH) {
            return known.labels.clone();
        }
        match self.read(namespace, &keys).await {
            Ok(labels) => {
                let read = KnownLabels { read: Instant::now(), keys, labels: labels.clone() };
                self.known.insert(namespace.to_owned(), read);
                labels
            }
            Err(error) => {
                if let Some(suppressed) = self.log_limit.admit("namespace labels") {
                    let error = reason(&error);
                    tracing::warn!(namespace, error, suppressed, "the labels of a Namespace cannot be read");
                }
                known.map(|known| known.labels).unwrap_or_default()
            }
        }
    }

    async fn read(&self, namespace: &str, keys: &[String]) -> Result<Labels, Error> {
        let api: Api<Namespace> = Api::all(self.client.clone());
        // A missing Namespace has no labels.
        let found = api.get_metadata_opt(namespace).await?.and_then(|found| found.metadata.labels).unwrap_or_default();
        Ok(found.into_iter().filter(|(key, _)| keys.contains(key)).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Mutex;

    use interlock_engine::policy::Policy;
    use serde_json::{Value, json};

    use super::*;
    use crate::world::kubernetes::fake;

    fn policies(list: &str) -> Arc<Policies> {
        let text = format!("apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\nreportLabels: {list}\n");
        Arc::new(Policy::parse(&text, Path::new("test")).unwrap().into())
    }

    /// The remaining answers of the API server: the labels of the Namespace, or a code.
    type Left = Arc<Mutex<Vec<Result<Value, u16>>>>;

    /// The labels, with an API server that gives these answers in turn.
    fn labels(list: &str, answers: &[Result<Value, u16>]) -> (NamespaceLabels, Left) {
        let left = Arc::new(Mutex::new(answers.iter().rev().cloned().collect::<Vec<_>>()));
        let answers = left.clone();
        let client = fake::client(move |_, _| match answers.lock().unwrap().pop() {
            Some(Ok(labels)) => {
                let metadata = json!({"name": "shop", "labels": labels});
                (200, json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": metadata}))
            }
            Some(Err(code)) => {
                let reason = if code == 404 { "NotFound" } else { "No" };
                let status =
                    json!({"kind": "Status", "status": "Failure", "reason": reason, "message": "no", "code": code});
                (code, status)
            }
            None => panic!("asked too often"),
        });
        (NamespaceLabels::new(client, Arc::new(ArcSwap::new(policies(list)))), left)
    }

    fn one(key: &str, value: &str) -> Labels {
        Labels::from([(key.to_owned(), value.to_owned())])
    }

    #[tokio::test(start_paused = true)]
    async fn only_labels_in_the_policy_are_copied_with_limited_reads() {
        let all = json!({"team": "blue", "cost": "7", "kubernetes.io/metadata.name": "shop"});
        let (labels, left) = labels("[team]", &[Ok(all.clone()), Ok(json!({"team": "green"})), Ok(all), Ok(json!({}))]);
        assert_eq!((labels.of("shop").await, labels.of("shop").await), (one("team", "blue"), one("team", "blue")));
        tokio::time::advance(FRESH).await;
        assert_eq!(labels.of("shop").await, one("team", "green"));
        labels.policies.store(policies("[cost]"));
        assert_eq!(labels.of("shop").await, one("cost", "7"), "other keys are looked for at once");
        assert_eq!(labels.of("other").await, Labels::new());
        assert!(left.lock().unwrap().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn labels_survive_failed_reads_but_not_deletion() {
        let (labels, _) = labels("[team]", &[Ok(json!({"team": "blue"})), Err(500), Err(403), Err(404)]);
        assert_eq!(labels.of("shop").await, one("team", "blue"));
        tokio::time::advance(FRESH).await;
        assert_eq!(labels.of("shop").await, one("team", "blue"));
        assert_eq!(labels.of("other").await, Labels::new());
        assert_eq!(labels.of("shop").await, Labels::new());
    }

    #[tokio::test]
    async fn namespaces_are_not_read_unless_the_policy_names_labels() {
        let (without, _) = labels("[]", &[]);
        assert_eq!(without.of("shop").await, Labels::new());
        let (labels, _) = labels("[team]", &[]);
        assert_eq!(labels.of("").await, Labels::new());
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_remembered_namespaces_is_limited() {
        let (labels, _) = labels("[team]", &vec![Ok(json!({})); MAX_NAMESPACES + 5]);
        for index in 0..MAX_NAMESPACES + 5 {
            labels.of(&format!("shop-{index}")).await;
        }
        assert!(labels.known.len() <= MAX_NAMESPACES);
    }
}

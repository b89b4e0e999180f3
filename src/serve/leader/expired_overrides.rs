//! Deletes overrides that ended longer ago than the policy keeps them.
//!
//! An override stays if this version cannot parse it, or if the watch does not know it.

use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::{SignedDuration, Timestamp};
use kube::api::DeleteParams;
use kube::{Client, Error};
use tokio::time::sleep;

use crate::engine::policy::Policies;
use crate::engine::release_override::Override;
use crate::engine::text::{into_printable, printable_name};
use crate::log_limit::LogLimit;
use crate::world::kubernetes::Cluster;
use crate::world::kubernetes::api_error::reason;
use crate::world::kubernetes::clock::server_time;
use crate::world::kubernetes::release_overrides;

/// Between two passes. Nobody waits for the end of a retention of days.
const INTERVAL: Duration = Duration::from_secs(20);

/// How many overrides one pass deletes: little work for the API server, and a hundred thousand are deleted within six hours.
const MAX_DELETIONS: usize = 100;

/// The longest reason in the log, in bytes, as in an Event.
const MAX_REASON_BYTES: usize = 1_024;

/// Deletes expired overrides, forever.
pub(super) async fn delete_all(client: &Client, cluster: &Cluster, policies: &ArcSwap<Policies>) {
    let log_limit = LogLimit::new();
    let mut last = None;
    loop {
        sleep(INTERVAL).await;
        let retention = policies.load().of("").overrides.retain_expired;
        // The copy only proposes, by the clock of this machine. What is deleted is decided by the API server's clock and object.
        let proposed = cluster.past_overrides(retention, Timestamp::now(), last.as_ref(), MAX_DELETIONS);
        last = end_of_pass(&proposed);
        if proposed.is_empty() {
            continue;
        }
        let failure = match server_time(client).await {
            Ok(now) => delete_each(client, &proposed, retention, now).await.err().map(|error| reason(&error)),
            Err(error) => Some(error.to_string()),
        };
        if let Some(error) = failure
            && let Some(suppressed) = log_limit.admit("expired override")
        {
            tracing::warn!(error, suppressed, "expired overrides cannot be deleted; trying again");
        }
    }
}

/// Where the next pass continues, so that overrides that cannot be deleted do not delay the others. `None` after the last override: then
/// the next pass starts with the first one again.
fn end_of_pass(proposed: &[(String, String)]) -> Option<(String, String)> {
    proposed.get(MAX_DELETIONS - 1).cloned()
}

/// Deletes those of the proposed overrides that are past. Goes on after a failure, and returns the last one.
async fn delete_each(
    client: &Client,
    proposed: &[(String, String)],
    retention: SignedDuration,
    now: Timestamp,
) -> Result<(), Error> {
    let mut failure = Ok(());
    for (namespace, name) in proposed {
        match delete(client, namespace, name, retention, now).await {
            Ok(None) => {}
            Ok(Some(Override { spec, created_by, .. })) => tracing::info!(
                namespace,
                name,
                release = printable_name(&spec.release),
                expired = %spec.expires_at,
                created_by = printable_name(&created_by.unwrap_or_default()),
                reason = into_printable(spec.reason, MAX_REASON_BYTES),
                ticket = printable_name(&spec.ticket.unwrap_or_default()),
                "deleted an expired override"
            ),
            Err(error) => failure = Err(error),
        }
    }
    failure
}

/// Deletes an override if it is past, in the very version that was read. Returns what was deleted.
async fn delete(
    client: &Client,
    namespace: &str,
    name: &str,
    retention: SignedDuration,
    now: Timestamp,
) -> Result<Option<Override>, Error> {
    let Some((stored, preconditions)) = release_overrides::get(client, namespace, name).await? else {
        return Ok(None);
    };
    if !stored.is_past(retention, now) {
        return Ok(None);
    }
    let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    match release_overrides::api(client, namespace).delete(name, &parameters).await {
        Ok(_) => Ok(Some(stored)),
        // Somebody has deleted it, or created another one of the same name.
        Err(Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use http::Method;
    use serde_json::{Value, json};

    use super::*;
    use crate::world::kubernetes::fake;

    const DAY: SignedDuration = SignedDuration::from_hours(24);

    fn stored(name: &str, expires: &str) -> Value {
        let mut object = json!({
            "apiVersion": "interlock.dev/v1alpha1", "kind": "ReleaseOverride",
            "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}"), "resourceVersion": "7"},
            "spec": {"release": "web", "rules": ["manual-edit"], "reason": "incident 7", "expiresAt": expires},
        });
        match name {
            "going" => object["metadata"]["deletionTimestamp"] = "2026-11-22T00:00:00Z".into(),
            "later" => object["spec"]["rules"] = json!(["a-rule-of-later"]),
            _ => {}
        }
        object
    }

    /// Deletes these by the answers of an API server; returns the name and preconditions of each DELETE.
    async fn deleted(names: &[&str], answer: u16) -> (Vec<(String, Value)>, Result<(), Error>) {
        let received = Arc::<Mutex<Vec<(String, Value)>>>::default();
        let log = received.clone();
        let client = fake::client(move |head, body| {
            let name = head.uri.path().rsplit('/').next().unwrap().to_owned();
            let refused =
                json!({"kind": "Status", "status": "Failure", "reason": "No", "message": "no", "code": answer});
            match head.method {
                Method::GET if name == "fresh" => (200, stored(&name, "2026-11-21T00:00:01Z")),
                Method::GET => (200, stored(&name, "2026-11-21T00:00:00Z")),
                _ => {
                    log.lock().unwrap().push((name.clone(), body["preconditions"].clone()));
                    if answer == 200 { (200, stored(&name, "2026-11-21T00:00:00Z")) } else { (answer, refused) }
                }
            }
        });
        let proposed: Vec<_> = names.iter().map(|name| ("shop".to_owned(), (*name).to_owned())).collect();
        let now = "2026-11-22T00:00:00Z".parse().unwrap();
        let outcome = delete_each(&client, &proposed, DAY, now).await;
        let received = received.lock().unwrap().clone();
        (received, outcome)
    }

    #[tokio::test]
    async fn only_what_is_past_at_the_api_server_is_deleted_and_only_as_it_was_read() {
        let (received, outcome) = deleted(&["old", "fresh", "going", "later", "older"], 200).await;
        let condition = |name: &str| (name.to_owned(), json!({"uid": format!("uid-{name}"), "resourceVersion": "7"}));
        assert_eq!(received, [condition("old"), condition("older")]);
        assert!(outcome.is_ok());
    }

    #[test]
    fn a_full_pass_is_continued_and_another_one_was_the_last() {
        let proposed: Vec<_> = (0..MAX_DELETIONS).map(|number| ("shop".to_owned(), format!("{number:03}"))).collect();
        assert_eq!(end_of_pass(&proposed), Some(("shop".to_owned(), "099".to_owned())));
        assert_eq!(end_of_pass(&proposed[1..]), None);
        assert_eq!(end_of_pass(&[]), None);
    }

    #[tokio::test]
    async fn the_others_are_deleted_although_one_cannot_be() {
        let (received, outcome) = deleted(&["old", "older"], 403).await;
        assert_eq!(received.len(), 2);
        assert!(outcome.is_err());
        let (_, outcome) = deleted(&["old"], 409).await;
        assert!(outcome.is_ok(), "it is another one by now");
    }
}

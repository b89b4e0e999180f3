//! Deletes overrides and Freezes once the policy's retention after their end is over.
//!
//! An object stays if this version cannot parse it, or if the watch has not seen it.

use std::time::Duration;

use arc_swap::ArcSwap;
use interlock_engine::policy::{Policies, Policy};
use interlock_engine::text::{into_printable, printable_name};
use jiff::Timestamp;
use kube::api::DeleteParams;
use kube::{Client, Error};
use tokio::time::sleep;

use crate::log_limit::LogLimit;
use crate::world::kubernetes::Cluster;
use crate::world::kubernetes::api_error::reason;
use crate::world::kubernetes::clock::server_time;
use crate::world::kubernetes::intake::Projected;
use crate::world::kubernetes::own_objects::OwnKind;
use crate::world::kubernetes::{freezes, release_overrides};

/// The pause between two passes. Retention is a matter of days, so nobody waits for a pass.
const INTERVAL: Duration = Duration::from_secs(20);

/// How many objects of a kind one pass deletes. This is little work for the API server, and deletes 100,000 objects within six hours.
const MAX_DELETIONS: usize = 100;

/// The longest reason in the log, in bytes. Events have the same limit.
const MAX_REASON_BYTES: usize = 1_024;

/// An object by its namespace and name.
type Name = (String, String);

/// A kind whose objects end.
struct EndingKind {
    kind: OwnKind,
    /// At most this many past objects that the watch has seen, from the first one after a name.
    proposed: fn(&Cluster, &Policy, Timestamp, Option<&Name>, usize) -> Vec<Name>,
    /// The log fields of an object. `None` if the object is not past.
    past: fn(&Projected, &Policy, Timestamp) -> Option<PastObject>,
}

/// A past object, for the log.
struct PastObject {
    release: Option<String>,
    ended: Option<Timestamp>,
    created_by: Option<String>,
    reason: String,
    ticket: Option<String>,
}

static KINDS: [EndingKind; 2] = [
    EndingKind {
        kind: release_overrides::OWN_KIND,
        proposed: |cluster, policy, now, after, limit| {
            cluster.past_overrides(policy.overrides.retain_expired, now, after, limit)
        },
        past: past_override,
    },
    EndingKind {
        kind: freezes::OWN_KIND,
        proposed: |cluster, policy, now, after, limit| cluster.past_freezes(policy, now, after, limit),
        past: past_freeze,
    },
];

fn past_override(object: &Projected, policy: &Policy, now: Timestamp) -> Option<PastObject> {
    let past = release_overrides::read(object).filter(|it| it.is_past(policy.overrides.retain_expired, now))?;
    Some(PastObject {
        release: Some(past.spec.release),
        ended: Some(past.spec.expires_at),
        created_by: past.created_by,
        reason: past.spec.reason,
        ticket: past.spec.ticket,
    })
}

fn past_freeze(object: &Projected, policy: &Policy, now: Timestamp) -> Option<PastObject> {
    let past = freezes::read(object).ok().filter(|it| policy.is_past_freeze(it, now))?;
    let created_by = past.creator().map(str::to_owned);
    Some(PastObject {
        release: None,
        ended: policy.team_freezes.end_of(&past),
        created_by,
        reason: past.reason,
        ticket: None,
    })
}

/// Deletes past objects, forever.
pub(super) async fn delete_all(client: &Client, cluster: &Cluster, policies: &ArcSwap<Policies>) {
    let log_limit = LogLimit::new();
    let mut last = KINDS.each_ref().map(|_| None);
    loop {
        sleep(INTERVAL).await;
        let policy = policies.load().of("").clone();
        for (kind, last) in KINDS.iter().zip(&mut last) {
            // The copy and this machine's clock only propose objects. The API server's clock and its object decide about a deletion.
            let proposed = (kind.proposed)(cluster, &policy, Timestamp::now(), last.as_ref(), MAX_DELETIONS);
            *last = end_of_pass(&proposed);
            if proposed.is_empty() {
                continue;
            }
            let failure = match server_time(client).await {
                Ok(now) => delete_each(client, kind, &proposed, &policy, now).await.err().map(|error| reason(&error)),
                Err(error) => Some(error.to_string()),
            };
            if let Some(error) = failure
                && let Some(suppressed) = log_limit.admit(kind.kind.kind)
            {
                let kind = kind.kind.kind;
                tracing::warn!(kind, error, suppressed, "expired objects cannot be deleted; trying again");
            }
        }
    }
}

/// Where the next pass continues, so that objects that cannot be deleted do not delay the others. `None` after the last object: the next
/// pass starts again with the first one.
fn end_of_pass(proposed: &[Name]) -> Option<Name> {
    proposed.get(MAX_DELETIONS - 1).cloned()
}

/// Deletes the proposed objects that are past. Continues after a failure, and returns the last failure.
async fn delete_each(
    client: &Client,
    kind: &EndingKind,
    proposed: &[Name],
    policy: &Policy,
    now: Timestamp,
) -> Result<(), Error> {
    let mut failure = Ok(());
    for (namespace, name) in proposed {
        match delete(client, kind, (namespace, name), policy, now).await {
            Ok(None) => {}
            Ok(Some(PastObject { release, ended, created_by, reason, ticket })) => tracing::info!(
                kind = kind.kind.kind,
                namespace,
                name,
                release = release.as_deref().map(printable_name),
                expired = ended.map(tracing::field::display),
                created_by = printable_name(&created_by.unwrap_or_default()),
                reason = into_printable(reason, MAX_REASON_BYTES),
                ticket = printable_name(&ticket.unwrap_or_default()),
                "deleted an expired object"
            ),
            Err(error) => failure = Err(error),
        }
    }
    failure
}

/// Deletes an object if it is past and has not changed since it was read. Returns the deleted object.
async fn delete(
    client: &Client,
    EndingKind { kind, past, .. }: &EndingKind,
    (namespace, name): (&str, &str),
    policy: &Policy,
    now: Timestamp,
) -> Result<Option<PastObject>, Error> {
    let Some((object, preconditions)) = kind.get(client, namespace, name).await? else {
        return Ok(None);
    };
    let Some(gone) = past(&object, policy, now) else {
        return Ok(None);
    };
    let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    match kind.api(client, namespace).delete(name, &parameters).await {
        Ok(_) => Ok(Some(gone)),
        // The object was deleted, or replaced by another one of the same name.
        Err(Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use http::Method;
    use jiff::SignedDuration;
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

    /// A Freeze that ends by itself, or repeats every week until the policy ends it.
    fn freeze(name: &str, to: &str) -> Value {
        let mut spec = json!({"reason": "INC-7", "timeZone": "UTC", "from": "2026-11-20", "to": to});
        if name == "weekly" {
            spec = json!({"reason": "INC-7", "timeZone": "UTC", "weekdays": ["monday"]});
        }
        let created = if name == "weekly" { "2026-11-14T00:00:00Z" } else { "2026-11-20T00:00:00Z" };
        let metadata = json!({
            "name": name, "namespace": "shop", "uid": format!("uid-{name}"), "resourceVersion": "7",
            "creationTimestamp": created,
        });
        json!({"apiVersion": "interlock.dev/v1alpha1", "kind": "Freeze", "metadata": metadata, "spec": spec})
    }

    /// Deletes these objects with an API server that answers as given. Returns the name and preconditions of each DELETE.
    async fn deleted(kind: &EndingKind, names: &[&str], answer: u16) -> (Vec<(String, Value)>, Result<(), Error>) {
        let received = Arc::<Mutex<Vec<(String, Value)>>>::default();
        let log = received.clone();
        let client = fake::client(move |head, body| {
            let name = head.uri.path().rsplit('/').next().unwrap().to_owned();
            let refused =
                json!({"kind": "Status", "status": "Failure", "reason": "No", "message": "no", "code": answer});
            match head.method {
                Method::GET if head.uri.path().contains("/freezes/") => {
                    let to = if name == "fresh" { "2026-11-21T00:00:01" } else { "2026-11-21" };
                    (200, freeze(&name, to))
                }
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
        let mut policy = Policy::shipped().unwrap();
        policy.overrides.retain_expired = DAY;
        let outcome = delete_each(&client, kind, &proposed, &policy, now).await;
        let received = received.lock().unwrap().clone();
        (received, outcome)
    }

    #[tokio::test]
    async fn only_unchanged_objects_past_their_retention_are_deleted() {
        let (received, outcome) = deleted(&KINDS[0], &["old", "fresh", "going", "later", "older"], 200).await;
        let condition = |name: &str| (name.to_owned(), json!({"uid": format!("uid-{name}"), "resourceVersion": "7"}));
        assert_eq!(received, [condition("old"), condition("older")]);
        assert!(outcome.is_ok());
    }

    #[tokio::test]
    async fn retention_of_a_freeze_counts_from_its_end_or_the_policys() {
        let (received, outcome) = deleted(&KINDS[1], &["old", "fresh", "weekly"], 200).await;
        assert!(outcome.is_ok());
        assert_eq!(received.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["old", "weekly"]);
    }

    #[test]
    fn only_a_full_pass_is_continued() {
        let proposed: Vec<_> = (0..MAX_DELETIONS).map(|number| ("shop".to_owned(), format!("{number:03}"))).collect();
        assert_eq!(end_of_pass(&proposed), Some(("shop".to_owned(), "099".to_owned())));
        assert_eq!(end_of_pass(&proposed[1..]), None);
        assert_eq!(end_of_pass(&[]), None);
    }

    #[tokio::test]
    async fn a_failed_deletion_does_not_stop_the_others() {
        let (received, outcome) = deleted(&KINDS[0], &["old", "older"], 403).await;
        assert_eq!(received.len(), 2);
        assert!(outcome.is_err());
        let (_, outcome) = deleted(&KINDS[0], &["old"], 409).await;
        assert!(outcome.is_ok(), "it is another one by now");
    }
}

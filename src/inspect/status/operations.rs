//! The operations that objects carry themselves, without records.

use interlock_engine::owners::{CARRIERS, CarriedOperation, Carrier, Stage};
use interlock_engine::policy::Policies;
use interlock_engine::release::ReleaseRef;
use interlock_engine::rules::wording::command;
use interlock_engine::text::printable_name;
use jiff::Timestamp;
use kube::Client;
use serde::Serialize;

use crate::inspect::diagnosis::Stuck;
use crate::inspect::scan::{Gap, gather};
use crate::world::kubernetes::api_error::reason;

/// An operation that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OperationSummary {
    /// The name of the cluster, if several were asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    pub kind: &'static str,
    pub namespace: String,
    pub name: String,
    /// `requested`, `running`, `ending` or `interrupted`.
    pub stage: &'static str,
    /// When it began, by the clock of its controller.
    pub since: Option<Timestamp>,
    /// The user who started it, from the stamp.
    pub holder: Option<String>,
    pub stuck: Stuck,
    /// When it starts to count as stuck.
    pub stuck_from: Option<Timestamp>,
    /// A command that can be pasted; `None` if nothing is to be done.
    pub next: Option<String>,
}

impl OperationSummary {
    pub(crate) fn of(
        carrier: &Carrier,
        place: &ReleaseRef,
        operation: CarriedOperation,
        policies: &Policies,
        now: Timestamp,
    ) -> Self {
        let CarriedOperation { started, holder, stage } = operation;
        let recovery = &policies.of(&place.namespace).recovery;
        let is_stuck = match stage {
            // Nothing works on it, so no time will end it.
            Stage::Interrupted { .. } => true,
            Stage::Running { .. } => recovery.is_stale(started, now),
            Stage::Requested | Stage::Ending => false,
        };
        let unstick = || {
            let name = format!("{}/{}", carrier.short.first().unwrap_or(&carrier.plural), place.name);
            command(&["interlock", "unstick", "-n", &place.namespace, &name])
        };
        let is_running = matches!(stage, Stage::Running { .. });
        Self {
            cluster: None,
            kind: carrier.kind,
            namespace: place.namespace.clone(),
            name: place.name.clone(),
            stage: stage.as_str(),
            since: started,
            holder: holder.as_deref().map(printable_name),
            stuck: if is_stuck { Stuck::Yes } else { Stuck::No },
            stuck_from: started.and_then(|it| it.checked_add(recovery.stale_after).ok()).filter(|_| is_running),
            next: is_stuck.then(unstick),
        }
    }
}

/// All of them in some namespaces or the cluster, and what could not be read.
pub(crate) async fn operations<'p>(
    client: &Client,
    places: impl IntoIterator<Item = Option<&'p str>> + Clone,
    policies: &Policies,
    now: Timestamp,
) -> (Vec<OperationSummary>, Vec<Gap>) {
    let (mut found, mut gaps) = (Vec::new(), Vec::new());
    for carrier in CARRIERS {
        let listed = gather::objects(client, (carrier.group, carrier.kind), places.clone(), |place, text| {
            // An object that cannot be parsed carries none, as for the webhook.
            let operation = carrier.operation(text).ok().flatten()?;
            Some(OperationSummary::of(carrier, place, operation, policies, now))
        });
        match listed.await {
            Ok(listed) => found.extend(listed),
            Err(error) => gaps.push(Gap::new(carrier.plural, reason(&error))),
        }
    }
    (found, gaps)
}

#[cfg(test)]
mod tests {
    use interlock_engine::policy::Policy;
    use jiff::SignedDuration;

    use super::*;

    #[test]
    fn what_is_stuck_names_the_command() {
        let now: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
        let policies = Policies::from(Policy::shipped().unwrap());
        let summary = |stage: Stage, minutes: i64| {
            let started = Some(now - SignedDuration::from_mins(minutes));
            let operation = CarriedOperation { started, holder: Some("bob".to_owned()), stage };
            OperationSummary::of(&CARRIERS[0], &ReleaseRef::new("shop", "web"), operation, &policies, now)
        };
        let running = || Stage::Running { end: serde_json::Value::Null };
        let fresh = summary(running(), 5);
        assert_eq!((fresh.stage, fresh.stuck, fresh.next), ("running", Stuck::No, None));
        assert_eq!(fresh.stuck_from, Some(now + SignedDuration::from_mins(10)));
        let command = Some("interlock unstick -n shop app/web".to_owned());
        let stale = summary(running(), 20);
        assert_eq!((stale.stuck, &stale.next), (Stuck::Yes, &command));
        let interrupted = summary(Stage::Interrupted { again: serde_json::Value::Null }, 1);
        assert_eq!((interrupted.stage, interrupted.stuck, &interrupted.next), ("interrupted", Stuck::Yes, &command));
        assert_eq!(summary(Stage::Ending, 90).next, None);
    }
}

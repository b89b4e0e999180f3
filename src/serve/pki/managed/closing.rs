//! After a first installation: entries that fail open until a replica answers.
//!
//! The installer creates the configurations before there is a replica. An entry that fails closed would refuse every operation on
//! a release until then, so a first installation leaves it open and names it in an annotation. Any replica closes it.

use jiff::{SignedDuration, Timestamp};

use super::observation::Observation;
use super::pace::RETRY;
use super::{ManageError, Managed, ReplicaState};
use crate::serve::pki::live::{ConfigurationChange, WebhookConfiguration};

/// How long a replica must have been ready: its endpoint and the caBundle reach every API server and node within this time.
const REACHED: SignedDuration = SignedDuration::from_secs(5);

impl Managed {
    /// Lets the entries fail closed that wait for a replica, once this one is ready. Returns when to look again at the latest.
    pub(super) async fn fail_closed(
        &self,
        observation: &Observation,
        memory: &mut ReplicaState,
    ) -> Result<Timestamp, ManageError> {
        let Observation { configurations, now, .. } = observation;
        if !configurations.iter().any(WebhookConfiguration::waits_for_replica) {
            memory.ready_since = None;
            return Ok(Timestamp::MAX);
        }
        if self.readiness.check().is_err() {
            memory.ready_since = None;
            return Ok(*now + RETRY);
        }
        let due = *memory.ready_since.get_or_insert(*now) + REACHED;
        if *now >= due {
            self.publish(configurations, &ConfigurationChange::FailClosed, *now).await?;
            tracing::info!("a replica answers: the entries that waited for one fail closed now");
        }
        Ok(due.max(*now + RETRY))
    }
}

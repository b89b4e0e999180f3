//! The election: a Lease that one replica holds and renews.
//!
//! Each replica measures by its own clock how long ago it saw the Lease change, like client-go. The times in the Lease are by the clocks of
//! other machines: if they were compared, nobody would lead for two minutes after a leader whose clock was two minutes ahead. Some
//! libraries have this fault.
//!
//! Every write applies only to the version that was read. If two replicas take over at once, one of them fails.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use interlock_engine::policy::Policies;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, Error};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::{LEASE, POLICIES};
use crate::inspect::annotation::FIELD_MANAGER;
use crate::world::kubernetes::api_error::reason;

/// The seconds after which another replica takes over from a silent leader.
const LEASE_SECONDS: i32 = 15;

/// A leader stops leading if it could not renew the Lease for this long. Together with the two times below, this is before another replica
/// takes over.
const RENEWED_WITHIN: Duration = Duration::from_secs(10);

/// The pause between two attempts to get or renew the Lease.
const RETRY: Duration = Duration::from_secs(3);

/// How long an attempt may take.
const ATTEMPT: Duration = Duration::from_secs(5);

/// A replica that stands for election.
pub(super) struct Election {
    leases: Api<Lease>,
    identity: String,
    /// The Lease shows the digest of the policies in force, for commands that read the same files.
    policies: Arc<ArcSwap<Policies>>,
    /// The version of the Lease, and when this replica first saw the version.
    seen: Option<(Option<String>, Instant)>,
}

impl Election {
    pub(super) fn new(client: Client, namespace: &str, identity: &str, policies: Arc<ArcSwap<Policies>>) -> Self {
        Self { leases: Api::namespaced(client, namespace), identity: identity.to_owned(), policies, seen: None }
    }

    /// Reports whether this replica leads, until all receivers are dropped. Then releases the Lease.
    pub(super) async fn stand(mut self, leads: watch::Sender<bool>) {
        let (mut renewed, mut is_failing) = (None, false);
        while !leads.is_closed() {
            let began = Instant::now();
            match timeout(ATTEMPT, self.attempt()).await {
                Ok(Ok(holds)) => (renewed, is_failing) = (holds.then_some(began), false),
                failed => {
                    let why = match failed {
                        Ok(failed) => failed.err().map(|error| reason(&error)).unwrap_or_default(),
                        Err(_) => format!("the API server did not answer within {} s", ATTEMPT.as_secs()),
                    };
                    if !is_failing {
                        tracing::warn!(lease = LEASE, %why, "the Lease is not available, so this replica cannot lead for now");
                    }
                    is_failing = true;
                }
            }
            let holds = renewed.is_some_and(|renewed| renewed.elapsed() < RENEWED_WITHIN);
            leads.send_if_modified(|leads| std::mem::replace(leads, holds) != holds);
            tokio::select! {
                () = leads.closed() => {}
                () = sleep(RETRY) => {}
            }
        }
        if let Err(error) = self.release().await {
            tracing::debug!(lease = LEASE, %error, "the Lease was not released, and expires");
        }
    }

    /// Gets or renews the Lease, if no other replica holds it.
    async fn attempt(&mut self) -> Result<bool, Error> {
        let Some(lease) = self.leases.get_opt(LEASE).await? else {
            return won(self.leases.create(&creation(), &self.first()).await);
        };
        let (version, spec) = (lease.metadata.resource_version, lease.spec.unwrap_or_default());
        let since = match &self.seen {
            Some((seen, since)) if *seen == version => *since,
            _ => self.seen.insert((version.clone(), Instant::now())).1,
        };
        let holder = spec.holder_identity.unwrap_or_default();
        let lasts = u64::try_from(spec.lease_duration_seconds.unwrap_or(LEASE_SECONDS)).unwrap_or_default();
        let is_free = holder.is_empty() || since.elapsed() >= Duration::from_secs(lasts);
        if holder == self.identity {
            return self.write(version, json!({"renewTime": now()})).await;
        }
        if !is_free {
            return Ok(false);
        }
        let claim = json!({
            "holderIdentity": self.identity, "leaseDurationSeconds": LEASE_SECONDS, "acquireTime": now(), "renewTime": now(),
            "leaseTransitions": spec.lease_transitions.unwrap_or_default().saturating_add(1),
        });
        self.write(version, claim).await
    }

    /// Releases the Lease, so that the next leader need not wait for the expiry.
    async fn release(&self) -> Result<(), Error> {
        let Some(lease) = self.leases.get_opt(LEASE).await? else {
            return Ok(());
        };
        let holder = lease.spec.unwrap_or_default().holder_identity;
        if holder.as_ref() == Some(&self.identity) {
            let nobody = json!({"holderIdentity": null, "acquireTime": null, "renewTime": null});
            self.write(lease.metadata.resource_version, nobody).await?;
        }
        Ok(())
    }

    /// Changes the Lease if it still has this version.
    async fn write(&self, version: Option<String>, spec: Value) -> Result<bool, Error> {
        let annotations = json!({POLICIES: self.policies.load().digest()});
        let patch = json!({"metadata": {"resourceVersion": version, "annotations": annotations}, "spec": spec});
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        won(self.leases.patch(LEASE, &params, &Patch::Merge(patch)).await)
    }

    fn first(&self) -> Lease {
        let spec = LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: Some(LEASE_SECONDS),
            acquire_time: Some(now()),
            renew_time: Some(now()),
            lease_transitions: Some(0),
            ..LeaseSpec::default()
        };
        let metadata = ObjectMeta { name: Some(LEASE.to_owned()), ..ObjectMeta::default() };
        Lease { metadata, spec: Some(spec) }
    }
}

fn creation() -> PostParams {
    PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() }
}

fn now() -> MicroTime {
    MicroTime(Timestamp::now())
}

/// Whether a write of the Lease succeeded. `false` if another replica was faster.
fn won(written: Result<Lease, Error>) -> Result<bool, Error> {
    match written {
        Ok(_) => Ok(true),
        Err(Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::Relaxed;
    use std::sync::{Arc, Mutex, PoisonError};

    use http::Method;
    use interlock_engine::policy_files::PolicyFiles;

    use super::*;
    use crate::world::kubernetes::fake;

    /// An API server with one Lease.
    #[derive(Clone, Default)]
    struct Server {
        lease: Arc<Mutex<Option<Value>>>,
        is_away: Arc<AtomicBool>,
    }

    impl Server {
        /// With a Lease held by a replica, renewed this many seconds from now by the clock of that replica.
        fn held(by: &str, seconds: i64) -> Self {
            let renewed = Timestamp::from_second(Timestamp::now().as_second() + seconds).unwrap();
            let spec = json!({"holderIdentity": by, "leaseDurationSeconds": 15, "renewTime": MicroTime(renewed)});
            let server = Self::default();
            server.put(json!({"metadata": {"name": LEASE, "resourceVersion": "1"}, "spec": spec}));
            server
        }

        fn put(&self, lease: Value) {
            *self.lease.lock().unwrap_or_else(PoisonError::into_inner) = Some(lease);
        }

        fn lease(&self) -> Option<Value> {
            self.lease.lock().unwrap_or_else(PoisonError::into_inner).clone()
        }

        fn holder(&self) -> Value {
            self.lease().map_or(Value::Null, |lease| lease["spec"]["holderIdentity"].clone())
        }

        /// Another replica renews.
        fn touch(&self) {
            let mut lease = self.lease().unwrap();
            let version: u64 = lease["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
            lease["metadata"]["resourceVersion"] = (version + 1).to_string().into();
            self.put(lease);
        }

        fn answer(&self, method: &Method, body: &Value) -> (u16, Value) {
            let failure = |code: u16| {
                let reason = if code == 404 { "NotFound" } else { "" };
                (code, json!({"kind": "Status", "status": "Failure", "message": "no", "reason": reason, "code": code}))
            };
            if self.is_away.load(Relaxed) {
                return failure(503);
            }
            match (method, self.lease()) {
                (&Method::GET, None) => failure(404),
                (&Method::GET, Some(lease)) => (200, lease),
                (&Method::POST, None) => {
                    let mut lease = body.clone();
                    lease["metadata"]["resourceVersion"] = "1".into();
                    self.put(lease.clone());
                    (201, lease)
                }
                (&Method::PATCH, Some(mut lease))
                    if lease["metadata"]["resourceVersion"] == body["metadata"]["resourceVersion"] =>
                {
                    for (key, value) in body["spec"].as_object().unwrap() {
                        lease["spec"][key] = value.clone();
                    }
                    lease["metadata"]["annotations"] = body["metadata"]["annotations"].clone();
                    self.put(lease);
                    self.touch();
                    (200, self.lease().unwrap())
                }
                _ => failure(409),
            }
        }

        fn election(&self, identity: &str) -> Election {
            let server = self.clone();
            let client = fake::client(move |head, body| server.answer(&head.method, body));
            let policies = Policies::of_files(&PolicyFiles::shipped()).unwrap();
            Election::new(client, "interlock-system", identity, Arc::new(ArcSwap::from_pointee(policies)))
        }

        fn stand(&self, identity: &str) -> watch::Receiver<bool> {
            let (leads, led) = watch::channel(false);
            tokio::spawn(self.election(identity).stand(leads));
            led
        }
    }

    /// How long until a replica leads, or stops leading.
    async fn until(leads: &mut watch::Receiver<bool>, wanted: bool) -> Duration {
        let began = Instant::now();
        leads.wait_for(|leads| *leads == wanted).await.unwrap();
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_leader_that_resigns_is_replaced_at_once() {
        let server = Server::default();
        let mut first = server.stand("first");
        assert_eq!(until(&mut first, true).await, Duration::ZERO);
        let mut second = server.stand("second");
        sleep(Duration::from_secs(60)).await;
        assert!(*first.borrow() && !*second.borrow());
        let in_force = PolicyFiles::shipped().digest();
        assert_eq!(server.lease().unwrap()["metadata"]["annotations"], json!({POLICIES: in_force}));
        drop(first);
        assert!(until(&mut second, true).await <= RETRY);
        assert_eq!(server.holder(), "second");
        assert_eq!(server.lease().unwrap()["spec"]["leaseTransitions"], 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_dead_leader_expires_by_the_clock_of_the_waiting_replica() {
        for seconds in [-7_200, 0, 7_200] {
            let server = Server::held("dead", seconds);
            let waited = until(&mut server.stand("next"), true).await.as_secs();
            assert!((15..=18).contains(&waited), "{seconds}: {waited}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewing_leader_with_a_slow_clock_keeps_the_lease() {
        let server = Server::held("slow", -7_200);
        let next = server.stand("next");
        for _ in 0..20 {
            sleep(Duration::from_secs(5)).await;
            server.touch();
        }
        assert!(!*next.borrow());
        assert_eq!(server.holder(), "slow");
    }

    #[tokio::test(start_paused = true)]
    async fn of_two_simultaneous_takeovers_one_fails() {
        let server = Server::held("dead", 0);
        let (mut one, mut other) = (server.election("one"), server.election("other"));
        for election in [&mut one, &mut other] {
            assert!(!election.attempt().await.unwrap());
        }
        sleep(Duration::from_secs(15)).await;
        let version = server.lease().unwrap()["metadata"]["resourceVersion"].as_str().map(str::to_owned);
        assert!(one.attempt().await.unwrap());
        assert!(!other.write(version, json!({"holderIdentity": "other"})).await.unwrap());
        assert!(!other.attempt().await.unwrap());
        assert_eq!(server.holder(), "one");
    }

    #[tokio::test(start_paused = true)]
    async fn a_cut_off_leader_stops_before_another_can_take_over() {
        let server = Server::default();
        let mut leads = server.stand("first");
        until(&mut leads, true).await;
        server.is_away.store(true, Relaxed);
        let led = until(&mut leads, false).await;
        assert!(led < Duration::from_secs(15), "{led:?}");
        server.is_away.store(false, Relaxed);
        assert!(until(&mut leads, true).await <= RETRY);
    }
}

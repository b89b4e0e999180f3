//! Managed certificates: a CA in a Secret, a leaf for each replica, and the caBundles.
//!
//! One loop handles every case. It reads everything from the API server, does the step that [`rotation::plan`] returns, and starts again
//! until there is nothing to do. Watches only trigger the loop. A check once a minute, by the wall clock, makes up for missed events.
//!
//! Every write applies only to the version that was read. If another client was faster, the write fails and the loop plans again. Reviews
//! never wait for this loop.

mod act;
mod observation;
mod pace;
mod rotator;

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, Error};
use tokio::time::{sleep, timeout};

use super::authority::AuthorityError;
use super::ca_secret::{self, CaSecret, CaSecretError};
use super::live;
use super::metrics::{CertificateMetrics, CertificateRole, CertificateTrouble};
use super::rotation::{self, Leaf, Lifetimes, RotationStep, Situation, StoredCa, TrustHistory};
use super::tls::{CertificateError, Certificates};
use crate::readiness::Gate;
use crate::world::metadata_only::resource_of;
use observation::Observation;
use pace::{CHECK_INTERVAL, HealPace, MAX_RETRY, RETRY};

pub(crate) use rotator::Rotator;

/// The most steps in a row. More are needed only if another client reverts them at once.
const MAX_STEPS: usize = 16;

/// The shortest time between two checks. The first check is immediate, because calls may fail before it. Later changes are collected.
const WATCH_DEBOUNCE: Duration = Duration::from_millis(50);

/// The certificate tasks of a replica.
pub(crate) struct Managed {
    /// For reads and writes.
    pub client: Client,
    pub namespace: String,
    /// The names and addresses in the leaf. The first one is its subject.
    pub names: Vec<String>,
    pub lifetimes: Lifetimes,
    /// Serves the leaf.
    pub certificates: Arc<Certificates>,
    pub metrics: Arc<CertificateMetrics>,
    /// Opens with the first leaf.
    pub served: Gate,
    /// Opens once the leaf's issuer is in every caBundle. Never closes again: a wiped caBundle affects all replicas at once, and only a
    /// serving replica can repair it.
    pub trusted: Gate,
}

/// A pass failed.
#[derive(Debug, thiserror::Error)]
enum ManageError {
    #[error("failed to read {what}")]
    Read { what: &'static str, source: Error },
    #[error("failed to write {what}")]
    Write { what: &'static str, source: Error },
    #[error("failed to create a certificate")]
    Sign(#[from] AuthorityError),
    #[error("failed to serve a certificate")]
    Serve(#[from] CertificateError),
}

const THE_SECRET: &str = "the Secret interlock-ca";
const THE_CONFIGURATIONS: &str = "the webhook configurations";

/// The state that a replica keeps between two passes.
#[derive(Default)]
struct ReplicaState {
    /// The last valid content of the Secret.
    known: Option<CaSecret>,
    leaf: Option<Leaf>,
    trusted_since: TrustHistory,
    /// The last logged problem of the Secret, so that each problem is logged once.
    logged: Option<String>,
    pace: HealPace,
}

impl ManageError {
    fn is_conflict(&self) -> bool {
        matches!(self, Self::Write { source: Error::Api(status), .. } if status.code == 409)
    }
}

impl Managed {
    /// Starts the tasks, which run until the process ends. `watches` is a client with a long read timeout.
    #[must_use]
    pub(crate) fn start(self, watches: &Client) -> Arc<Rotator> {
        let rotator = Arc::new(Rotator::new());
        let secrets = Api::namespaced_with(watches.clone(), &self.namespace, &resource_of::<Secret>());
        tokio::spawn(observation::wake(secrets, ca_secret::SECRET_NAME, Arc::clone(&rotator)));
        for kind in [resource_of::<ValidatingWebhookConfiguration>(), resource_of::<MutatingWebhookConfiguration>()] {
            let configurations = Api::all_with(watches.clone(), &kind);
            tokio::spawn(observation::wake(configurations, live::CONFIGURATION, Arc::clone(&rotator)));
        }
        tokio::spawn(self.follow(Arc::clone(&rotator)));
        rotator
    }

    async fn follow(self, rotator: Arc<Rotator>) {
        let mut replica = ReplicaState::default();
        let mut retry = RETRY;
        let mut logged = None;
        loop {
            let leads = rotator.leads();
            let pause = match self.pass(&mut replica, leads, &rotator).await {
                Ok(until) => {
                    (retry, logged) = (RETRY, None);
                    until.duration_since(Timestamp::now()).clamp(SignedDuration::ZERO, CHECK_INTERVAL)
                }
                Err(failure) => {
                    self.count(&failure);
                    let why = format!("{:#}", anyhow::Error::new(failure));
                    rotator.set_state(why.clone());
                    if logged.as_ref() != Some(&why) {
                        tracing::warn!(%why, "certificates stay as they are; trying again");
                        logged = Some(why);
                    }
                    let pause = retry;
                    retry = (retry * 2).min(MAX_RETRY);
                    pause
                }
            };
            sleep(WATCH_DEBOUNCE).await;
            // An event wakes the loop at once, otherwise the timeout does.
            _ = timeout(pause.unsigned_abs(), rotator.woken()).await;
        }
    }

    fn count(&self, failure: &ManageError) {
        self.metrics.count_trouble(match failure {
            ManageError::Read { .. } => CertificateTrouble::Read,
            ManageError::Write { .. } => CertificateTrouble::Write,
            ManageError::Sign(_) | ManageError::Serve(_) => CertificateTrouble::Sign,
        });
    }

    /// Observes and acts until there is nothing to do. Returns the time of the next pass.
    async fn pass(&self, replica: &mut ReplicaState, leads: bool, rotator: &Rotator) -> Result<Timestamp, ManageError> {
        for _ in 0..MAX_STEPS {
            let observation = self.observe(replica).await?;
            let situation = Situation {
                stored: &observation.stored,
                live: &observation.live,
                trusted_since: &replica.trusted_since,
                leaf: replica.leaf.as_ref(),
                leads,
                now: observation.now,
            };
            let step = rotation::plan(&situation, &self.lifetimes);
            self.report(replica, &observation, rotator);
            if let RotationStep::Wait(until) = step {
                return match self.disown(&observation.configurations).await {
                    Err(failure) if failure.is_conflict() => Ok(observation.now + RETRY),
                    disowned => disowned.map(|()| until),
                };
            }
            if matches!(step, RotationStep::Add(_))
                && let Some(later) = replica.pace.later(observation.now)
            {
                return Ok(later);
            }
            match self.act(step, observation, replica).await {
                // Another client was faster.
                Err(failure) if failure.is_conflict() => {}
                acted => acted?,
            }
        }
        Ok(Timestamp::now() + RETRY)
    }

    /// Reads everything: first the caBundles, then the Secret. So a CA that is missing in the Secret was not needed in the caBundles.
    async fn observe(&self, replica: &mut ReplicaState) -> Result<Observation, ManageError> {
        let configurations = live::read(&self.client).await;
        let configurations = configurations.map_err(|source| ManageError::Read { what: THE_CONFIGURATIONS, source })?;
        let secret = self.secrets().get_opt(ca_secret::SECRET_NAME).await;
        let secret = secret.map_err(|source| ManageError::Read { what: THE_SECRET, source })?;
        let now = Timestamp::now();
        let live = live::bundles(&configurations);
        replica.trusted_since.observe(&live, now);
        let stored = match secret.as_ref().map(|secret| CaSecret::parse(secret, now)) {
            None => StoredCa::Absent,
            Some(Ok(good)) => {
                replica.logged = None;
                StoredCa::Good(replica.known.insert(good).cas.clone())
            }
            Some(Err(why)) => {
                self.report_unusable(replica, &why);
                let known = replica.known.as_ref().filter(|known| known.cas.current.not_after > now);
                StoredCa::Unusable(known.map(|known| known.cas.clone()))
            }
        };
        Ok(Observation { configurations, secret, stored, live, now })
    }

    fn report_unusable(&self, replica: &mut ReplicaState, why: &CaSecretError) {
        let why = why.to_string();
        if replica.logged.as_ref() == Some(&why) {
            return;
        }
        self.metrics.count_trouble(CertificateTrouble::Secret);
        tracing::error!(
            namespace = %self.namespace, secret = ca_secret::SECRET_NAME, %why,
            "the Secret of the CA cannot be used; the served certificate stays; delete the Secret to create a new one"
        );
        replica.logged = Some(why);
    }

    /// Opens gates, and updates metrics and state.
    fn report(&self, replica: &ReplicaState, observation: &Observation, rotator: &Rotator) {
        let metrics = &self.metrics;
        let known = replica.known.as_ref().map(|known| &known.cas);
        metrics.set_expiry(CertificateRole::Ca, known.map(|cas| cas.current.not_after));
        metrics.set_expiry(CertificateRole::Next, known.and_then(|cas| cas.next.as_ref()).map(|next| next.not_after));
        metrics.set_expiry(CertificateRole::Leaf, replica.leaf.as_ref().map(|leaf| leaf.not_after));
        let state = observation.state(replica.leaf.as_ref());
        if replica.leaf.is_some() {
            self.served.open();
        }
        if observation.trusts(replica.leaf.as_ref()) {
            self.trusted.open();
        }
        rotator.set_state(state);
    }

    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }
}

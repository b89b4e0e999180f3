//! Certificates that look after themselves: a CA in a Secret, a leaf of this replica's own, and the caBundles.
//!
//! Whatever happens, the same is done: everything is read from the API server, [`rotation::plan`] says what comes next, that
//! is done, and everything is read again, until there is nothing to do. Watches only say when to look, and a look at the
//! wall clock once a minute makes up for what they miss. Every write is made over the state that was read, so it is lost and
//! planned anew when somebody else was quicker. Nothing here is on the way of a review.

mod act;
mod observation;
mod pace;
mod rotator;

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, PartialObjectMeta};
use kube::{Client, Error};
use tokio::time::{sleep, timeout};

use super::authority::AuthorityError;
use super::ca_secret::{self, CaSecret, CaSecretError};
use super::live;
use super::metrics::{CertificateMetrics, CertificateRole, CertificateTrouble};
use super::rotation::{self, Leaf, Lifetimes, RotationStep, Situation, StoredCa, TrustHistory};
use super::tls::{CertificateError, Certificates};
use crate::readiness::Gate;
use observation::Observation;
use pace::{CHECK_INTERVAL, HealPace, MAX_RETRY, RETRY};

pub use rotator::Rotator;

/// Steps at one go. More are needed only where somebody undoes them at once.
const MAX_STEPS: usize = 16;

/// Between two looks. The first is taken at once, for calls may fail until it is done; what changes next is gathered.
const WATCH_DEBOUNCE: Duration = Duration::from_millis(50);

/// What a replica must know to look after its certificates.
pub struct Managed {
    /// Of the API server, for reads and writes.
    pub client: Client,
    /// Interlock's own namespace.
    pub namespace: String,
    /// The names and addresses in the leaf, the first one as its subject.
    pub names: Vec<String>,
    /// Lifetimes.
    pub lifetimes: Lifetimes,
    /// Where the leaf is served.
    pub certificates: Arc<Certificates>,
    /// Where everything is counted.
    pub metrics: Arc<CertificateMetrics>,
    /// Opens with the first leaf.
    pub served: Gate,
    /// Opens once the leaf's issuer is in every caBundle, for good: a wiped caBundle concerns all replicas at once, and is
    /// healed by one that serves, so none may stop to.
    pub trusted: Gate,
}

/// One pass over everything failed.
#[derive(Debug, thiserror::Error)]
enum ManageError {
    #[error("failed to read {what}")]
    Read { what: &'static str, source: Error },
    #[error("failed to write {what}")]
    Write { what: &'static str, source: Error },
    #[error("failed to make a certificate")]
    Sign(#[from] AuthorityError),
    #[error("failed to make a CA")]
    Ca(#[from] CaSecretError),
    #[error("failed to serve a certificate")]
    Serve(#[from] CertificateError),
}

const THE_SECRET: &str = "the Secret interlock-ca";
const THE_CONFIGURATIONS: &str = "the webhook configurations";

/// What is kept between two looks.
#[derive(Default)]
struct ReplicaState {
    /// The Secret as it last was when it was good.
    known: Option<CaSecret>,
    leaf: Option<Leaf>,
    trusted_since: TrustHistory,
    /// What was logged of the Secret, which is not logged twice.
    logged: Option<String>,
    pace: HealPace,
}

impl ManageError {
    fn is_conflict(&self) -> bool {
        matches!(self, Self::Write { source: Error::Api(status), .. } if status.code == 409)
    }
}

impl Managed {
    /// Looks after the certificates in tasks of their own, which end with the process. `watches` is a client that bears long
    /// silence.
    #[must_use]
    pub fn start(self, watches: &Client) -> Arc<Rotator> {
        let rotator = Arc::new(Rotator::new());
        let secrets: Api<PartialObjectMeta<Secret>> = Api::namespaced(watches.clone(), &self.namespace);
        tokio::spawn(observation::wake(secrets, ca_secret::SECRET_NAME, Arc::clone(&rotator)));
        let validating: Api<PartialObjectMeta<ValidatingWebhookConfiguration>> = Api::all(watches.clone());
        tokio::spawn(observation::wake(validating, live::CONFIGURATION, Arc::clone(&rotator)));
        let mutating: Api<PartialObjectMeta<MutatingWebhookConfiguration>> = Api::all(watches.clone());
        tokio::spawn(observation::wake(mutating, live::CONFIGURATION, Arc::clone(&rotator)));
        tokio::spawn(self.follow(Arc::clone(&rotator)));
        rotator
    }

    async fn follow(self, rotator: Arc<Rotator>) {
        let mut memory = ReplicaState::default();
        let mut retry = RETRY;
        let mut logged = None;
        loop {
            let leads = rotator.leads();
            let pause = match self.pass(&mut memory, leads, &rotator).await {
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
            // Whoever is woken looks at once, whoever is not looks in time.
            _ = timeout(pause.unsigned_abs(), rotator.woken()).await;
        }
    }

    fn count(&self, failure: &ManageError) {
        self.metrics.count_trouble(match failure {
            ManageError::Read { .. } => CertificateTrouble::Read,
            ManageError::Write { .. } => CertificateTrouble::Write,
            ManageError::Sign(_) | ManageError::Ca(_) | ManageError::Serve(_) => CertificateTrouble::Sign,
        });
    }

    /// Looks and acts until there is nothing to do; tells until when.
    async fn pass(&self, memory: &mut ReplicaState, leads: bool, rotator: &Rotator) -> Result<Timestamp, ManageError> {
        for _ in 0..MAX_STEPS {
            let look = self.look(memory).await?;
            let situation = Situation {
                stored: &look.stored,
                live: &look.live,
                trusted_since: &memory.trusted_since,
                leaf: memory.leaf.as_ref(),
                leads,
                now: look.now,
            };
            let step = rotation::plan(&situation, &self.lifetimes);
            self.report(memory, &look, rotator);
            if let RotationStep::Wait(until) = step {
                return match self.disown(&look.configurations).await {
                    Err(failure) if failure.is_conflict() => Ok(look.now + RETRY),
                    disowned => disowned.map(|()| until),
                };
            }
            if matches!(step, RotationStep::Add(_))
                && let Some(later) = memory.pace.later(look.now)
            {
                return Ok(later);
            }
            match self.act(step, look, memory).await {
                // Somebody was quicker.
                Err(failure) if failure.is_conflict() => {}
                acted => acted?,
            }
        }
        Ok(Timestamp::now() + RETRY)
    }

    /// Reads everything: first what is trusted, then what ought to be, so that what the second lacks is not needed.
    async fn look(&self, memory: &mut ReplicaState) -> Result<Observation, ManageError> {
        let configurations = live::read(&self.client).await;
        let configurations = configurations.map_err(|source| ManageError::Read { what: THE_CONFIGURATIONS, source })?;
        let secret = self.secrets().get_opt(ca_secret::SECRET_NAME).await;
        let secret = secret.map_err(|source| ManageError::Read { what: THE_SECRET, source })?;
        let now = Timestamp::now();
        let live = live::bundles(&configurations);
        memory.trusted_since.look(&live, now);
        let stored = match secret.as_ref().map(|secret| CaSecret::parse(secret, now)) {
            None => StoredCa::Absent,
            Some(Ok(good)) => {
                memory.logged = None;
                StoredCa::Good(memory.known.insert(good).cas.clone())
            }
            Some(Err(why)) => {
                self.report_unusable(memory, &why);
                let known = memory.known.as_ref().filter(|known| known.cas.current.not_after > now);
                StoredCa::Unusable(known.map(|known| known.cas.clone()))
            }
        };
        Ok(Observation { configurations, secret, stored, live, now })
    }

    fn report_unusable(&self, memory: &mut ReplicaState, why: &CaSecretError) {
        let why = why.to_string();
        if memory.logged.as_ref() == Some(&why) {
            return;
        }
        self.metrics.count_trouble(CertificateTrouble::Secret);
        tracing::error!(
            namespace = %self.namespace, secret = ca_secret::SECRET_NAME, %why,
            "the Secret of the CA cannot be used; what is served stays; delete the Secret to have it made anew"
        );
        memory.logged = Some(why);
    }

    /// Opens gates, and says how it stands.
    fn report(&self, memory: &ReplicaState, look: &Observation, rotator: &Rotator) {
        let metrics = &self.metrics;
        let known = memory.known.as_ref().map(|known| &known.cas);
        metrics.set_expiry(CertificateRole::Ca, known.map(|cas| cas.current.not_after));
        metrics.set_expiry(CertificateRole::Next, known.and_then(|cas| cas.next.as_ref()).map(|next| next.not_after));
        metrics.set_expiry(CertificateRole::Leaf, memory.leaf.as_ref().map(|leaf| leaf.not_after));
        let state = look.state(memory.leaf.as_ref());
        if memory.leaf.is_some() {
            self.served.open();
        }
        if look.trusts(memory.leaf.as_ref()) {
            self.trusted.open();
        }
        rotator.set_state(state);
    }

    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }
}

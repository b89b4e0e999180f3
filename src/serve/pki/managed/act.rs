//! Executes a step: writes the Secret, signs a leaf, or changes the caBundles.

use std::sync::Arc;

use futures_util::future::join_all;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::Error;
use kube::api::PostParams;

use super::observation::Observation;
use super::{ManageError, Managed, ReplicaState, THE_CONFIGURATIONS, THE_SECRET};
use crate::serve::pki::authority::{Authority, AuthorityError};
use crate::serve::pki::bundle::CaBundle;
use crate::serve::pki::ca_secret::{self, CaSecret};
use crate::serve::pki::live::{ConfigurationChange, WebhookConfiguration};
use crate::serve::pki::metrics::CertificateStep;
use crate::serve::pki::rotation::{Leaf, RotationStep};
use crate::serve::pki::tls;

impl Managed {
    /// Executes the planned step.
    pub(super) async fn act(
        &self,
        step: RotationStep,
        observation: Observation,
        replica: &mut ReplicaState,
    ) -> Result<(), ManageError> {
        let done = match step {
            RotationStep::Wait(_) => None,
            RotationStep::Create => Some(self.create(observation, replica).await?),
            RotationStep::Replace => Some(self.replace(observation, replica).await?),
            RotationStep::Sign => self.serve_new_leaf(observation.now, replica)?,
            RotationStep::Add(required) => Some(self.add(required, &observation, replica).await?),
            step => match &replica.known {
                Some(known) => self.rotate(step, observation, known).await?,
                None => None,
            },
        };
        if let Some(done) = done {
            self.metrics.count_step(done);
        }
        Ok(())
    }

    /// Creates the Secret.
    async fn create(&self, observation: Observation, replica: &ReplicaState) -> Result<CertificateStep, ManageError> {
        let Observation { live, now, .. } = observation;
        let secret = self.new_secret(replica, live, now)?.written(CaSecret::object());
        self.secrets().create(&PostParams::default(), &secret).await.map_err(writing(THE_SECRET))?;
        tracing::info!(namespace = %self.namespace, secret = ca_secret::SECRET_NAME, "created the Secret of the CA");
        Ok(CertificateStep::Created)
    }

    /// Replaces a Secret that cannot be used.
    async fn replace(
        &self,
        observation: Observation,
        replica: &mut ReplicaState,
    ) -> Result<CertificateStep, ManageError> {
        let Observation { secret, live, now, .. } = observation;
        replica.known = None;
        self.write(secret, &self.new_secret(replica, live, now)?).await?;
        tracing::warn!(
            namespace = %self.namespace, secret = ca_secret::SECRET_NAME,
            "replaced a CA that cannot be used, because there was no certificate to serve"
        );
        Ok(CertificateStep::Replaced)
    }

    /// Signs a leaf and serves it.
    fn serve_new_leaf(
        &self,
        now: Timestamp,
        replica: &mut ReplicaState,
    ) -> Result<Option<CertificateStep>, ManageError> {
        let Some(known) = &replica.known else { return Ok(None) };
        let leaf = self.sign(known, now)?;
        let (issuer, not_after) = (leaf.issuer.short(), leaf.not_after);
        tracing::info!(%issuer, %not_after, "serving a new certificate");
        replica.leaf = Some(leaf);
        Ok(Some(CertificateStep::Signed))
    }

    /// Adds CAs to the caBundles.
    async fn add(
        &self,
        required: CaBundle,
        observation: &Observation,
        replica: &mut ReplicaState,
    ) -> Result<CertificateStep, ManageError> {
        replica.pace.healed(observation.now);
        let cas = required.len();
        self.publish(&observation.configurations, &ConfigurationChange::Add(required), observation.now).await?;
        tracing::info!(cas, "added the CAs that caBundles lacked");
        Ok(CertificateStep::Healed)
    }

    /// Executes a step of the leader.
    async fn rotate(
        &self,
        step: RotationStep,
        observation: Observation,
        known: &CaSecret,
    ) -> Result<Option<CertificateStep>, ManageError> {
        let Observation { configurations, secret, now, .. } = observation;
        Ok(match step {
            RotationStep::Begin => {
                let begun = known.begun(Arc::new(self.authority(now)?));
                self.write(secret, &begun).await?;
                let next = begun.cas.next.as_ref().map(|next| next.short()).unwrap_or_default();
                tracing::info!(current = %begun.cas.current.short(), %next, "a rotation of the CA has begun");
                Some(CertificateStep::Begun)
            }
            RotationStep::Promote => {
                // The time of the write: until then the other replicas sign with the previous CA.
                let promoted = known.promoted(Timestamp::now());
                self.write(secret, &promoted).await?;
                tracing::info!(current = %promoted.cas.current.short(), "the next CA is now the current one");
                Some(CertificateStep::Promoted)
            }
            RotationStep::Retire(bundle) => {
                self.write(secret, &known.retired(bundle)).await?;
                tracing::info!(current = %known.cas.current.short(), "the CAs before the current one are retired");
                Some(CertificateStep::Retired)
            }
            RotationStep::Tidy => {
                let bundle = known.cas.bundle.clone();
                let cas = bundle.len();
                self.publish(&configurations, &ConfigurationChange::Set(bundle), now).await?;
                tracing::info!(cas, "removed foreign and old CAs from the caBundles");
                Some(CertificateStep::Tidied)
            }
            _ => None,
        })
    }

    /// The content of a new Secret: with the last known CA if it is still valid, otherwise with a new CA.
    fn new_secret(
        &self,
        replica: &ReplicaState,
        mut live: Vec<CaBundle>,
        now: Timestamp,
    ) -> Result<CaSecret, AuthorityError> {
        let known = replica.known.as_ref().filter(|known| known.cas.current.not_after > now);
        let authority = match known {
            Some(known) => Arc::clone(&known.current),
            None => Arc::new(self.authority(now)?),
        };
        live.extend(replica.leaf.as_ref().map(|leaf| CaBundle::from_iter([leaf.issuer.clone()])));
        // The time of the write: the retirement of older CAs counts from it.
        Ok(CaSecret::fresh(authority, &live, Timestamp::now()))
    }

    fn authority(&self, now: Timestamp) -> Result<Authority, AuthorityError> {
        Authority::generate("interlock CA", now, self.lifetimes.ca)
    }

    fn sign(&self, known: &CaSecret, now: Timestamp) -> Result<Leaf, ManageError> {
        let names: Vec<_> = self.names.iter().map(String::as_str).collect();
        let pair = known.current.issue(&names, now, self.lifetimes.leaf)?;
        let path = std::path::Path::new(ca_secret::SECRET_NAME);
        let pem = tls::Pem {
            certificate_path: path,
            certificate: pair.certificate_pem.as_bytes(),
            key_path: path,
            key: pair.key_pem.as_bytes(),
        };
        self.certificates.replace(tls::parse(pem)?);
        let life = pair.not_after.duration_since(now);
        Ok(Leaf { issuer: known.cas.current.clone(), renew_at: pair.not_after - life / 3, not_after: pair.not_after })
    }

    /// Replaces the Secret, if it has not changed since it was read.
    async fn write(&self, secret: Option<Secret>, content: &CaSecret) -> Result<(), ManageError> {
        let Some(secret) = secret else { return Ok(()) };
        let written = content.written(secret);
        self.secrets()
            .replace(ca_secret::SECRET_NAME, &PostParams::default(), &written)
            .await
            .map(drop)
            .map_err(writing(THE_SECRET))
    }

    /// Changes both configurations at once, because calls fail until then. A failure of one does not affect the other.
    pub(super) async fn publish(
        &self,
        configurations: &[WebhookConfiguration],
        change: &ConfigurationChange,
        now: Timestamp,
    ) -> Result<(), ManageError> {
        let changes = configurations.iter().map(|found| found.change(&self.client, change, now));
        written(join_all(changes).await)
    }

    /// Gives up the ownership of the caBundles; see [`WebhookConfiguration::disown`].
    pub(super) async fn disown(&self, configurations: &[WebhookConfiguration]) -> Result<(), ManageError> {
        written(join_all(configurations.iter().map(|found| found.disown(&self.client))).await)
    }
}

/// The first failure of the writes to both configurations. A deleted configuration needs no write.
fn written(ended: Vec<Result<(), Error>>) -> Result<(), ManageError> {
    let failed = ended.into_iter().filter_map(Result::err).find(|error| !is_absent(error));
    failed.map_or(Ok(()), |source| Err(ManageError::Write { what: THE_CONFIGURATIONS, source }))
}

fn is_absent(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.code == 404)
}

fn writing(what: &'static str) -> impl Fn(Error) -> ManageError {
    move |source| ManageError::Write { what, source }
}

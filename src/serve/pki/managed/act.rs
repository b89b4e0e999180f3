//! What is done about a step: the Secret is written, a leaf signed, or the caBundles changed.

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
use crate::serve::pki::live::{BundleChange, WebhookConfiguration};
use crate::serve::pki::metrics::CertificateStep;
use crate::serve::pki::rotation::{Leaf, RotationStep};
use crate::serve::pki::tls;

impl Managed {
    /// Does what was planned over what was read.
    pub(super) async fn act(
        &self,
        step: RotationStep,
        look: Observation,
        memory: &mut ReplicaState,
    ) -> Result<(), ManageError> {
        let Observation { configurations, secret, live, now, .. } = look;
        let done = match step {
            RotationStep::Wait(_) => return Ok(()),
            RotationStep::Create => {
                let made = self.made(memory, live, now)?.written(CaSecret::object());
                self.secrets().create(&PostParams::default(), &made).await.map_err(writing(THE_SECRET))?;
                tracing::info!(namespace = %self.namespace, secret = ca_secret::SECRET_NAME, "made the Secret of the CA");
                CertificateStep::Created
            }
            RotationStep::Replace => {
                memory.known = None;
                let made = self.made(memory, live, now)?;
                self.write(secret, &made).await?;
                tracing::warn!(
                    namespace = %self.namespace, secret = ca_secret::SECRET_NAME,
                    "made a new CA in the place of one that could not be used, for there was nothing to serve"
                );
                CertificateStep::Replaced
            }
            RotationStep::Sign => {
                let Some(known) = &memory.known else { return Ok(()) };
                let leaf = self.sign(known, now)?;
                let (issuer, not_after) = (leaf.issuer.short(), leaf.not_after);
                tracing::info!(%issuer, %not_after, "serving a new certificate");
                memory.leaf = Some(leaf);
                CertificateStep::Signed
            }
            RotationStep::Add(required) => {
                memory.pace.healed(now);
                let cas = required.len();
                self.publish(&configurations, &BundleChange::Add(required), now).await?;
                tracing::info!(cas, "added the CAs that caBundles lacked");
                CertificateStep::Healed
            }
            RotationStep::Begin => {
                let Some(known) = &memory.known else { return Ok(()) };
                let begun = known.begun(Arc::new(self.authority(now)?))?;
                self.write(secret, &begun).await?;
                let next = begun.cas.next.as_ref().map(|next| next.short()).unwrap_or_default();
                tracing::info!(current = %begun.cas.current.short(), %next, "a rotation of the CA has begun");
                CertificateStep::Begun
            }
            RotationStep::Promote => {
                let Some(known) = &memory.known else { return Ok(()) };
                // The time of the write: until then the other replicas sign with the CA before it.
                let promoted = known.promoted(Timestamp::now());
                self.write(secret, &promoted).await?;
                tracing::info!(current = %promoted.cas.current.short(), "the next CA is the current one now");
                CertificateStep::Promoted
            }
            RotationStep::Retire(bundle) => {
                let Some(known) = &memory.known else { return Ok(()) };
                self.write(secret, &known.retired(bundle)).await?;
                tracing::info!(current = %known.cas.current.short(), "the CAs before the current one are retired");
                CertificateStep::Retired
            }
            RotationStep::Tidy => {
                let Some(known) = &memory.known else { return Ok(()) };
                let bundle = known.cas.bundle.clone();
                let cas = bundle.len();
                self.publish(&configurations, &BundleChange::Set(bundle), now).await?;
                tracing::info!(cas, "took the CAs that are not ours any more out of the caBundles");
                CertificateStep::Tidied
            }
        };
        self.metrics.count_step(done);
        Ok(())
    }

    /// A Secret of the CA that this replica remembers, or of a new one.
    fn made(&self, memory: &ReplicaState, mut live: Vec<CaBundle>, now: Timestamp) -> Result<CaSecret, ManageError> {
        let remembered = memory.known.as_ref().filter(|known| known.cas.current.not_after > now);
        let authority = match remembered {
            Some(known) => Arc::clone(&known.current),
            None => Arc::new(self.authority(now)?),
        };
        live.extend(memory.leaf.as_ref().map(|leaf| CaBundle::from_iter([leaf.issuer.clone()])));
        // The time of the write, from which the life of older leaves is counted.
        Ok(CaSecret::fresh(authority, &live, Timestamp::now())?)
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

    /// Writes the Secret over the one that was read.
    async fn write(&self, secret: Option<Secret>, content: &CaSecret) -> Result<(), ManageError> {
        let Some(secret) = secret else { return Ok(()) };
        let written = content.written(secret);
        self.secrets()
            .replace(ca_secret::SECRET_NAME, &PostParams::default(), &written)
            .await
            .map(drop)
            .map_err(writing(THE_SECRET))
    }

    /// Changes each configuration, whatever comes of the other; both at once, for calls fail until it is done.
    async fn publish(
        &self,
        configurations: &[WebhookConfiguration],
        change: &BundleChange,
        now: Timestamp,
    ) -> Result<(), ManageError> {
        let changes = configurations.iter().map(|found| found.change(&self.client, change, now));
        written(join_all(changes).await)
    }

    /// Leaves the caBundles to nobody; see [`WebhookConfiguration::disown`].
    pub(super) async fn disown(&self, configurations: &[WebhookConfiguration]) -> Result<(), ManageError> {
        written(join_all(configurations.iter().map(|found| found.disown(&self.client))).await)
    }
}

/// How the writes of both configurations ended together. One that was removed meanwhile needs none.
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

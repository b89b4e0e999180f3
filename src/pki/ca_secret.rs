//! The Secret that holds our CA: its content, parsed and checked as values.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ObjectMeta;

use super::authority::{Authority, AuthorityError};
use super::bundle::{Bundle, Ca};
use super::rotation::Cas;

/// Its name, in Interlock's own namespace.
pub const NAME: &str = "interlock-ca";

/// Since when the current CA is that, RFC 3339.
pub const PROMOTED: &str = "interlock.dev/promoted";

/// Its presence asks the leader for a rotation; the value, for people, says when it was asked for.
pub const ROTATE: &str = "interlock.dev/rotate";

const CURRENT: Half = Half { certificate: "current.crt", key: "current.key" };
const NEXT: Half = Half { certificate: "next.crt", key: "next.key" };
const BUNDLE: &str = "bundle.crt";

/// The two keys of one CA.
struct Half {
    certificate: &'static str,
    key: &'static str,
}

/// What the Secret holds.
#[derive(Debug, Clone)]
pub struct CaSecret {
    /// The certificates.
    pub cas: Cas,
    /// Signs leaves.
    pub current: Arc<Authority>,
    /// Will sign them.
    pub next: Option<Arc<Authority>>,
}

/// The Secret does not hold what it must.
#[derive(Debug, thiserror::Error)]
pub enum CaSecretError {
    /// A key is missing, or its value is no text.
    #[error("{0} is missing, or no text")]
    Missing(&'static str),
    /// A CA cannot be used.
    #[error("{file} cannot be used: {why}")]
    Authority {
        /// The key of the certificate.
        file: &'static str,
        /// Why.
        why: AuthorityError,
    },
}

impl CaSecret {
    /// Of an authority, as the only one.
    ///
    /// # Errors
    /// [`CaSecretError::Authority`], for one whose certificate cannot be read.
    pub fn fresh(current: Arc<Authority>, live: &[Bundle], now: Timestamp) -> Result<Self, CaSecretError> {
        let cas = Cas::fresh(CURRENT.certificate(&current)?, live, now);
        Ok(Self { cas, current, next: None })
    }

    /// Reads a Secret.
    ///
    /// # Errors
    /// [`CaSecretError`] says which part of it is wrong. A CA that is not valid at `now` is.
    pub fn parse(secret: &Secret, now: Timestamp) -> Result<Self, CaSecretError> {
        let none = BTreeMap::new();
        let data = secret.data.as_ref().unwrap_or(&none);
        let current = CURRENT.read(data, now)?.ok_or(CaSecretError::Missing(CURRENT.certificate))?;
        let next = NEXT.read(data, now)?;
        // Whatever was done to it, these two are trusted.
        let mut bundle = data.get(BUNDLE).map(|pem| Bundle::read(&pem.0)).unwrap_or_default();
        let current_ca = CURRENT.certificate(&current)?;
        let next_ca = next.as_ref().map(|next| NEXT.certificate(next)).transpose()?;
        bundle.add(&current_ca);
        next_ca.iter().for_each(|next| bundle.add(next));
        let annotation = |key: &str| secret.metadata.annotations.as_ref()?.get(key);
        let promoted = annotation(PROMOTED).and_then(|moment| moment.parse().ok());
        let asked = annotation(ROTATE).is_some();
        Ok(Self { cas: Cas { current: current_ca, next: next_ca, bundle, promoted, asked }, current, next })
    }

    /// With a next authority.
    ///
    /// # Errors
    /// As [`Self::fresh`].
    pub fn begun(&self, next: Arc<Authority>) -> Result<Self, CaSecretError> {
        let cas = self.cas.begun(NEXT.certificate(&next)?);
        Ok(Self { cas, current: Arc::clone(&self.current), next: Some(next) })
    }

    /// With the next authority as the current one.
    #[must_use]
    pub fn promoted(&self, now: Timestamp) -> Self {
        let current = Arc::clone(self.next.as_ref().unwrap_or(&self.current));
        Self { cas: self.cas.promoted(now), current, next: None }
    }

    /// With another bundle.
    #[must_use]
    pub fn retired(&self, bundle: Bundle) -> Self {
        Self { cas: self.cas.retired(bundle), ..self.clone() }
    }

    /// Writes it into the object that it was read from, or a new one: whatever else is there stays.
    #[must_use]
    pub fn written(&self, mut secret: Secret) -> Secret {
        let mut data = BTreeMap::new();
        let mut put = |key: &str, text: &str| data.insert(key.to_owned(), ByteString(text.as_bytes().to_vec()));
        for (half, authority) in [(CURRENT, Some(&self.current)), (NEXT, self.next.as_ref())] {
            if let Some(authority) = authority {
                put(half.certificate, authority.certificate_pem());
                put(half.key, authority.key_pem());
            }
        }
        put(BUNDLE, &self.cas.bundle.pem());
        secret.data = Some(data);
        let annotations = secret.metadata.annotations.get_or_insert_default();
        match self.cas.promoted {
            Some(promoted) => annotations.insert(PROMOTED.to_owned(), promoted.to_string()),
            None => annotations.remove(PROMOTED),
        };
        if !self.cas.asked {
            annotations.remove(ROTATE);
        }
        secret
    }

    /// An object to write the first one into.
    #[must_use]
    pub fn object() -> Secret {
        let labels = [("app.kubernetes.io/name", "interlock")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        let metadata = ObjectMeta { name: Some(NAME.to_owned()), labels: Some(labels.into()), ..ObjectMeta::default() };
        Secret { metadata, type_: Some("Opaque".to_owned()), ..Secret::default() }
    }
}

impl Half {
    /// The authority, where there is one.
    fn read(
        &self,
        data: &BTreeMap<String, ByteString>,
        now: Timestamp,
    ) -> Result<Option<Arc<Authority>>, CaSecretError> {
        let text = |key: &'static str| match data.get(key) {
            Some(bytes) => std::str::from_utf8(&bytes.0).map(Some).map_err(|_| CaSecretError::Missing(key)),
            None => Ok(None),
        };
        match (text(self.certificate)?, text(self.key)?) {
            (Some(certificate), Some(key)) => {
                let read = Authority::from_pem(certificate, key, now);
                let file = self.certificate;
                read.map(|authority| Some(Arc::new(authority))).map_err(|why| CaSecretError::Authority { file, why })
            }
            (None, None) => Ok(None),
            (Some(_), None) => Err(CaSecretError::Missing(self.key)),
            (None, Some(_)) => Err(CaSecretError::Missing(self.certificate)),
        }
    }

    /// The certificate of an authority.
    fn certificate(&self, authority: &Authority) -> Result<Ca, CaSecretError> {
        let wrong = CaSecretError::Authority { file: self.certificate, why: AuthorityError::NotACa };
        Ca::read(authority.certificate_pem()).ok_or(wrong)
    }
}

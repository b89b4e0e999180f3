//! The Secret with the CA: its content, parsed and checked.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ObjectMeta;

use super::authority::{Authority, AuthorityError};
use super::bundle::CaBundle;
use super::rotation::CaSet;

/// The name of the Secret, in Interlock's own namespace.
pub(crate) const SECRET_NAME: &str = "interlock-ca";

/// The time since which the current CA signs leaves, RFC 3339.
pub(crate) const PROMOTED_ANNOTATION: &str = "interlock.dev/promoted";

/// This annotation requests a rotation from the leader. Its value is the time of the request, for information only.
pub(crate) const ROTATE_ANNOTATION: &str = "interlock.dev/rotate";

const CURRENT: CaKeys = CaKeys { certificate: "current.crt", key: "current.key" };
const NEXT: CaKeys = CaKeys { certificate: "next.crt", key: "next.key" };
const BUNDLE: &str = "bundle.crt";

/// The keys of the Secret for one CA.
struct CaKeys {
    certificate: &'static str,
    key: &'static str,
}

/// The content of the Secret.
#[derive(Debug, Clone)]
pub(crate) struct CaSecret {
    pub cas: CaSet,
    /// Signs leaves now.
    pub current: Arc<Authority>,
    /// Signs leaves after the next promotion.
    pub next: Option<Arc<Authority>>,
}

/// The content of the Secret is not valid.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CaSecretError {
    /// A key is missing, or its value is not text.
    #[error("{0} is missing, or not text")]
    Missing(&'static str),
    /// A CA cannot be used.
    #[error("{file} cannot be used: {why}")]
    Authority {
        /// The key of the certificate in the Secret.
        file: &'static str,
        why: AuthorityError,
    },
}

impl CaSecret {
    /// The content for a first authority.
    #[must_use]
    pub(crate) fn fresh(current: Arc<Authority>, live: &[CaBundle], now: Timestamp) -> Self {
        Self { cas: CaSet::fresh(current.ca.clone(), live, now), current, next: None }
    }

    /// Parses a Secret.
    ///
    /// # Errors
    /// [`CaSecretError`] names the invalid part. A CA that is not valid at `now` is invalid.
    pub(crate) fn parse(secret: &Secret, now: Timestamp) -> Result<Self, CaSecretError> {
        let none = BTreeMap::new();
        let data = secret.data.as_ref().unwrap_or(&none);
        let current = CURRENT.read(data, now)?.ok_or(CaSecretError::Missing(CURRENT.certificate))?;
        let next = NEXT.read(data, now)?;
        // The current and the next CA are trusted, even if the bundle was edited.
        let mut bundle = data.get(BUNDLE).map(|pem| CaBundle::read(&pem.0)).unwrap_or_default();
        let (current_ca, next_ca) = (current.ca.clone(), next.as_ref().map(|next| next.ca.clone()));
        bundle.add(&current_ca);
        next_ca.iter().for_each(|next| bundle.add(next));
        let annotation = |key: &str| secret.metadata.annotations.as_ref()?.get(key);
        let promoted = annotation(PROMOTED_ANNOTATION).and_then(|moment| moment.parse().ok());
        let asked = annotation(ROTATE_ANNOTATION).is_some();
        Ok(Self { cas: CaSet { current: current_ca, next: next_ca, bundle, promoted, asked }, current, next })
    }

    /// The content with a next authority.
    #[must_use]
    pub(crate) fn begun(&self, next: Arc<Authority>) -> Self {
        Self { cas: self.cas.begun(next.ca.clone()), next: Some(next), ..self.clone() }
    }

    /// The content with the next authority as the current one.
    #[must_use]
    pub(crate) fn promoted(&self, now: Timestamp) -> Self {
        let current = Arc::clone(self.next.as_ref().unwrap_or(&self.current));
        Self { cas: self.cas.promoted(now), current, next: None }
    }

    /// The content with another bundle.
    #[must_use]
    pub(crate) fn retired(&self, bundle: CaBundle) -> Self {
        Self { cas: self.cas.retired(bundle), ..self.clone() }
    }

    /// Writes the content into the Secret that it was read from, or into a new one. Keeps everything else in the Secret.
    #[must_use]
    pub(crate) fn written(&self, mut secret: Secret) -> Secret {
        let mut data = BTreeMap::new();
        let mut put = |key: &str, text: &str| data.insert(key.to_owned(), ByteString(text.as_bytes().to_vec()));
        for (keys, authority) in [(CURRENT, Some(&self.current)), (NEXT, self.next.as_ref())] {
            if let Some(authority) = authority {
                put(keys.certificate, authority.certificate_pem());
                put(keys.key, authority.key_pem());
            }
        }
        put(BUNDLE, &self.cas.bundle.pem());
        secret.data = Some(data);
        let annotations = secret.metadata.annotations.get_or_insert_default();
        match self.cas.promoted {
            Some(promoted) => annotations.insert(PROMOTED_ANNOTATION.to_owned(), promoted.to_string()),
            None => annotations.remove(PROMOTED_ANNOTATION),
        };
        if !self.cas.asked {
            annotations.remove(ROTATE_ANNOTATION);
        }
        secret
    }

    /// An empty Secret for the first content.
    #[must_use]
    pub(crate) fn object() -> Secret {
        let labels = [("app.kubernetes.io/name", "interlock")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        let metadata =
            ObjectMeta { name: Some(SECRET_NAME.to_owned()), labels: Some(labels.into()), ..ObjectMeta::default() };
        Secret { metadata, type_: Some("Opaque".to_owned()), ..Secret::default() }
    }
}

impl CaKeys {
    /// The authority, if the Secret has one.
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
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    const DAY: SignedDuration = SignedDuration::from_hours(24);

    fn now() -> Timestamp {
        "2026-11-20T12:00:00Z".parse().unwrap()
    }

    fn authority() -> Arc<Authority> {
        Arc::new(Authority::generate("test CA", now(), DAY).unwrap())
    }

    fn stored() -> (CaSecret, Secret) {
        let content = CaSecret::fresh(authority(), &[], now());
        let secret = content.written(CaSecret::object());
        (content, secret)
    }

    #[test]
    fn the_secret_round_trips_in_every_phase() {
        let (fresh, mut secret) = stored();
        secret.metadata.resource_version = Some("7".to_owned());
        let begun = fresh.begun(authority());
        let promoted = begun.promoted(now() + DAY / 2);
        let retired = promoted.retired(CaBundle::from_iter([promoted.cas.current.clone()]));
        for content in [fresh, begun, promoted, retired] {
            secret = content.written(secret);
            let read = CaSecret::parse(&secret, now()).unwrap();
            assert_eq!(read.cas, content.cas);
            assert_eq!(read.next.is_some(), content.next.is_some());
            assert_eq!(read.current.certificate_pem(), content.current.certificate_pem());
            assert_eq!(secret.metadata.resource_version.as_deref(), Some("7"), "written over what was read");
        }
        assert_eq!(secret.data.unwrap().into_keys().collect::<Vec<_>>(), ["bundle.crt", "current.crt", "current.key"]);
    }

    #[test]
    fn the_annotation_requests_a_rotation_and_begin_removes_it() {
        let (_, mut secret) = stored();
        secret.metadata.annotations.as_mut().unwrap().insert(ROTATE_ANNOTATION.to_owned(), now().to_string());
        let asked = CaSecret::parse(&secret, now()).unwrap();
        assert!(asked.cas.asked);
        let begun = asked.begun(authority()).written(secret);
        assert!(!begun.metadata.annotations.unwrap().contains_key(ROTATE_ANNOTATION));
    }

    #[test]
    fn the_invalid_part_of_the_secret_is_named() {
        let why = |key: &str, value: Option<&[u8]>| {
            let (content, _) = stored();
            let mut secret = content.begun(authority()).written(CaSecret::object());
            let data = secret.data.as_mut().unwrap();
            match value {
                Some(value) => data.insert(key.to_owned(), ByteString(value.to_vec())),
                None => data.remove(key),
            };
            CaSecret::parse(&secret, now()).unwrap_err().to_string()
        };
        for (key, value, expected) in [
            ("current.crt", None, "current.crt is missing, or not text"),
            ("current.key", None, "current.key is missing, or not text"),
            ("next.key", None, "next.key is missing, or not text"),
            ("current.key", Some(&b"\xff"[..]), "current.key is missing, or not text"),
            ("current.crt", Some(b"junk"), "current.crt cannot be used: not the PEM of a CA certificate"),
            ("next.crt", Some(b""), "next.crt cannot be used: not the PEM of a CA certificate"),
        ] {
            assert_eq!(why(key, value), expected);
        }
        let foreign = authority();
        assert!(why("current.key", Some(foreign.key_pem().as_bytes())).contains("private key that belongs to"));
        let (_, secret) = stored();
        assert!(CaSecret::parse(&secret, now() + DAY * 2).unwrap_err().to_string().contains("not valid now"));
        assert!(CaSecret::parse(&Secret::default(), now()).is_err());
    }

    #[test]
    fn current_and_next_ca_are_trusted_with_any_bundle() {
        let (content, mut secret) = stored();
        for bundle in [&b""[..], b"junk", b"\xff"] {
            secret.data.as_mut().unwrap().insert(BUNDLE.to_owned(), ByteString(bundle.to_vec()));
            assert_eq!(CaSecret::parse(&secret, now()).unwrap().cas.bundle, content.cas.bundle);
        }
    }
}

//! CA certificates as values: one, and a set of them as a `caBundle` holds it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use sha2::{Digest, Sha256};

use super::authority;

/// What tells one CA certificate from every other: the SHA-256 of its DER.
pub type Fingerprint = [u8; 32];

/// A CA certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ca {
    /// Which one.
    pub id: Fingerprint,
    /// The certificate alone, as PEM.
    pub pem: String,
    /// The last moment at which it is valid.
    pub not_after: Timestamp,
}

/// Some CA certificates, each once, in an order of their own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CaBundle(BTreeMap<Fingerprint, Ca>);

impl Ca {
    /// Reads the first certificate of a PEM, whatever its dates; `None` where there is none, or it is not of a CA.
    #[must_use]
    pub fn read(pem: &str) -> Option<Self> {
        Self::of(&CertificateDer::from_pem_slice(pem.as_bytes()).ok()?)
    }

    fn of(der: &CertificateDer<'_>) -> Option<Self> {
        let (_, not_after) = authority::ca_validity(der)?;
        Some(Self { id: Sha256::digest(der).into(), pem: authority::pem(der), not_after })
    }

    /// The beginning of the fingerprint, in hex: enough to tell a person's CAs apart.
    #[must_use]
    pub fn short(&self) -> String {
        self.id.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
    }
}

impl CaBundle {
    /// Reads every CA certificate of a PEM. What is something else is left out: a bundle is there to be added to and
    /// written anew, and one that cannot be read is like an empty one.
    #[must_use]
    pub fn read(pem: &[u8]) -> Self {
        let found = CertificateDer::pem_slice_iter(pem).filter_map(|der| Ca::of(&der.ok()?));
        found.collect()
    }

    /// All of them, as PEM.
    #[must_use]
    pub fn pem(&self) -> String {
        self.0.values().map(|ca| ca.pem.as_str()).collect()
    }

    /// Adds one.
    pub fn add(&mut self, ca: &Ca) {
        self.0.entry(ca.id).or_insert_with(|| ca.clone());
    }

    /// These and those.
    #[must_use]
    pub fn with(mut self, other: &Self) -> Self {
        other.0.values().for_each(|ca| self.add(ca));
        self
    }

    /// Those that are valid at `now` or later.
    #[must_use]
    pub fn unexpired(mut self, now: Timestamp) -> Self {
        self.0.retain(|_, ca| ca.not_after >= now);
        self
    }

    /// Whether this one is among them.
    #[must_use]
    pub fn has(&self, ca: &Ca) -> bool {
        self.0.contains_key(&ca.id)
    }

    /// Whether all of these are among them.
    #[must_use]
    pub fn has_all(&self, others: &Self) -> bool {
        others.0.values().all(|ca| self.has(ca))
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Ca> {
        self.0.values()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<Ca> for CaBundle {
    fn from_iter<I: IntoIterator<Item = Ca>>(cas: I) -> Self {
        Self(cas.into_iter().map(|ca| (ca.id, ca)).collect())
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::serve::pki::authority::Authority;

    fn now() -> Timestamp {
        "2026-11-20T12:00:00Z".parse().unwrap()
    }

    fn authority(days: i64) -> Authority {
        Authority::generate("test CA", now(), SignedDuration::from_hours(24 * days)).unwrap()
    }

    #[test]
    fn a_bundle_survives_its_pem_and_whatever_else_stands_there() {
        let (one, two) = (authority(1), authority(2));
        let leaf = one.issue(&["localhost"], now(), SignedDuration::from_hours(1)).unwrap();
        let text = format!(
            "junk\n{}{}{}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n{}",
            one.certificate_pem(),
            leaf.certificate_pem,
            one.certificate_pem(),
            two.certificate_pem()
        );
        let bundle = CaBundle::read(text.as_bytes());
        assert_eq!(bundle.len(), 2, "the leaf, the copy and the junk are left out");
        assert_eq!(CaBundle::read(bundle.pem().as_bytes()), bundle);
        for authority in [&one, &two] {
            assert!(bundle.has(&Ca::read(authority.certificate_pem()).unwrap()));
        }
        assert!(CaBundle::read(b"\xff\xfe-----BEGIN CERTIFICATE-----").is_empty());
        assert_eq!(Ca::read(&leaf.certificate_pem), None);
    }

    #[test]
    fn what_has_expired_is_left_out() {
        let (short, long) = (authority(1), authority(9));
        let bundle = CaBundle::read(format!("{}{}", short.certificate_pem(), long.certificate_pem()).as_bytes());
        let left = bundle.clone().unexpired(now() + SignedDuration::from_hours(25));
        assert_eq!(left.iter().map(|ca| ca.not_after).collect::<Vec<_>>(), [long.not_after()]);
        assert!(bundle.has_all(&left) && !left.has_all(&bundle));
    }
}

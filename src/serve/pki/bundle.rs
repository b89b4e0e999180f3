//! CA certificates as values: a single one, and the set in a `caBundle`.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use sha2::{Digest, Sha256};
use x509_parser::prelude::{FromDer, X509Certificate};

/// The SHA-256 of a certificate's DER.
pub(crate) type Fingerprint = [u8; 32];

/// A CA certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ca {
    pub id: Fingerprint,
    /// Only this certificate, as PEM.
    pub pem: String,
    /// The last moment at which the certificate is valid.
    pub not_after: Timestamp,
}

/// A set of CA certificates, ordered by fingerprint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CaBundle(BTreeMap<Fingerprint, Ca>);

impl Ca {
    /// `None` if the certificate is not that of a CA. Does not check its dates.
    pub(super) fn of(der: &CertificateDer<'_>) -> Option<Self> {
        let (_, parsed) = X509Certificate::from_der(der).ok()?;
        let (_, not_after) = dates(&parsed).filter(|_| parsed.is_ca())?;
        Some(Self { id: Sha256::digest(der).into(), pem: pem(der), not_after })
    }

    /// The first bytes of the fingerprint in hex: enough to distinguish CAs.
    #[must_use]
    pub(crate) fn short(&self) -> String {
        self.id.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
    }
}

impl CaBundle {
    /// Parses all CA certificates of a PEM and ignores everything else. Bundles are rewritten completely, so a bundle that cannot be
    /// parsed is treated as empty.
    #[must_use]
    pub(crate) fn read(pem: &[u8]) -> Self {
        let found = CertificateDer::pem_slice_iter(pem).filter_map(|der| Ca::of(&der.ok()?));
        found.collect()
    }

    /// All certificates, as PEM.
    #[must_use]
    pub(crate) fn pem(&self) -> String {
        self.0.values().map(|ca| ca.pem.as_str()).collect()
    }

    /// Adds a CA.
    pub(crate) fn add(&mut self, ca: &Ca) {
        self.0.entry(ca.id).or_insert_with(|| ca.clone());
    }

    /// The union of two bundles.
    #[must_use]
    pub(crate) fn with(mut self, other: &Self) -> Self {
        other.0.values().for_each(|ca| self.add(ca));
        self
    }

    /// The CAs that are valid at `now` or later.
    #[must_use]
    pub(crate) fn unexpired(mut self, now: Timestamp) -> Self {
        self.0.retain(|_, ca| ca.not_after >= now);
        self
    }

    /// Whether a CA is in the bundle.
    #[must_use]
    pub(crate) fn has(&self, ca: &Ca) -> bool {
        self.0.contains_key(&ca.id)
    }

    /// Whether all CAs of another bundle are in this one.
    #[must_use]
    pub(crate) fn has_all(&self, others: &Self) -> bool {
        others.0.values().all(|ca| self.has(ca))
    }

    /// The CAs.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Ca> {
        self.0.values()
    }

    /// The number of CAs.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl FromIterator<Ca> for CaBundle {
    fn from_iter<I: IntoIterator<Item = Ca>>(cas: I) -> Self {
        Self(cas.into_iter().map(|ca| (ca.id, ca)).collect())
    }
}

/// A certificate as PEM.
fn pem(der: &CertificateDer<'_>) -> String {
    const LINE: usize = 64;
    let text = STANDARD.encode(der);
    let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(LINE));
        pem += line;
        pem.push('\n');
        rest = after;
    }
    pem + "-----END CERTIFICATE-----\n"
}

/// The first and the last moment at which a certificate is valid. `None` if the certificate cannot be parsed.
pub(super) fn validity(der: &CertificateDer<'_>) -> Option<(Timestamp, Timestamp)> {
    let (_, parsed) = X509Certificate::from_der(der).ok()?;
    dates(&parsed)
}

fn dates(parsed: &X509Certificate<'_>) -> Option<(Timestamp, Timestamp)> {
    let validity = parsed.validity();
    Some((timestamp(validity.not_before)?, timestamp(validity.not_after)?))
}

fn timestamp(time: x509_parser::time::ASN1Time) -> Option<Timestamp> {
    Timestamp::from_second(time.timestamp()).ok()
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
    fn a_bundle_is_parsed_from_pem_with_other_content() {
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
            assert!(bundle.has(&authority.ca));
        }
        assert!(CaBundle::read(b"\xff\xfe-----BEGIN CERTIFICATE-----").0.is_empty());
        assert_eq!(CaBundle::read(leaf.certificate_pem.as_bytes()).len(), 0);
    }

    #[test]
    fn expired_cas_are_left_out() {
        let (short, long) = (authority(1), authority(9));
        let bundle = CaBundle::read(format!("{}{}", short.certificate_pem(), long.certificate_pem()).as_bytes());
        let left = bundle.clone().unexpired(now() + SignedDuration::from_hours(25));
        assert_eq!(left.iter().map(|ca| ca.not_after).collect::<Vec<_>>(), [long.ca.not_after]);
        assert!(bundle.has_all(&left) && !left.has_all(&bundle));
    }
}

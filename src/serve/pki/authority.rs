//! The certificate authority of the webhook.
//!
//! All keys are ECDSA P-256: creation takes under a millisecond, and every API server can verify them. Each certificate starts an hour
//! early, because clocks differ. Every date is set here, because the library's defaults reach to the year 4096.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SerialNumber, date_time_ymd,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::bundle::{Ca, validity};
use super::tls;

/// How much earlier than now a certificate becomes valid, for clocks that are behind.
const BACKDATED: SignedDuration = SignedDuration::from_hours(1);

/// Bytes of a serial number. RFC 5280 allows 20. With 16 random bytes, serial numbers are unique.
const SERIAL_BYTES: usize = 16;

/// A CA with its key.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(super) ca: Ca,
    key_pem: String,
}

/// A certificate and its key, both as PEM.
#[derive(Clone)]
pub(crate) struct Pair {
    pub certificate_pem: String,
    /// PKCS#8.
    pub key_pem: String,
    /// The last moment at which the certificate is valid.
    pub not_after: Timestamp,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Authority").field("not_after", &self.ca.not_after).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Pair {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Pair").field("not_after", &self.not_after).finish_non_exhaustive()
    }
}

/// An authority cannot be created, parsed or used.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// The PEM is not the certificate of a CA.
    #[error("not the PEM of a CA certificate")]
    NotACa,
    /// The CA has expired or is not valid yet.
    #[error("not valid now: it is valid from {not_before} to {not_after}")]
    OutOfDate { not_before: Timestamp, not_after: Timestamp },
    /// The PEM is not a private key, or the key of another certificate.
    #[error("not the PEM of the private key that belongs to the CA certificate")]
    WrongKey,
    /// The certificate cannot be signed, for example because of an invalid name.
    #[error("failed to sign a certificate")]
    Signing(#[from] rcgen::Error),
    /// The system returned no random bytes.
    #[error("failed to draw a random serial number")]
    NoRandomness,
}

impl Authority {
    /// Creates a self-signed CA that may sign only leaves. The subject is `name` and the start of the serial number, so that no verifier
    /// confuses two CAs.
    ///
    /// # Errors
    /// [`AuthorityError::Signing`] and [`AuthorityError::NoRandomness`].
    pub(crate) fn generate(name: &str, now: Timestamp, lifetime: SignedDuration) -> Result<Self, AuthorityError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let serial = random_serial()?;
        let mut params = CertificateParams::default();
        date(&mut params, now, now + lifetime);
        let generation: String = serial.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        params.distinguished_name = named(&format!("{name} {generation}"));
        params.serial_number = Some(SerialNumber::from_slice(&serial));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.use_authority_key_identifier_extension = true;
        let ca = Ca::of(params.self_signed(&key)?.der()).ok_or(AuthorityError::NotACa)?;
        let key_pem = key.serialize_pem();
        Ok(Self { issuer: Issuer::new(params, key), ca, key_pem })
    }

    /// Parses a CA and its key, and checks that they are valid and belong together.
    ///
    /// # Errors
    /// Every [`AuthorityError`] except those of signing.
    pub(crate) fn from_pem(certificate_pem: &str, key_pem: &str, now: Timestamp) -> Result<Self, AuthorityError> {
        let (der, ca) = valid_ca(certificate_pem, now)?;
        let key = KeyPair::from_pem(key_pem).map_err(|_| AuthorityError::WrongKey)?;
        let (_, parsed) = X509Certificate::from_der(&der).map_err(|_| AuthorityError::NotACa)?;
        if *parsed.public_key().subject_public_key.data != *key.public_key_raw() {
            return Err(AuthorityError::WrongKey);
        }
        let issuer = Issuer::from_ca_cert_der(&der, key).map_err(|_| AuthorityError::NotACa)?;
        Ok(Self { issuer, ca, key_pem: key_pem.to_owned() })
    }

    /// Signs a server certificate with a new key for `names` (DNS names and addresses). The certificate does not outlive the CA.
    ///
    /// # Errors
    /// [`AuthorityError::Signing`] and [`AuthorityError::NoRandomness`].
    pub(crate) fn issue(
        &self,
        names: &[&str],
        now: Timestamp,
        lifetime: SignedDuration,
    ) -> Result<Pair, AuthorityError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let common_name = names.first().map_or("interlock", String::as_str);
        let distinguished_name = named(common_name);
        let mut params = CertificateParams::new(names)?;
        let not_after = truncated_to_seconds((now + lifetime).min(self.ca.not_after));
        date(&mut params, now, not_after);
        params.distinguished_name = distinguished_name;
        params.serial_number = Some(SerialNumber::from_slice(&random_serial()?));
        // `ExplicitNoCa` also writes the subject key identifier.
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let certificate_pem = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Pair { certificate_pem, key_pem: key.serialize_pem(), not_after })
    }

    /// The CA certificate, in the form of a `caBundle`.
    #[must_use]
    pub(crate) fn certificate_pem(&self) -> &str {
        &self.ca.pem
    }

    /// The CA's private key.
    #[must_use]
    pub(crate) fn key_pem(&self) -> &str {
        &self.key_pem
    }
}

/// A CA certificate that is valid at `now`, without its key.
///
/// # Errors
/// [`AuthorityError::NotACa`] and [`AuthorityError::OutOfDate`].
pub(super) fn valid_ca(certificate_pem: &str, now: Timestamp) -> Result<(CertificateDer<'static>, Ca), AuthorityError> {
    let der = CertificateDer::from_pem_slice(certificate_pem.as_bytes()).map_err(|_| AuthorityError::NotACa)?;
    let ca = Ca::of(&der).ok_or(AuthorityError::NotACa)?;
    let (not_before, not_after) = validity(&der).ok_or(AuthorityError::NotACa)?;
    if now < not_before || now > not_after {
        return Err(AuthorityError::OutOfDate { not_before, not_after });
    }
    Ok((der, ca))
}

fn date(params: &mut CertificateParams, now: Timestamp, not_after: Timestamp) {
    let epoch = date_time_ymd(1970, 1, 1);
    params.not_before = epoch + since_epoch(now - BACKDATED);
    params.not_after = epoch + since_epoch(not_after);
}

/// Certificates have a resolution of one second. No machine that runs this has a clock before 1970.
fn since_epoch(moment: Timestamp) -> Duration {
    Duration::from_secs(u64::try_from(moment.as_second()).unwrap_or_default())
}

fn truncated_to_seconds(moment: Timestamp) -> Timestamp {
    Timestamp::from_second(moment.as_second()).unwrap_or(moment)
}

fn named(common_name: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    name
}

fn random_serial() -> Result<[u8; SERIAL_BYTES], AuthorityError> {
    let mut serial = [0; SERIAL_BYTES];
    tls::provider().secure_random.fill(&mut serial).map_err(|_| AuthorityError::NoRandomness)?;
    // Makes the number positive, and gives all numbers the same length.
    serial[0] = serial[0] & 0x7f | 0x40;
    Ok(serial)
}

#[cfg(test)]
mod tests {
    use x509_parser::extensions::ParsedExtension;

    use super::*;

    const YEAR: SignedDuration = SignedDuration::from_hours(365 * 24);
    const WEEK: SignedDuration = SignedDuration::from_hours(7 * 24);

    fn now() -> Timestamp {
        "2026-11-20T12:00:00.5Z".parse().unwrap()
    }

    fn der(pem: &str) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
    }

    #[test]
    fn a_leaf_has_all_fields_that_a_strict_verifier_requires() {
        let authority = Authority::generate("test CA", now(), YEAR).unwrap();
        let pair = authority.issue(&["localhost", "127.0.0.1", "::1"], now(), WEEK).unwrap();
        let (ca_der, leaf_der) = (der(authority.certificate_pem()), der(&pair.certificate_pem));
        let (_, ca) = X509Certificate::from_der(&ca_der).unwrap();
        let (_, leaf) = X509Certificate::from_der(&leaf_der).unwrap();

        let (not_before, not_after) = validity(&leaf_der).unwrap();
        assert_eq!(not_before.to_string(), "2026-11-20T11:00:00Z");
        assert_eq!(not_after.to_string(), "2026-11-27T12:00:00Z");
        assert_eq!(pair.not_after, not_after);
        assert_eq!(validity(&ca_der).unwrap().1, authority.ca.not_after);
        assert!(ca.is_ca() && !leaf.is_ca());
        assert_eq!(leaf.issuer(), ca.subject());
        assert_ne!(leaf.raw_serial(), ca.raw_serial());
        assert_eq!(leaf.raw_serial().len(), SERIAL_BYTES);
        assert!(leaf.extended_key_usage().unwrap().unwrap().value.server_auth);
        assert_eq!(leaf.subject_alternative_name().unwrap().unwrap().value.general_names.len(), 3);

        let subject_id = |certificate: &X509Certificate<'_>| {
            certificate.iter_extensions().find_map(|extension| match extension.parsed_extension() {
                ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0.to_vec()),
                _ => None,
            })
        };
        let authority_id = leaf.iter_extensions().find_map(|extension| match extension.parsed_extension() {
            ParsedExtension::AuthorityKeyIdentifier(id) => id.key_identifier.as_ref().map(|id| id.0.to_vec()),
            _ => None,
        });
        assert!(subject_id(&leaf).is_some());
        assert_eq!(authority_id, subject_id(&ca));
    }

    #[test]
    fn a_key_is_never_shown() {
        let authority = Authority::generate("test CA", now(), YEAR).unwrap();
        let shown = format!("{authority:?} {:?}", authority.issue(&["localhost"], now(), WEEK).unwrap());
        assert!(shown.contains("not_after") && !shown.contains("PRIVATE"), "{shown}");
    }

    #[test]
    fn a_stored_authority_signs_like_the_original() {
        let made = Authority::generate("test CA", now(), YEAR).unwrap();
        let read = Authority::from_pem(made.certificate_pem(), made.key_pem(), now()).unwrap();
        assert_eq!(read.ca, made.ca);
        let pair = read.issue(&["localhost"], now(), YEAR + WEEK).unwrap();
        assert_eq!(pair.not_after, made.ca.not_after, "a leaf does not outlive its CA");
        let (ca_der, leaf_der) = (der(made.certificate_pem()), der(&pair.certificate_pem));
        assert_eq!(
            X509Certificate::from_der(&leaf_der).unwrap().1.issuer(),
            X509Certificate::from_der(&ca_der).unwrap().1.subject()
        );
    }

    #[test]
    fn each_invalid_authority_has_its_own_error() {
        let authority = Authority::generate("test CA", now(), YEAR).unwrap();
        let other = Authority::generate("test CA", now(), YEAR).unwrap();
        let leaf = authority.issue(&["localhost"], now(), WEEK).unwrap();
        let read = |certificate: &str, key: &str, at| Authority::from_pem(certificate, key, at).unwrap_err();

        let (certificate, key) = (authority.certificate_pem(), authority.key_pem());
        assert!(matches!(read("junk", key, now()), AuthorityError::NotACa));
        assert!(matches!(read(&leaf.certificate_pem, &leaf.key_pem, now()), AuthorityError::NotACa));
        assert!(matches!(read(certificate, "junk", now()), AuthorityError::WrongKey));
        assert!(matches!(read(certificate, other.key_pem(), now()), AuthorityError::WrongKey));
        assert!(matches!(read(certificate, key, now() + YEAR + WEEK), AuthorityError::OutOfDate { .. }));
        assert!(matches!(read(certificate, key, now() - WEEK), AuthorityError::OutOfDate { .. }));
    }
}

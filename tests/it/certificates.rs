//! Certificates from files, and client certificates.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};
use release_interlock::serve::https::clients::ClientsError;
use release_interlock::serve::https::{Clients, Limits};
use release_interlock::serve::pki::dev::{self, DevCertificates};
use release_interlock::serve::pki::files::Followed;
use release_interlock::serve::pki::tls::{self, Certificates, parse};
use release_interlock::serve::report::metrics::Metrics;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::sign::CertifiedKey;

use crate::harness::client::{Client, Connection};
use crate::harness::mounted::mount;
use crate::harness::server::{Server, review, soon};

fn made() -> DevCertificates {
    dev::ensure(tempfile::tempdir().unwrap().path(), Timestamp::now()).unwrap()
}

/// The files of a mounted Secret of type `kubernetes.io/tls`.
fn files(made: &DevCertificates) -> [(&'static str, String); 2] {
    [("tls.crt", made.certificate_pem.clone()), ("tls.key", made.key_pem.clone())]
}

/// Waits for a condition. Files are watched on another thread.
async fn until(mut holds: impl FnMut() -> bool) {
    soon(async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

fn is_served(certificates: &Certificates, pem: &str) -> bool {
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    certificates.current().unwrap().end_entity_cert().unwrap() == &der
}

fn counts(metrics: &Metrics, line: &str) -> bool {
    metrics.render().unwrap().lines().any(|found| found == line)
}

#[tokio::test]
async fn mounted_files_are_reloaded_at_every_swap() {
    let directory = tempfile::tempdir().unwrap();
    let (first, metrics) = (made(), Arc::new(Metrics::new()));
    mount(directory.path(), 1, &files(&first));
    let (certificate, key) = (directory.path().join("tls.crt"), directory.path().join("tls.key"));
    let followed = Followed::open(certificate, key, Arc::clone(&metrics)).unwrap();
    let certificates = followed.certificates();
    assert!(is_served(&certificates, &first.certificate_pem));
    let following = tokio::spawn(followed.follow());
    for generation in [2, 3] {
        let next = made();
        mount(directory.path(), generation, &files(&next));
        until(|| is_served(&certificates, &next.certificate_pem)).await;
        let not_after = format!(r#"interlock_cert_not_after_seconds{{role="leaf"}} {}"#, next.not_after.as_second());
        assert!(counts(&metrics, &not_after));
    }
    following.abort();
}

#[tokio::test]
async fn files_that_do_not_match_leave_the_served_certificate() {
    let directory = tempfile::tempdir().unwrap();
    let (first, second, metrics) = (made(), made(), Arc::new(Metrics::new()));
    let (certificate, key) = (directory.path().join("cert.pem"), directory.path().join("key.pem"));
    let open = || Followed::open(certificate.clone(), key.clone(), Arc::clone(&metrics));
    assert!(matches!(open().err().unwrap(), tls::CertificateError::Unreadable { path, .. } if path == certificate));
    fs::write(&certificate, &first.certificate_pem).unwrap();
    fs::write(&key, &first.key_pem).unwrap();
    let followed = open().unwrap();
    let certificates = followed.certificates();
    let following = tokio::spawn(followed.follow());
    let troubles = |count: usize| format!(r#"interlock_cert_troubles_total{{reason="files"}} {count}"#);
    // A certificate for another key, half a certificate, and no key.
    fs::write(&certificate, &second.certificate_pem).unwrap();
    until(|| counts(&metrics, &troubles(1))).await;
    fs::write(&certificate, &first.certificate_pem[..300]).unwrap();
    until(|| counts(&metrics, &troubles(2))).await;
    fs::remove_file(&key).unwrap();
    until(|| counts(&metrics, &troubles(3))).await;
    assert!(is_served(&certificates, &first.certificate_pem));
    // Complete again, in two steps.
    fs::write(&key, &second.key_pem).unwrap();
    fs::write(&certificate, &second.certificate_pem).unwrap();
    until(|| is_served(&certificates, &second.certificate_pem)).await;
    following.abort();
}

/// A CA for client certificates.
struct Issuer(CertifiedIssuer<'static, KeyPair>);

impl Issuer {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params.distinguished_name.push(DnType::CommonName, "clients");
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// A client's certificate, with a common name and an alternative name.
    fn client(&self, common: &str, alternative: &str) -> CertifiedKey {
        let mut params = CertificateParams::new([alternative.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, common);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap().pem();
        let path = Path::new("client");
        let key = key.serialize_pem();
        let pem = tls::Pem {
            certificate_path: path,
            certificate: certificate.as_bytes(),
            key_path: path,
            key: key.as_bytes(),
        };
        parse(pem).unwrap()
    }

    fn pem(&self) -> String {
        self.0.pem()
    }
}

/// Whether a review is answered. In TLS 1.3 a client learns only after its handshake that it was rejected.
async fn answered(client: Client) -> bool {
    let Ok(stream) = client.stream().await else { return false };
    let mut connection = Connection::over(stream).await;
    soon(connection.try_post("/validate", review("1", None))).await.is_ok()
}

#[tokio::test]
async fn only_clients_with_the_right_certificate_are_answered() {
    let directory = tempfile::tempdir().unwrap();
    let (ours, foreign, next) = (Issuer::new(), Issuer::new(), Issuer::new());
    let file = directory.path().join("clients.crt");
    fs::write(&file, ours.pem()).unwrap();
    let clients = Clients::open(&file, ["kube-apiserver".to_owned(), "apiserver.example".to_owned()]).unwrap();
    let server = Server::start_for(Some(Arc::clone(&clients)), Limits::default()).await;
    let following = tokio::spawn(clients.follow(Arc::clone(&server.metrics)));

    let by_common_name = || ours.client("kube-apiserver", "other.example");
    for (who, presented, passes) in [
        ("nobody", None, false),
        ("a common name", Some(by_common_name()), true),
        ("an alternative name", Some(ours.client("other", "apiserver.example")), true),
        ("another name", Some(ours.client("other", "other.example")), false),
        ("another CA", Some(foreign.client("kube-apiserver", "apiserver.example")), false),
    ] {
        assert_eq!(answered(server.client().presenting(presented)).await, passes, "{who}");
    }
    server.counts(r#"interlock_tls_handshake_failures_total{reason="protocol"} 3"#).await;
    // Probes and metrics need none.
    assert_eq!(Connection::plain(server.admin).await.get("/livez").await.status, 200);

    let loaded = r#"interlock_cert_steps_total{step="loaded"} 1"#;
    let troubles = r#"interlock_cert_troubles_total{reason="files"} 1"#;
    fs::write(&file, "junk").unwrap();
    until(|| counts(&server.metrics, troubles)).await;
    assert!(answered(server.client().presenting(Some(by_common_name()))).await, "the one before stays");
    fs::write(&file, next.pem()).unwrap();
    until(|| counts(&server.metrics, loaded)).await;
    assert!(!answered(server.client().presenting(Some(by_common_name()))).await);
    assert!(answered(server.client().presenting(Some(next.client("kube-apiserver", "other.example")))).await);
    following.abort();
}

#[test]
fn an_unusable_client_ca_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("clients.crt");
    let open = || Clients::open(&file, []).unwrap_err();
    assert!(matches!(open(), ClientsError::Unreadable { path, .. } if path == file));
    fs::write(&file, "junk").unwrap();
    assert!(matches!(open(), ClientsError::NoCa { path } if path == file));
}

//! TLS as clients see it.

use std::io::ErrorKind;
use std::path::Path;

use jiff::Timestamp;
use release_interlock::serve::https::Limits;
use release_interlock::serve::pki::dev;
use release_interlock::serve::pki::tls::{CertificateError, Pem, load, parse};
use rustls::ProtocolVersion;
use rustls::version::{TLS12, TLS13};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::client::{Client, Connection};
use crate::harness::server::{Server, review, soon};

#[tokio::test]
async fn tls_1_2_and_1_3_are_spoken_with_http_1_1() {
    let server = Server::start(Limits::default()).await;
    for (version, protocol) in [(&TLS12, ProtocolVersion::TLSv1_2), (&TLS13, ProtocolVersion::TLSv1_3)] {
        let stream = Client::with_versions(server.admission, &server.ca_pem, &[version]).stream().await.unwrap();
        assert_eq!(stream.get_ref().1.protocol_version(), Some(protocol));
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
        let answer = Connection::over(stream).await.post("/validate", review("1", None)).await;
        assert_eq!(answer.json()["response"]["uid"], "1");
    }
}

#[tokio::test]
async fn tls_1_1_is_refused_with_an_alert() {
    let server = Server::start(Limits::default()).await;
    // A ClientHello for TLS 1.1: no supported_versions, one suite of its time, ecdsa_secp256r1_sha256.
    let mut hello = vec![0x03, 0x02];
    hello.extend([7; 32]);
    hello.extend([0x00, 0x00, 0x02, 0xc0, 0x09, 0x01, 0x00]);
    hello.extend([0x00, 0x08, 0x00, 0x0d, 0x00, 0x04, 0x00, 0x02, 0x04, 0x03]);
    let length = u8::try_from(hello.len()).unwrap();
    let mut record = vec![0x16, 0x03, 0x01, 0x00, length + 4, 0x01, 0x00, 0x00, length];
    record.extend(hello);

    let mut stream = TcpStream::connect(server.admission).await.unwrap();
    stream.write_all(&record).await.unwrap();
    let mut answer = Vec::new();
    let _ = soon(stream.read_to_end(&mut answer)).await;
    // Content type alert; fatal; protocol_version.
    assert_eq!((answer.first(), answer.get(5..7)), (Some(&21), Some(&[2, 70][..])), "{answer:?}");
    server.counts(r#"interlock_tls_handshake_failures_total{reason="protocol"} 1"#).await;
    server.answers_an_honest_review().await;
}

#[tokio::test]
async fn a_client_without_http_1_1_is_refused() {
    let server = Server::start(Limits::default()).await;
    assert!(server.client().offering(&["h2"]).stream().await.is_err());
    let stream = server.client().offering(&["h2", "http/1.1"]).stream().await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    let silent = server.client().offering(&[]).stream().await.unwrap();
    assert_eq!(Connection::over(silent).await.post("/validate", review("1", None)).await.status, 200);
}

#[tokio::test]
async fn the_certificate_is_served_for_every_name_and_the_client_judges() {
    let server = Server::start(Limits::default()).await;
    for good in ["localhost", "127.0.0.1", "::1", "interlock.interlock-system.svc.cluster.local"] {
        assert!(server.client().named(good).stream().await.is_ok(), "{good}");
    }
    let error = server.client().named("example.com").stream().await.unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
    server.answers_an_honest_review().await;
}

#[tokio::test]
async fn a_new_certificate_is_served_to_new_connections_and_old_ones_live_on() {
    let server = Server::start(Limits::default()).await;
    let old_client = server.client();
    let mut old_connection = old_client.connect().await;
    assert_eq!(old_connection.post("/validate", review("1", None)).await.status, 200);

    let dir = tempfile::tempdir().unwrap();
    let made = dev::ensure(dir.path(), Timestamp::now()).unwrap();
    server.certificates.replace(load(&made.certificate_path, &made.key_path).unwrap());

    assert_eq!(old_connection.post("/validate", review("2", None)).await.status, 200);
    assert!(old_client.stream().await.is_err(), "the old CA did not sign the new certificate");
    let mut new_connection = Client::new(server.admission, &made.ca_pem).connect().await;
    assert_eq!(new_connection.post("/validate", review("3", None)).await.status, 200);
}

#[test]
fn an_unusable_certificate_is_named_with_a_way_out() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let made = dev::ensure(dir.path(), Timestamp::now()).unwrap();
    let foreign = dev::ensure(other.path(), Timestamp::now()).unwrap();

    let missing = dir.path().join("none.crt");
    let error = load(&missing, &made.key_path).unwrap_err();
    assert!(
        matches!(&error, CertificateError::Unreadable { path, source } if *path == missing && source.kind() == ErrorKind::NotFound)
    );
    assert!(error.to_string().contains("interlock certs dev"), "{error}");

    let parse = |certificate: &str, key: &str| {
        let (certificate_path, key_path) = (Path::new("a.crt"), Path::new("a.key"));
        parse(Pem { certificate_path, certificate: certificate.as_bytes(), key_path, key: key.as_bytes() })
    };
    assert!(parse(&made.certificate_pem, &made.key_pem).is_ok());
    let chain = format!("{}{}", made.certificate_pem, made.ca_pem);
    assert_eq!(parse(&chain, &made.key_pem).unwrap().cert.len(), 2);
    assert!(matches!(parse("", &made.key_pem), Err(CertificateError::NoCertificate { .. })));
    assert!(matches!(parse(&made.key_pem, &made.key_pem), Err(CertificateError::NoCertificate { .. })));
    assert!(matches!(parse(&made.certificate_pem, "junk"), Err(CertificateError::NoKey { .. })));
    let error = parse(&made.certificate_pem, &foreign.key_pem).unwrap_err();
    assert!(matches!(error, CertificateError::Mismatch { .. }));
    assert!(error.to_string().contains("a.key") && error.to_string().contains("a.crt"), "{error}");
}

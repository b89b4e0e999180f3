//! A small HTTPS client with access to what real clients hide: single connections, raw bytes, certificates.

use std::net::SocketAddr;
use std::sync::Arc;

use ::http::{HeaderMap, Method, Request, StatusCode};
use axum::Router;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use release_interlock::serve::pki::tls::provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower_service::Service;

pub(crate) struct Client {
    address: SocketAddr,
    config: ClientConfig,
    name: ServerName<'static>,
}

impl Client {
    /// Trusts one CA, and uses the server name that an API server uses.
    pub(crate) fn new(address: SocketAddr, ca_pem: &str) -> Self {
        Self::with_versions(address, ca_pem, rustls::ALL_VERSIONS)
    }

    pub(crate) fn with_versions(
        address: SocketAddr,
        ca_pem: &str,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(ca_pem.as_bytes()).unwrap()).unwrap();
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider()))
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Self { address, config, name: "interlock.interlock-system.svc".try_into().unwrap() }
    }

    pub(crate) fn named(mut self, name: &'static str) -> Self {
        self.name = name.try_into().unwrap();
        self
    }

    pub(crate) fn offering(mut self, protocols: &[&str]) -> Self {
        self.config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        self
    }

    /// With a client certificate, if any.
    pub(crate) fn presenting(mut self, key: Option<CertifiedKey>) -> Self {
        if let Some(key) = key {
            self.config.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(key));
        }
        self
    }

    /// A TLS stream, before any HTTP.
    pub(crate) async fn stream(&self) -> std::io::Result<TlsStream<TcpStream>> {
        self.stream_over(TcpStream::connect(self.address).await?).await
    }

    pub(crate) async fn stream_over(&self, tcp: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        TlsConnector::from(Arc::new(self.config.clone())).connect(self.name.clone(), tcp).await
    }

    pub(crate) async fn connect(&self) -> Connection {
        Connection::over(self.stream().await.unwrap()).await
    }
}

/// A keep-alive connection.
pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Connection {
    pub(crate) async fn over(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Self {
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Self { sender }
    }

    pub(crate) async fn plain(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).await.unwrap()).await
    }

    pub(crate) async fn post(&mut self, path: &str, body: Bytes) -> Answer {
        self.try_post(path, body).await.unwrap()
    }

    pub(crate) async fn try_post(&mut self, path: &str, body: Bytes) -> hyper::Result<Answer> {
        self.send(request(Method::POST, path, Some("application/json"), body)).await
    }

    pub(crate) async fn get(&mut self, path: &str) -> Answer {
        self.send(request(Method::GET, path, None, Bytes::new())).await.unwrap()
    }

    pub(crate) async fn send(&mut self, request: Request<Full<Bytes>>) -> hyper::Result<Answer> {
        self.sender.ready().await?;
        let (head, body) = self.sender.send_request(request).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok(Answer { status: head.status, headers: head.headers, body })
    }

    /// Resolves when the server has closed the connection.
    pub(crate) async fn closed(&mut self) {
        while self.sender.ready().await.is_ok() {
            tokio::task::yield_now().await;
        }
    }
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

pub(crate) fn request(method: Method, path: &str, content_type: Option<&str>, body: Bytes) -> Request<Full<Bytes>> {
    let mut request = Request::builder().method(method).uri(path).header("host", "interlock.interlock-system.svc");
    if let Some(kind) = content_type {
        request = request.header("content-type", kind);
    }
    request.body(Full::new(body)).unwrap()
}

/// Sends a request through a router, without a socket.
pub(crate) async fn send(router: &Router, request: Request<Full<Bytes>>) -> Answer {
    let (head, body) = router.clone().call(request).await.unwrap().into_parts();
    Answer { status: head.status, headers: head.headers, body: body.collect().await.unwrap().to_bytes() }
}

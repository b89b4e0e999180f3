//! The floor: the least that a webhook over HTTPS can do in Rust. hyper and rustls, one parse of the envelope, always allows.
//! Nothing of Interlock is in it.

use std::convert::Infallible;
use std::io::Write;
use std::sync::Arc;

use anyhow::Result;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

#[derive(Deserialize)]
struct Review<'a> {
    #[serde(borrow)]
    request: AdmissionRequest<'a>,
}

#[derive(Deserialize)]
struct AdmissionRequest<'a> {
    #[serde(borrow)]
    uid: &'a RawValue,
}

/// Prints its address and certificate in one line of JSON, and serves until it is killed.
pub(crate) async fn serve() -> Result<()> {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["127.0.0.1".to_owned()])?;
    let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
    let tls = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)?;
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let mut output = std::io::stdout().lock();
    writeln!(output, "{}", json!({"listen": listener.local_addr()?, "certificate": cert.pem()}))?;
    drop(output);
    loop {
        let (tcp, _) = listener.accept().await?;
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            _ = tcp.set_nodelay(true);
            let Ok(stream) = acceptor.accept(tcp).await else { return };
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new());
            _ = http.serve_connection(TokioIo::new(stream), service_fn(answer)).await;
        });
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let answered = async {
        let body = request.into_body().collect().await?.to_bytes();
        let Review { request } = serde_json::from_slice(&body)?;
        anyhow::Ok(format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{{"uid":{},"allowed":true}}}}"#,
            request.uid
        ))
    };
    Ok(match answered.await {
        Ok(reply) => Response::new(Full::from(reply)),
        Err(error) => {
            let mut refused = Response::new(Full::from(error.to_string()));
            *refused.status_mut() = StatusCode::BAD_REQUEST;
            refused
        }
    })
}

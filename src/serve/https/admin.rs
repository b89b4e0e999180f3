//! The admin router: probes and metrics, on a separate port.
//!
//! The port uses plain HTTP, because kubelets and scrapers do not have the CA and their answers contain no names. With `--page` it also
//! serves the [page](super::super::page), which contains names, but only to clients in the same pod.

use std::sync::Arc;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use prometheus_client::registry::Registry;

use super::rejection::sentence;
use crate::readiness::Readiness;
use crate::serve::openmetrics;
use crate::serve::page::OverviewPage;

/// Routes `/livez`, `/readyz` and `/metrics`. Needs no socket.
pub fn router(readiness: Readiness, registry: Arc<Registry>) -> Router {
    Router::new()
        // Any answer means that the process is alive. A restart would fix nothing else.
        .route("/livez", get(|| async { sentence(StatusCode::OK, b"ok\n".to_vec()) }))
        .route("/readyz", get(readyz).with_state(readiness))
        .route("/metrics", get(render).with_state(registry))
        .fallback(|| async {
            sentence(StatusCode::NOT_FOUND, b"not found; try /livez, /readyz or /metrics\n".to_vec())
        })
}

/// Like [`router`], and routes `/` if there is a page.
pub(crate) fn router_with_page(readiness: Readiness, registry: Arc<Registry>, page: Option<OverviewPage>) -> Router {
    let router = router(readiness, registry);
    match page {
        Some(page) => router.merge(page.router()),
        None => router,
    }
}

/// With `?verbose`, as in Kubernetes, the answer begins with every gate and note.
async fn readyz(State(readiness): State<Readiness>, RawQuery(query): RawQuery) -> Response {
    let verbose = query.is_some_and(|query| query.split(['&', '=']).any(|word| word == "verbose"));
    let details = if verbose { readiness.describe() } else { String::new() };
    match readiness.check() {
        Ok(()) => sentence(StatusCode::OK, format!("{details}ok\n").into()),
        Err(not_ready) => sentence(StatusCode::SERVICE_UNAVAILABLE, format!("{details}{not_ready}\n").into()),
    }
}

async fn render(State(registry): State<Arc<Registry>>) -> Response {
    match openmetrics::render(&registry) {
        Ok(text) => ([(CONTENT_TYPE, HeaderValue::from_static(openmetrics::CONTENT_TYPE))], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "failed to render the metrics");
            sentence(StatusCode::INTERNAL_SERVER_ERROR, b"the metrics cannot be rendered\n".to_vec())
        }
    }
}

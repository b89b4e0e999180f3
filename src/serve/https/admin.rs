//! The admin router: probes and metrics, on a port of its own over plain HTTP, because kubelets and scrapers do not
//! hold our CA and the answers tell nothing that matters.

use std::sync::Arc;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};

use super::refusal::sentence;
use crate::readiness::Readiness;
use crate::serve::report::metrics::{self, Metrics};

/// Routes `/livez`, `/readyz` and `/metrics`. Needs no socket.
pub fn router(readiness: Readiness, metrics: Arc<Metrics>) -> Router {
    Router::new()
        // Alive means that this answer came; whatever else is wrong, a restart would not mend it.
        .route("/livez", get(|| async { sentence(StatusCode::OK, b"ok\n".to_vec()) }))
        .route("/readyz", get(readyz).with_state(readiness.clone()))
        .route("/metrics", get(render).with_state((readiness, metrics)))
        .fallback(|| async {
            sentence(StatusCode::NOT_FOUND, b"there is nothing here; try /livez, /readyz or /metrics\n".to_vec())
        })
}

/// With `?verbose` as Kubernetes has it: everything that was asked, before the answer.
async fn readyz(State(readiness): State<Readiness>, RawQuery(query): RawQuery) -> Response {
    let verbose = query.is_some_and(|query| query.split(['&', '=']).any(|word| word == "verbose"));
    let everything = if verbose { readiness.everything() } else { String::new() };
    match readiness.check() {
        Ok(()) => sentence(StatusCode::OK, format!("{everything}ok\n").into()),
        Err(not_ready) => sentence(StatusCode::SERVICE_UNAVAILABLE, format!("{everything}{not_ready}\n").into()),
    }
}

async fn render(State((readiness, metrics)): State<(Readiness, Arc<Metrics>)>) -> Response {
    metrics.ready(readiness.check().is_ok());
    match metrics.render() {
        Ok(text) => ([(CONTENT_TYPE, HeaderValue::from_static(metrics::CONTENT_TYPE))], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "failed to render the metrics");
            sentence(StatusCode::INTERNAL_SERVER_ERROR, b"the metrics could not be rendered\n".to_vec())
        }
    }
}

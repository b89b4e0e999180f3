//! The admin router: probes and metrics, on a port of its own over plain HTTP, because kubelets and scrapers do not
//! hold our CA and the answers tell nothing that matters.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};

use super::Readiness;
use super::refusal::sentence;
use crate::report::metrics::{self, Metrics};

/// Routes `/livez`, `/readyz` and `/metrics`. Needs no socket.
pub fn router(readiness: Readiness, metrics: Arc<Metrics>) -> Router {
    Router::new()
        // Alive means that this answer came; whatever else is wrong, a restart would not mend it.
        .route("/livez", get(|| async { sentence(StatusCode::OK, b"ok\n".to_vec()) }))
        .route("/readyz", get(readyz).with_state(readiness))
        .route("/metrics", get(render).with_state(metrics))
        .fallback(|| async {
            sentence(StatusCode::NOT_FOUND, b"there is nothing here; try /livez, /readyz or /metrics\n".to_vec())
        })
}

async fn readyz(State(readiness): State<Readiness>) -> Response {
    match readiness.check() {
        Ok(()) => sentence(StatusCode::OK, b"ok\n".to_vec()),
        Err(not_ready) => sentence(StatusCode::SERVICE_UNAVAILABLE, format!("{not_ready}\n").into()),
    }
}

async fn render(State(metrics): State<Arc<Metrics>>) -> Response {
    match metrics.render() {
        Ok(text) => ([(CONTENT_TYPE, HeaderValue::from_static(metrics::CONTENT_TYPE))], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "failed to render the metrics");
            sentence(StatusCode::INTERNAL_SERVER_ERROR, b"the metrics could not be rendered\n".to_vec())
        }
    }
}

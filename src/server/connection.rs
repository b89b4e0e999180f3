//! One connection, from its first byte to its last. Generic over the stream, so that tests need no socket and can hold
//! the clock.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use http::header::CONNECTION;
use http::{HeaderValue, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tower_service::Service;

use super::Limits;
use super::patience::Patience;
use super::places::Activity;
use super::shutdown::{Phase, reached};
use crate::report::metrics::{Cut, Metrics};

/// hyper's read buffer, in bytes: the longest head. The default is 400 KiB, which an attacker would fill on every
/// connection; the API server's head is under 1 KiB.
const BUFFER_BYTES: usize = 64 << 10;

/// What every connection of a port shares.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) router: Router,
    pub(super) limits: Limits,
    pub(super) metrics: Arc<Metrics>,
    pub(super) phase: watch::Receiver<Phase>,
}

/// Serves requests until the client goes, a timer runs out, the place is needed, or the server closes.
pub(super) async fn serve<S>(stream: S, activity: &Arc<Activity>, shared: Shared)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let Shared {
        router,
        limits,
        metrics,
        mut phase,
    } = shared;
    let answers = Answers {
        router,
        activity: Arc::clone(activity),
        phase: phase.clone(),
    };
    let stream = Patience::new(
        stream,
        Arc::clone(activity),
        Arc::clone(&metrics),
        limits.header,
        limits.write,
    );
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // Also the idle timer, and here only that: see `patience`.
        .header_read_timeout(limits.idle)
        .max_buf_size(BUFFER_BYTES)
        .serve_connection(
            TokioIo::new(stream),
            service_fn(|request| answers.answer(request)),
        );
    tokio::pin!(connection);
    let mut closing = false;
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "connection ended");
                }
                return;
            }
            () = reached(&mut phase, Phase::Closing), if !closing => {
                closing = true;
                connection.as_mut().graceful_shutdown();
            }
            () = activity.evicted() => {
                metrics.cut(Cut::Evicted);
                return;
            }
        }
    }
}

/// The service of one connection.
struct Answers {
    router: Router,
    activity: Arc<Activity>,
    phase: watch::Receiver<Phase>,
}

impl Answers {
    fn answer(
        &self,
        request: Request<Incoming>,
    ) -> impl Future<Output = Result<axum::response::Response, Infallible>> + use<> {
        self.activity.asked();
        let answer = self.router.clone().call(request);
        let (activity, phase) = (Arc::clone(&self.activity), self.phase.clone());
        async move {
            let mut response = answer.await?;
            if *phase.borrow() >= Phase::Leaving {
                response
                    .headers_mut()
                    .insert(CONNECTION, HeaderValue::from_static("close"));
            }
            activity.answered();
            Ok(response)
        }
    }
}

//! One connection, from the first byte to the last. Generic over the stream: tests need no socket and can pause the clock.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::extract::ConnectInfo;
use http::header::CONNECTION;
use http::{HeaderValue, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tower_service::Service;

use super::limits::Limits;
use super::metrics::{Cut, HttpsMetrics};
use super::peers::Caller;
use super::shutdown::{ShutdownPhase, reached};
use super::slots::Activity;
use super::timed_stream::TimedStream;

/// hyper's read buffer, in bytes: the longest head. An attacker could fill the default of 400 KiB on every connection. The API server
/// sends heads under 1 KiB.
const BUFFER_BYTES: usize = 64 << 10;

/// Shared by all connections of a port.
#[derive(Clone)]
pub(super) struct ConnectionContext {
    pub(super) router: Router,
    pub(super) limits: Limits,
    pub(super) metrics: Arc<HttpsMetrics>,
    pub(super) phase: watch::Receiver<ShutdownPhase>,
}

/// Serves requests until the client disconnects, a timer expires, the connection is evicted, or the server closes.
pub(super) async fn serve<S>(stream: S, caller: Caller, activity: &Arc<Activity>, context: ConnectionContext)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let ConnectionContext { router, limits, metrics, mut phase } = context;
    let service = RequestService { router, caller, activity: Arc::clone(activity), phase: phase.clone() };
    let stream = TimedStream::new(stream, Arc::clone(activity), Arc::clone(&metrics), phase.clone(), &limits);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // hyper also uses this as the idle timer. Here it is only that: see `timed_stream`.
        .header_read_timeout(limits.idle)
        .max_buf_size(BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), service_fn(|request| service.answer(request)));
    tokio::pin!(connection);
    let (mut closing, mut ending) = (false, false);
    let farewell = sleep(limits.farewell);
    tokio::pin!(farewell);
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "connection ended");
                }
                return;
            }
            // The next turn of the loop polls the connection, and then the stream reads the phase.
            () = reached(&mut phase, ShutdownPhase::Closing), if !closing => {
                closing = true;
                farewell.as_mut().reset(Instant::now() + limits.farewell);
            }
            () = &mut farewell, if closing && !ending => {
                ending = true;
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
struct RequestService {
    router: Router,
    caller: Caller,
    activity: Arc<Activity>,
    phase: watch::Receiver<ShutdownPhase>,
}

impl RequestService {
    fn answer(
        &self,
        mut request: Request<Incoming>,
    ) -> impl Future<Output = Result<axum::response::Response, Infallible>> + use<> {
        self.activity.head_arrived();
        // The handler reads the body, and marks the activity when the body is complete.
        request.extensions_mut().insert(Arc::clone(&self.activity));
        request.extensions_mut().insert(ConnectInfo(self.caller.address));
        request.extensions_mut().insert(self.caller);
        let answer = self.router.clone().call(request);
        let (activity, phase) = (Arc::clone(&self.activity), self.phase.clone());
        async move {
            let mut response = answer.await?;
            if *phase.borrow() >= ShutdownPhase::Leaving {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            activity.answered();
            Ok(response)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio::task::JoinHandle;

    use super::*;
    use crate::serve::openmetrics;

    const HEAD: &[u8] = b"GET /short HTTP/1.1\r\nhost: x\r\n\r\n";

    struct Fixture {
        client: DuplexStream,
        serving: JoinHandle<()>,
        metrics: Arc<HttpsMetrics>,
        limits: Limits,
        phase: watch::Sender<ShutdownPhase>,
    }

    fn serving() -> Fixture {
        let router = Router::new()
            .route("/short", get(|| async { "short answer" }))
            .route("/long", get(|| async { "long answer ".repeat(10_000) }));
        let (sender, phase) = watch::channel(ShutdownPhase::Serving);
        let (limits, metrics) = (Limits::default(), Arc::new(HttpsMetrics::default()));
        let context = ConnectionContext { router, limits: limits.clone(), metrics: Arc::clone(&metrics), phase };
        let (client, stream) = duplex(4096);
        let address = std::net::SocketAddr::from(([10, 0, 0, 7], 40_000));
        let caller = Caller { address, is_certified: false };
        let serving = tokio::spawn(async move { serve(stream, caller, &Arc::new(Activity::new()), context).await });
        Fixture { client, serving, metrics, limits, phase: sender }
    }

    impl Fixture {
        async fn asks_and_is_answered(&mut self) {
            self.client.write_all(HEAD).await.unwrap();
            self.reads_an_answer().await;
        }

        async fn reads_an_answer(&mut self) {
            let mut answer = Vec::new();
            while !answer.ends_with(b"short answer") {
                assert_ne!(self.client.read_buf(&mut answer).await.unwrap(), 0);
            }
        }

        fn counts(&self, reason: &str) -> bool {
            let line = format!(r#"interlock_connections_cut_total{{reason="{reason}"}} 1"#);
            openmetrics::rendered(|registry| self.metrics.register(registry)).contains(&line)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_ends_later_than_gos_90_seconds() {
        let mut fixture = serving();
        for _ in 0..3 {
            sleep(Duration::from_secs(95)).await;
            fixture.asks_and_is_answered().await;
        }
        let idle_since = Instant::now();
        (&mut fixture.serving).await.unwrap();
        assert_eq!(idle_since.elapsed().as_secs(), fixture.limits.idle.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn the_timer_of_a_head_starts_with_its_first_byte() {
        let mut fixture = serving();
        fixture.asks_and_is_answered().await;
        sleep(Duration::from_secs(60)).await;
        // The head is slow, but complete in time.
        let pause = fixture.limits.header / 10;
        for byte in &HEAD[..9] {
            fixture.client.write_all(&[*byte]).await.unwrap();
            sleep(pause).await;
        }
        fixture.client.write_all(&HEAD[9..]).await.unwrap();
        fixture.reads_an_answer().await;
        // The head is too slow, even if bytes arrive often.
        let begun = Instant::now();
        while fixture.client.write_all(b"x").await.is_ok() {
            sleep(pause).await;
        }
        assert!(begun.elapsed() <= fixture.limits.header + 2 * pause, "{:?}", begun.elapsed());
        (&mut fixture.serving).await.unwrap();
        assert!(fixture.counts("header"));
    }

    #[tokio::test(start_paused = true)]
    async fn only_idle_clients_get_an_interim_response_at_the_end() {
        const INTERIM: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
        let mut idle = serving();
        idle.asks_and_is_answered().await;
        idle.phase.send_replace(ShutdownPhase::Leaving);
        idle.phase.send_replace(ShutdownPhase::Closing);
        let mut received = vec![0; INTERIM.len()];
        idle.client.read_exact(&mut received).await.unwrap();
        assert_eq!(received, INTERIM);
        // The client ignores the interim response.
        let received_at = Instant::now();
        (&mut idle.serving).await.unwrap();
        assert_eq!(received_at.elapsed(), idle.limits.farewell);

        let mut half = serving();
        half.client.write_all(&HEAD[..9]).await.unwrap();
        tokio::task::yield_now().await;
        half.phase.send_replace(ShutdownPhase::Closing);
        sleep(half.limits.farewell / 2).await;
        half.client.write_all(&HEAD[9..]).await.unwrap();
        let mut answer = Vec::new();
        half.client.read_to_end(&mut answer).await.unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n") && answer.ends_with(b"short answer"));

        // The answer is longer than the pipe, so the server waits for the client.
        let mut slow = serving();
        slow.client.write_all(b"GET /long HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        slow.client.read_exact(&mut [0; 100]).await.unwrap();
        slow.phase.send_replace(ShutdownPhase::Closing);
        sleep(slow.limits.farewell / 2).await;
        let mut answer = Vec::new();
        while !answer.ends_with(INTERIM) {
            assert_ne!(slow.client.read_buf(&mut answer).await.unwrap(), 0);
        }
        let body = "long answer ".repeat(10_000);
        assert!(answer.strip_suffix(INTERIM).unwrap().ends_with(body.as_bytes()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_its_answer_is_disconnected() {
        let mut fixture = serving();
        fixture.client.write_all(b"GET /long HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let asked = Instant::now();
        (&mut fixture.serving).await.unwrap();
        assert_eq!(asked.elapsed().as_secs(), fixture.limits.write.as_secs());
        assert!(fixture.counts("write"));
    }
}

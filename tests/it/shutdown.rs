//! The end of a server: no accepted request is lost, unless a second signal arrives.

use std::time::Duration;

use ::http::StatusCode;
use release_interlock::serve::https::{Limits, Stopped};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::client::Connection;
use crate::harness::server::{Server, review, soon};

/// Longer than any test: only a signal ends the phase.
const FOREVER: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn after_the_first_signal_everybody_is_still_answered_and_sent_away() {
    let server = Server::start(Limits { drain_delay: FOREVER, ..Limits::default() }).await;
    let mut admin = Connection::plain(server.admin).await;
    assert_eq!(admin.get("/readyz").await.status, StatusCode::OK);
    let mut idle = server.client().connect().await;
    assert_eq!(idle.post("/validate", review("1", None)).await.header("connection"), None);
    let mut busy = server.client().connect().await;
    let in_flight = tokio::spawn(async move {
        let answer = busy.post("/validate?timeout=30s", review("2", Some("wait"))).await;
        (busy, answer)
    });
    server.stub.entered.notified().await;

    server.signals.send(()).await.unwrap();
    soon(async {
        while server.readiness.check().is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let ready = admin.get("/readyz").await;
    assert_eq!((ready.status, ready.text()), (StatusCode::SERVICE_UNAVAILABLE, "shutting down\n"));
    assert_eq!(admin.get("/livez").await.status, StatusCode::OK);

    let mut new = server.client().connect().await;
    for connection in [&mut idle, &mut new] {
        let answer = connection.post("/validate", review("3", None)).await;
        assert_eq!((answer.status, answer.header("connection")), (StatusCode::OK, Some("close")));
        soon(connection.closed()).await;
    }
    server.stub.release.notify_one();
    let (mut busy, answer) = soon(in_flight).await.unwrap();
    assert_eq!((answer.json()["response"]["uid"].as_str(), answer.header("connection")), (Some("2"), Some("close")));
    soon(busy.closed()).await;

    // Nothing is in flight any more, so a second signal cuts nothing.
    server.signals.send(()).await.unwrap();
    assert_eq!(server.stopped().await, Stopped::Drained);
}

#[tokio::test]
async fn after_the_delay_the_port_closes_and_the_request_in_flight_is_finished() {
    let server = Server::start(Limits { drain_delay: Duration::ZERO, ..Limits::default() }).await;
    let mut idle = server.client().connect().await;
    assert_eq!(idle.post("/validate", review("1", None)).await.status, StatusCode::OK);
    let mut busy = server.client().connect().await;
    let in_flight = tokio::spawn(async move { busy.post("/validate?timeout=30s", review("2", Some("wait"))).await });
    server.stub.entered.notified().await;

    server.signals.send(()).await.unwrap();
    soon(idle.closed()).await;
    soon(async { while TcpStream::connect(server.admission).await.is_ok() {} }).await;
    server.stub.release.notify_one();
    let answer = soon(in_flight).await.unwrap();
    assert_eq!((answer.json()["response"]["uid"].as_str(), answer.header("connection")), (Some("2"), Some("close")));
    assert_eq!(server.stopped().await, Stopped::Drained);
}

/// HTTP/1.1 cannot close an idle connection without a race: a request may be on its way, and the API server does not
/// send it again. An interim response leaves it to the client (RFC 9112, 9.2; RFC 9110, 15.2).
#[tokio::test]
async fn a_request_that_crosses_the_end_of_an_idle_connection_is_answered() {
    let server = Server::start(Limits { drain_delay: Duration::ZERO, ..Limits::default() }).await;
    let mut idle = server.client().stream().await.unwrap();
    idle.write_all(&raw(&review("1", None))).await.unwrap();
    assert!(soon(head(&mut idle)).await.starts_with("HTTP/1.1 200 OK\r\n"));

    server.signals.send(()).await.unwrap();
    // Written by a client that has not read what the server sent.
    soon(async { while TcpStream::connect(server.admission).await.is_ok() {} }).await;
    idle.write_all(&raw(&review("2", None))).await.unwrap();
    assert_eq!(soon(head(&mut idle)).await, "HTTP/1.1 100 Continue\r\n\r\n");
    let answer = soon(head(&mut idle)).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("connection: close\r\n"), "{answer}");
    assert_eq!(soon(idle.read(&mut [0])).await.unwrap(), 0);
    assert_eq!(server.stopped().await, Stopped::Drained);
}

/// The kernel has accepted it for the client, and would reset it with the port.
#[tokio::test]
async fn a_connection_that_is_in_the_queue_when_the_port_closes_is_answered() {
    // Whether the server looks at the queue or at the signal first is random.
    for _ in 0..8 {
        let server = Server::start(Limits { drain_delay: Duration::ZERO, ..Limits::default() }).await;
        server.signals.send(()).await.unwrap();
        // Blocks this thread, which is also the server's.
        let queued = std::net::TcpStream::connect(server.admission).unwrap();
        queued.set_nonblocking(true).unwrap();
        let queued = TcpStream::from_std(queued).unwrap();
        let answered = async {
            let mut stream = server.client().stream_over(queued).await.unwrap();
            stream.write_all(&raw(&review("1", None))).await.unwrap();
            let mut answer = head(&mut stream).await;
            while answer.starts_with("HTTP/1.1 100 ") {
                answer = head(&mut stream).await;
            }
            answer
        };
        assert!(soon(answered).await.starts_with("HTTP/1.1 200 OK\r\n"));
        assert_eq!(server.stopped().await, Stopped::Drained);
    }
}

/// A request as bytes.
fn raw(body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST /validate HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// Reads one response and returns its head. Panics at the end of the stream.
async fn head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    stream.read_exact(&mut vec![0; length]).await.unwrap();
    head
}

#[tokio::test]
async fn a_request_that_outlasts_the_drain_is_cut() {
    let limits = Limits { drain_delay: Duration::ZERO, drain: Duration::from_millis(50), ..Limits::default() };
    let server = Server::start(limits).await;
    let mut busy = server.client().connect().await;
    let in_flight =
        tokio::spawn(async move { busy.try_post("/validate?timeout=30s", review("1", Some("wait"))).await.map(drop) });
    server.stub.entered.notified().await;
    server.signals.send(()).await.unwrap();
    assert_eq!(server.stopped().await, Stopped::OutOfTime { cut: 1 });
    assert!(soon(in_flight).await.unwrap().is_err());
}

/// As `interlock serve` ends: the runtime is left, not waited for.
#[test]
fn a_step_that_does_not_end_keeps_neither_the_server_nor_the_process() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let stopped = runtime.block_on(async {
        let limits = Limits { drain_delay: Duration::ZERO, drain: Duration::from_millis(50), ..Limits::default() };
        let server = Server::start(limits).await;
        for uid in ["1", "2", "3"] {
            let mut busy = server.client().connect().await;
            let blocked = review(uid, Some("block"));
            tokio::spawn(async move { busy.try_post("/validate?timeout=30s", blocked).await.map(drop) });
            soon(server.stub.entered.notified()).await;
        }
        // More steps than threads, and everybody is still answered.
        server.answers_an_honest_review().await;
        assert_eq!(soon(Connection::plain(server.admin)).await.get("/livez").await.status, StatusCode::OK);
        server.signals.send(()).await.unwrap();
        server.stopped().await
    });
    assert_eq!(stopped, Stopped::OutOfTime { cut: 3 });
    runtime.shutdown_background();
}

#[tokio::test]
async fn a_second_signal_ends_everything_at_once() {
    let server = Server::start(Limits { drain_delay: FOREVER, ..Limits::default() }).await;
    let mut busy = server.client().connect().await;
    let in_flight =
        tokio::spawn(async move { busy.try_post("/validate?timeout=30s", review("1", Some("wait"))).await.map(drop) });
    server.stub.entered.notified().await;
    server.signals.send(()).await.unwrap();
    server.signals.send(()).await.unwrap();
    assert_eq!(server.stopped().await, Stopped::Aborted { cut: 1 });
    assert!(soon(in_flight).await.unwrap().is_err());
}

#[tokio::test]
async fn a_port_that_is_taken_is_an_error_at_start() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap();
    let error =
        release_interlock::serve::https::Bound::bind("127.0.0.1:0".parse().unwrap(), address).await.unwrap_err();
    assert_eq!((error.port, error.address), ("admin", address));
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}

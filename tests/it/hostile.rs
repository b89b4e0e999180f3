//! Hostile and broken clients. After each, the next honest review is answered.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use ::http::{Method, StatusCode};
use release_interlock::serve::https::Limits;
use release_interlock::serve::https::limits::BODY_BYTES;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

use crate::harness::client::{Client, Connection, request};
use crate::harness::server::{Server, review, review_of, soon};

/// Short, but long enough for an honest client on the same machine.
const SHORT: Duration = Duration::from_millis(300);

#[tokio::test]
async fn bodies_around_the_limit_are_read_or_refused_with_a_sentence() {
    let server = Server::start(Limits::default()).await;
    let mut connection = server.client().connect().await;
    let answer = soon(connection.post("/validate", review_of(BODY_BYTES - 1))).await;
    assert_eq!((answer.status, answer.json()["response"]["uid"].as_str()), (StatusCode::OK, Some("large")));
    // The whole body is sent before the answer is read, as an API server would.
    let answer = soon(connection.post("/validate", review_of(BODY_BYTES + 1))).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(answer.text().contains("8 MiB"), "{}", answer.text());
    // The connection still works.
    assert_eq!(connection.post("/validate", review("1", None)).await.status, StatusCode::OK);
    server.answers_an_honest_review().await;
}

#[tokio::test]
async fn a_body_without_end_is_cut() {
    let server = Server::start(Limits::default()).await;
    let stream = server.client().stream().await.unwrap();
    let (mut answer, mut endless) = tokio::io::split(stream);
    endless.write_all(head("transfer-encoding: chunked").as_bytes()).await.unwrap();
    let chunk = [b"10000\r\n", [b' '; 0x10000].as_slice(), b"\r\n"].concat();
    tokio::spawn(async move { while endless.write_all(&chunk).await.is_ok() {} });
    let mut text = Vec::new();
    let _ = soon(answer.read_to_end(&mut text)).await;
    // The answer may or may not arrive before the connection is cut. The request must end.
    if !text.is_empty() {
        assert!(text.starts_with(b"HTTP/1.1 413 "), "{}", String::from_utf8_lossy(&text));
    }
    server.counts(r#"interlock_http_refusals_total{reason="too_large"} 1"#).await;
    server.answers_an_honest_review().await;
}

#[tokio::test]
async fn wrong_methods_paths_and_content_types_do_not_cost_the_connection() {
    let server = Server::start(Limits::default()).await;
    let mut connection = server.client().connect().await;
    assert_eq!(connection.get("/validate").await.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(connection.get("/nowhere").await.status, StatusCode::NOT_FOUND);
    let plain = request(Method::POST, "/validate", Some("text/plain"), review_of(1 << 20));
    assert_eq!(connection.send(plain).await.unwrap().status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    assert_eq!(connection.post("/validate", "{\"kind\": ".into()).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(connection.post("/validate", review("1", None)).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_head_that_trickles_in_is_cut_while_an_idle_connection_is_kept() {
    let server = Server::start(Limits { header: SHORT, ..Limits::default() }).await;
    let mut idle = server.client().connect().await;
    assert_eq!(idle.post("/validate", review("1", None)).await.status, StatusCode::OK);

    let (mut answer, mut slow) = tokio::io::split(server.client().stream().await.unwrap());
    tokio::spawn(async move {
        for byte in head("content-length: 5").bytes().cycle() {
            // The pace of the attack. The test does not wait on it.
            tokio::time::sleep(Duration::from_millis(10)).await;
            if slow.write_all(&[byte]).await.is_err() {
                return;
            }
        }
    });
    let _ = soon(answer.read_to_end(&mut Vec::new())).await;
    server.counts(r#"interlock_connections_cut_total{reason="header"} 1"#).await;
    assert_eq!(idle.post("/validate", review("2", None)).await.status, StatusCode::OK);
    server.answers_an_honest_review().await;
}

#[tokio::test]
async fn a_body_that_trickles_in_is_answered_and_cut() {
    let server = Server::start(Limits { body: SHORT, ..Limits::default() }).await;
    let mut stream = server.client().stream().await.unwrap();
    stream.write_all(head("content-length: 100").as_bytes()).await.unwrap();
    stream.write_all(b"{").await.unwrap();
    let mut answer = String::new();
    let _ = soon(stream.read_to_string(&mut answer)).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("did not arrive in time"), "{answer}");
    server.counts(r#"interlock_http_refusals_total{reason="body_too_slow"} 1"#).await;
    server.answers_an_honest_review().await;
}

#[tokio::test]
async fn a_body_that_breaks_off_gives_its_memory_back() {
    let server = Server::start(Limits::default()).await;
    let mut stream = server.client().stream().await.unwrap();
    stream.write_all(head("content-length: 1000000").as_bytes()).await.unwrap();
    stream.write_all(&[b' '; 100_000]).await.unwrap();
    stream.flush().await.unwrap();
    drop(stream);
    server.counts("interlock_connections{port=\"admission\"} 0").await;
    server.counts("interlock_bodies_in_flight_bytes 0").await;
    server.answers_an_honest_review().await;
}

#[tokio::test]
async fn a_thousand_idle_connections_do_not_keep_an_honest_review_out() {
    let server = Server::start(Limits::default()).await;
    let idle = soon(connections(&server, 1_000)).await;
    server.counts("interlock_connections{port=\"admission\"} 1000").await;
    server.answers_an_honest_review().await;
    drop(idle);
    server.counts("interlock_connections{port=\"admission\"} 0").await;
}

#[tokio::test]
async fn idle_connections_make_room_when_every_place_is_taken() {
    let server = Server::start(Limits { connections: 8, ..Limits::default() }).await;
    let mut honest = server.client().connect().await;
    assert_eq!(honest.post("/validate", review("1", None)).await.status, StatusCode::OK);
    let idle = soon(connections(&server, 20)).await;
    server.counts(r#"interlock_connections_cut_total{reason="evicted"} 13"#).await;
    server.answers_an_honest_review().await;
    // The connection that has sent a request is closed last.
    assert_eq!(honest.post("/validate", review("2", None)).await.status, StatusCode::OK);
    drop(idle);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_never_finish_a_body_do_not_keep_honest_ones_out() {
    let server = Server::start(Limits { connections: 256, ..Limits::default() }).await;
    let mut held = VecDeque::new();
    for _ in 0..256 {
        held.push_back(half_request(&server.client()).await.unwrap());
    }
    server.counts("interlock_connections{port=\"admission\"} 256").await;
    let client = server.client();
    let attack = tokio::spawn(async move {
        loop {
            if let Ok(next) = half_request(&client).await {
                held.push_back(next);
                held.pop_front();
            }
        }
    });
    for _ in 0..20 {
        // The timers of a head and of a body are longer.
        let honest = timeout(Duration::from_secs(3), server.answers_an_honest_review()).await;
        assert!(honest.is_ok(), "an honest review had to wait");
    }
    attack.abort();
}

#[tokio::test]
async fn a_handshake_that_is_not_finished_is_cut() {
    let server = Server::start(Limits { handshake: SHORT, ..Limits::default() }).await;
    let mut silent = TcpStream::connect(server.admission).await.unwrap();
    let mut half = TcpStream::connect(server.admission).await.unwrap();
    // The beginning of a ClientHello of 512 bytes.
    half.write_all(&[0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03]).await.unwrap();
    server.answers_an_honest_review().await;
    for stream in [&mut silent, &mut half] {
        let _ = soon(stream.read_to_end(&mut Vec::new())).await;
    }
    server.counts(r#"interlock_tls_handshake_failures_total{reason="timeout"} 2"#).await;
    server.answers_an_honest_review().await;
}

#[tokio::test]
async fn a_handshake_that_breaks_off_is_counted() {
    let server = Server::start(Limits::default()).await;
    drop(TcpStream::connect(server.admission).await.unwrap());
    server.counts(r#"interlock_tls_handshake_failures_total{reason="broken"} 1"#).await;
    server.answers_an_honest_review().await;
}

#[tokio::test]
async fn plain_http_on_the_https_port_gets_an_explanation() {
    let server = Server::start(Limits::default()).await;
    let mut stream = TcpStream::connect(server.admission).await.unwrap();
    stream.write_all(b"G").await.unwrap();
    let mut answer = String::new();
    let _ = soon(stream.read_to_string(&mut answer)).await;
    assert!(answer.starts_with("HTTP/1.0 400 ") && answer.contains("HTTPS only"), "{answer:?}");
    server.counts(r#"interlock_tls_handshake_failures_total{reason="not_tls"} 1"#).await;
    server.answers_an_honest_review().await;
}

#[tokio::test]
async fn noise_is_refused_before_and_after_the_handshake() {
    let server = Server::start(Limits::default()).await;
    let mut noise = TcpStream::connect(server.admission).await.unwrap();
    noise.write_all(&[0xff; 64]).await.unwrap();
    let _ = soon(noise.read_to_end(&mut Vec::new())).await;
    server.counts(r#"interlock_tls_handshake_failures_total{reason="not_tls"} 1"#).await;

    let mut broken = TcpStream::connect(server.admission).await.unwrap();
    broken.write_all(&[0x16; 64]).await.unwrap();
    let _ = soon(broken.read_to_end(&mut Vec::new())).await;
    server.counts(r#"interlock_tls_handshake_failures_total{reason="protocol"} 1"#).await;

    let mut inside = server.client().stream().await.unwrap();
    inside.write_all(b"\x00\x01\x02 this is not HTTP\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let _ = soon(inside.read_to_end(&mut answer)).await;
    assert!(answer.starts_with(b"HTTP/1.1 400 "), "{}", String::from_utf8_lossy(&answer));
    server.answers_an_honest_review().await;
}

#[tokio::test]
async fn a_head_without_end_is_refused() {
    let server = Server::start(Limits::default()).await;
    let (mut answer, mut endless) = tokio::io::split(server.client().stream().await.unwrap());
    tokio::spawn(async move {
        let _ = endless.write_all(b"POST /validate HTTP/1.1\r\nhost: x\r\nendless: ").await;
        while endless.write_all(&[b'x'; 4096]).await.is_ok() {}
    });
    let mut text = Vec::new();
    let _ = soon(answer.read_to_end(&mut text)).await;
    server.counts("interlock_connections{port=\"admission\"} 0").await;
    server.answers_an_honest_review().await;
}

#[tokio::test]
async fn many_large_bodies_at_a_time_are_held_to_the_budget_and_all_get_their_turn() {
    // Room for two bodies.
    let server = Server::start(Limits { bytes_in_flight: 2 * BODY_BYTES, ..Limits::default() }).await;
    let mut posts = JoinSet::new();
    for _ in 0..6 {
        let client = server.client();
        posts.spawn(async move { client.connect().await.post("/validate", review_of(BODY_BYTES)).await });
    }
    for answer in soon(posts.join_all()).await {
        // On a slow machine a turn may come too late. Then the API server is asked to retry.
        if answer.status != StatusCode::OK {
            assert_eq!((answer.status.as_u16(), answer.header("retry-after")), (503, Some("1")));
        }
    }
    server.counts("interlock_bodies_in_flight_bytes 0").await;
    server.answers_an_honest_review().await;
}

#[tokio::test]
async fn announced_bodies_that_never_come_do_not_keep_an_honest_one_out() {
    let server = Server::start(Limits { bytes_in_flight: 2 * BODY_BYTES, ..Limits::default() }).await;
    let mut silent = Vec::new();
    for sent in [0, 1, BODY_BYTES / 4] {
        let mut stream = server.client().stream().await.unwrap();
        stream.write_all(head(&format!("content-length: {BODY_BYTES}")).as_bytes()).await.unwrap();
        stream.write_all(&review_of(BODY_BYTES)[..sent]).await.unwrap();
        silent.push(stream);
    }
    server.answers_an_honest_review().await;
    let large = server.client().connect().await.post("/validate", review_of(BODY_BYTES)).await;
    assert_eq!(large.status, StatusCode::OK);
    drop(silent);
    server.counts("interlock_bodies_in_flight_bytes 0").await;
}

#[tokio::test]
async fn a_panic_leaves_the_connection_in_order() {
    let server = Server::start(Limits::default()).await;
    let mut connection = server.client().connect().await;
    let answer = connection.post("/validate", review("1", Some("panic"))).await;
    assert_eq!(answer.json()["response"]["uid"], "1");
    assert_eq!(connection.post("/validate", review("2", None)).await.json()["response"]["uid"], "2");
    server.counts(r#"interlock_panics_total{endpoint="validate"} 1"#).await;
}

#[tokio::test]
async fn the_answer_to_a_client_that_has_gone_is_not_delivered() {
    let server = Server::start(Limits::default()).await;
    let mut stream = server.client().stream().await.unwrap();
    let body = review("1", Some("wait"));
    let length = format!("content-length: {}", body.len());
    stream.write_all(&[head(&length).as_bytes(), &body[..]].concat()).await.unwrap();
    stream.flush().await.unwrap();
    soon(server.stub.entered.notified()).await;
    drop(stream);
    server.counts(r#"interlock_review_duration_seconds_count{endpoint="validate",end="unanswered"} 1"#).await;
    server.stub.release.notify_one();
    assert_eq!(server.stub.delivered.load(Relaxed), 0);
    server.answers_an_honest_review().await;
    assert_eq!(server.stub.delivered.load(Relaxed), 1);
}

#[tokio::test]
async fn the_admin_port_answers_while_the_other_is_under_attack() {
    let server = Server::start(Limits { connections: 4, ..Limits::default() }).await;
    let idle = soon(connections(&server, 4)).await;
    let mut admin = Connection::plain(server.admin).await;
    for path in ["/livez", "/readyz", "/metrics"] {
        assert_eq!(soon(admin.get(path)).await.status, StatusCode::OK, "{path}");
    }
    drop(idle);
}

/// A connection with a head and one byte of a body.
async fn half_request(client: &Client) -> std::io::Result<TlsStream<TcpStream>> {
    let mut stream = client.stream().await?;
    stream.write_all(head("content-length: 100").as_bytes()).await?;
    stream.write_all(b"{").await?;
    stream.flush().await?;
    Ok(stream)
}

/// The head of a review with one more header.
fn head(header: &str) -> String {
    format!("POST /validate HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n{header}\r\n\r\n")
}

/// Connections that are idle after their handshake.
async fn connections(server: &Server, count: usize) -> Vec<impl Sized + use<>> {
    let client = server.client();
    let mut open = Vec::with_capacity(count);
    for _ in 0..count {
        open.push(client.stream().await.unwrap());
    }
    open
}

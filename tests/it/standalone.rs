//! The webhook without a cluster: what it has admitted counts in the next review, and costs next to nothing.

use std::sync::Arc;

use futures_util::future::join_all;
use jiff::Timestamp;
use release_interlock::world::memory::Memory;
use serde_json::{Value, json};

use crate::harness::desk::Desk;
use crate::harness::fixtures::{body, gzip, review, secret};
use crate::harness::standalone::Standalone;

/// The review of the start of an operation, with some bytes beside it.
fn start(release: &str, revision: u64, padding: usize) -> Value {
    let status = if revision == 1 { "pending-install" } else { "pending-upgrade" };
    let mut body: Value = serde_json::from_str(&body(status)).unwrap();
    (body["name"], body["version"]) = (json!(release), json!(revision));
    let mut record = secret(status, &gzip(body.to_string().as_bytes()));
    let name = format!("sh.helm.release.v1.{release}.v{revision}");
    record["metadata"]["name"] = json!(name);
    record["metadata"]["creationTimestamp"] = json!(Timestamp::now().to_string());
    record["metadata"]["labels"]["name"] = json!(release);
    record["metadata"]["labels"]["version"] = json!(revision.to_string());
    let mut review = review("CREATE", None, Some(&record));
    review["request"]["name"] = json!(name);
    review["request"]["options"] = json!("x".repeat(padding));
    review
}

/// The sizes of small bodies, of those that wait for a turn, and of those that are applied beside the network.
const PADDINGS: [usize; 3] = [0, 100 << 10, 400 << 10];

/// The only thread is busy with the next review before it can apply the first.
#[tokio::test]
async fn the_next_review_is_judged_with_the_write_whether_it_is_applied_yet_or_not() {
    let desk = Desk::standalone(Arc::new(Memory::new(64 << 20)));
    for (number, padding) in PADDINGS.into_iter().enumerate() {
        let release = format!("web-{number}");
        assert_eq!(desk.judge(&start(&release, 1, padding)).await, (true, String::new()));
        let (allowed, message) = desk.judge(&start(&release, 2, 0)).await;
        assert!(!allowed && message.contains("[concurrent-operation]"), "{message}");
    }
    // What was refused does not count.
    assert_eq!(desk.judge(&start("other", 1, 0)).await, (true, String::new()));
}

#[tokio::test]
async fn a_client_that_has_its_reply_finds_its_write_over_another_connection() {
    let server = Standalone::start(&[], &[]);
    let verdict = async |review: Value| {
        let reply = server.post("/validate", review.to_string(), &[]).await;
        let reply: Value = serde_json::from_slice(&reply).unwrap();
        reply["response"]["allowed"].as_bool().unwrap()
    };
    for number in 0..30 {
        let (release, padding) = (format!("web-{number}"), PADDINGS[number % 3]);
        assert!(verdict(start(&release, 1, padding)).await, "{release}");
        assert!(!verdict(start(&release, 2, 0)).await, "{release}");
    }
}

/// Once, every write was applied in place of the tasks of a thread, and the runtime started more threads for these.
#[tokio::test]
async fn small_writes_start_no_threads() {
    let server = Standalone::start(&[], &[]);
    let mut write = start("web", 1, 0);
    write["request"]["object"] = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "settings"}, "data": {"key": "x".repeat(10 << 10)},
    });
    write["request"]["name"] = json!("settings");
    server.post("/validate", write.to_string(), &[]).await;
    let before = server.threads();
    let clients = (0..24).map(async |client| {
        let mut connection = server.connection().await;
        for number in 0..20 {
            let mut write = write.clone();
            write["request"]["name"] = json!(format!("settings-{client}-{number}"));
            let answer = connection.post("/validate", write.to_string().into()).await;
            assert_eq!(answer.json()["response"]["allowed"], true);
        }
    });
    join_all(clients).await;
    assert!(server.threads() <= before + 2, "{} threads, {before} before", server.threads());
}

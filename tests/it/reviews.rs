//! Hostile and broken reviews, answered by the real webhook: each gets its message, and the next honest review its
//! answer.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use interlock_engine::release::record::INFLATE_LIMIT;
use release_interlock::serve::https::limits::BODY_BYTES;
use release_interlock::world::memory::Memory;
use serde_json::{Value, json};

use crate::harness::desk::Desk;
use crate::harness::fixtures::{body, creation, gzip, review, secret};
use crate::harness::metrics::rendered;
use ::http::StatusCode;

fn desk() -> Desk {
    Desk::new(Arc::new(Memory::new(1 << 20)))
}

#[tokio::test]
async fn payloads_that_do_not_decode_are_refused_with_the_reason() {
    let desk = desk();
    let healthy = gzip(body("pending-install").as_bytes());
    let mut lying = gzip(&vec![b' '; 4 << 20]);
    let size = lying.len();
    lying[size - 4..].copy_from_slice(&100_u32.to_le_bytes());
    let mut damaged = healthy.clone();
    damaged[20] ^= 0xff;
    let twice = body("pending-install").replacen(r#""name":"web""#, r#""name":"web","name":"api""#, 1);
    for (what, packed, reason) in [
        ("truncated gzip", healthy[..healthy.len() - 9].to_vec(), "the payload"),
        ("damaged gzip", damaged, "not a complete gzip member"),
        ("two members", [healthy.clone(), healthy.clone()].concat(), "bytes follow the gzip member"),
        ("a bomb", gzip(&vec![b' '; INFLATE_LIMIT + 1]), "more than 32 MiB"),
        ("a bomb that lies", lying, "more than the 100 bytes"),
        ("no JSON", gzip(b"release"), "not the JSON of a release"),
        ("JSON of something else", gzip(b"[1,2,3]"), "not the JSON of a release"),
        ("a repeated key", gzip(twice.as_bytes()), "duplicate field `name`"),
        ("nothing", Vec::new(), "not the JSON of a release"),
    ] {
        let record = secret("pending-install", &packed);
        let (allowed, message) = desk.judge(&review("CREATE", None, Some(&record))).await;
        assert!(!allowed && message.contains(reason) && message.contains("[record-integrity]"), "{what}: {message}");
        desk.answers_the_next_honest_review().await;
    }
}

#[tokio::test]
async fn base64_garbage_is_refused_in_either_layer() {
    let desk = desk();
    for payload in ["%%%%", "YQ", &STANDARD.encode("%%%%"), &STANDARD.encode([0xff, 0xfe])] {
        let mut record = secret("pending-install", b"");
        record["data"]["release"] = payload.into();
        let (allowed, message) = desk.judge(&review("CREATE", None, Some(&record))).await;
        assert!(!allowed && message.contains("not base64"), "{payload}: {message}");
    }
    let mut record = secret("pending-install", b"");
    record["data"] = Value::Null;
    let (allowed, message) = desk.judge(&review("CREATE", None, Some(&record))).await;
    assert!(!allowed && message.contains("no data"), "{message}");
    desk.answers_the_next_honest_review().await;
}

#[tokio::test]
async fn deep_json_is_neither_a_crash_nor_a_reason_to_refuse() {
    let desk = desk();
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let record = body("pending-install").replacen(r#""manifest":"""#, &format!(r#""manifest":"","later":{deep}"#), 1);
    let create = review("CREATE", None, Some(&secret("pending-install", &gzip(record.as_bytes()))));
    assert_eq!(desk.judge(&create).await, (true, String::new()));
    // The same in the review itself: unknown fields are skipped without recursion.
    let body =
        creation("pending-install").to_string().replacen(r#""uid":"u1""#, &format!(r#""uid":"u1","x":{deep}"#), 1);
    assert_eq!(desk.post("/validate", body).await.status, StatusCode::OK);
    desk.answers_the_next_honest_review().await;
}

#[tokio::test]
async fn a_body_that_is_no_review_gets_an_explanation() {
    let desk = desk();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}});
    let reply = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {"uid": "u1"}});
    let mut beta = creation("pending-install");
    beta["apiVersion"] = "admission.k8s.io/v1beta1".into();
    let mut patch = creation("pending-install");
    patch["request"]["operation"] = "PATCH".into();
    let mut labels = creation("pending-install");
    labels["request"]["object"]["metadata"]["labels"] = json!(["owner"]);
    let twice = creation("pending-install").to_string().replacen(r#""uid":"u1""#, r#""uid":"u1","uid":"u2""#, 1);
    for (body, reason) in [
        (String::new(), "not an AdmissionReview"),
        ("{".to_owned(), "not an AdmissionReview"),
        ("\u{0}\u{1}".to_owned(), "not an AdmissionReview"),
        (pod.to_string(), "got \"Pod\" of \"v1\""),
        (beta.to_string(), "admission.k8s.io/v1beta1"),
        (reply.to_string(), "has no request"),
        (patch.to_string(), "expected one of `CREATE`"),
        (labels.to_string(), "the Secret cannot be parsed"),
        (twice, "request.uid is there twice"),
    ] {
        for path in ["/validate", "/mutate"] {
            let answer = desk.post(path, body.clone()).await;
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{text}");
            assert!(text.contains(reason) && text.contains("interlock review FILE"), "{text}");
        }
        desk.answers_the_next_honest_review().await;
    }
}

#[tokio::test]
async fn a_review_of_the_largest_size_is_judged_and_a_larger_one_refused() {
    let desk = desk();
    let padded = |size: usize| {
        let mut body = creation("pending-install").to_string().into_bytes();
        body.resize(size, b' ');
        body
    };
    assert_eq!(desk.post("/validate", padded(BODY_BYTES - 1)).await.json()["response"]["allowed"], true);
    let answer = desk.post("/validate", padded(BODY_BYTES + 1)).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
    desk.answers_the_next_honest_review().await;
}

#[tokio::test]
async fn a_denial_carries_code_reason_rule_and_place() {
    let desk = desk();
    let (old, new) = (secret("superseded", &gzip(body("superseded").as_bytes())), creation("deployed"));
    let mut update = review("UPDATE", Some(&old), Some(&new["request"]["object"]));
    update["request"]["dryRun"] = true.into();
    let answer = desk.post("/validate?timeout=3s", update.to_string()).await.json();
    let status = &answer["response"]["status"];
    assert_eq!((&status["code"], &status["reason"]), (&json!(403), &json!("Forbidden")));
    let cause = &status["details"]["causes"][0];
    assert_eq!((&cause["reason"], &cause["field"]), (&json!("illegal-transition"), &json!("/metadata/labels/status")));
    let annotations = json!({
        "verdict": "denied", "rule": "illegal-transition", "mode": "enforce", "release": "shop/web",
        "fields": "/metadata/labels/status",
    });
    let mut found = answer["response"]["auditAnnotations"].clone();
    let ways = found.as_object_mut().unwrap().remove("ways-out").unwrap();
    assert_eq!(found, annotations);
    let ways: Value = serde_json::from_str(ways.as_str().unwrap()).unwrap();
    let first = &ways[0]["ways"][0]["steps"][0];
    assert_eq!(
        (&ways[0]["rule"], &first["command"]),
        (&json!("illegal-transition"), &json!("helm history web -n shop"))
    );
    // A dry run gets the same verdict and is not counted.
    assert!(!rendered(|registry| desk.metrics.register(registry)).contains("interlock_findings_total{"));
    update["request"]["dryRun"] = false.into();
    assert!(!desk.judge(&update).await.0);
    // A review that the API server repeats is not counted either.
    assert!(!desk.judge(&update).await.0);
    let line = r#"interlock_findings_total{rule="illegal-transition",mode="enforce",verdict="denied"} 1"#;
    assert!(rendered(|registry| desk.metrics.register(registry)).contains(line));
}

#[tokio::test]
async fn the_mutating_half_stamps_metadata_and_nothing_else() {
    let desk = desk();
    let answer = desk.post("/mutate", creation("pending-install").to_string()).await.json();
    let response = &answer["response"];
    assert_eq!((&response["allowed"], &response["patchType"]), (&json!(true), &json!("JSONPatch")));
    let patch = STANDARD.decode(response["patch"].as_str().unwrap()).unwrap();
    let patch: Value = serde_json::from_slice(&patch).unwrap();
    assert_eq!(patch.as_array().map(Vec::len), Some(1), "{patch}");
    assert_eq!((&patch[0]["op"], &patch[0]["path"]), (&json!("add"), &json!("/metadata/annotations")));
    let stamps = &patch[0]["value"];
    assert_eq!(stamps["interlock.dev/holder"], "alice");
    assert_eq!(stamps["interlock.dev/chart"], "shop-1.0.0");
    assert_eq!(stamps["interlock.dev/target-namespace"], "shop");
    assert!(stamps["interlock.dev/started"].as_str().unwrap().ends_with('Z'));
    let ordinary = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "type": "Opaque"});
    let answer = desk.post("/mutate", review("CREATE", None, Some(&ordinary)).to_string()).await.json();
    assert_eq!(answer["response"], json!({"uid": "u1", "allowed": true}));
}

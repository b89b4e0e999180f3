//! What leaves the process: replies, log lines, and what the command line prints. Whatever a client or the author of a recording
//! writes, each of these is bounded and holds no character that a terminal or a reader would misinterpret.

use std::fs;
use std::io::Write;

use interlock_engine::text::hostile::hostile;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::harness::binary::{interlock, stderr, stdout};
use crate::harness::fixtures::{body, creation, gzip, review, secret};
use crate::harness::standalone::Standalone;

/// The longest reply to `/validate`: a message of 8 KiB, its causes, warnings and annotations.
const MAX_REPLY_BYTES: usize = 64 << 10;

/// The longest reply to `/mutate`: a stamp of 4 KiB and two of 120 characters, each byte as an escape of six, in base64.
const MAX_PATCH_BYTES: usize = 40 << 10;

/// The longest log line: 12 KiB of texts, in which a format escapes each quote and backslash, and its keys.
const MAX_LOG_LINE_BYTES: usize = 32 << 10;

/// The longest line of the command line's output for people.
const MAX_LINE_BYTES: usize = 16 << 10;

/// The texts that make up one hostile review.
const TEXTS: usize = 8;

/// Reviews with these texts in every place that a client, or another user before it, chooses.
fn reviews(texts: &[String]) -> Vec<Value> {
    let [user, uid, name, namespace, label, annotation, key, group] = texts else { unreachable!() };
    // A record that a hostile user starts, and one that is then refused with the name of its holder.
    let mut started = creation("pending-install");
    started["request"]["userInfo"]["username"] = user.as_str().into();
    let upgrade = body("pending-upgrade").replacen("\"version\":1", "\"version\":2", 1);
    let mut second = secret("pending-upgrade", &gzip(upgrade.as_bytes()));
    second["metadata"]["name"] = "sh.helm.release.v1.web.v2".into();
    second["metadata"]["labels"]["version"] = "2".into();
    let mut second = review("CREATE", None, Some(&second));
    second["request"]["name"] = "sh.helm.release.v1.web.v2".into();
    // A record that agrees with itself in nothing.
    let mut broken = secret("pending-install", &gzip(body(label).as_bytes()));
    broken["metadata"]["labels"] = json!({"owner": "helm", "name": label, "status": annotation, "version": key});
    broken["metadata"]["annotations"] = json!({"interlock.dev/holder": annotation, key.as_str(): user});
    let mut broken = review("CREATE", None, Some(&broken));
    broken["request"]["userInfo"]["username"] = user.as_str().into();
    // An override without sense.
    let custom = json!({
        "apiVersion": "interlock.dev/v1alpha1", "kind": "ReleaseOverride",
        "metadata": {"name": name, "namespace": namespace, "annotations": {"interlock.dev/created-by": user}},
        "spec": {"release": label, "rules": [key], "reason": annotation, "expiresAt": annotation},
    });
    let mut custom = review("CREATE", None, Some(&custom));
    custom["request"]["kind"] = json!({"group": "interlock.dev", "version": "v1alpha1", "kind": "ReleaseOverride"});
    // An object of a release and of no known kind, whose fields all change.
    let object = |value: &str| {
        json!({
            "apiVersion": format!("{group}/v1"), "kind": key, "spec": {key.as_str(): value},
            "metadata": {
                "name": name, "namespace": namespace,
                "labels": {"app.kubernetes.io/managed-by": "Helm", key.as_str(): value},
                "annotations": {
                    "meta.helm.sh/release-name": label, "meta.helm.sh/release-namespace": namespace, key.as_str(): value,
                },
            },
        })
    };
    let mut edited = review("UPDATE", Some(&object("before")), Some(&object(annotation)));
    edited["request"]["kind"] = json!({"group": group, "version": label, "kind": key});
    edited["request"]["resource"] = json!({"group": group, "version": label, "resource": key});
    edited["request"]["subResource"] = label.as_str().into();
    for review in [&mut edited, &mut custom, &mut broken] {
        review["request"]["name"] = name.as_str().into();
        review["request"]["namespace"] = namespace.as_str().into();
        review["request"]["userInfo"] = json!({"username": user, "groups": [label]});
    }
    let mut unanswerable = started.clone();
    unanswerable["request"]["uid"] = format!("{uid}\u{1b}").into();
    vec![started, second, broken, custom, edited, unanswerable]
}

/// The texts of so many reviews, the same in every run.
fn cases(number: usize) -> Vec<Vec<String>> {
    let mut runner = TestRunner::deterministic();
    let texts = proptest::collection::vec(hostile(), TEXTS);
    (0..number).map(|_| texts.new_tree(&mut runner).unwrap().current()).collect()
}

/// Whether a reader sees each character of a line, and a terminal obeys none.
fn is_printable(line: &str) -> bool {
    let misleads = |character: char| {
        character.is_control()
            || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    !line.chars().any(misleads)
}

fn require_printable(what: &str, text: &str, max_bytes: usize) {
    for line in text.split('\n') {
        assert!(line.len() <= max_bytes, "{what}: a line of {} bytes: {:.200?}", line.len(), line);
        assert!(is_printable(line), "{what}: {line:?}");
    }
}

async fn attack(arguments: &[&str]) {
    let server = Standalone::start(arguments, &[]);
    let mut refused = 0;
    for texts in cases(24) {
        for review in reviews(&texts) {
            for (path, limit) in [("/mutate", MAX_PATCH_BYTES), ("/validate", MAX_REPLY_BYTES)] {
                let reply = server.post(path, review.to_string(), &[]).await;
                let reply = str::from_utf8(&reply).unwrap();
                assert!(reply.len() <= limit, "{path}: {} bytes", reply.len());
                require_printable(path, reply, limit);
                refused += usize::from(reply.contains("\"allowed\":false"));
            }
        }
    }
    assert!(refused >= 48, "only {refused} of the reviews were refused");
    // The largest ones that fit into a body.
    let mut large = creation("pending-install");
    large["request"]["userInfo"]["username"] = "\u{1b}x".repeat(500_000).into();
    for path in ["/mutate", "/validate"] {
        assert!(server.post(path, large.to_string(), &[]).await.len() <= MAX_REPLY_BYTES, "{path}");
    }
    large = creation("pending-install");
    large["request"]["uid"] = "\u{1b}".repeat(1_000_000).into();
    let reply = server.post("/validate", large.to_string(), &[]).await;
    let reply = str::from_utf8(&reply).unwrap();
    assert!(reply.starts_with("request.uid is longer than 253 bytes"), "{:.200}", reply);
    require_printable("the reply to a uid", reply, 1_000);
    let log = server.stop();
    assert!(log.contains("decided") && log.contains("a body is not a review"), "{log}");
    require_printable("the log", &log, MAX_LOG_LINE_BYTES);
}

#[tokio::test]
async fn no_review_makes_a_long_or_unprintable_reply_or_line_of_json() {
    attack(&["--log-format", "json"]).await;
}

#[tokio::test]
async fn no_review_makes_a_long_or_unprintable_line_of_text() {
    attack(&["--log-format", "text"]).await;
}

#[test]
fn the_command_line_prints_no_escape_sequence_of_a_recording() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let file = dir.path().join(name);
        fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let mut held = false;
    for texts in cases(6) {
        let reviews = reviews(&texts);
        let lines: Vec<_> = reviews.iter().take(5).map(Value::to_string).collect();
        let recording = file("recording.jsonl", &lines.join("\n"));
        for review in &reviews {
            let review = file("review.json", &review.to_string());
            for format in ["table", "json"] {
                printed(&["review", &review, "-o", format], format);
            }
        }
        for format in ["table", "json"] {
            held |= printed(&["replay", &recording, "-o", format], format).contains("held by ");
        }
    }
    assert!(held, "no refusal named a holder");
}

/// Runs a command and requires that what it prints is printable, and for people not too wide.
fn printed(arguments: &[&str], format: &str) -> String {
    let output = interlock(arguments);
    let max_bytes = if format == "json" { usize::MAX } else { MAX_LINE_BYTES };
    require_printable(arguments[0], stdout(&output), max_bytes);
    require_printable(arguments[0], stderr(&output), MAX_LINE_BYTES);
    assert!(!stdout(&output).is_empty() || !stderr(&output).is_empty());
    stdout(&output).to_owned()
}

#[test]
fn json_holds_the_exact_values_and_escapes_what_cannot_be_printed() {
    let user = "\u{9b}31m\u{202e}alice\u{1b}[2J";
    let (line, stamps) = started_by(user);
    // The stamp is data: rules compare it with the name.
    assert_eq!(stamps["interlock.dev/holder"], user);
    assert_eq!(line["user"], "\u{fffd}31m\u{fffd}alice\u{fffd}[2J");
}

#[test]
fn a_stamp_holds_the_whole_name_of_a_user_or_none() {
    let longest = "x".repeat(4 << 10);
    assert_eq!(started_by(&longest).1["interlock.dev/holder"], *longest);
    let (line, stamps) = started_by(&(longest + "x"));
    assert_eq!((&line["allowed"], &stamps["interlock.dev/holder"]), (&true.into(), &Value::Null));
    assert!(stamps["interlock.dev/started"].is_string(), "{stamps}");
}

/// What `review` prints of an operation that a user starts, and the stamps in it.
fn started_by(user: &str) -> (Value, Value) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let mut review = creation("pending-install");
    review["request"]["userInfo"]["username"] = user.into();
    file.write_all(review.to_string().as_bytes()).unwrap();
    let output = interlock(&["review", file.path().to_str().unwrap(), "-o", "json"]);
    require_printable("review", stdout(&output), usize::MAX);
    let line: Value = serde_json::from_str(stdout(&output)).unwrap();
    let stamps = line["patch"][0]["value"].clone();
    (line, stamps)
}

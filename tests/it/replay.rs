//! Recordings of real clients, judged and compared with the expected verdict of each line.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader};

use flate2::bufread::MultiGzDecoder;
use release_interlock::engine::policy::Policy;
use release_interlock::engine::rules;
use release_interlock::offline::replay::{Replay, Replayed};
use serde::Deserialize;
use serde_json::json;

use crate::harness::binary::{interlock, repository, stderr, stdout};
use crate::harness::fixtures::{body, gzip, review, secret};

#[derive(Deserialize)]
struct Expected {
    deny: BTreeMap<usize, BTreeSet<String>>,
    any: BTreeSet<usize>,
}

async fn replayed(name: &str) -> Vec<Replayed> {
    let file = BufReader::new(File::open(repository(&format!("tests/recordings/{name}.jsonl.gz"))).unwrap());
    let mut replay = Replay::new(Policy::shipped().unwrap(), true);
    let mut results = Vec::new();
    for (index, line) in BufReader::new(MultiGzDecoder::new(file)).lines().enumerate() {
        results.extend(replay.line(index + 1, &line.unwrap()).await.unwrap());
    }
    results
}

/// Compares every line with its expectation.
async fn compare(name: &str, reviews: usize) {
    let wrong = differences(name, reviews).await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The lines that were not judged as expected. A line whose rules do not exist yet must be admitted.
async fn differences(name: &str, reviews: usize) -> Vec<String> {
    let text = std::fs::read_to_string(repository(&format!("tests/recordings/{name}.expect.json"))).unwrap();
    let expected: Expected = serde_json::from_str(&text).unwrap();
    let known: BTreeSet<_> = rules::all().map(|rule| rule.as_str().to_owned()).collect();
    let results = replayed(name).await;
    assert_eq!(results.len(), reviews, "the recording {name} is not whole");
    let mut wrong = Vec::new();
    for result in results.iter().filter(|result| !expected.any.contains(&result.line)) {
        let denied: BTreeSet<_> = result.violations.iter().map(|violation| violation.rule.to_owned()).collect();
        let may = expected.deny.get(&result.line).filter(|rules| rules.iter().any(|rule| known.contains(rule)));
        let right = match may {
            None => result.allowed,
            Some(rules) => !result.allowed && denied.is_subset(rules),
        };
        if !right {
            let Replayed { line, operation, name: object, user, allowed, .. } = result;
            wrong.push(format!(
                "{name} line {line}: {operation} {object} by {user}: allowed={allowed} {denied:?}, may {may:?}"
            ));
        }
    }
    wrong
}

#[tokio::test]
async fn helm() {
    compare("helm", 211).await;
}

#[tokio::test]
async fn flux() {
    compare("flux", 374).await;
}

#[tokio::test]
async fn olm() {
    compare("olm", 124).await;
}

#[tokio::test]
async fn mapkubeapis() {
    compare("mapkubeapis", 25).await;
}

#[tokio::test]
async fn sveltos() {
    compare("sveltos-v1.7.0", 705).await;
    compare("sveltos-v1.9.0", 1620).await;
}

/// The recordings that `tests/recordings/clients.py` writes from the sources of clients, with their numbers of reviews.
const WRITTEN: [(&str, usize); 15] = [
    ("fleet-rollback", 22),
    ("fleet-local-rollback", 22),
    ("fleet-keep-resources", 12),
    ("klipper", 23),
    ("nelm", 24),
    ("sveltos-push", 13),
    ("crossplane", 12),
    ("velero", 14),
    ("helm-crash-between", 17),
    ("olm-crash-between", 13),
    ("helm-finish-uninstall", 36),
    ("helm-history-max", 9),
    ("encryption", 32),
    ("helm-force-pending", 9),
    ("mapkubeapis-copies", 14),
];

#[tokio::test]
async fn further_clients_go_through_and_strangers_beside_them_do_not() {
    let mut wrong = Vec::new();
    for (name, reviews) in WRITTEN {
        wrong.extend(differences(&format!("written/{name}"), reviews).await);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Replays given lines in a fresh world.
async fn lines(as_recorded: bool, lines: &[serde_json::Value]) -> Vec<Replayed> {
    let mut replay = Replay::new(Policy::shipped().unwrap(), as_recorded);
    let mut results = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        results.extend(replay.line(index + 1, &line.to_string()).await.unwrap());
    }
    results
}

fn config_map(name: &str) -> serde_json::Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}})
}

#[tokio::test]
async fn a_bare_review_and_one_with_a_time_are_the_same() {
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u1", "operation": "CREATE", "name": "a", "namespace": "shop", "userInfo": {"username": "alice"},
            "kind": {"group": "", "version": "v1", "kind": "ConfigMap"}, "object": config_map("a"), "oldObject": null,
            "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        },
    });
    let results = lines(false, &[review.clone(), json!({"mark": "x"}), json!({"t": 5.5, "review": review})]).await;
    let shown: Vec<_> = results.iter().map(|result| serde_json::to_value(result).unwrap()).collect();
    let wanted = |line| {
        json!({
            "line": line, "uid": "u1", "operation": "CREATE", "resource": "configmaps", "namespace": "shop",
            "name": "a", "user": "alice", "allowed": true, "code": 200, "violations": [], "warnings": [],
        })
    };
    assert_eq!(shown, [wanted(1), wanted(3)]);
}

fn audit(verb: &str, code: u16, object: &serde_json::Value) -> serde_json::Value {
    json!({
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "auditID": "a1",
        "stage": "ResponseComplete", "verb": verb, "requestURI": "/api/v1/namespaces/shop/secrets",
        "user": {"username": "alice", "groups": ["devs"]},
        "objectRef": {"resource": "secrets", "namespace": "shop", "name": object["metadata"]["name"], "apiVersion": "v1"},
        "responseStatus": {"code": code}, "requestObject": object, "responseObject": object,
        "requestReceivedTimestamp": "2026-11-21T10:00:00.000000Z", "stageTimestamp": "2026-11-21T10:00:00.100000Z",
    })
}

#[tokio::test]
async fn audit_events_are_judged_with_the_world_as_their_old_objects() {
    let record = |status: &str| {
        let name = "sh.helm.release.v1.web.v1";
        let labels = json!({"owner": "helm", "name": "web", "version": "1", "status": status});
        let metadata = json!({"name": name, "namespace": "shop", "labels": labels});
        json!({"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1", "metadata": metadata})
    };
    let results = lines(
        true,
        &[
            json!({"object": record("superseded")}),
            audit("get", 200, &record("superseded")),
            audit("update", 200, &record("deployed")),
            audit("update", 409, &record("failed")),
            audit("delete", 200, &record("deployed")),
        ],
    )
    .await;
    let denied: Vec<_> = results
        .iter()
        .map(|result| (result.line, result.allowed, result.violations.iter().map(|it| it.rule).collect::<Vec<_>>()))
        .collect();
    assert_eq!(
        denied,
        [(3, false, vec!["illegal-transition", "record-tampering"]), (5, false, vec!["record-deletion"])]
    );
}

#[tokio::test]
async fn a_given_object_and_a_taken_name_keep_their_holder() {
    let record = |status: &str| secret(status, &gzip(body(status).as_bytes()));
    let by = |user: &str, operation: &str, old: Option<&str>, new: &str| {
        let old = old.map(record);
        let mut review = review(operation, old.as_ref(), Some(&record(new)));
        review["request"]["userInfo"]["username"] = user.into();
        json!({"t": 1_795_255_260, "review": review})
    };
    let unlock = by("bob", "UPDATE", Some("pending-install"), "failed");
    let results = lines(
        true,
        &[
            by("alice", "CREATE", None, "pending-install"),
            unlock.clone(),
            // The write that was refused comes back from a client that does not know about stamps.
            json!({"object": record("pending-install")}),
            unlock.clone(),
            json!({"object": record("pending-install")}),
            // The API server would answer that the object exists.
            by("bob", "CREATE", None, "pending-install"),
            by("alice", "UPDATE", Some("pending-install"), "failed"),
        ],
    )
    .await;
    let verdicts: Vec<_> = results.iter().map(|result| (result.line, result.allowed)).collect();
    assert_eq!(verdicts, [(1, true), (2, false), (4, false), (6, false), (7, true)]);
}

#[tokio::test]
async fn an_unknown_line_is_an_error_with_its_number() {
    let mut replay = Replay::new(Policy::shipped().unwrap(), false);
    for text in
        ["", "[]", "{}", "{\"reviews\":[]}", "{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}", "{\"t\":1}", "{\"review\""]
    {
        let error = replay.line(7, text).await.unwrap_err().to_string();
        assert!(error.starts_with("line 7: "), "{text}: {error}");
    }
}

/// An audit event with this user and time.
fn logged(level: &str, user: &str, at: &str, mut event: serde_json::Value) -> serde_json::Value {
    event["level"] = level.into();
    event["user"]["username"] = user.into();
    event["requestReceivedTimestamp"] = at.into();
    if level == "Metadata" {
        event["requestObject"].take();
        event["responseObject"].take();
    }
    event
}

fn record(status: &str) -> serde_json::Value {
    secret(status, &gzip(body(status).as_bytes()))
}

/// A log in which bob deletes the only record of a release twice, among other writes and reads.
fn log() -> Vec<serde_json::Value> {
    let mut heartbeat = audit("update", 200, &config_map("node"));
    heartbeat["objectRef"]["resource"] = "leases".into();
    heartbeat["objectRef"]["apiGroup"] = "coordination.k8s.io".into();
    let at = "2026-11-20T10:00:00Z";
    vec![
        json!({"object": record("deployed")}),
        logged("Metadata", "node", at, heartbeat),
        logged("Metadata", "alice", at, audit("get", 200, &record("deployed"))),
        logged("Metadata", "alice", at, audit("update", 200, &config_map("bare"))),
        logged("RequestResponse", "bob", at, audit("delete", 200, &record("deployed"))),
        json!({"object": record("deployed")}),
        // A known object need not be in the log.
        logged("Metadata", "bob", "2026-11-21T10:00:00Z", audit("delete", 200, &record("deployed"))),
    ]
}

fn lines_of(log: &[serde_json::Value]) -> String {
    log.iter().map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_log_becomes_a_table_and_its_gaps_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let [plain, gzipped, zstd] = ["audit.log", "audit.log.gz", "audit.log.zst"].map(|name| dir.path().join(name));
    std::fs::write(&plain, lines_of(&log())).unwrap();
    std::fs::write(&gzipped, gzip(lines_of(&log()).as_bytes())).unwrap();
    // Several frames, as in `cat a.zst b.zst` or in a log that was appended to.
    let frame = |line: &serde_json::Value| {
        ruzstd::encoding::compress_to_vec(format!("{line}\n").as_bytes(), ruzstd::encoding::CompressionLevel::Fastest)
    };
    std::fs::write(&zstd, log().iter().flat_map(frame).collect::<Vec<_>>()).unwrap();
    for file in [plain, gzipped, zstd] {
        let output = interlock(&["replay", "--as-recorded", file.to_str().unwrap()]);
        let (table, notes) = (stdout(&output), stderr(&output));
        assert_eq!(output.status.code(), Some(1), "{notes}");
        for wanted in
            ["DENIED", "record-deletion", "bob", "shop/web", "2026-11-20", "2026-11-21", "2 reviews, 2 denied"]
        {
            assert!(table.contains(wanted), "expected {wanted} in\n{table}");
        }
        assert!(notes.contains("1 writes could not be checked") && notes.contains("1 of secrets"), "{notes}");
    }
}

#[test]
fn older_reviews_are_judged_and_not_reported() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("audit.log");
    std::fs::write(&file, lines_of(&log())).unwrap();
    let since = |time: &str| {
        let args = ["replay", "--as-recorded", "-o", "json", "--since", time, file.to_str().unwrap()];
        stdout(&interlock(&args)).lines().count()
    };
    assert_eq!([since("2026-11-20"), since("2026-11-21T00:00:00Z"), since("2026-11-22")], [2, 1, 0]);
}

#[test]
fn two_policies_are_compared_review_by_review() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("audit.log");
    std::fs::write(&file, lines_of(&log())).unwrap();
    let compared = |with: &str, output: &str| {
        interlock(&["replay", "--as-recorded", "-o", output, "--compare", with, file.to_str().unwrap()])
    };
    let same = compared("policies", "table");
    assert_eq!((same.status.code(), stdout(&same)), (Some(0), "2 reviews, 0 judged differently\n"));
    let other = compared("policies/examples/audit-first", "json");
    assert_eq!(other.status.code(), Some(1));
    let first: serde_json::Value = serde_json::from_str(stdout(&other).lines().next().unwrap()).unwrap();
    assert_eq!((&first["policies"]["allowed"], &first["compare"]["allowed"]), (&false.into(), &true.into()));
    assert_eq!(first["compare"]["violations"][0]["mode"], "audit");
    let compared = compared("policies/examples/audit-first", "table");
    let table = stdout(&compared);
    assert!(table.contains("audited:") && table.contains("2 reviews, 2 judged differently"), "{table}");
}

#[test]
fn a_log_that_ends_in_the_middle_of_a_line_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("audit.log");
    let whole = lines_of(&log());
    std::fs::write(&file, &whole[..whole.len() - 10]).unwrap();
    let output = interlock(&["replay", file.to_str().unwrap()]);
    let error = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("audit.log: line 7: ") && error.contains("ends in the middle"), "{error}");
}

#[test]
fn a_dry_run_that_would_be_refused_counts_as_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("audit.log");
    let mut dry_run = audit("delete", 200, &record("deployed"));
    dry_run["requestURI"] = "/api/v1/namespaces/shop/secrets/a?dryRun=All".into();
    std::fs::write(&file, lines_of(&[json!({"object": record("deployed")}), dry_run])).unwrap();
    for (output, wanted) in [("json", "\"allowed\":false"), ("table", "1 reviews, 1 denied")] {
        let judged = interlock(&["replay", "-o", output, file.to_str().unwrap()]);
        assert_eq!(judged.status.code(), Some(1));
        assert!(stdout(&judged).contains(wanted), "{}", stdout(&judged));
    }
}

/// The number of judged reviews, and the reported gaps.
async fn gaps_of(events: &[serde_json::Value]) -> (usize, std::collections::BTreeMap<String, usize>) {
    let mut replay = Replay::new(Policy::shipped().unwrap(), true);
    let mut judged = 0;
    for (index, event) in events.iter().enumerate() {
        judged += replay.line(index + 1, &event.to_string()).await.unwrap().len();
    }
    (judged, replay.gaps().without_objects)
}

#[tokio::test]
async fn events_whose_objects_were_cut_off_are_gaps() {
    let cut_off = |verb: &str, code: u16| {
        let mut event = audit(verb, code, &record("deployed"));
        event["requestObject"].take();
        event["responseObject"].take();
        event
    };
    let cut = [cut_off("create", 201), cut_off("update", 200), cut_off("patch", 200)];
    assert_eq!(gaps_of(&cut).await, (0, [("secrets".to_owned(), 3)].into()));
    // Deletions have no objects at any level, and connections are not writes.
    let mut exec = cut_off("create", 101);
    exec["objectRef"]["resource"] = "pods".into();
    exec["objectRef"]["subresource"] = "exec".into();
    assert_eq!(gaps_of(&[cut_off("delete", 200), exec]).await, (1, [].into()));
}

#[tokio::test]
async fn resources_are_left_out_by_their_group_and_not_by_their_name() {
    let of = |group: &str, resource: &str| {
        let mut event = audit("update", 200, &config_map("a"));
        event["objectRef"]["resource"] = resource.into();
        event["objectRef"]["apiGroup"] = group.into();
        event
    };
    let asked = [of("longhorn.io", "nodes"), of("example.com", "events"), of("example.com", "leases")];
    assert_eq!(gaps_of(&asked).await.0, 3);
    let unasked =
        [of("", "nodes"), of("", "events"), of("events.k8s.io", "events"), of("coordination.k8s.io", "leases")];
    assert_eq!(gaps_of(&unasked).await, (0, [].into()));
}

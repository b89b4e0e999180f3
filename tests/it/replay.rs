//! Recordings of real clients, judged and compared with the expected verdict of each line.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use interlock_engine::evidence::can_be_asked_for;
use interlock_engine::policy::Policy;
use interlock_engine::rules;
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
    replayed_under(Policy::shipped().unwrap(), name).await
}

async fn replayed_under(policy: Policy, name: &str) -> Vec<Replayed> {
    let file = BufReader::new(File::open(repository(&format!("tests/recordings/{name}.jsonl.gz"))).unwrap());
    let mut replay = Replay::new(policy, true);
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

#[tokio::test]
async fn kustomizations() {
    compare("kustomize-v1.9.4", 580).await;
}

#[tokio::test]
async fn applications() {
    compare("argocd-v3.5.1", 1044).await;
}

/// The recordings that `tests/recordings/clients.py` writes from the sources of clients, with their numbers of reviews.
const WRITTEN: [(&str, usize); 20] = [
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
    ("helm-hook-deletes", 13),
    ("helm-recreate-statefulset", 10),
    ("flux-account-changes", 11),
    ("velero-driver", 6),
    ("olm-killed-between-parts", 9),
];

#[tokio::test]
async fn further_clients_go_through_and_strangers_beside_them_do_not() {
    let mut wrong = Vec::new();
    for (name, reviews) in WRITTEN {
        wrong.extend(differences(&format!("written/{name}"), reviews).await);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is refused is admitted and reported, and so is what is undecided.
#[tokio::test]
async fn under_a_cap_nothing_of_the_recordings_is_refused_and_all_of_it_is_reported() {
    let header = "apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\nprotected: {namespaces: ['*']}\n";
    let all = "rules: {manual-edit: {cases: {only: []}}, record-deletion: {onUndecided: deny}}\n";
    let policy = |cap: &str| Policy::parse(&format!("{header}{all}{cap}"), Path::new("test")).unwrap();
    let names = ["helm", "flux", "olm", "mapkubeapis", "sveltos-v1.7.0"].into_iter().map(str::to_owned);
    let mut refused = 0;
    for name in names.chain(WRITTEN.map(|(name, _)| format!("written/{name}"))) {
        let without = replayed_under(policy(""), &name).await;
        let [audited, warned] =
            [replayed_under(policy("cap: audit\n"), &name).await, replayed_under(policy("cap: warn\n"), &name).await];
        for ((without, audited), warned) in
            without.iter().zip(&audited).zip(&warned).filter(|((one, _), _)| !one.allowed)
        {
            assert!(audited.allowed && warned.allowed, "{name} line {}", without.line);
            let broken = |of: &Replayed| of.violations.iter().map(|it| it.rule).collect::<BTreeSet<_>>();
            assert_eq!(
                (broken(audited), broken(warned)),
                (broken(without), broken(without)),
                "{name} {}",
                without.line
            );
            assert!(audited.violations.iter().all(|it| it.mode == "audit") && !warned.warnings.is_empty(), "{name}");
            refused += 1;
        }
    }
    assert!(refused > 100, "{refused}");
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

/// Files of a directory of their own, with their paths.
fn files(texts: &[String]) -> (tempfile::TempDir, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let paths = texts.iter().enumerate().map(|(index, text)| {
        let path = dir.path().join(format!("{index}.log"));
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    });
    let paths = paths.collect();
    (dir, paths)
}

/// Replays files with the binary: exit code, standard output and standard error.
fn judged(arguments: &[&str], texts: &[String]) -> (i32, String, String) {
    let (_dir, paths) = files(texts);
    let mut all = vec!["replay", "--as-recorded"];
    all.extend(arguments);
    all.extend(paths.iter().map(String::as_str));
    let output = interlock(&all);
    (output.status.code().unwrap(), stdout(&output).to_owned(), stderr(&output).to_owned())
}

/// An event at a time of day, with an ID of its own.
fn at(time: &str, user: &str, event: serde_json::Value) -> serde_json::Value {
    let at = format!("2026-11-21T{time}Z");
    let mut event = logged("RequestResponse", user, &at, event);
    event["stageTimestamp"] = at.into();
    event["auditID"] = format!("{user}-{time}").into();
    event
}

/// A record that one API server creates and another deletes.
fn created_and_deleted() -> [serde_json::Value; 2] {
    let created = at("10:00:00", "alice", audit("create", 201, &record("deployed")));
    [created, at("10:00:05", "bob", audit("delete", 200, &record("deployed")))]
}

#[test]
fn the_logs_of_several_api_servers_are_judged_in_the_order_of_their_times() {
    let [created, deleted] = created_and_deleted();
    let one = lines_of(&[created.clone(), at("10:00:09", "carol", audit("get", 200, &record("deployed")))]);
    let two = lines_of(std::slice::from_ref(&deleted));
    for texts in [[one.clone(), two.clone()], [two.clone(), one.clone()], [two.clone() + &one[..0], one.clone()]] {
        let (code, table, notes) = judged(&[], &texts);
        assert_eq!(code, 1, "{notes}");
        assert!(table.contains("record-deletion") && table.contains("2 reviews, 2 denied"), "{table}");
        assert!(!notes.contains("not known before"), "{notes}");
    }
    // Copies of a log, and the state before, which has no times.
    let before = lines_of(&[json!({"object": record("deployed")})]);
    let (code, table, notes) = judged(&[], &[two.clone(), two, before]);
    assert!(code == 1 && table.contains("1 reviews, 1 denied"), "{table}{notes}");
    assert!(notes.contains("1 events are in several of the files"), "{notes}");
}

#[test]
fn a_log_in_which_time_runs_back_says_so() {
    let [created, deleted] = created_and_deleted();
    let (code, _, error) = judged(&[], &[lines_of(&[at("12:00:00", "eve", created.clone()), deleted.clone()])]);
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("0.log: line 2: time runs back here, by 1h 59m 55s: from 2026-11-21 12:00:00"), "{error}");
    assert!(error.contains("give each as a file of its own"), "{error}");
    let (code, table, notes) = judged(&[], &[lines_of(&[deleted, created])]);
    assert!(code == 1 && table.contains("2 reviews"), "{table}{notes}");
    assert!(notes.contains("0.log: time runs back 1 times, by up to 5s (line 2)"), "{notes}");
}

#[test]
fn a_list_of_events_is_judged_like_its_lines() {
    let events = created_and_deleted();
    let (code, wanted, _) = judged(&["-o", "json"], &[lines_of(&events)]);
    let mut items = events.to_vec();
    for item in &mut items {
        item.as_object_mut().unwrap().retain(|key, _| !["kind", "apiVersion"].contains(&key.as_str()));
    }
    let list = json!({"kind": "EventList", "apiVersion": "audit.k8s.io/v1", "metadata": {}, "items": items});
    let judged = judged(&["-o", "json"], &[lines_of(std::slice::from_ref(&list))]);
    assert_eq!((judged.0, judged.1), (code, wanted.replace("\"line\":2", "\"line\":1")));
    assert_eq!(code, 1);
    let pretty = serde_json::to_string_pretty(&list).unwrap();
    let (code, _, error) = self::judged(&[], &[pretty]);
    assert!(code == 2 && error.contains("line 1") && error.contains("write the file anew with `jq -c .`"), "{error}");
    let (code, _, error) = self::judged(&[], &[json!({"kind": "List", "apiVersion": "v1", "items": []}).to_string()]);
    assert!(code == 2 && error.contains("jq -c '.items[] | {object: .}'"), "{error}");
}

#[test]
fn nothing_judged_is_never_silent() {
    let staged = |stage: &str, mut event: serde_json::Value| {
        event["stage"] = stage.into();
        event
    };
    let received: Vec<_> = created_and_deleted().map(|event| staged("RequestReceived", event)).into();
    let bare = logged("Metadata", "alice", "2026-11-21T10:00:00Z", audit("update", 200, &config_map("bare")));
    let read = audit("get", 200, &config_map("a"));
    let whole = lines_of(&created_and_deleted());
    for (text, code, wanted) in [
        (lines_of(&received), 2, "2 writes at the stage RequestReceived, and none at the stage ResponseComplete"),
        (lines_of(&[bare]), 2, "no write in the audit log has its objects"),
        (lines_of(&[read]), 0, "Nothing was judged: the 1 audit events are reads"),
        (String::new(), 2, "the input has no write"),
        (lines_of(&[json!({"object": record("deployed")})]), 2, "the input has 1 objects, and no write"),
        (whole[20..].to_owned(), 2, "line 1: it is not a JSON object"),
        (whole[20..].to_owned(), 2, "starts in the middle of this line"),
        (whole[..whole.len() - 9].to_owned(), 2, "ends in the middle of this line"),
    ] {
        for output in ["json", "table"] {
            let (got, _, said) = judged(&["-o", output], std::slice::from_ref(&text));
            assert!(got == code && said.contains(wanted), "{wanted}: {got} {said}");
        }
    }
    // One of two servers logs only the beginning.
    let (code, _, said) = judged(&[], &[whole.clone(), lines_of(&received)]);
    assert!(code == 1 && !said.contains("did not end"), "{said}");
    assert!(said.contains("1.log: its writes have no stage ResponseComplete") && !said.contains("0.log: "), "{said}");
    let more: Vec<_> = ["10:01:00", "10:02:00", "10:03:00"]
        .map(|time| staged("RequestReceived", at(time, "eve", audit("update", 200, &config_map("a")))))
        .into();
    let (code, _, said) = judged(&[], &[whole.clone(), lines_of(&more)]);
    assert!(code == 1 && said.contains("1 writes began and did not end in the log"), "{said}");
    let (code, table, said) = judged(&["--since", "2026-11-22"], &[whole]);
    assert!(code == 0 && table.contains("0 reviews") && said.contains("All 2 reviews are before"), "{table}{said}");
    let dir = tempfile::tempdir().unwrap();
    let packed = dir.path().join("cut.gz");
    std::fs::write(&packed, &gzip(&lines_of(&created_and_deleted()).into_bytes())[..200]).unwrap();
    let output = interlock(&["replay", packed.to_str().unwrap()]);
    assert!(output.status.code() == Some(2) && stderr(&output).contains("ends too early"), "{}", stderr(&output));
}

/// An event of another resource or namespace.
fn of(group: &str, resource: &str, namespace: &str, mut event: serde_json::Value) -> serde_json::Value {
    event["objectRef"]["apiGroup"] = group.into();
    event["objectRef"]["resource"] = resource.into();
    event["objectRef"]["namespace"] = namespace.into();
    event
}

const NAMESPACE_CONTROLLER: &str = "system:serviceaccount:kube-system:namespace-controller";

/// Five writes that the registration does not send, and one deletion by bob that it sends.
fn mostly_not_sent() -> Vec<serde_json::Value> {
    let delete = || audit("delete", 200, &record("deployed"));
    let release = |note: &str| {
        json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "spec": {"chart": {}},
            "metadata": {"name": "web", "namespace": "shop", "annotations": {"note": note}},
        })
    };
    let deployment =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}});
    let mut status = of("apps", "deployments", "shop", audit("patch", 200, &deployment));
    status["objectRef"]["subresource"] = "status".into();
    let metadata_only = of("helm.toolkit.fluxcd.io", "helmreleases", "shop", audit("patch", 200, &release("b")));
    vec![
        json!({"object": record("deployed")}),
        json!({"object": release("a")}),
        at("10:00:00", "bob", of("", "secrets", "interlock-system", delete())),
        at("10:00:01", "bob", of("", "secrets", "kube-system", delete())),
        at("10:00:02", "bob", status),
        at("10:00:03", "bob", metadata_only),
        at("10:00:04", NAMESPACE_CONTROLLER, delete()),
        json!({"object": record("deployed")}),
        at("10:00:05", "bob", delete()),
    ]
}

#[test]
fn what_the_registration_does_not_send_is_counted_and_not_judged() {
    let (code, table, notes) = judged(&[], &[lines_of(&mostly_not_sent())]);
    assert_eq!(code, 1, "{table}{notes}");
    assert!(table.ends_with("1 reviews, 1 denied, 5 not sent to Interlock\n"), "{table}");
    assert!(
        notes.contains(
            "Not judged: 5 requests that the registration does not send (2 in namespaces that the entries leave out, 1 by the \
             match condition loses-its-protection, 1 by the match condition not-cascading-deletion, 1 of resources, subresources \
             and operations without an entry)."
        ),
        "{notes}"
    );
    assert!(!notes.contains("not known before"), "{notes}");
    let (_, lines, _) = judged(&["-o", "json"], &[lines_of(&mostly_not_sent())]);
    assert_eq!(lines.lines().count(), 1, "{lines}");
    let none = &mostly_not_sent()[..7];
    let (code, table, notes) = judged(&[], &[lines_of(none)]);
    assert!(code == 0 && table.starts_with("0 reviews, 0 denied, 5 not sent"), "{table}{notes}");
    assert!(notes.contains("Nothing was judged: "), "{notes}");
}

#[test]
fn a_registration_of_your_own_decides_what_is_judged() {
    let shipped = std::fs::read_to_string(repository("manifests/base/validating-webhooks.yaml")).unwrap();
    let (dir, _) = files(&[]);
    let file = dir.path().join("registration.yaml");
    let judged_with = |text: &str| {
        std::fs::write(&file, text).unwrap();
        judged(&["--registration", file.to_str().unwrap()], &[lines_of(&mostly_not_sent())])
    };
    let (_, table, notes) = judged_with(&shipped.replace("interlock-system, kube-system", "kube-system"));
    assert!(table.contains("2 reviews") && table.contains("4 not sent"), "{table}{notes}");
    // The labels of namespaces are not in a log.
    let (_, table, notes) = judged_with(&shipped.replace("kubernetes.io/metadata.name", "team"));
    assert!(table.contains("3 reviews"), "{table}{notes}");
    assert!(
        notes.contains(
            "Judged, though the registration may not send them: 3 requests (the labels of their namespace are unknown)"
        ),
        "{notes}"
    );
    let (code, _, error) = judged_with("kind: Secret");
    assert!(
        code == 2 && error.contains("registration.yaml") && error.contains("ValidatingWebhookConfiguration"),
        "{error}"
    );
}

#[test]
fn a_refused_patch_is_said_to_have_no_object() {
    let mut patch = audit("patch", 403, &json!({"data": {"release": "x"}}));
    patch["objectRef"]["name"] = "sh.helm.release.v1.web.v1".into();
    patch["responseObject"] = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403});
    let elsewhere = of("", "secrets", "kube-system", patch.clone());
    let refused = [at("10:00:00", "bob", patch), at("10:00:01", "bob", elsewhere)];
    let (code, table, notes) = judged(&[], &[lines_of(&refused)]);
    assert!(code == 0 && table.starts_with("0 reviews, 0 denied, 1 not sent"), "{table}{notes}");
    assert!(notes.contains("Not judged: a refused PATCH, whose audit event has no object."), "{notes}");
    assert!(!notes.contains("could not be checked"), "{notes}");
    let refused = [at("10:00:00", "bob", audit("update", 409, &record("failed")))];
    let (_, _, notes) = judged(&[], &[lines_of(&refused)]);
    assert!(notes.contains("Not judged: 1 write that the API server refused when the log was written."), "{notes}");
}

#[test]
fn a_page_answers_what_last_week_would_have_looked_like() {
    let (code, page, notes) = judged(&["-o", "html"], &[lines_of(&mostly_not_sent())]);
    assert_eq!(code, 1, "{notes}");
    for wanted in [
        "<!doctype html>",
        "<b>1</b> <span>denied</span>",
        "<h2>By rule</h2>",
        "<th scope=\"row\">record-deletion</th>",
        "<h2>By namespace</h2>",
        "<th scope=\"row\">shop</th>",
        "<h2>By account</h2>",
        "<th scope=\"row\">bob</th>",
        "2026-11-21 10:00:05</time> DELETE secrets shop/sh.helm.release.v1.web.v1 by bob (record-deletion, line 9)",
        "<li>Not judged: 5 requests that the registration does not send",
    ] {
        assert!(page.contains(wanted), "expected {wanted} in\n{page}");
    }
    // The reason is the message of the refusal.
    let (_, lines, _) = judged(&["-o", "json"], &[lines_of(&mostly_not_sent())]);
    let refusal: serde_json::Value = serde_json::from_str(&lines).unwrap();
    let message = refusal["violations"][0]["message"].as_str().unwrap();
    let start: String = message.chars().take_while(|letter| letter.is_alphanumeric() || *letter == ' ').collect();
    assert!(start.len() > 10 && page.contains(&start), "{message}");
    let (code, _, error) = judged(&["-o", "html", "--compare", "policies"], &[lines_of(&mostly_not_sent())]);
    assert!(code == 2 && error.contains("--compare has no page"), "{error}");
}

/// The lines of a recording that are kept.
fn recording(name: &str, keep: impl Fn(&serde_json::Value) -> bool) -> String {
    let file = BufReader::new(File::open(repository(&format!("tests/recordings/{name}.jsonl.gz"))).unwrap());
    let lines = BufReader::new(MultiGzDecoder::new(file)).lines().map(|line| line.unwrap());
    let kept = lines.filter(|line| keep(&serde_json::from_str(line).unwrap()));
    kept.map(|line| line + "\n").collect()
}

#[test]
fn what_was_judged_without_knowing_a_kind_is_said() {
    let is_of = |line: &serde_json::Value, kind: &str| {
        let request = &line["review"]["request"];
        [&request["kind"]["kind"], &line["object"]["kind"]].iter().any(|found| *found == kind)
    };
    let without = "Judged without knowing any";
    let records = recording("flux", |line| !is_of(line, "HelmRelease"));
    let bundles = recording("sveltos-v1.9.0", |line| !is_of(line, "ConfigurationBundle"));
    for (text, kind, resource) in [
        (records, "HelmRelease", "helmrelease.helm.toolkit.fluxcd.io"),
        (bundles, "ConfigurationBundle", "configurationbundle.lib.projectsveltos.io"),
    ] {
        let (_, table, said) = judged(&[], std::slice::from_ref(&text));
        assert_eq!(said.matches(&format!("{without} {kind}: rules asked")).count(), 1, "{said}");
        assert!(said.contains(resource) && said.contains("jq -c '.items[] | {object: .}'"), "{said}");
        assert!(!table.contains(without));
        let (_, lines, said) = judged(&["-o", "json"], &[text]);
        assert!(said.contains(&format!("{without} {kind}")), "{said}");
        assert!(lines.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["uid"].is_string()));
    }
    let (_, _, said) = judged(&[], &[recording("flux", |_| true)]);
    assert!(!said.contains("HelmRelease:"), "{said}");
}

/// Set to write the documents in place of comparing them.
const WRITE_DOCS: &str = "INTERLOCK_WRITE_DOCS";

/// Around the command for the state from before a log.
const STATE: [&str; 2] = ["<!-- state before: generated -->\n", "<!-- end -->\n"];

/// What rules may read in a cluster: the rights of the role for them. A test in a cluster holds the role against what they do read.
fn readable() -> BTreeSet<String> {
    let text = std::fs::read_to_string(repository("manifests/base/rbac.yaml")).unwrap();
    let objects: Vec<serde_json::Value> = serde_saphyr::from_multiple(&text).unwrap();
    let roles = objects.iter().filter(|object| {
        object["kind"] == "ClusterRole"
            && ["interlock", "interlock-cluster"].iter().any(|name| object["metadata"]["name"] == *name)
    });
    let rules = roles.flat_map(|role| role["rules"].as_array().unwrap());
    let strings = |value: &serde_json::Value| -> Vec<String> { serde_json::from_value(value.clone()).unwrap() };
    let mut readable = BTreeSet::new();
    for rule in rules.filter(|rule| strings(&rule["verbs"]).iter().any(|verb| ["get", "list"].contains(&verb.as_str())))
    {
        for (group, resource) in strings(&rule["apiGroups"])
            .iter()
            .flat_map(|group| strings(&rule["resources"]).into_iter().map(move |resource| (group.clone(), resource)))
        {
            readable.insert(if group.is_empty() { resource } else { format!("{resource}.{group}") });
        }
    }
    // Whether a definition is installed is not a part of the state.
    readable.remove("customresourcedefinitions.apiextensions.k8s.io");
    assert!(readable.len() > 15, "{readable:?}");
    readable
}

fn state_command() -> String {
    let mut text = String::from("\n```sh needs: jq\nfor kind in");
    let mut width = text.len();
    for resource in readable() {
        if width + resource.len() > 100 {
            text += " \\\n   ";
            width = 4;
        }
        text += &format!(" {resource}");
        width += resource.len() + 1;
    }
    text + "; do\n  kubectl get \"$kind\" -A -o json   # a kind that is not installed is an error that does no harm\ndone | jq -c '.items[] | \
            {object: .}' > before.jsonl\n```\n\n"
}

#[test]
fn the_command_for_the_state_before_takes_every_kind_that_rules_may_read() {
    for document in ["README.md", "docs/replay.md"] {
        let text = std::fs::read_to_string(repository(document)).unwrap();
        let (head, rest) = text.split_once(STATE[0]).unwrap_or_else(|| panic!("{document} has no such part"));
        let (_, tail) = rest.split_once(STATE[1]).unwrap();
        let made = format!("{head}{}{}{}{tail}", STATE[0], state_command(), STATE[1]);
        if std::env::var_os(WRITE_DOCS).is_some() {
            std::fs::write(repository(document), &made).unwrap();
        }
        let committed = std::fs::read_to_string(repository(document)).unwrap();
        assert!(committed == made, "{document} is old; {WRITE_DOCS}=1 writes it");
    }
}

/// As the API names the resource of a kind.
fn resource_of(group: &str, kind: &str) -> String {
    let kind = kind.to_lowercase();
    let plural = kind.strip_suffix('y').map_or_else(|| format!("{kind}s"), |stem| format!("{stem}ies"));
    if group.is_empty() { plural } else { format!("{plural}.{group}") }
}

#[tokio::test]
async fn rules_ask_for_no_kind_that_the_command_leaves_out() {
    let readable = readable();
    let (mut asked, mut not_kept) = (BTreeSet::new(), BTreeSet::new());
    let recorded =
        ["helm", "flux", "olm", "mapkubeapis", "sveltos-v1.7.0", "sveltos-v1.9.0", "kustomize-v1.9.4", "argocd-v3.5.1"]
            .map(str::to_owned);
    for name in recorded.into_iter().chain(WRITTEN.iter().map(|(name, _)| format!("written/{name}"))) {
        let mut replay = Replay::new(Policy::shipped().unwrap(), true);
        for (index, line) in recording(&name, |_| true).lines().enumerate() {
            replay.line(index + 1, line).await.unwrap();
        }
        let kinds = replay.asked_kinds();
        asked.extend(kinds.iter().map(|(group, kind)| resource_of(group, kind)));
        not_kept.extend(kinds.into_iter().filter(|(group, kind)| !can_be_asked_for(group, kind)));
    }
    assert!(asked.len() > 8, "{asked:?}");
    let left_out: Vec<_> = asked.difference(&readable).collect();
    assert!(left_out.is_empty(), "rules ask for {left_out:?}, which their role may not read");
    assert!(not_kept.is_empty(), "rules ask for {not_kept:?}, which a standalone server does not keep");
}

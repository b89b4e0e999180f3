//! The line of a transition, which is a contract, and `interlock changes` over files.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::binary::{interlock, interlock_in, stderr, stdout};
use crate::harness::fixtures::{body, creation, gzip, review, secret};
use crate::harness::standalone::Standalone;

/// The lines of transitions in a log, without what every line has, and with a mark in place of each time.
fn transitions(log: &str) -> Vec<Value> {
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).expect(line));
    let mut lines: Vec<_> = lines.filter(|line| line["message"] == "transition").collect();
    for line in &mut lines {
        for key in ["timestamp", "level", "target"] {
            assert!(line.as_object_mut().unwrap().remove(key).is_some(), "{key}: {line}");
        }
        let time = line["time"].as_str().unwrap();
        assert!(time.parse::<jiff::Timestamp>().is_ok() && time.len() == "2026-11-21T10:00:00.000Z".len(), "{time}");
        line["time"] = "T".into();
        if let Some(seconds) = line.get_mut("seconds") {
            assert!(seconds.as_u64().is_some_and(|seconds| seconds > 0), "{seconds}");
            *seconds = "S".into();
        }
    }
    lines
}

/// A server that has judged an install by alice, an upgrade by bob in the middle of it, and its end.
async fn printed() -> (String, String) {
    let server = Standalone::start(&["--log-format", "json"], &[]);
    let mut install = creation("pending-install");
    install["request"]["userInfo"]["groups"] = json!(["devs", "CN=ops,OU=it"]);
    let mut dry = install.clone();
    dry["request"]["dryRun"] = true.into();
    let upgrade = body("pending-upgrade").replacen("\"version\":1", "\"version\":2", 1);
    let mut second = secret("pending-upgrade", &gzip(upgrade.as_bytes()));
    second["metadata"]["name"] = "sh.helm.release.v1.web.v2".into();
    second["metadata"]["labels"]["version"] = "2".into();
    let mut second = review("CREATE", None, Some(&second));
    second["request"]["name"] = "sh.helm.release.v1.web.v2".into();
    second["request"]["userInfo"]["username"] = "bob".into();
    let mut before = secret("pending-install", &gzip(body("pending-install").as_bytes()));
    before["metadata"]["annotations"] = json!({"interlock.dev/holder": "alice"});
    let after = secret("deployed", &gzip(body("deployed").as_bytes()));
    let end = review("UPDATE", Some(&before), Some(&after));
    // A hook writes the record again.
    let again = review("UPDATE", Some(&after), Some(&after));
    for review in [dry, install, second, end, again] {
        server.post("/validate", review.to_string(), &[]).await;
    }
    let metrics = server.metrics().await;
    (server.stop(), metrics)
}

#[tokio::test]
async fn a_transition_is_one_line_with_these_fields_and_is_counted() {
    let (log, metrics) = printed().await;
    let wanted = [
        json!({
            "message": "transition", "transition": "install", "outcome": "allowed", "time": "T", "uid": "u1",
            "user.name": "alice", "groups": r#"["devs","CN=ops,OU=it"]"#, "storage": "Secret", "release": "shop/web", "revision": 1,
            "to": "pending-install", "chart": "shop-1.0.0",
        }),
        json!({
            "message": "transition", "transition": "upgrade", "outcome": "refused", "time": "T", "uid": "u1",
            "user.name": "bob", "storage": "Secret", "release": "shop/web", "revision": 2, "to": "pending-upgrade", "chart": "shop-1.0.0",
        }),
        json!({
            "message": "transition", "transition": "deployed", "outcome": "allowed", "time": "T", "uid": "u1",
            "user.name": "alice", "storage": "Secret", "release": "shop/web", "revision": 1, "from": "pending-install", "to": "deployed",
            "chart": "shop-1.0.0", "seconds": "S", "holder": "alice",
        }),
    ];
    assert_eq!(transitions(&log), wanted, "{log}");
    for counted in [
        r#"interlock_transitions_total{transition="install",verdict="allowed"} 1"#,
        r#"interlock_transitions_total{transition="upgrade",verdict="denied"} 1"#,
        r#"interlock_transitions_total{transition="deployed",verdict="allowed"} 1"#,
    ] {
        assert!(metrics.lines().any(|line| line == counted), "{counted}\n{metrics}");
    }
}

#[tokio::test]
async fn changes_reads_the_log_that_a_server_wrote() {
    let (log, _) = printed().await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("interlock.log");
    // Collectors put the time and the name of a pod before each line; the log of a panic is no JSON.
    let prefixed: String = log.lines().map(|line| format!("2026-11-21T10:00:00Z pod/interlock-0 {line}\n")).collect();
    fs::write(&file, format!("thread 'main' panicked\n{prefixed}{prefixed}")).unwrap();
    let list = |more: &[&str]| {
        let output = interlock(&[&["changes", "-o", "json"], more, &["--log", file.to_str().unwrap()]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let found: Value = serde_json::from_str(stdout(&output)).unwrap();
        assert_eq!(found["notRead"], json!([]));
        found["changes"].as_array().unwrap().clone()
    };
    let changes = list(&[]);
    let brief = |change: &Value| format!("{} {} {}", change["revision"], change["transition"], change["user"]);
    let all: Vec<_> = changes.iter().map(brief).collect();
    assert_eq!(all, [r#"1 "install" "alice""#, r#"1 "deployed" "alice""#]);
    let (mut install, seconds) = (changes[0].clone(), changes[1]["seconds"].as_u64());
    assert!(seconds.is_some_and(|seconds| seconds > 0));
    install["time"] = "T".into();
    let wanted = json!({
        "time": "T", "cluster": null, "namespace": "shop", "release": "web", "revision": 1, "storage": "Secret",
        "transition": "install", "from": null,
        "to": "pending-install", "outcome": "allowed", "user": "alice", "groups": ["devs", "CN=ops,OU=it"],
        "omittedGroups": 0, "holder": null, "ticket": null,
        "chart": "shop-1.0.0", "seconds": null, "override": null, "freeze": null, "source": "log", "certainty": "sure",
    });
    assert_eq!(install, wanted);
    let with_refused: Vec<_> = list(&["--refused"]).iter().map(brief).collect();
    assert_eq!(with_refused, [r#"1 "install" "alice""#, r#"2 "upgrade" "bob""#, r#"1 "deployed" "alice""#]);
    for (more, count) in [
        (&["web"][..], 2),
        (&["shop/web"], 2),
        (&["api"], 0),
        (&["-n", "shop"], 2),
        (&["-n", "other"], 0),
        (&["--since", "1h"], 2),
        (&["--since", "2099-01-01"], 0),
    ] {
        assert_eq!(list(more).len(), count, "{more:?}");
    }
}

/// An audit event of a write of a record.
fn event(verb: &str, status: &str, time: &str) -> Value {
    let record = secret(status, &gzip(body(status).as_bytes()));
    let mut event = json!({
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "auditID": "a", "verb": verb,
        "stage": "ResponseComplete", "requestURI": "/api/v1/namespaces/shop/secrets", "requestReceivedTimestamp": time,
        "user": {"username": "=cmd|' /C calc'!A0", "groups": []}, "responseStatus": {"code": 200},
        "objectRef": {"resource": "secrets", "namespace": "shop", "name": record["metadata"]["name"], "apiVersion": "v1"},
    });
    event["responseObject"] = record;
    event
}

#[test]
fn bad_lines_are_told_with_their_places_and_the_rest_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let install = event("create", "pending-install", "2026-11-21T10:00:00Z");
    let end = event("update", "deployed", "2026-11-21T10:00:07.5Z");
    let cut = &end.to_string()[..300];
    let text = format!("{install}\n\nno JSON\n{{\"of\":\"another kind\"}}\n{end}\n{cut}");
    let file = directory.path().join("audit.log.gz");
    fs::write(&file, gzip(text.as_bytes())).unwrap();
    let file = file.to_str().unwrap();
    let output = interlock(&["changes", "--audit-log", file, "-o", "csv"]);
    assert_eq!(output.status.code(), Some(0));
    let printed = stderr(&output);
    for place in [":3: the line is not a JSON object", ":6: it is no audit event"] {
        assert!(printed.contains(&format!("interlock: {file}{place}")), "{place}\n{printed}");
    }
    assert_eq!(printed.lines().count(), 2, "{printed}");
    let wanted = "time,namespace,release,revision,storage,transition,from,to,outcome,user,groups,omittedGroups,holder,chart,seconds,\
                  override,ticket,freeze,source,certainty,cluster\r\n\
                  2026-11-21T10:00:00Z,shop,web,1,Secret,install,,pending-install,allowed,\"'=cmd|' /C calc'!A0\",,0,,\
                  shop-1.0.0,,,,,audit,sure,\r\n\
                  2026-11-21T10:00:07.5Z,shop,web,1,Secret,deployed,pending-install,deployed,allowed,\"'=cmd|' /C calc'!A0\",,\
                  0,,shop-1.0.0,7,,,,audit,sure,\r\n";
    assert_eq!(stdout(&output), wanted);
    let table = interlock(&["changes", "--audit-log", file]);
    for cell in ["2026-11-21 10:00:07", "shop/web", "deployed (7 s)", "shop-1.0.0", "audit"] {
        assert!(stdout(&table).contains(cell), "{cell}\n{}", stdout(&table));
    }
}

#[test]
fn standard_input_is_read_and_files_without_a_change_are_told() {
    let mut command = interlock_in("");
    command.args(["changes", "--audit-log", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let install = event("create", "pending-install", "2026-11-21T10:00:00Z");
    child.stdin.take().unwrap().write_all(format!("{install}\n").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && stdout(&output).contains("install"), "{}", stderr(&output));

    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (empty, text) = (file("empty", ""), file("text", "INFO transition: decided\nINFO more\n"));
    let line = json!({"level": "INFO", "message": "decided", "user": "alice", "name": "sh.helm.release.v1.web.v1"});
    let quiet = file("quiet", &format!("{line}\n").repeat(3));
    let audit = file("audit", &format!("{install}\n"));
    let cases: [(&[&str], i32, &str); 8] = [
        (&["--log", &quiet], 0, "no changes found"),
        (&["--log", &audit], 2, "none of its 1 lines is a line of Interlock's log"),
        (&["--audit-log", &quiet], 2, "nothing could be read"),
        (&["--log", &empty], 0, "no changes found"),
        (
            &["--log", &text],
            2,
            "none of its 2 lines is a line of Interlock's log. Give the log of `interlock serve` in the format json",
        ),
        (&["--audit-log", &text], 2, "nothing could be read"),
        (&["--audit-log", "nowhere.log"], 2, "failed to read nowhere.log"),
        (&["--audit-log", "-", "--log", "-"], 2, "standard input (-) can be read once only"),
    ];
    for (arguments, code, said) in cases {
        let output = interlock(&[&["changes"], arguments].concat());
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(said), "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn what_was_before_is_known_from_the_logs_of_other_api_servers_and_from_before_the_time_asked_for() {
    // The API servers of a cluster write a log each: the end is in the first, the start in the second.
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, event: Value| {
        let path = directory.path().join(name);
        fs::write(&path, format!("{event}\n")).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let first = file("a", event("update", "deployed", "2026-11-21T10:00:07Z"));
    let second = file("b", event("create", "pending-install", "2026-11-21T10:00:00Z"));
    let output =
        interlock(&["changes", "--since", "2026-11-21T10:00:01Z", "-o", "json", "--audit-log", &first, &second]);
    let found: Value = serde_json::from_str(stdout(&output)).unwrap();
    let [end] = found["changes"].as_array().unwrap().as_slice() else { panic!("{found}") };
    assert_eq!(
        (&end["from"], &end["seconds"], &end["certainty"]),
        (&json!("pending-install"), &json!(7), &json!("sure"))
    );
}

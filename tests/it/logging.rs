//! The log: one line a decision, in both formats, and never the content of an object.

use serde_json::{Value, json};

use crate::harness::fixtures::review;
use crate::harness::secrets::{SECRET, record, refused_edits, tell_secrets};
use crate::harness::standalone::Standalone;

#[tokio::test]
async fn a_decision_is_one_line_of_json_by_flag_and_objects_stay_out_of_the_log_at_every_level() {
    let server = Standalone::start(&["--log-format", "json"], &[("INTERLOCK_LOG", "trace")]);
    let decided = tell_secrets(&server, &[]).await;
    let log = server.stop();
    assert!(decided >= 6, "{log}");
    assert!(!log.contains(SECRET), "{}", log.lines().find(|line| line.contains(SECRET)).unwrap_or_default());
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let decisions: Vec<_> = lines.iter().filter(|line| line["message"] == "decided").collect();
    assert_eq!(decisions.len(), decided);
    assert!(decisions.iter().any(|line| line["verdict"] == "denied" && line["release"] == "shop/web"), "{log}");
}

#[tokio::test]
async fn a_refused_edit_names_fields_and_indices_and_neither_keys_nor_items() {
    let server = Standalone::start(&[], &[]);
    for status in ["pending-install", "deployed"] {
        let old = (status == "deployed").then(|| record("pending-install"));
        let operation = if old.is_some() { "UPDATE" } else { "CREATE" };
        let write = review(operation, old.as_ref(), Some(&record(status)));
        server.post("/validate", write.to_string(), &[]).await;
    }
    let mut printed = String::new();
    for edit in refused_edits() {
        let reply: Value = serde_json::from_slice(&server.post("/validate", edit.to_string(), &[]).await).unwrap();
        assert_eq!(reply["response"]["allowed"], false, "{reply}");
        printed += reply["response"]["status"]["message"].as_str().unwrap();
    }
    assert!(!printed.contains(SECRET), "{printed}");
    for field in ["spec.tokens[0]", "spec.items[0]", "containers[web].env[PASSWORD]", "data.password"] {
        assert!(printed.contains(field), "no {field} in {printed}");
    }
}

/// Everybody who reaches the admin port may read them.
#[tokio::test]
async fn metrics_name_no_release_no_user_and_no_content() {
    let server = Standalone::start(&[], &[]);
    tell_secrets(&server, &[]).await;
    let metrics = server.metrics().await;
    assert!(metrics.contains(r#"verdict="denied""#), "{metrics}");
    for private in [SECRET, "shop", "\"web", "sh.helm.release", "alice", "system:"] {
        assert!(!metrics.contains(private), "{private} is in\n{metrics}");
    }
    server.stop();
}

#[tokio::test]
async fn text_lines_without_a_terminal_have_no_colours() {
    let server = Standalone::start(&[], &[("INTERLOCK_LOG_FORMAT", "text")]);
    let review = review("CREATE", None, Some(&record("pending-install")));
    server.post("/validate", review.to_string(), &[]).await;
    let log = server.stop();
    assert!(log.lines().any(|line| line.contains("transition") && line.contains(r#"outcome="allowed""#)), "{log}");
    assert!(!log.contains('\u{1b}') && !log.contains('{'), "{log}");
}

/// Nearly every review ends so. A refusal has its line at every level that is meant for people.
#[tokio::test]
async fn only_level_debug_has_a_line_for_what_is_admitted_without_a_finding() {
    let install = review("CREATE", None, Some(&record("pending-install")));
    let mut ordinary = install.clone();
    ordinary["request"]["kind"] = json!({"group": "apps", "version": "v1", "kind": "Deployment"});
    ordinary["request"]["resource"] = json!({"group": "apps", "version": "v1", "resource": "deployments"});
    let refused = review("CREATE", None, Some(&record("superseded")));
    for (level, lines) in [("info", 1), ("debug", 3)] {
        let server = Standalone::start(&[], &[("INTERLOCK_LOG", level)]);
        for review in [&ordinary, &refused, &install] {
            server.post("/validate", review.to_string(), &[]).await;
        }
        let log = server.stop();
        assert_eq!(log.matches(r#""message":"decided""#).count(), lines, "{level}: {log}");
        assert!(log.contains(r#""verdict":"denied""#), "{level}: {log}");
    }
}

/// For the logs and metrics of many clusters in one place.
#[tokio::test]
async fn the_name_of_the_cluster_is_on_every_line_and_every_metric() {
    let name = "arn:aws:eks:eu-west-1:111122223333:cluster/prod";
    let server = Standalone::start(&["--cluster-name", name], &[("INTERLOCK_LOG", "debug")]);
    let review = review("CREATE", None, Some(&record("pending-install")));
    server.post("/validate", review.to_string(), &[]).await;
    let metrics = server.metrics().await;
    for sample in metrics.lines().filter(|line| !line.starts_with('#')) {
        assert!(sample.contains(&format!(r#"cluster="{name}""#)), "{sample}");
    }
    let log = server.stop();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    assert!(lines.iter().all(|line| line["k8s.cluster.name"] == name), "{log}");
    let decided = lines.iter().find(|line| line["message"] == "decided").unwrap();
    assert_eq!((&decided["k8s.namespace.name"], &decided["user.name"]), (&"shop".into(), &"alice".into()));
}

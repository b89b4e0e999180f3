//! What only Go's parsers read in a record: objects behind unusual line ends, and hooks behind unusual keys.

use serde_json::{Value, json};

use super::objects::{image, web};
use super::scenario::{Cluster, Rec, rec};

fn release(manifest: &'static str) -> Cluster {
    let mut cluster = Cluster::new();
    cluster.given_record(&Rec { manifest, ..rec(5, "deployed") });
    cluster
}

const SPEC: &str = "spec: {template: {spec: {containers: [{name: web, image: 'nginx:1'}]}}}";

#[test]
fn an_edit_of_an_object_that_only_go_finds_is_refused_and_an_undeclared_one_passes() {
    for manifest in [
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nSPEC\n",
        "# a\u{85}apiVersion: apps/v1\u{2028}kind: Deployment\u{2029}metadata: {name: web}\nSPEC\n",
        "x: \"\nkind: Secret\n\"\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nSPEC\n",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  namespace: ~\non: {0x10: y}\nSPEC\n",
        "{\"kind\":\"A\",\"metadata\":{\"name\":\"a\"}}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nSPEC\n",
        "kind: List\nitems:\n- kind: List\n  items:\n  - {apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, SPEC}\n",
    ] {
        let manifest: &'static str = Box::leak(manifest.replace("SPEC", SPEC).into_boxed_str());
        let mut cluster = release(manifest);
        assert_eq!(cluster.update_objects("bob", web(), image("evil")), Err(vec!["manual-edit"]), "{manifest}");
        let mut labelled = web();
        labelled["metadata"]["labels"]["team"] = "blue".into();
        assert_eq!(cluster.update_objects("bob", web(), labelled), Ok(()), "{manifest}");
    }
}

#[test]
fn an_object_whose_document_nobody_can_read_is_refused_as_if_it_declared_everything() {
    let broken = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec: [\n";
    let deep: &'static str = Box::leak(
        format!(
            "kind: Deployment\napiVersion: apps/v1\nmetadata:\n  name: web\nx: {}1{}\n",
            "[".repeat(300),
            "]".repeat(300)
        )
        .into_boxed_str(),
    );
    for manifest in [broken, deep] {
        let mut labelled = web();
        labelled["metadata"]["labels"]["team"] = "blue".into();
        let mut cluster = release(manifest);
        assert_eq!(cluster.update_objects("bob", web(), labelled.clone()), Err(vec!["manual-edit"]));
        assert_eq!(cluster.delete_object("bob", web()), Err(vec!["manual-delete"]));
        let text = cluster.messages_for("bob", web(), labelled);
        assert!(text.contains("cannot be parsed") && text.contains("all of it counts as declared"), "{text}");
        // Objects that are not in the chart, and writes without a change, are allowed.
        assert_eq!(cluster.update_objects("bob", web(), web()), Ok(()));
        let mut other = web();
        other["metadata"]["name"] = "front".into();
        let mut edited = other.clone();
        edited["spec"]["replicas"] = 7.into();
        assert_eq!(cluster.update_objects("bob", other, edited), Ok(()));
    }
}

#[test]
fn a_key_that_only_go_matches_counts_as_a_changed_hook() {
    let record = rec(5, "deployed");
    let hook = |more: Value| {
        let mut hook =
            json!({"name": "a", "kind": "Job", "path": "a", "manifest": "kind: Job", "events": ["pre-delete"]});
        hook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut body = record.body();
        body["hooks"] = json!([hook]);
        Rec { payload: Some(record.encoded(&body)), ..record.clone() }
    };
    let stored = hook(json!({}));
    let update = |new: &Rec| {
        let mut cluster = Cluster::new();
        cluster.given_record(&stored);
        cluster.update("mallory", &stored, new)
    };
    for key in ["Manifest", "manife\u{17f}t", "\u{212a}ind", "Events", "PATH"] {
        assert_eq!(update(&hook(json!({key: "evil"}))), Err(vec!["record-tampering"]), "{key}");
    }
    for fine in [json!({"later": "evil"}), json!({"last_run": {"phase": "Succeeded"}})] {
        assert_eq!(update(&hook(fine.clone())), Ok(()), "{fine}");
    }
}

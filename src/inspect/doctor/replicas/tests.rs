use serde_json::json;

use super::*;
use crate::inspect::doctor::fetch::Fetched;

fn pod(name: &str, node: &str, image: &str, restarts: u64) -> Value {
    json!({
        "metadata": {"name": name}, "spec": {"nodeName": node, "containers": [{"name": "proxy", "image": name}, {"name": "interlock", "image": image}]},
        "status": {"containerStatuses": [{
            "name": "interlock", "restartCount": restarts, "lastState": {"terminated": {"reason": "OOMKilled"}},
        }]},
    })
}

fn healthy() -> Snapshot {
    let image = format!("interlock:{}", env!("CARGO_PKG_VERSION"));
    let labels = json!({"app.kubernetes.io/name": "interlock"});
    Snapshot {
        deployment: Fetched::Known(json!({
            "spec": {"replicas": 2, "template": {"metadata": {"labels": labels}}},
            "status": {"readyReplicas": 2, "updatedReplicas": 2},
        })),
        pods: Fetched::Known(
            json!({"items": [pod("interlock-a", "one", &image, 0), pod("interlock-b", "two", &image, 0)]}),
        ),
        budgets: Fetched::Known(json!({"items": [{"spec": {"selector": {"matchLabels": labels}}}]})),
        lease: Fetched::Known(
            json!({"spec": {"holderIdentity": "interlock-a-7", "renewTime": "2026-11-21T09:59:55.000000Z"}}),
        ),
        nodes: Fetched::Known(json!({"items": [{"metadata": {"name": "one"}}, {"metadata": {"name": "two"}}]})),
        ..Snapshot::unread()
    }
}

fn described(change: impl FnOnce(&mut Snapshot)) -> Vec<(&'static str, String)> {
    let mut snapshot = healthy();
    change(&mut snapshot);
    diagnose(&snapshot)
        .unwrap()
        .into_iter()
        .chain(leader(&snapshot).unwrap())
        .map(|check| (check.state.as_str(), check.evidence))
        .collect()
}

fn known(fetched: &mut Fetched) -> &mut Value {
    match fetched {
        Fetched::Known(value) => value,
        _ => panic!("it is known"),
    }
}

#[test]
fn two_ready_replicas_and_a_leader_are_fine() {
    let described = described(|_| {});
    assert_eq!(described.iter().map(|(state, _)| *state).collect::<Vec<_>>(), ["ok", "ok"], "{described:?}");
}

#[test]
fn one_node_and_pods_that_are_over_are_no_finding() {
    let described = described(|it| {
        it.nodes = Fetched::Known(json!({"items": [{"metadata": {"name": "one"}}]}));
        known(&mut it.pods)["items"][1]["spec"]["nodeName"] = "one".into();
        let mut evicted = pod("interlock-c", "two", "other:0.0.1", 9);
        evicted["status"]["phase"] = "Failed".into();
        known(&mut it.pods)["items"].as_array_mut().unwrap().push(evicted);
    });
    assert_eq!(described.iter().map(|(state, _)| *state).collect::<Vec<_>>(), ["ok", "note", "ok"], "{described:?}");
}

#[test]
fn problems_of_replicas_and_their_leader_are_reported() {
    let renewed = |at: &'static str| move |it: &mut Snapshot| known(&mut it.lease)["spec"]["renewTime"] = at.into();
    type Change = Box<dyn FnOnce(&mut Snapshot)>;
    let cases: [(Change, &str, &str); 12] = [
        (Box::new(|it| it.deployment = Fetched::Absent), "high", "no Deployment interlock in guard"),
        (Box::new(|it| known(&mut it.deployment)["status"] = json!({})), "high", "0 of 2 replicas are ready"),
        (Box::new(|it| known(&mut it.deployment)["status"]["readyReplicas"] = 1.into()), "medium", "1 of 2"),
        (Box::new(|it| known(&mut it.deployment)["spec"]["replicas"] = 1.into()), "medium", "one replica"),
        (Box::new(|it| it.budgets = Fetched::Known(json!({"items": []}))), "low", "no PodDisruptionBudget"),
        (
            Box::new(|it| known(&mut it.pods)["items"][1] = pod("interlock-b", "one", "other:0.0.1", 0)),
            "medium",
            "different images",
        ),
        (Box::new(|it| known(&mut it.pods)["items"][1]["spec"]["nodeName"] = "one".into()), "low", "on node one"),
        (
            Box::new(|it| {
                known(&mut it.pods)["items"][1] =
                    pod("interlock-b", "two", &format!("interlock:{}", env!("CARGO_PKG_VERSION")), 9)
            }),
            "low",
            "interlock-b has restarted 9 times; last reason: OOMKilled",
        ),
        (Box::new(|it| it.lease = Fetched::Absent), "medium", "no Lease"),
        (Box::new(renewed("2026-11-21T09:00:00Z")), "medium", "3600 s ago"),
        (Box::new(renewed("2026-11-21T10:01:00Z")), "medium", "60 s ahead"),
        (
            Box::new(|it| known(&mut it.lease)["spec"]["holderIdentity"] = "laptop-1".into()),
            "low",
            "laptop-1 leads, and is no pod",
        ),
    ];
    for (change, state, says) in cases {
        let described = described(change);
        assert!(described.iter().any(|(is, text)| *is == state && text.contains(says)), "{says}: {described:?}");
    }
}

#[test]
fn a_tag_is_neither_a_port_nor_a_digest() {
    for (image, wanted) in [("a/interlock:1", "1"), ("host:5000/interlock", "latest"), ("host:5000/i:2@sha256:0", "2")]
    {
        assert_eq!(tag(image), wanted);
    }
}

//! The replicas: their number, their version, their nodes, and their leader.

use std::collections::BTreeSet;

use interlock_engine::severity::Severity::{High, Low, Medium};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::diagnosis::Diagnosis;
use super::fetch::Fetched;
use super::selector::{label_of, matches};
use super::snapshot::Snapshot;

const REPLICAS_TOPIC: &str = "replicas";
const LEADER_TOPIC: &str = "leader";

/// A leader renews its Lease every ten seconds. The Lease expires after fifteen.
const LEASE_STALE_AFTER: SignedDuration = SignedDuration::from_secs(45);

/// The number of restarts from which a replica is reported.
const MANY_RESTARTS: u64 = 3;

pub(super) fn diagnose(snapshot: &Snapshot) -> Vec<Diagnosis> {
    let mut checks = deployment(snapshot);
    checks.extend(pods(snapshot));
    checks.push(leader(snapshot, snapshot.clocks.0));
    checks
}

fn deployment(snapshot: &Snapshot) -> Vec<Diagnosis> {
    let namespace = &snapshot.namespace;
    let deployment = match &snapshot.deployment {
        Fetched::Known(deployment) => deployment,
        Fetched::Absent => {
            let evidence = format!("there is no Deployment interlock in {namespace}");
            let fix = format!(
                "install it, or name its namespace with -n:\nkubectl get deployments -A -l \
                    app.kubernetes.io/name=interlock\nkubectl apply -k manifests/base   # into {namespace}"
            );
            return vec![Diagnosis::found(REPLICAS_TOPIC, High, evidence, fix)];
        }
        Fetched::Unknown(why) => return vec![Diagnosis::skipped(REPLICAS_TOPIC, why)],
    };
    let (wanted, status) = (deployment["spec"]["replicas"].as_u64().unwrap_or(1), &deployment["status"]);
    let number = |field: &str| status[field].as_u64().unwrap_or_default();
    let (ready, updated) = (number("readyReplicas"), number("updatedReplicas"));
    let look = format!(
        "kubectl -n {namespace} describe pods -l app.kubernetes.io/name=interlock\nkubectl -n {namespace} logs \
            deployment/interlock"
    );
    let mut checks = Vec::new();
    if ready < wanted || updated < wanted {
        let severity = if ready == 0 { High } else { Medium };
        let evidence = format!("{ready} of {wanted} replicas are ready, {updated} of the newest template");
        checks.push(Diagnosis::found(REPLICAS_TOPIC, severity, evidence, look));
    } else if wanted < 2 {
        let fix = format!("kubectl -n {namespace} scale deployment/interlock --replicas=2\n(or by the chart's values)");
        checks.push(Diagnosis::found(REPLICAS_TOPIC, Medium, "one replica: its restart is an outage", fix));
    } else {
        checks.push(Diagnosis::ok(REPLICAS_TOPIC, format!("{ready} of {wanted} replicas are ready")));
    }
    let labels = &deployment["spec"]["template"];
    match snapshot.budgets.items() {
        Err(why) => checks.push(Diagnosis::skipped(REPLICAS_TOPIC, why)),
        Ok(budgets) => {
            if wanted >= 2 && !budgets.iter().any(|it| matches(&it["spec"]["selector"], |key| label_of(labels, key))) {
                let fix = format!(
                    "kubectl -n {namespace} create poddisruptionbudget interlock \
                        --selector=app.kubernetes.io/name=interlock --max-unavailable=1"
                );
                checks.push(Diagnosis::found(
                    REPLICAS_TOPIC,
                    Low,
                    "no PodDisruptionBudget: a drain may take every replica at once",
                    fix,
                ));
            }
        }
    }
    checks
}

fn pods(snapshot: &Snapshot) -> Vec<Diagnosis> {
    // If the Deployment is missing or cannot be read, its check reports that.
    let (Ok(pods), Fetched::Known(_)) = (snapshot.pods.items(), &snapshot.deployment) else { return Vec::new() };
    let pods: Vec<_> = pods.iter().filter(|pod| is_live(pod)).collect();
    let mut checks = Vec::new();
    checks.extend(images(&pods, &snapshot.namespace));
    checks.extend(spread(&pods, snapshot));
    checks.extend(pods.iter().filter_map(|pod| restarts(pod, &snapshot.namespace)));
    checks
}

/// Whether a pod is a replica. Evicted, completed and deleted pods are not.
fn is_live(pod: &Value) -> bool {
    let is_over = ["Failed", "Succeeded"].map(Value::from).contains(&pod["status"]["phase"]);
    pod["metadata"]["deletionTimestamp"].is_null() && !is_over
}

/// Whether all replicas run one image, of the version of this binary.
fn images(pods: &[&Value], namespace: &str) -> Option<Diagnosis> {
    let images: BTreeSet<_> = pods.iter().filter_map(|pod| image(pod)).collect();
    let tags: BTreeSet<_> = images.iter().map(|image| tag(image)).collect();
    let version = env!("CARGO_PKG_VERSION");
    if images.len() > 1 {
        let images: Vec<_> = images.iter().map(String::as_str).collect();
        let evidence = format!("replicas run different images: {}", images.join(", "));
        let fix = format!("kubectl -n {namespace} rollout status deployment/interlock");
        return Some(Diagnosis::found(REPLICAS_TOPIC, Medium, evidence, fix));
    }
    let tag = tags.iter().next().filter(|tag| tag.trim_start_matches('v') != version)?;
    let evidence = format!("replicas run {tag:?}, and this binary is {version}: comparisons may be wrong");
    Some(Diagnosis::note(REPLICAS_TOPIC, evidence))
}

fn image(pod: &Value) -> Option<String> {
    let mut containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    // An injected sidecar has another image.
    let container = containers.find(|it| it["name"] == "interlock")?;
    Some(container["image"].as_str()?.to_owned())
}

/// Whether the replicas run on several nodes.
fn spread(pods: &[&Value], snapshot: &Snapshot) -> Option<Diagnosis> {
    let namespace = &snapshot.namespace;
    let nodes: BTreeSet<_> = pods.iter().filter_map(|pod| pod["spec"]["nodeName"].as_str()).collect();
    let node = nodes.first().filter(|_| pods.len() > 1 && nodes.len() == 1)?;
    if !snapshot.nodes.items().is_ok_and(|nodes| nodes.len() > 1) {
        let evidence = format!("all {} replicas run on one node, and no other node is known", pods.len());
        return Some(Diagnosis::note(REPLICAS_TOPIC, evidence));
    }
    let evidence = format!("all {} replicas run on node {node}", pods.len());
    let fix = format!(
        "kubectl -n {namespace} rollout restart deployment/interlock\n(its topologySpreadConstraints spread new pods, if \
         other nodes have room)"
    );
    Some(Diagnosis::found(REPLICAS_TOPIC, Low, evidence, fix))
}

/// Whether a replica has restarted often.
fn restarts(pod: &Value, namespace: &str) -> Option<Diagnosis> {
    let statuses = pod["status"]["containerStatuses"].as_array().into_iter().flatten();
    let statuses: Vec<_> = statuses.filter(|it| it["name"] == "interlock").collect();
    let restarts: u64 = statuses.iter().filter_map(|it| it["restartCount"].as_u64()).sum();
    if restarts < MANY_RESTARTS {
        return None;
    }
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let why = statuses.iter().find_map(|it| it["lastState"]["terminated"]["reason"].as_str());
    let why = why.unwrap_or("unknown");
    let evidence = format!("{name} has restarted {restarts} times; last reason: {why}");
    Some(Diagnosis::found(REPLICAS_TOPIC, Low, evidence, format!("kubectl -n {namespace} logs {name} --previous")))
}

/// The tag of an image.
fn tag(image: &str) -> &str {
    let name = image.rsplit('/').next().unwrap_or(image);
    let name = name.split('@').next().unwrap_or(name);
    name.split_once(':').map_or("latest", |(_, tag)| tag)
}

fn leader(snapshot: &Snapshot, now: Timestamp) -> Diagnosis {
    let namespace = &snapshot.namespace;
    let lease = match &snapshot.lease {
        Fetched::Known(lease) => lease,
        Fetched::Absent => {
            let fix = format!(
                "kubectl -n {namespace} logs deployment/interlock | grep -i lease\n(the role interlock-leader lets \
                    replicas make it)"
            );
            return Diagnosis::found(
                LEADER_TOPIC,
                Medium,
                format!("there is no Lease interlock-leader in {namespace}: nobody rotates or reports"),
                fix,
            );
        }
        Fetched::Unknown(why) => return Diagnosis::skipped(LEADER_TOPIC, why),
    };
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
    let renewed: Option<Timestamp> = lease["spec"]["renewTime"].as_str().and_then(|time| time.parse().ok());
    let restart = format!("kubectl -n {namespace} rollout restart deployment/interlock");
    let Some(renewed) = renewed.filter(|_| !holder.is_empty()) else {
        return Diagnosis::found(LEADER_TOPIC, Medium, "nobody holds the Lease interlock-leader", restart);
    };
    let age = now.duration_since(renewed);
    if age > LEASE_STALE_AFTER {
        let evidence = format!("{holder} renewed the Lease interlock-leader last {} s ago", age.as_secs());
        return Diagnosis::found(LEADER_TOPIC, Medium, evidence, restart);
    }
    // The API server's Date, and so `now`, has whole seconds.
    if age < SignedDuration::from_secs(-5) {
        let evidence = format!("the clock of {holder} is {} s ahead of the API server's", -age.as_secs());
        return Diagnosis::found(LEADER_TOPIC, Medium, evidence, "set the clock of its node right (NTP)");
    }
    let pods = snapshot.pods.items().unwrap_or_default();
    let leads = pods.iter().any(|pod| pod["metadata"]["name"].as_str().is_some_and(|name| holder.starts_with(name)));
    if matches!(snapshot.deployment, Fetched::Known(_)) && !pods.is_empty() && !leads {
        let evidence = format!("{holder} leads, and is no pod of the Deployment");
        return Diagnosis::found(
            LEADER_TOPIC,
            Low,
            evidence,
            "end the other Interlock, or give it a namespace of its own",
        );
    }
    Diagnosis::ok(LEADER_TOPIC, format!("{holder} leads, renewed {} s ago", age.as_secs().max(0)))
}

#[cfg(test)]
mod tests;

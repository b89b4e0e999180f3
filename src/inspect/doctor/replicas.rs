//! The replicas: their number, their version, their nodes, and their leader.

use std::collections::BTreeSet;

use interlock_engine::severity::Severity::{High, Low, Medium};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::diagnosis::{Checked, Diagnosis};
use super::selector::{each, selects};
use super::snapshot::Snapshot;

/// A leader renews its Lease every ten seconds. The Lease expires after fifteen.
const LEASE_STALE_AFTER: SignedDuration = SignedDuration::from_secs(45);

/// The number of restarts from which a replica is reported.
const MANY_RESTARTS: u64 = 3;

pub(super) fn diagnose(snapshot: &Snapshot) -> Checked<Vec<Diagnosis>> {
    let namespace = &snapshot.namespace;
    let Some(deployment) = snapshot.deployment.object()? else {
        let evidence = format!("there is no Deployment interlock in {namespace}");
        let fix = format!(
            "install it, or name its namespace with -n:\nkubectl get deployments -A -l \
             app.kubernetes.io/name=interlock\nkubectl apply -k manifests/base   # into {namespace}"
        );
        return Ok(vec![Diagnosis::found(High, evidence, fix)]);
    };
    let mut checks = vec![numbers(deployment, namespace)];
    checks.extend(budget(deployment, snapshot));
    let pods: Vec<_> = snapshot.pods.items().unwrap_or_default().iter().filter(|pod| is_live(pod)).collect();
    checks.extend(images(&pods, namespace));
    checks.extend(spread(&pods, snapshot));
    checks.extend(pods.iter().filter_map(|pod| restarts(pod, namespace)));
    Ok(checks)
}

fn wanted(deployment: &Value) -> u64 {
    deployment["spec"]["replicas"].as_u64().unwrap_or(1)
}

/// Whether enough replicas are ready.
fn numbers(deployment: &Value, namespace: &str) -> Diagnosis {
    let [ready, updated] = ["readyReplicas", "updatedReplicas"].map(|field| &deployment["status"][field]);
    let [ready, updated] = [ready, updated].map(|number| number.as_u64().unwrap_or_default());
    let wanted = wanted(deployment);
    if ready < wanted || updated < wanted {
        let severity = if ready == 0 { High } else { Medium };
        let evidence = format!("{ready} of {wanted} replicas are ready, {updated} of the newest template");
        let look = format!(
            "kubectl -n {namespace} describe pods -l app.kubernetes.io/name=interlock\nkubectl -n {namespace} logs \
             deployment/interlock"
        );
        return Diagnosis::found(severity, evidence, look);
    }
    if wanted < 2 {
        let fix = format!("kubectl -n {namespace} scale deployment/interlock --replicas=2\n(or by the chart's values)");
        return Diagnosis::found(Medium, "one replica: its restart is an outage", fix);
    }
    Diagnosis::ok(format!("{ready} of {wanted} replicas are ready"))
}

/// Whether a PodDisruptionBudget covers several replicas.
fn budget(deployment: &Value, snapshot: &Snapshot) -> Option<Diagnosis> {
    let budgets = match snapshot.budgets.items() {
        Ok(budgets) => budgets,
        Err(why) => return Some(Diagnosis::skipped(why)),
    };
    let template = &deployment["spec"]["template"];
    if wanted(deployment) < 2 || budgets.iter().any(|it| selects(&it["spec"]["selector"], template)) {
        return None;
    }
    let fix = format!(
        "kubectl -n {} create poddisruptionbudget interlock --selector=app.kubernetes.io/name=interlock \
         --max-unavailable=1",
        snapshot.namespace
    );
    Some(Diagnosis::found(Low, "no PodDisruptionBudget: a drain may take every replica at once", fix))
}

/// Whether a pod is a replica. Evicted, completed and deleted pods are not.
fn is_live(pod: &Value) -> bool {
    let is_over = ["Failed", "Succeeded"].map(Value::from).contains(&pod["status"]["phase"]);
    pod["metadata"]["deletionTimestamp"].is_null() && !is_over
}

/// Whether all replicas run one image, of the version of this binary.
fn images(pods: &[&Value], namespace: &str) -> Option<Diagnosis> {
    let images: BTreeSet<_> = pods.iter().filter_map(|pod| image(pod)).collect();
    let version = env!("CARGO_PKG_VERSION");
    if images.len() > 1 {
        let images: Vec<_> = images.into_iter().collect();
        let evidence = format!("replicas run different images: {}", images.join(", "));
        let fix = format!("kubectl -n {namespace} rollout status deployment/interlock");
        return Some(Diagnosis::found(Medium, evidence, fix));
    }
    let tag = images.first().map(|image| tag(image)).filter(|tag| tag.trim_start_matches('v') != version)?;
    Some(Diagnosis::note(format!("replicas run {tag:?}, and this binary is {version}: comparisons may be wrong")))
}

fn image(pod: &Value) -> Option<&str> {
    // An injected sidecar has another image.
    each(&pod["spec"]["containers"]).find(|it| it["name"] == "interlock")?["image"].as_str()
}

/// Whether the replicas run on several nodes.
fn spread(pods: &[&Value], snapshot: &Snapshot) -> Option<Diagnosis> {
    let (namespace, count) = (&snapshot.namespace, pods.len());
    let nodes: BTreeSet<_> = pods.iter().filter_map(|pod| pod["spec"]["nodeName"].as_str()).collect();
    let node = nodes.first().filter(|_| count > 1 && nodes.len() == 1)?;
    if !snapshot.nodes.items().is_ok_and(|nodes| nodes.len() > 1) {
        let evidence = format!("all {count} replicas run on one node, and no other node is known");
        return Some(Diagnosis::note(evidence));
    }
    let fix = format!(
        "kubectl -n {namespace} rollout restart deployment/interlock\n(its topologySpreadConstraints spread new pods, if \
         other nodes have room)"
    );
    Some(Diagnosis::found(Low, format!("all {count} replicas run on node {node}"), fix))
}

/// Whether a replica has restarted often.
fn restarts(pod: &Value, namespace: &str) -> Option<Diagnosis> {
    let statuses: Vec<_> =
        each(&pod["status"]["containerStatuses"]).filter(|status| status["name"] == "interlock").collect();
    let restarts: u64 = statuses.iter().filter_map(|it| it["restartCount"].as_u64()).sum();
    if restarts < MANY_RESTARTS {
        return None;
    }
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let why = statuses.iter().find_map(|it| it["lastState"]["terminated"]["reason"].as_str()).unwrap_or("unknown");
    let evidence = format!("{name} has restarted {restarts} times; last reason: {why}");
    Some(Diagnosis::found(Low, evidence, format!("kubectl -n {namespace} logs {name} --previous")))
}

/// The tag of an image.
fn tag(image: &str) -> &str {
    let name = image.rsplit('/').next().unwrap_or(image);
    let name = name.split('@').next().unwrap_or(name);
    name.split_once(':').map_or("latest", |(_, tag)| tag)
}

pub(super) fn leader(snapshot: &Snapshot) -> Checked {
    let namespace = &snapshot.namespace;
    let Some(lease) = snapshot.lease.object()? else {
        let evidence = format!("there is no Lease interlock-leader in {namespace}: nobody rotates or reports");
        let fix = format!(
            "kubectl -n {namespace} logs deployment/interlock | grep -i lease\n(the role interlock-leader lets replicas make \
             it)"
        );
        return Ok(Diagnosis::found(Medium, evidence, fix));
    };
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
    let renewed: Option<Timestamp> = lease["spec"]["renewTime"].as_str().and_then(|time| time.parse().ok());
    let restart = format!("kubectl -n {namespace} rollout restart deployment/interlock");
    let Some(renewed) = renewed.filter(|_| !holder.is_empty()) else {
        return Ok(Diagnosis::found(Medium, "nobody holds the Lease interlock-leader", restart));
    };
    let age = snapshot.clocks.0.duration_since(renewed);
    let seconds = age.as_secs();
    if age > LEASE_STALE_AFTER {
        let evidence = format!("{holder} renewed the Lease interlock-leader last {seconds} s ago");
        return Ok(Diagnosis::found(Medium, evidence, restart));
    }
    // The API server's Date, and so `age`, has whole seconds.
    if age < SignedDuration::from_secs(-5) {
        let evidence = format!("the clock of {holder} is {} s ahead of the API server's", -seconds);
        return Ok(Diagnosis::found(Medium, evidence, "set the clock of its node right (NTP)"));
    }
    let pods = snapshot.pods.items().unwrap_or_default();
    let leads = pods.iter().any(|pod| pod["metadata"]["name"].as_str().is_some_and(|name| holder.starts_with(name)));
    let has_deployment = snapshot.deployment.object().is_ok_and(|it| it.is_some());
    if has_deployment && !pods.is_empty() && !leads {
        let evidence = format!("{holder} leads, and is no pod of the Deployment");
        let fix = "end the other Interlock, or give it a namespace of its own";
        return Ok(Diagnosis::found(Low, evidence, fix));
    }
    Ok(Diagnosis::ok(format!("{holder} leads, renewed {} s ago", seconds.max(0))))
}

#[cfg(test)]
mod tests;

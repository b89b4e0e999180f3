//! Whether the API server reaches us and we judge: two dry runs of a record's creation, which write nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::Request;
use kube::client::Body;
use kube::{Client, Error};
use serde_json::{Value, json};
use std::io::Write;
use tokio::time::timeout;

use super::check::Check;
use super::selector::{label_of, matches};
use super::{Cluster, PATIENCE};
use crate::engine::facts::{Actor, ActorKind};
use crate::engine::policy::{LoadedPolicies, Mode, Scope};
use crate::engine::release::stamps::HOLDER;
use crate::engine::rules::records::record_integrity;
use crate::inspect::scan::Severity::High;

const STAMPED: &str = "stamps";
const JUDGED: &str = "judges";

/// The release that never is.
const RELEASE: &str = "interlock-doctor";

/// What is wrong, unless the policy wants it so.
const ADMITTED: &str = "a record that contradicts itself was admitted";

/// Entries that the dry runs go through.
const JUDGING: &str = "create-delete.records.interlock.dev";

/// What the API server answered to a dry run.
#[derive(Debug)]
struct Answer {
    code: u16,
    message: String,
    /// The Warning headers, whole.
    warnings: String,
    holder: Option<String>,
}

pub(super) async fn checks(client: &Client, cluster: &Cluster) -> Vec<Check> {
    if let Err(why) = cluster.namespaces.items() {
        return vec![Check::skipped(JUDGED, why)];
    }
    let Some(namespace) = guarded(cluster) else {
        return vec![Check::skipped(JUDGED, "no namespace is guarded, so there is nowhere to try it")];
    };
    // In order: an install that begins. And one whose label contradicts its body, which no client writes.
    let good = ask(client, &namespace, "pending-install", "pending-install").await;
    let bad = ask(client, &namespace, "pending-install", "deployed").await;
    match (good, bad) {
        (Ok(good), Ok(bad)) => {
            let mut checks = judged(&good, &bad, &namespace, &cluster.namespace);
            if is_lenient(cluster, &namespace) {
                checks.iter_mut().filter(|check| check.evidence.starts_with(ADMITTED)).for_each(as_policy_has_it);
            }
            checks
        }
        (Err(why), _) | (_, Err(why)) => vec![Check::skipped(JUDGED, why)],
    }
}

/// Whether the policy of a namespace lets a record in that contradicts itself, and says nothing.
fn is_lenient(cluster: &Cluster, namespace: &str) -> bool {
    let Ok(Some(files)) = &cluster.policies else { return false };
    let Some(policies) = LoadedPolicies::of(files).policies else { return false };
    let actor = Actor { name: "", kind: ActorKind::Person, groups: &[] };
    let (release, kind, owner) = (Some(RELEASE), "Secret", Some("helm"));
    let scope = Scope { actor, namespace, release, kind, owner, creates_record: true };
    policies.of(namespace).mode(record_integrity::RULE.id(), &scope) < Mode::Warn
}

fn as_policy_has_it(check: &mut Check) {
    let evidence = "the policy admits a record that contradicts itself in silence, so whether we judge does not show";
    *check = Check::note(JUDGED, evidence);
}

/// A namespace whose records are guarded: `default` where it is.
fn guarded(cluster: &Cluster) -> Option<String> {
    let configuration = cluster.validating.named("interlock").ok().flatten();
    let entries = configuration.and_then(|it| it["webhooks"].as_array()).into_iter().flatten();
    let selector = entries.into_iter().find(|entry| entry["name"] == JUDGING).map(|entry| &entry["namespaceSelector"]);
    let namespaces = cluster.namespaces.items().ok()?;
    let is_active = |it: &&Value| it["metadata"]["deletionTimestamp"].is_null();
    let is_guarded = |it: &&Value| selector.is_none_or(|selector| matches(selector, |key| label_of(it, key)));
    let mut names =
        namespaces.iter().filter(is_active).filter(is_guarded).filter_map(|it| it["metadata"]["name"].as_str());
    let mut first = None;
    let default = names.by_ref().inspect(|name| first = first.or(Some(*name))).find(|name| *name == "default");
    default.or(first).map(str::to_owned)
}

/// Creates a record as a dry run.
async fn ask(client: &Client, namespace: &str, label: &str, status: &str) -> Result<Answer, String> {
    let path = format!("/api/v1/namespaces/{namespace}/secrets?dryRun=All&fieldManager=interlock-doctor");
    let record = record(namespace, label, status).map_err(|error| format!("failed to make a record: {error}"))?;
    let request = Request::post(path).header("content-type", "application/json").body(Body::from(record));
    let request = request.map_err(|error| error.to_string())?;
    let failed = |error: &Error| format!("the API server did not answer: {error}");
    let late = "the API server did not answer in time";
    let response = timeout(PATIENCE, client.send(request)).await.map_err(|_| late)?.map_err(|error| failed(&error))?;
    let code = response.status().as_u16();
    let warnings = response.headers().get_all("warning").iter().filter_map(|it| it.to_str().ok());
    let warnings = warnings.collect::<Vec<_>>().join("\n");
    let body = timeout(PATIENCE, http_body_util::BodyExt::collect(response.into_body())).await.map_err(|_| late)?;
    let body: Value = serde_json::from_slice(&body.map_err(|error| failed(&error))?.to_bytes()).unwrap_or_default();
    Ok(Answer {
        code,
        message: body["message"].as_str().unwrap_or_default().to_owned(),
        warnings,
        holder: body["metadata"]["annotations"][HOLDER].as_str().map(str::to_owned),
    })
}

fn record(namespace: &str, label: &str, status: &str) -> std::io::Result<Vec<u8>> {
    let body = json!({
        "name": RELEASE, "version": 1, "namespace": namespace, "info": {"status": status},
        "chart": {"metadata": {"name": RELEASE, "version": "0.0.0"}},
    });
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(body.to_string().as_bytes())?;
    let stored = STANDARD.encode(STANDARD.encode(packed.finish()?));
    let record = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1", "data": {"release": stored},
        "metadata": {
            "name": format!("sh.helm.release.v1.{RELEASE}.v1"),
            "labels": {"owner": "helm", "name": RELEASE, "version": "1", "status": label},
        },
    });
    Ok(record.to_string().into_bytes())
}

fn judged(good: &Answer, bad: &Answer, tried_in: &str, own: &str) -> Vec<Check> {
    if let Some(answer) = [good, bad].into_iter().find(|answer| answer.message.contains("failed calling webhook")) {
        return vec![Check::found(JUDGED, High, answer.message.clone(), way_out(&answer.message, own))];
    }
    let by_us =
        |answer: &Answer| answer.message.contains("admission webhook") && answer.message.contains(".interlock.dev");
    if let Some(answer) = [good, bad].into_iter().find(|answer| answer.code >= 400 && !by_us(answer)) {
        let why = format!("dry runs of a record in {tried_in} do not get as far as us: {}", answer.message);
        return vec![Check::skipped(JUDGED, why)];
    }
    let mut checks = Vec::new();
    checks.push(match (&good.holder, good.code) {
        (Some(holder), _) => Check::ok(
            STAMPED,
            format!(
                "a dry run in {tried_in} came back stamped with its holder, \
            {holder}"
            ),
        ),
        (None, 400..) => Check::skipped(STAMPED, format!("a policy refuses what would be stamped: {}", good.message)),
        (None, _) => {
            let fix = format!(
                "look at the log: kubectl -n {own} logs deployment/interlock\nand at the finding on the \
                MutatingWebhookConfiguration"
            );
            Check::found(STAMPED, High, "a dry run came back without a stamp: the mutating half is not called", fix)
        }
    });
    checks.push(if by_us(bad) {
        Check::ok(JUDGED, format!("a dry run in {tried_in} of a record that contradicts itself was refused"))
    } else if bad.warnings.contains("interlock:") || good.warnings.contains("interlock:") {
        Check::note(JUDGED, "we are called, and the policy only warns of a record that contradicts itself".to_owned())
    } else if by_us(good) {
        Check::ok(JUDGED, format!("a dry run in {tried_in} was refused by us"))
    } else {
        let fix = format!(
            "interlock explain {tried_in} --policies DIR tells whether a policy switched record-integrity off; if it did \
                not, the \
             validating half is not called:\nkubectl -n {own} logs deployment/interlock"
        );
        Check::found(JUDGED, High, format!("{ADMITTED} in {tried_in}"), fix)
    });
    checks
}

/// What to do, by what the API server says of its call.
fn way_out(message: &str, own: &str) -> String {
    let or_remove = "in an emergency, without any guard until it is installed again:\nkubectl delete \
                     validatingwebhookconfigurations,mutatingwebhookconfigurations interlock";
    let first = if message.contains("x509") || message.contains("certificate") {
        format!(
            "the caBundle does not fit what is served; running replicas put it back, and a restart makes new \
                certificates:\nkubectl -n {own} rollout restart deployment/interlock"
        )
    } else if message.contains("not found")
        || message.contains("no endpoints")
        || message.contains("connection refused")
    {
        format!(
            "no replica is there:\nkubectl -n {own} get deployment,pods,endpointslices\nkubectl -n {own} rollout restart \
                deployment/interlock"
        )
    } else {
        format!(
            "replicas do not answer in time, or a network policy is in between:\nkubectl -n {own} logs deployment/interlock"
        )
    };
    format!("{first}\n{or_remove}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(code: u16, message: &str, warnings: &str, holder: Option<&str>) -> Answer {
        Answer { code, message: message.to_owned(), warnings: warnings.to_owned(), holder: holder.map(str::to_owned) }
    }

    fn states(good: &Answer, bad: &Answer) -> Vec<&'static str> {
        judged(good, bad, "default", "guard").iter().map(|check| check.state.as_str()).collect()
    }

    const REFUSED: &str = "admission webhook \"create-delete.records.interlock.dev\" denied the request: ...";

    #[test]
    fn what_comes_back_tells_which_half_is_called() {
        let (stamped, bare) = (answer(201, "", "", Some("alice")), answer(201, "", "", None));
        let refused = answer(403, REFUSED, "", None);
        let warned = answer(201, "", "299 - \"interlock: ... [record-integrity]\"", Some("alice"));
        assert_eq!(states(&stamped, &refused), ["ok", "ok"]);
        assert_eq!(states(&bare, &refused), ["high", "ok"]);
        assert_eq!(states(&stamped, &stamped), ["ok", "high"]);
        assert_eq!(states(&stamped, &warned), ["ok", "note"]);
        // A policy that lets nobody but managers start anything.
        assert_eq!(states(&refused, &refused), ["skipped", "ok"]);
        let forbidden = answer(403, "secrets is forbidden: User \"bob\" cannot create resource \"secrets\"", "", None);
        assert_eq!(states(&forbidden, &forbidden), ["skipped"]);
    }

    #[test]
    fn a_policy_that_only_watches_is_no_finding() {
        let of = |text: &str| crate::inspect::doctor::Cluster {
            policies: Ok(Some(crate::engine::policy::PolicyFiles::mounted(
                [("cluster.yaml".to_owned(), text.to_owned())],
                [],
            ))),
            ..super::super::tests::cluster()
        };
        let watching = include_str!("../../../policies/examples/audit-first/cluster.yaml");
        assert!(is_lenient(&of(watching), "shop"));
        assert!(!is_lenient(&of(include_str!("../../../policies/cluster.yaml")), "shop"));
        assert!(!is_lenient(&super::super::tests::cluster(), "shop"));
        let stamped = answer(201, "", "", Some("alice"));
        let admitted = judged(&stamped, &stamped, "default", "guard").pop().unwrap();
        assert!(admitted.evidence.starts_with(ADMITTED), "{admitted:?}");
    }

    #[test]
    fn a_call_that_fails_is_told_with_its_own_way_out() {
        for (cause, way) in [
            (
                "tls: failed to verify certificate: x509: certificate signed by unknown authority",
                "the caBundle does not fit",
            ),
            ("dial tcp 127.0.0.1:9: connect: connection refused", "no replica is there"),
            ("context deadline exceeded", "do not answer in time"),
        ] {
            let failed =
                answer(500, &format!("Internal error occurred: failed calling webhook \"x\": {cause}"), "", None);
            let checks = judged(&failed, &failed, "default", "guard");
            let fix = checks[0].fix.as_ref().unwrap();
            assert!(checks.len() == 1 && fix.contains(way) && fix.contains("interlock"), "{fix}");
        }
    }
}

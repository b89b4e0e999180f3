//! Checks that the API server reaches Interlock and that Interlock judges, with two dry runs that create a record and write
//! nothing.

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::Request;
use interlock_engine::facts::Actor;
use interlock_engine::policy::{Removal, Scope};
use interlock_engine::policy_files::LoadedPolicies;
use interlock_engine::release::stamps::HOLDER;
use interlock_engine::review::Operation;
use interlock_engine::rule::Mode;
use interlock_engine::rules::records::record_integrity;
use interlock_engine::severity::Severity::High;
use kube::client::Body;
use kube::{Client, Error};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::arrival::Arrival;
use super::clients;
use super::diagnosis::Diagnosis;
use super::fetch::READ_TIMEOUT;
use super::registration::RECORD_ENTRY;
use super::selector::{label_of, matches};
use super::snapshot::Snapshot;

const STAMP_TOPIC: &str = "stamps";
const VERDICT_TOPIC: &str = "judges";

/// The name of the release in the dry runs. It is never stored.
const RELEASE: &str = "interlock-doctor";

/// The finding, unless the policy allows such records silently.
const INCONSISTENT_RECORD_ADMITTED: &str = "an inconsistent record was admitted";

/// The API server's response to a dry run.
#[derive(Debug)]
pub(super) struct DryRunResponse {
    code: u16,
    message: String,
    /// The Warning headers, unparsed.
    warnings: String,
    holder: Option<String>,
}

/// The results of the dry runs.
#[derive(Debug)]
pub(super) enum DryRuns {
    /// The reason.
    NotRun(String),
    Answered {
        namespace: String,
        /// The response for a consistent record of an install that starts.
        good: DryRunResponse,
        /// The response for a record whose label contradicts its body. No client writes such a record.
        bad: DryRunResponse,
    },
}

impl DryRuns {
    pub(super) async fn run(client: &Client, snapshot: &Snapshot) -> Self {
        if let Err(why) = snapshot.namespaces.items() {
            return Self::NotRun(why.to_owned());
        }
        let Some(namespace) = guarded_namespace(snapshot) else {
            return Self::NotRun("no namespace is guarded, so a dry run shows nothing".to_owned());
        };
        let good = create_record(client, &namespace, "pending-install", "pending-install").await;
        let bad = create_record(client, &namespace, "pending-install", "deployed").await;
        match (good, bad) {
            (Ok(good), Ok(bad)) => Self::Answered { namespace, good, bad },
            (Err(why), _) | (_, Err(why)) => Self::NotRun(why),
        }
    }

    pub(super) fn arrival(&self) -> Arrival<'_> {
        let (good, bad) = match self {
            Self::NotRun(why) => return Arrival::Unknown(why),
            Self::Answered { good, bad, .. } => (good, bad),
        };
        if let Some(failed) = failed_call(good, bad) {
            Arrival::Failed(&failed.message)
        } else if [good, bad].iter().any(|it| it.is_signed()) {
            Arrival::Answered
        } else if let Some(refused) = [good, bad].into_iter().find(|it| it.code >= 400) {
            Arrival::Unknown(&refused.message)
        } else {
            Arrival::Silent
        }
    }
}

pub(super) fn diagnose(runs: &DryRuns, snapshot: &Snapshot) -> Vec<Diagnosis> {
    let (namespace, good, bad) = match runs {
        DryRuns::NotRun(why) => return vec![Diagnosis::skipped(VERDICT_TOPIC, why)],
        DryRuns::Answered { namespace, good, bad } => (namespace, good, bad),
    };
    let mut checks = diagnose_responses(good, bad, namespace, snapshot);
    if policy_admits_silently(snapshot, namespace) {
        checks
            .iter_mut()
            .filter(|check| check.evidence.starts_with(INCONSISTENT_RECORD_ADMITTED))
            .for_each(explain_by_policy);
    }
    checks
}

/// Whether the policy of a namespace admits an inconsistent record without a warning.
fn policy_admits_silently(snapshot: &Snapshot, namespace: &str) -> bool {
    let Ok(Some(files)) = &snapshot.policies else { return false };
    let Some(policies) = LoadedPolicies::of(files).policies else { return false };
    let actor = Actor::named("", &[]);
    let (release, kind, owner) = (Some(RELEASE), "Secret", Some("helm"));
    let operation = Operation::Create;
    let scope =
        Scope { actor, namespace, release, kind, owner, operation, creates_record: true, removal: Removal::Nothing };
    policies.of(namespace).mode(record_integrity::RULE.id(), &scope) < Mode::Warn
}

fn explain_by_policy(check: &mut Diagnosis) {
    let evidence = "the policy admits inconsistent records silently, so a dry run cannot show whether Interlock judges";
    *check = Diagnosis::note(VERDICT_TOPIC, evidence);
}

/// A guarded namespace, preferably `default`.
fn guarded_namespace(snapshot: &Snapshot) -> Option<String> {
    let configuration = snapshot.validating.named("interlock").ok().flatten();
    let entries = configuration.and_then(|it| it["webhooks"].as_array()).into_iter().flatten();
    let selector =
        entries.into_iter().find(|entry| entry["name"] == RECORD_ENTRY).map(|entry| &entry["namespaceSelector"]);
    let namespaces = snapshot.namespaces.items().ok()?;
    let active = namespaces.iter().filter(|it| it["metadata"]["deletionTimestamp"].is_null());
    let guarded = active.filter(|it| selector.is_none_or(|selector| matches(selector, |key| label_of(it, key))));
    let mut names = guarded.filter_map(|it| it["metadata"]["name"].as_str());
    let mut first = None;
    let default = names.by_ref().inspect(|name| first = first.or(Some(*name))).find(|name| *name == "default");
    default.or(first).map(str::to_owned)
}

/// Creates a record in a dry run.
async fn create_record(client: &Client, namespace: &str, label: &str, status: &str) -> Result<DryRunResponse, String> {
    let path = format!("/api/v1/namespaces/{namespace}/secrets?dryRun=All&fieldManager=interlock-doctor");
    let record = record(namespace, label, status).map_err(|error| format!("failed to build a record: {error}"))?;
    let request = Request::post(path).header("content-type", "application/json").body(Body::from(record));
    let request = request.map_err(|error| error.to_string())?;
    let late = "the API server did not answer within 30 s";
    let response =
        timeout(READ_TIMEOUT, client.send(request)).await.map_err(|_| late)?.map_err(|error| no_answer(&error))?;
    let code = response.status().as_u16();
    let warnings = response.headers().get_all("warning").iter().filter_map(|it| it.to_str().ok());
    let warnings = warnings.collect::<Vec<_>>().join("\n");
    let body = timeout(READ_TIMEOUT, http_body_util::BodyExt::collect(response.into_body())).await.map_err(|_| late)?;
    let body: Value = serde_json::from_slice(&body.map_err(|error| no_answer(&error))?.to_bytes()).unwrap_or_default();
    Ok(DryRunResponse {
        code,
        message: body["message"].as_str().unwrap_or_default().to_owned(),
        warnings,
        holder: body["metadata"]["annotations"][HOLDER].as_str().map(str::to_owned),
    })
}

fn no_answer(error: &Error) -> String {
    format!("the API server did not answer: {error}")
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

fn diagnose_responses(
    good: &DryRunResponse,
    bad: &DryRunResponse,
    tried_in: &str,
    snapshot: &Snapshot,
) -> Vec<Diagnosis> {
    let own = snapshot.namespace.as_str();
    if let Some(DryRunResponse { message, .. }) = failed_call(good, bad) {
        let fix = clients::fix_for_refusal(message, snapshot).unwrap_or_else(|| fix_for_failed_call(message, own));
        return vec![Diagnosis::found(VERDICT_TOPIC, High, message.clone(), fix)];
    }
    if let Some(answer) = [good, bad].into_iter().find(|answer| answer.code >= 400 && !answer.is_refused_by_us()) {
        let why = format!("dry runs in namespace {tried_in} do not reach Interlock: {}", answer.message);
        return vec![Diagnosis::skipped(VERDICT_TOPIC, why)];
    }
    vec![diagnose_stamp(good, tried_in, own), diagnose_verdict(good, bad, tried_in, own)]
}

/// The response that reports a failed call of a webhook.
fn failed_call<'r>(good: &'r DryRunResponse, bad: &'r DryRunResponse) -> Option<&'r DryRunResponse> {
    [good, bad].into_iter().find(|it| it.message.contains("failed calling webhook"))
}

/// Whether the mutating webhook is called.
fn diagnose_stamp(good: &DryRunResponse, tried_in: &str, own: &str) -> Diagnosis {
    match (&good.holder, good.code) {
        (Some(holder), _) => {
            let evidence = format!("a dry run in namespace {tried_in} returned with the holder stamp {holder}");
            Diagnosis::ok(STAMP_TOPIC, evidence)
        }
        (None, 400..) => {
            let why = format!("a policy refuses the record that would be stamped: {}", good.message);
            Diagnosis::skipped(STAMP_TOPIC, why)
        }
        (None, _) => {
            let evidence = "a dry run returned without a stamp: the API server does not call the mutating webhook";
            let fix = format!(
                "check the log: kubectl -n {own} logs deployment/interlock\nand the finding about the \
                 MutatingWebhookConfiguration"
            );
            Diagnosis::found(STAMP_TOPIC, High, evidence, fix)
        }
    }
}

/// Whether the validating webhook is called.
fn diagnose_verdict(good: &DryRunResponse, bad: &DryRunResponse, tried_in: &str, own: &str) -> Diagnosis {
    if bad.is_refused_by_us() {
        let evidence = format!("a dry run with an inconsistent record in namespace {tried_in} was refused");
        return Diagnosis::ok(VERDICT_TOPIC, evidence);
    }
    if [good, bad].iter().any(|it| it.warnings.contains("interlock:")) {
        let evidence = "Interlock is called, and the policy only warns about inconsistent records";
        return Diagnosis::note(VERDICT_TOPIC, evidence);
    }
    if good.is_refused_by_us() {
        return Diagnosis::ok(VERDICT_TOPIC, format!("Interlock refused a dry run in namespace {tried_in}"));
    }
    let evidence = format!("{INCONSISTENT_RECORD_ADMITTED} in namespace {tried_in}");
    let fix = format!(
        "interlock explain {tried_in} --policies DIR shows whether a policy switches record-integrity off. If none does, \
         the API server does not call the validating webhook:\nkubectl -n {own} logs deployment/interlock"
    );
    Diagnosis::found(VERDICT_TOPIC, High, evidence, fix)
}

impl DryRunResponse {
    fn is_refused_by_us(&self) -> bool {
        self.message.contains("admission webhook") && self.message.contains(".interlock.dev")
    }

    /// Whether the response shows that Interlock answered a call.
    fn is_signed(&self) -> bool {
        self.holder.is_some() || self.warnings.contains("interlock:") || self.is_refused_by_us()
    }
}

/// The fix for an error that the API server reports about its call.
pub(super) fn fix_for_failed_call(message: &str, own: &str) -> String {
    let or_remove = "in an emergency, remove the guard until Interlock is installed again:\nkubectl delete \
                     validatingwebhookconfigurations,mutatingwebhookconfigurations interlock";
    let first = if message.contains("x509") || message.contains("certificate") {
        format!(
            "the caBundle does not match the serving certificate. Running replicas repair it; a restart creates new \
             certificates:\nkubectl -n {own} rollout restart deployment/interlock"
        )
    } else if message.contains("not found")
        || message.contains("no endpoints")
        || message.contains("connection refused")
    {
        format!(
            "no replica is available:\nkubectl -n {own} get deployment,pods,endpointslices\nkubectl -n {own} rollout \
             restart \
                deployment/interlock"
        )
    } else {
        format!(
            "replicas do not answer in time, or a network policy blocks them:\nkubectl -n {own} logs \
             deployment/interlock"
        )
    };
    format!("{first}\n{or_remove}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(code: u16, message: &str, warnings: &str, holder: Option<&str>) -> DryRunResponse {
        DryRunResponse {
            code,
            message: message.to_owned(),
            warnings: warnings.to_owned(),
            holder: holder.map(str::to_owned),
        }
    }

    fn states(good: &DryRunResponse, bad: &DryRunResponse) -> Vec<&'static str> {
        diagnose_responses(good, bad, "default", &Snapshot::unread()).iter().map(|check| check.state.as_str()).collect()
    }

    const REFUSED: &str = "admission webhook \"create-delete.records.interlock.dev\" denied the request: ...";

    #[test]
    fn the_responses_show_which_webhook_is_called() {
        let (stamped, bare) = (answer(201, "", "", Some("alice")), answer(201, "", "", None));
        let refused = answer(403, REFUSED, "", None);
        let warned = answer(201, "", "299 - \"interlock: ... [record-integrity]\"", Some("alice"));
        assert_eq!(states(&stamped, &refused), ["ok", "ok"]);
        assert_eq!(states(&bare, &refused), ["high", "ok"]);
        assert_eq!(states(&stamped, &stamped), ["ok", "high"]);
        assert_eq!(states(&stamped, &warned), ["ok", "note"]);
        // A policy that allows only managers to start operations.
        assert_eq!(states(&refused, &refused), ["skipped", "ok"]);
        let forbidden = answer(403, "secrets is forbidden: User \"bob\" cannot create resource \"secrets\"", "", None);
        assert_eq!(states(&forbidden, &forbidden), ["skipped"]);
    }

    #[test]
    fn the_responses_show_whether_calls_arrive() {
        let runs = |good: DryRunResponse, bad| DryRuns::Answered { namespace: "default".to_owned(), good, bad };
        let (admitted, stamped) = (|| answer(201, "", "", None), || answer(201, "", "", Some("alice")));
        let failed = || answer(500, "Internal error occurred: failed calling webhook \"x\": refused", "", None);
        assert_eq!(runs(stamped(), admitted()).arrival(), Arrival::Answered);
        assert_eq!(runs(admitted(), answer(403, REFUSED, "", None)).arrival(), Arrival::Answered);
        assert_eq!(runs(admitted(), admitted()).arrival(), Arrival::Silent);
        assert!(matches!(runs(stamped(), failed()).arrival(), Arrival::Failed(why) if why.contains("refused")));
        let forbidden = answer(403, "secrets is forbidden", "", None);
        assert_eq!(runs(admitted(), forbidden).arrival(), Arrival::Unknown("secrets is forbidden"));
        assert_eq!(DryRuns::NotRun("no".to_owned()).arrival(), Arrival::Unknown("no"));
    }

    #[test]
    fn a_policy_in_audit_mode_is_no_finding() {
        let of = |text: &str| Snapshot {
            policies: Ok(Some(interlock_engine::policy_files::PolicyFiles::mounted(
                [("cluster.yaml".to_owned(), text.to_owned())],
                [],
            ))),
            ..Snapshot::unread()
        };
        let watching = include_str!("../../../policies/examples/audit-first/cluster.yaml");
        assert!(policy_admits_silently(&of(watching), "shop"));
        assert!(!policy_admits_silently(&of(include_str!("../../../policies/cluster.yaml")), "shop"));
        assert!(!policy_admits_silently(&Snapshot::unread(), "shop"));
        let stamped = answer(201, "", "", Some("alice"));
        let admitted = diagnose_responses(&stamped, &stamped, "default", &Snapshot::unread()).pop().unwrap();
        assert!(admitted.evidence.starts_with(INCONSISTENT_RECORD_ADMITTED), "{admitted:?}");
    }

    #[test]
    fn each_failed_call_comes_with_its_own_fix() {
        for (cause, way) in [
            (
                "tls: failed to verify certificate: x509: certificate signed by unknown authority",
                "the caBundle does not match",
            ),
            ("remote error: tls: certificate required", "sends no client certificate"),
            ("dial tcp 127.0.0.1:9: connect: connection refused", "no replica is available"),
            ("context deadline exceeded", "do not answer in time"),
        ] {
            let failed = answer(
                500,
                &format!("Internal error occurred: failed calling webhook \"x.interlock.dev\": {cause}"),
                "",
                None,
            );
            let checks = diagnose_responses(&failed, &failed, "default", &Snapshot::unread());
            let fix = checks[0].fix.as_ref().unwrap();
            assert!(checks.len() == 1 && fix.contains(way) && fix.contains("interlock"), "{fix}");
        }
    }
}

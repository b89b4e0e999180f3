//! Checks that the API server reaches Interlock and that Interlock judges, with two dry runs that create a record and write
//! nothing.

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::Request;
use http_body_util::BodyExt;
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
use super::diagnosis::{Checked, Diagnosis};
use super::fetch::{READ_TIMEOUT, TIMED_OUT};
use super::selector::selects;
use super::snapshot::Snapshot;

/// The name of the release in the dry runs. It is never stored.
const RELEASE: &str = "interlock-doctor";

/// The API server's response to a dry run.
#[derive(Debug, Clone)]
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
        if let Self::NotRun(why) = self {
            Arrival::Unknown(why)
        } else if let Some(failed) = self.find(DryRunResponse::is_failed_call) {
            Arrival::Failed(&failed.message)
        } else if self.find(DryRunResponse::is_signed).is_some() {
            Arrival::Answered
        } else if let Some(refused) = self.find(|it| it.code >= 400) {
            Arrival::Unknown(&refused.message)
        } else {
            Arrival::Silent
        }
    }

    /// The first response with this property.
    fn find(&self, has: impl Fn(&DryRunResponse) -> bool) -> Option<&DryRunResponse> {
        match self {
            Self::NotRun(_) => None,
            Self::Answered { good, bad, .. } => [good, bad].into_iter().find(|response| has(response)),
        }
    }
}

impl DryRunResponse {
    /// Whether the response reports a failed call of a webhook.
    fn is_failed_call(&self) -> bool {
        self.message.contains("failed calling webhook")
    }

    fn is_refused_by_us(&self) -> bool {
        self.message.contains("admission webhook") && self.message.contains(".interlock.dev")
    }

    /// Whether the dry run was refused before it reached Interlock.
    fn is_refused_by_others(&self) -> bool {
        self.code >= 400 && !self.is_refused_by_us()
    }

    fn has_our_warning(&self) -> bool {
        self.warnings.contains("interlock:")
    }

    /// Whether the response shows that Interlock answered a call.
    fn is_signed(&self) -> bool {
        self.holder.is_some() || self.has_our_warning() || self.is_refused_by_us()
    }
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

/// A guarded namespace, preferably `default`.
fn guarded_namespace(snapshot: &Snapshot) -> Option<String> {
    let selector = snapshot.record_entry().map(|entry| &entry["namespaceSelector"]);
    let active = snapshot.namespaces.items().ok()?.iter().filter(|it| it["metadata"]["deletionTimestamp"].is_null());
    let guarded = active.filter(|it| selector.is_none_or(|selector| selects(selector, it)));
    let names: Vec<_> = guarded.filter_map(|it| it["metadata"]["name"].as_str()).collect();
    let default = names.iter().find(|name| **name == "default");
    default.or(names.first()).map(|name| (*name).to_owned())
}

/// Creates a record in a dry run.
async fn create_record(client: &Client, namespace: &str, label: &str, status: &str) -> Result<DryRunResponse, String> {
    let path = format!("/api/v1/namespaces/{namespace}/secrets?dryRun=All&fieldManager=interlock-doctor");
    let record = record(namespace, label, status).map_err(|error| format!("failed to build a record: {error}"))?;
    let request = Request::post(path).header("content-type", "application/json").body(Body::from(record));
    let request = request.map_err(|error| error.to_string())?;
    let response = timeout(READ_TIMEOUT, response(client, request)).await.map_err(|_| TIMED_OUT)?;
    response.map_err(|error| format!("the API server did not answer: {error}"))
}

async fn response(client: &Client, request: Request<Body>) -> Result<DryRunResponse, Error> {
    let response = client.send(request).await?;
    let code = response.status().as_u16();
    let warnings = response.headers().get_all("warning").iter().filter_map(|it| it.to_str().ok());
    let warnings = warnings.collect::<Vec<_>>().join("\n");
    let body = response.into_body().collect().await?.to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let message = body["message"].as_str().unwrap_or_default().to_owned();
    let holder = body["metadata"]["annotations"][HOLDER].as_str().map(str::to_owned);
    Ok(DryRunResponse { code, message, warnings, holder })
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

/// Whether the mutating webhook is called; `None` if the dry runs do not reach it.
pub(super) fn stamp(runs: &DryRuns, snapshot: &Snapshot) -> Option<Diagnosis> {
    let DryRuns::Answered { namespace, good, .. } = runs else { return None };
    if runs.find(|it| it.is_failed_call() || it.is_refused_by_others()).is_some() {
        return None;
    }
    Some(match (&good.holder, good.code) {
        (Some(holder), _) => {
            Diagnosis::ok(format!("a dry run in namespace {namespace} returned with the holder stamp {holder}"))
        }
        (None, 400..) => {
            Diagnosis::skipped(format!("a policy refuses the record that would be stamped: {}", good.message))
        }
        (None, _) => {
            let evidence = "a dry run returned without a stamp: the API server does not call the mutating webhook";
            let fix = format!(
                "check the log: kubectl -n {} logs deployment/interlock\nand the finding about the \
                 MutatingWebhookConfiguration",
                snapshot.namespace
            );
            Diagnosis::found(High, evidence, fix)
        }
    })
}

/// Whether the validating webhook is called.
pub(super) fn verdict(runs: &DryRuns, snapshot: &Snapshot) -> Checked {
    let own = &snapshot.namespace;
    let (namespace, good, bad) = match runs {
        DryRuns::NotRun(why) => return Err(why.clone()),
        DryRuns::Answered { namespace, good, bad } => (namespace, good, bad),
    };
    if let Some(DryRunResponse { message, .. }) = runs.find(DryRunResponse::is_failed_call) {
        let fix = clients::fix_for_refusal(message, snapshot).unwrap_or_else(|| fix_for_failed_call(message, own));
        return Ok(Diagnosis::found(High, message.clone(), fix));
    }
    if let Some(DryRunResponse { message, .. }) = runs.find(DryRunResponse::is_refused_by_others) {
        return Err(format!("dry runs in namespace {namespace} do not reach Interlock: {message}"));
    }
    Ok(if bad.is_refused_by_us() {
        Diagnosis::ok(format!("a dry run with an inconsistent record in namespace {namespace} was refused"))
    } else if runs.find(DryRunResponse::has_our_warning).is_some() {
        Diagnosis::note("Interlock is called, and the policy only warns about inconsistent records")
    } else if good.is_refused_by_us() {
        Diagnosis::ok(format!("Interlock refused a dry run in namespace {namespace}"))
    } else if policy_admits_silently(snapshot, namespace) {
        Diagnosis::note(
            "the policy admits inconsistent records silently, so a dry run cannot show whether Interlock judges",
        )
    } else {
        let evidence = format!("an inconsistent record was admitted in namespace {namespace}");
        let fix = format!(
            "interlock explain {namespace} --policies DIR shows whether a policy switches record-integrity off. If none \
             does, the API server does not call the validating webhook:\nkubectl -n {own} logs deployment/interlock"
        );
        Diagnosis::found(High, evidence, fix)
    })
}

/// The fix for an error that the API server reports about its call.
pub(super) fn fix_for_failed_call(message: &str, own: &str) -> String {
    let or_remove = "in an emergency, remove the guard until Interlock is installed again:\nkubectl delete \
                     validatingwebhookconfigurations,mutatingwebhookconfigurations interlock";
    let is_about = |causes: &[&str]| causes.iter().any(|cause| message.contains(cause));
    let first = if is_about(&["x509", "certificate"]) {
        format!(
            "the caBundle does not match the serving certificate. Running replicas repair it; a restart creates new \
             certificates:\nkubectl -n {own} rollout restart deployment/interlock"
        )
    } else if is_about(&["not found", "no endpoints", "connection refused"]) {
        format!(
            "no replica is available:\nkubectl -n {own} get deployment,pods,endpointslices\nkubectl -n {own} rollout \
             restart deployment/interlock"
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

    fn answered(good: &DryRunResponse, bad: &DryRunResponse) -> DryRuns {
        DryRuns::Answered { namespace: "default".to_owned(), good: good.clone(), bad: bad.clone() }
    }

    fn states(good: &DryRunResponse, bad: &DryRunResponse) -> Vec<&'static str> {
        let (runs, snapshot) = (answered(good, bad), Snapshot::unread());
        let verdict = verdict(&runs, &snapshot).unwrap_or_else(Diagnosis::skipped);
        stamp(&runs, &snapshot).into_iter().chain(verdict).map(|check| check.state.as_str()).collect()
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
        let runs = |good: DryRunResponse, bad: DryRunResponse| answered(&good, &bad);
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
        let runs = answered(&stamped, &stamped);
        let admitted = verdict(&runs, &Snapshot::unread()).unwrap();
        assert!(admitted.evidence.starts_with("an inconsistent record was admitted"), "{admitted:?}");
        assert_eq!(verdict(&runs, &of(watching)).unwrap().state.as_str(), "note");
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
            let runs = answered(&failed, &failed);
            assert_eq!(stamp(&runs, &Snapshot::unread()), None);
            let fix = verdict(&runs, &Snapshot::unread()).unwrap().fix.unwrap();
            assert!(fix.contains(way) && fix.contains("interlock"), "{fix}");
        }
    }
}

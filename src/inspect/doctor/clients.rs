//! Which clients may send reviews: whether the replicas require a client certificate, and whether the API server has an accepted
//! one. The dry runs of the probe show the latter.

use interlock_engine::severity::Severity::High;
use serde_json::Value;

use super::arrival::Arrival;
use super::diagnosis::{Checked, Diagnosis};
use super::fetch::Fetched;
use super::network::admits_everybody;
use super::settings::setting;
use super::snapshot::Snapshot;

/// The page about the API server's part of the configuration.
const PAGE: &str = "docs/shared-clusters.md";

/// TLS alerts of a replica, and what each says about the API server's certificate. Go prints an alert of its peer as `remote error:
/// tls: TEXT`. Go's own complaint about Interlock's certificate starts with `tls:` or `x509:`.
const REFUSALS: [(&str, &str); 5] = [
    ("certificate required", "the API server sends no client certificate"),
    ("unknown certificate authority", "another CA signed the API server's client certificate"),
    ("expired certificate", "the API server's client certificate has expired, or is not valid yet"),
    ("unsupported certificate", "the API server's certificate is not for clients (extended key usage clientAuth)"),
    ("bad certificate", "the API server's client certificate cannot be parsed"),
];

/// The alert for a certificate without an accepted name. A replica without a serving certificate sends it to every client.
const ACCESS_DENIED: (&str, &str) =
    ("access denied", "the API server's client certificate has none of the accepted names");

pub(super) fn diagnose(snapshot: &Snapshot, arrival: Arrival<'_>) -> Checked<Option<Diagnosis>> {
    if let Arrival::Failed(message) = arrival
        && let Some(refusal) = refusal(message, snapshot)
    {
        let evidence = format!("the replicas require a client certificate and refuse the API server: {refusal}");
        return Ok(Some(Diagnosis::found(High, evidence, fix(refusal, &snapshot.namespace))));
    }
    // The check of the replicas reports a missing Deployment.
    let Some(deployment) = snapshot.deployment.object()? else { return Ok(None) };
    Ok(Some(if requires_certificates(deployment) {
        diagnose_required(deployment, arrival, &snapshot.namespace)
    } else {
        diagnose_open(deployment, &snapshot.network_policies)
    }))
}

/// The fix for a failed call, if the reason is the API server's client certificate.
pub(super) fn fix_for_refusal(message: &str, snapshot: &Snapshot) -> Option<String> {
    refusal(message, snapshot).map(|refusal| fix(refusal, &snapshot.namespace))
}

/// What is wrong with the API server's client certificate, from the message about its call.
fn refusal(message: &str, snapshot: &Snapshot) -> Option<&'static str> {
    let (_, alert) = message.split_once("remote error: tls: ")?;
    let is_required = snapshot.deployment.object().is_ok_and(|it| it.is_some_and(requires_certificates));
    let denied = is_required.then_some(ACCESS_DENIED);
    let mut known = REFUSALS.into_iter().chain(denied);
    // Another webhook may require certificates too.
    known.find(|(text, _)| alert.starts_with(text) && message.contains(".interlock.dev")).map(|(_, what)| what)
}

fn diagnose_required(deployment: &Value, arrival: Arrival<'_>, namespace: &str) -> Diagnosis {
    let names = setting(deployment, "INTERLOCK_CLIENT_NAME", "--client-name").filter(|names| !names.is_empty());
    let who = names.map_or("any name".to_owned(), |names| format!("the name {}", names.replace(',', " or ")));
    let required = format!("a client certificate with {who} is required");
    match arrival {
        Arrival::Answered => Diagnosis::ok(format!("{required}, and the API server has one")),
        Arrival::Silent => {
            let evidence =
                format!("{required}, and no dry run reached Interlock. Entries that fail open hide the reason");
            Diagnosis::found(High, evidence, fix("the API server may have no accepted certificate", namespace))
        }
        Arrival::Failed(_) => {
            Diagnosis::skipped(format!("{required}, and the API server's calls fail for another reason"))
        }
        Arrival::Unknown(why) => {
            Diagnosis::skipped(format!("{required}. Whether the API server has one is not known: {why}"))
        }
    }
}

/// Open replicas are no finding, because a cluster with one tenant may trust its pods.
fn diagnose_open(deployment: &Value, policies: &Fetched) -> Diagnosis {
    let (limited, unread) = match policies.items() {
        Ok(policies) => (!admits_everybody(policies, &deployment["spec"]["template"]), String::new()),
        Err(why) => (false, format!(" (its network policies cannot be read: {why})")),
    };
    if limited {
        return Diagnosis::ok(
            "client certificates are not required; network policies limit who may send reviews, if the network plugin \
             enforces them",
        );
    }
    Diagnosis::note(format!(
        "every pod may send reviews{unread}. On a shared cluster, admit only the API server: {PAGE}"
    ))
}

/// Whether the replicas answer only clients with a certificate.
fn requires_certificates(deployment: &Value) -> bool {
    setting(deployment, "INTERLOCK_CLIENT_CA_FILE", "--client-ca-file").is_some()
}

fn fix(refusal: &str, namespace: &str) -> String {
    format!(
        "{refusal}. Check --admission-control-config-file of every API server: both webhook plugins need a \
         kubeConfigFile, and that file a user interlock.{namespace}.svc with an accepted certificate ({PAGE})\nuntil then, accept all clients \
         again:\nkubectl -n {namespace} set env deployment/interlock INTERLOCK_CLIENT_CA_FILE- \
         INTERLOCK_CLIENT_NAME-\n(if a chart or GitOps manages it, change clientAuthentication there)"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A Deployment whose container has these variables, and network policies.
    fn snapshot(variables: &[(&str, &str)], policies: Value) -> Snapshot {
        let env: Vec<_> = variables.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        let template = json!({
            "metadata": {"labels": {"app": "interlock"}}, "spec": {"containers": [{"name": "interlock", "env": env}]},
        });
        Snapshot {
            deployment: Fetched::Known(json!({"spec": {"template": template}})),
            network_policies: Fetched::Known(json!({"items": policies})),
            ..Snapshot::unread()
        }
    }

    const REQUIRED: &[(&str, &str)] =
        &[("INTERLOCK_CLIENT_CA_FILE", "/ca.crt"), ("INTERLOCK_CLIENT_NAME", "kube-apiserver,other")];

    fn failed(alert: &str) -> String {
        format!(
            "Internal error occurred: failed calling webhook \"create-delete.records.interlock.dev\": failed to call \
             webhook: Post \"https://interlock.guard.svc:443/validate?timeout=3s\": {alert}"
        )
    }

    fn state(snapshot: &Snapshot, arrival: Arrival<'_>) -> (&'static str, String) {
        let check = diagnose(snapshot, arrival).unwrap_or_else(|why| Some(Diagnosis::skipped(why))).unwrap();
        (check.state.as_str(), check.evidence)
    }

    #[test]
    fn an_open_port_is_a_note_and_never_a_finding() {
        let failed = failed("dial tcp 10.0.0.1:443: connect: connection refused");
        for arrival in [Arrival::Answered, Arrival::Silent, Arrival::Failed(&failed), Arrival::Unknown("no")] {
            let (state, evidence) = state(&snapshot(&[], json!([])), arrival);
            assert_eq!(state, "note");
            assert!(evidence.contains("every pod may send reviews") && evidence.contains(PAGE), "{evidence}");
        }
        let peer = json!({"ipBlock": {"cidr": "10.0.0.0/28"}});
        let policy = json!({"spec": {"podSelector": {}, "ingress": [{"from": [peer]}]}});
        assert_eq!(state(&snapshot(&[], json!([policy])), Arrival::Answered).0, "ok");
        let unread = Snapshot { network_policies: Fetched::Unknown("403".to_owned()), ..snapshot(&[], json!([])) };
        let (state, evidence) = state(&unread, Arrival::Answered);
        assert!(state == "note" && evidence.contains("cannot be read: 403"), "{evidence}");
    }

    #[test]
    fn a_required_certificate_is_fine_if_the_api_server_has_one() {
        let required = snapshot(REQUIRED, json!([]));
        let (found, evidence) = state(&required, Arrival::Answered);
        assert_eq!(
            (found, evidence.as_str()),
            (
                "ok",
                "a client certificate with the name kube-apiserver or other is required, and the API server has one"
            )
        );
        let any = snapshot(&REQUIRED[..1], json!([]));
        assert!(state(&any, Arrival::Answered).1.contains("with any name"));
        assert_eq!(state(&required, Arrival::Silent).0, "high");
        assert_eq!(state(&required, Arrival::Unknown("no namespace is guarded")).0, "skipped");
        assert_eq!(state(&required, Arrival::Failed(&failed("context deadline exceeded"))).0, "skipped");
        let untrusted = failed("tls: failed to verify certificate: x509: certificate signed by unknown authority");
        assert_eq!(state(&required, Arrival::Failed(&untrusted)).0, "skipped", "that is Interlock's certificate");
    }

    #[test]
    fn a_refused_api_server_is_a_finding_with_the_way_out() {
        let required = snapshot(REQUIRED, json!([]));
        for (alert, what) in REFUSALS.into_iter().chain([ACCESS_DENIED]) {
            let message = failed(&format!("remote error: tls: {alert}"));
            let check = diagnose(&required, Arrival::Failed(&message)).unwrap().unwrap();
            assert!(check.state.as_str() == "high" && check.evidence.contains(what), "{check:?}");
            let fix = check.fix.unwrap();
            assert!(fix.contains("interlock.guard.svc") && fix.contains("INTERLOCK_CLIENT_CA_FILE- "), "{fix}");
            assert_eq!(fix_for_refusal(&message, &required), Some(fix));
        }
    }

    #[test]
    fn an_alert_alone_shows_that_certificates_are_required() {
        let message = failed("remote error: tls: certificate required");
        let unread = Snapshot::unread();
        assert_eq!(state(&unread, Arrival::Failed(&message)).0, "high");
        // A replica that has no serving certificate yet denies access too.
        let denied = failed("remote error: tls: access denied");
        assert_eq!(state(&snapshot(&[], json!([])), Arrival::Failed(&denied)).0, "note");
        // The certificate of another webhook.
        let other = message.replace(".interlock.dev", ".example.dev");
        assert_eq!(state(&snapshot(&[], json!([])), Arrival::Failed(&other)).0, "note");
        assert_eq!(state(&unread, Arrival::Answered).0, "skipped");
        assert_eq!(diagnose(&Snapshot { deployment: Fetched::Absent, ..unread }, Arrival::Answered), Ok(None));
    }
}

//! Whether the API server reaches a replica through each webhook configuration. A probe of the user shows it, even while the other
//! entries fail open and hide the reason.

use interlock_engine::severity::Severity::{High, Low, Medium};
use kube::Client;

use super::arrival::Arrival;
use super::clients;
use super::diagnosis::Diagnosis;
use super::probe::fix_for_failed_call;
use super::registration::listed;
use super::snapshot::Snapshot;
use crate::inspect::arrival::{CONFIGURATION, Half, Obstacle, Passage, Registration, probe};

/// The probes of the configurations that exist.
#[derive(Debug)]
pub(super) struct Ways(Vec<(Half, Registration, Passage)>);

impl Ways {
    pub(super) async fn probed(client: &Client, snapshot: &Snapshot) -> Self {
        let mut ways = Vec::new();
        for (half, live) in Half::ALL.into_iter().zip([&snapshot.validating, &snapshot.mutating]) {
            // The check of the registration reports a missing configuration.
            let Some(live) = live.named(CONFIGURATION).ok().flatten() else { continue };
            let registration = Registration::new(half, live.clone());
            let passage = probe(client, &snapshot.namespace, half).await;
            ways.push((half, registration, passage));
        }
        Self(ways)
    }

    /// The API server's message about a failed call.
    fn failure(&self) -> Option<&str> {
        self.0.iter().find_map(|(_, _, passage)| match passage {
            Passage::Failed(message) => Some(message.as_str()),
            _ => None,
        })
    }

    /// The arrival of dry runs. If entries that fail open hide the reason of a failure, the message about a probe replaces it.
    pub(super) fn explain<'a>(&'a self, arrival: Arrival<'a>) -> Arrival<'a> {
        match (arrival, self.failure()) {
            (Arrival::Silent, Some(message)) => Arrival::Failed(message),
            (arrival, _) => arrival,
        }
    }
}

pub(super) fn diagnose(ways: &Ways, snapshot: &Snapshot) -> Vec<Diagnosis> {
    ways.0.iter().map(|(half, registration, passage)| diagnose_one(*half, registration, passage, snapshot)).collect()
}

fn diagnose_one(half: Half, registration: &Registration, passage: &Passage, snapshot: &Snapshot) -> Diagnosis {
    let (through, own) = (format!("{}/{CONFIGURATION}", half.resource()), &snapshot.namespace);
    let register =
        format!("interlock doctor -n {own} --registration | kubectl apply --server-side --force-conflicts -f -");
    let waiting = listed(&registration.waiting());
    let open = if waiting.is_empty() { String::new() } else { format!(". Until it can, these fail open: {waiting}") };
    match passage {
        Passage::Arrived if waiting.is_empty() => Diagnosis::ok(format!("a probe through {through} arrived")),
        Passage::Arrived if !registration.strangers().is_empty() => {
            let evidence = format!(
                "a probe through {through} arrived, but {} have another Service, port or caBundle than {}, and stay open",
                listed(&registration.strangers()),
                registration.probed_name().unwrap_or_default()
            );
            Diagnosis::found(Medium, evidence, register)
        }
        Passage::Arrived => {
            let evidence = format!("a probe through {through} arrived, and these still fail open: {waiting}");
            let fix = format!(
                "the leader closes them within half a minute, if its role interlock-registration lets it:\nkubectl -n {own} \
                 logs -l app.kubernetes.io/component=webhook --tail=-1 | grep -i 'fail closed\\|no review arrives'"
            );
            Diagnosis::found(Low, evidence, fix)
        }
        Passage::Failed(message) => {
            let evidence = format!("the API server cannot call Interlock through {through}: {message}{open}");
            let usual = passage.obstacle().map(Obstacle::usual_cause).unwrap_or_default();
            let fix = clients::fix_for_refusal(message, snapshot)
                .unwrap_or_else(|| format!("{usual}\n{}", fix_for_failed_call(message, own)));
            Diagnosis::found(High, evidence, fix)
        }
        Passage::Silent => {
            let evidence = format!("a probe through {through} was admitted without a review{open}");
            let fix = format!("replicas of an older version, or changed entries:\n{register}");
            Diagnosis::found(Medium, evidence, fix)
        }
        Passage::Refused(why) | Passage::Unknown(why) => {
            Diagnosis::skipped(format!("a probe through {through} shows nothing: {why}{open}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::inspect::arrival::OPEN_UNTIL_CALLED;

    fn diagnosed(waiting: bool, bundle: &str, passage: &Passage) -> Diagnosis {
        let entry = |name: &str, policy: &str, bundle: &str| json!({"name": name, "failurePolicy": policy, "clientConfig": {"caBundle": bundle}});
        let annotations = if waiting { json!({OPEN_UNTIL_CALLED: "a.interlock.dev"}) } else { Value::Null };
        let object = json!({
            "metadata": {"name": "interlock", "annotations": annotations},
            "webhooks": [entry("a.interlock.dev", "Ignore", bundle), entry("probes.interlock.dev", "Fail", "ca")],
        });
        let registration = Registration::new(Half::Validating, object);
        diagnose_one(Half::Validating, &registration, passage, &Snapshot::unread())
    }

    #[test]
    fn a_finding_quotes_the_error_and_names_the_usual_cause() {
        let call = "failed calling webhook \"probes.interlock.dev\": failed to call webhook: Post \"https://x\": ";
        let found = diagnosed(true, "ca", &Passage::Failed(format!("{call}context deadline exceeded")));
        assert_eq!(found.state.as_str(), "high");
        assert!(
            found.evidence.contains("context deadline exceeded. Until it can, these fail open: a.interlock.dev"),
            "{found:?}"
        );
        assert!(found.fix.unwrap().contains("10250"));
        let closed = diagnosed(false, "ca", &Passage::Failed(format!("{call}context deadline exceeded")));
        assert!(closed.state.as_str() == "high" && !closed.evidence.contains("fail open"), "{closed:?}");
    }

    #[test]
    fn after_a_probe_arrives_only_open_entries_are_a_finding() {
        assert_eq!(diagnosed(false, "ca", &Passage::Arrived).state.as_str(), "ok");
        assert_eq!(diagnosed(true, "ca", &Passage::Arrived).state.as_str(), "low");
        let stranger = diagnosed(true, "other", &Passage::Arrived);
        assert!(stranger.state.as_str() == "medium" && stranger.evidence.contains("caBundle"), "{stranger:?}");
        assert_eq!(diagnosed(true, "ca", &Passage::Refused("forbidden".to_owned())).state.as_str(), "skipped");
        assert_eq!(diagnosed(true, "ca", &Passage::Silent).state.as_str(), "medium");
    }

    #[test]
    fn dry_runs_that_entries_hide_are_explained_by_a_probe() {
        let registration = Registration::new(Half::Validating, json!({}));
        let ways = Ways(vec![(Half::Validating, registration, Passage::Failed("refused".to_owned()))]);
        assert_eq!(ways.explain(Arrival::Silent), Arrival::Failed("refused"));
        assert_eq!(ways.explain(Arrival::Answered), Arrival::Answered);
        assert_eq!(Ways(Vec::new()).explain(Arrival::Silent), Arrival::Silent);
    }
}

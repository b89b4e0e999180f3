//! Who may write the statuses that rules believe: the accounts whose writes are not sent, the controllers that exist, and the
//! `managers` of the policy.

use interlock_engine::owners::status::status_controllers;
use interlock_engine::policy_files::{LoadedPolicies, PolicyFiles};
use interlock_engine::severity::Severity::{High, Medium};
use serde_json::Value;

use super::diagnosis::{Checked, Diagnosis};
use super::registration::{STATUS_ENTRY, STATUS_WRITERS_CONDITION, listed};
use super::selector::each;
use super::snapshot::{NOT_REGISTERED, Snapshot};
use crate::inspect::arrival::CONFIGURATION;

pub(super) fn diagnose(snapshot: &Snapshot) -> Checked<Vec<Diagnosis>> {
    let Some(configuration) = snapshot.validating.named(CONFIGURATION)? else {
        return Err(NOT_REGISTERED.to_owned());
    };
    let Some(entry) = snapshot.entry(STATUS_ENTRY) else {
        return Err(format!("{STATUS_ENTRY} is missing, so nobody's statuses are judged"));
    };
    let files = snapshot.policies.as_ref().map_err(Clone::clone)?.clone().unwrap_or_else(PolicyFiles::shipped);
    let policies = LoadedPolicies::of(&files).into_policies().map_err(|error| error.to_string())?;
    let managers = &policies.of("").managers;
    let (excluded, existing) = (excluded(entry), snapshot.controllers.as_ref().map_err(Clone::clone)?);
    let mut found = Vec::new();
    let unlisted: Vec<_> = excluded.iter().filter(|user| !managers.contains(user)).collect();
    if !unlisted.is_empty() {
        let evidence = format!(
            "{STATUS_ENTRY} does not send the statuses that {} writes, and `managers` of the policy does not list it",
            listed(&unlisted)
        );
        let fix = "list it under `managers`, or take it out of statusWriters in the values of the chart";
        found.push(Diagnosis::found(High, evidence, fix));
    }
    for (owner, name) in status_controllers() {
        let of_owner = |users: &[String]| -> Vec<String> {
            users.iter().filter(|user| user.ends_with(&format!(":{name}"))).cloned().collect()
        };
        let (listed_ones, others): (Vec<_>, Vec<_>) =
            of_owner(existing).into_iter().partition(|user| managers.contains(user));
        found.extend(unlisted_controller(owner, &listed_ones, &others));
        let sent: Vec<_> = listed_ones.iter().filter(|user| !excluded.contains(user)).collect();
        if !sent.is_empty() {
            found.push(Diagnosis::note(format!(
                "every status that {} writes is sent: add it to statusWriters in the values of the chart",
                listed(&sent)
            )));
        }
    }
    if found.is_empty() {
        let since = configuration["metadata"]["creationTimestamp"].as_str().unwrap_or("the installation");
        found.push(Diagnosis::ok(format!(
            "only controllers write the statuses that rules believe; statuses from before {since} are believed as they are"
        )));
    }
    Ok(found)
}

/// The finding about controllers that nobody listed.
fn unlisted_controller(owner: &str, listed_ones: &[String], others: &[String]) -> Option<Diagnosis> {
    let shown = listed(others);
    let fix = format!(
        "if it is {owner}, list it under `managers` in the policy and add it to statusWriters in the values of the chart"
    );
    match (listed_ones, others) {
        (_, []) => None,
        ([], _) => {
            let evidence = format!(
                "{shown} looks like the controller of {owner}, and `managers` of the policy does not list it: any service account may write \
                 the statuses of {owner}"
            );
            Some(Diagnosis::found(Medium, evidence, fix))
        }
        _ => {
            let evidence = format!(
                "{shown} looks like another controller of {owner}, and `managers` of the policy does not list it: it may not write statuses"
            );
            Some(Diagnosis::found(Medium, evidence, fix))
        }
    }
}

/// The users whose writes the entry excludes.
fn excluded(entry: &Value) -> Vec<String> {
    let condition = each(&entry["matchConditions"]).find(|condition| condition["name"] == STATUS_WRITERS_CONDITION);
    let expression = condition.and_then(|condition| condition["expression"].as_str()).unwrap_or_default();
    // In a quoted list, every second part is between two quotes.
    expression.split('\'').skip(1).step_by(2).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::inspect::doctor::fetch::Fetched;

    const FLUX: &str = "system:serviceaccount:flux-system:helm-controller";
    const ELSEWHERE: &str = "system:serviceaccount:gitops:helm-controller";

    fn found(excluded: &[&str], existing: &[&str], managers: &str) -> Vec<(&'static str, String)> {
        let expression = format!("!(request.userInfo.username in ['{}'])", excluded.join("',\n'"));
        let condition = json!({"name": STATUS_WRITERS_CONDITION, "expression": expression});
        let configuration = json!({
            "metadata": {"name": CONFIGURATION, "creationTimestamp": "2026-11-01T00:00:00Z"},
            "webhooks": [{"name": STATUS_ENTRY, "matchConditions": [condition]}],
        });
        let mut files = PolicyFiles::default();
        let text = format!("apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\n{managers}\n");
        files.set_cluster("cluster.yaml".into(), text);
        let snapshot = Snapshot {
            validating: Fetched::Known(json!({"items": [configuration]})),
            policies: Ok(Some(files)),
            controllers: Ok(existing.iter().map(|user| (*user).to_owned()).collect()),
            ..Snapshot::unread()
        };
        let checks = diagnose(&snapshot).unwrap().into_iter();
        checks.map(|check| (check.state.as_str(), check.evidence)).collect()
    }

    #[test]
    fn the_excluded_accounts_are_the_managers() {
        let fine = found(&[FLUX], &[FLUX], "");
        assert_eq!(fine[0].0, "ok");
        assert!(fine[0].1.ends_with("before 2026-11-01T00:00:00Z are believed as they are"), "{fine:?}");
        let unlisted = found(&[FLUX, ELSEWHERE], &[FLUX], "");
        assert!(unlisted[0].0 == "high" && unlisted[0].1.contains(ELSEWHERE), "{unlisted:?}");
        let sent = found(&[FLUX], &[ELSEWHERE], &format!("managers: ['{ELSEWHERE}']"));
        assert!(sent[0].0 == "note" && sent[0].1.contains("is sent"), "{sent:?}");
    }

    #[test]
    fn a_controller_that_nobody_listed_is_named() {
        let alone = found(&[FLUX], &[ELSEWHERE], "");
        assert!(alone[0].0 == "medium" && alone[0].1.contains("any service account"), "{alone:?}");
        let second = found(&[FLUX], &[FLUX, ELSEWHERE], "");
        assert!(second[0].0 == "medium" && second[0].1.contains("may not write statuses"), "{second:?}");
    }
}

//! The CustomResourceDefinitions of ReleaseOverrides and Freezes, and the policies that replicas read.

use interlock_engine::policy_files::LoadedPolicies;
use interlock_engine::severity::Severity::{High, Medium};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::Value;

use super::diagnosis::Diagnosis;
use super::fetch::Fetched;
use super::snapshot::Snapshot;
use crate::world::kubernetes::freeze_definition::Freeze;
use crate::world::kubernetes::override_definition::ReleaseOverride;

const POLICIES_TOPIC: &str = "policies";

/// One of Interlock's own kinds.
struct OwnKind {
    topic: &'static str,
    /// The plural of the kind.
    plural: &'static str,
    definition: fn() -> CustomResourceDefinition,
}

const OVERRIDES: OwnKind = OwnKind { topic: "overrides", plural: "releaseoverrides", definition: ReleaseOverride::crd };
const FREEZES: OwnKind = OwnKind { topic: "freezes", plural: "freezes", definition: Freeze::crd };

pub(super) fn diagnose(snapshot: &Snapshot) -> Vec<Diagnosis> {
    vec![
        definition(&OVERRIDES, &snapshot.overrides_definition),
        definition(&FREEZES, &snapshot.freezes_definition),
        policies(snapshot),
    ]
}

fn definition(OwnKind { topic, plural, definition }: &OwnKind, live: &Fetched) -> Diagnosis {
    let fix = format!("kubectl apply --server-side --force-conflicts -f manifests/base/{plural}.yaml");
    let named = format!("the CustomResourceDefinition {plural}.interlock.dev");
    let live = match live {
        Fetched::Known(live) => live,
        Fetched::Absent => {
            let evidence = format!("{named} is missing: {topic} cannot be created");
            return Diagnosis::found(topic, Medium, evidence, fix);
        }
        Fetched::Unknown(why) => return Diagnosis::skipped(topic, why),
    };
    let established = live["status"]["conditions"].as_array().into_iter().flatten();
    let established = established.into_iter().any(|it| it["type"] == "Established" && it["status"] == "True");
    let shipped = first_version(&serde_json::to_value(definition()).unwrap_or_default());
    let live = first_version(live);
    if !established {
        Diagnosis::found(topic, Medium, format!("{named} is not established"), fix)
    } else if live["name"] != shipped["name"] || live["schema"] != shipped["schema"] {
        Diagnosis::found(topic, Medium, format!("{named} belongs to another version of Interlock"), fix)
    } else {
        Diagnosis::ok(topic, format!("{named} matches this version"))
    }
}

fn first_version(definition: &Value) -> Value {
    definition["spec"]["versions"].as_array().and_then(|all| all.first()).cloned().unwrap_or_default()
}

fn policies(snapshot: &Snapshot) -> Diagnosis {
    let namespace = &snapshot.namespace;
    let files = match &snapshot.policies {
        Ok(Some(files)) => files,
        Ok(None) => {
            let evidence = format!(
                "there is no ConfigMap interlock-policies in namespace {namespace}: replicas use the shipped policy, \
                 or do not start"
            );
            return Diagnosis::found(POLICIES_TOPIC, Medium, evidence, publish(namespace));
        }
        Err(why) => return Diagnosis::skipped(POLICIES_TOPIC, why),
    };
    match LoadedPolicies::of(files).into_policies() {
        Ok(policies) => Diagnosis::ok(
            POLICIES_TOPIC,
            format!("cluster.yaml and {} namespace policies are valid", policies.namespaces().count()),
        ),
        Err(error) => {
            let evidence = format!(
                "running replicas keep the last valid policies, and new replicas do not start: \
                {error}"
            );
            Diagnosis::found(POLICIES_TOPIC, High, evidence, publish(namespace))
        }
    }
}

fn publish(namespace: &str) -> String {
    format!(
        "interlock policy check policies/   # until it reports no error, then\n\
         kubectl -n {namespace} create configmap interlock-policies --from-file=policies/cluster.yaml \
         --dry-run=client -o yaml | kubectl apply -f -\n\
         (if a chart or GitOps manages it, change it there)"
    )
}

#[cfg(test)]
mod tests {
    use interlock_engine::policy_files::PolicyFiles;
    use serde_json::json;

    use super::*;

    fn defined() -> Value {
        let mut live = serde_json::to_value(ReleaseOverride::crd()).unwrap();
        live["status"] = json!({"conditions": [{"type": "Established", "status": "True"}]});
        live
    }

    #[test]
    fn definitions_are_missing_older_or_right() {
        let state = |fetched: Fetched| definition(&OVERRIDES, &fetched).state.as_str();
        assert_eq!(state(Fetched::Known(defined())), "ok");
        assert_eq!(state(Fetched::Absent), "medium");
        assert_eq!(state(Fetched::Unknown("forbidden".to_owned())), "skipped");
        let mut older = defined();
        older["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
            .as_object_mut()
            .unwrap()
            .remove("users");
        assert_eq!(state(Fetched::Known(older)), "medium");
    }

    #[test]
    fn policies_are_read_as_replicas_read_them() {
        let good = include_str!("../../../policies/cluster.yaml");
        let of = |namespaces: &[(String, String)], text: &str| {
            Ok(Some(PolicyFiles::mounted([("cluster.yaml".to_owned(), text.to_owned())], namespaces.to_vec())))
        };
        let described = |policies: Result<Option<PolicyFiles>, String>| {
            let check = super::policies(&Snapshot { policies, ..Snapshot::unread() });
            (check.state.as_str(), check.evidence)
        };
        assert_eq!(described(of(&[], good)).0, "ok");
        let shop = "apiVersion: interlock.dev/v1alpha1\nkind: NamespacePolicy\nrules: {manual-edit: {mode: of}}\n";
        let wrong = described(of(&[("shop.yaml".to_owned(), shop.to_owned())], good));
        assert!(
            wrong.0 == "high" && wrong.1.contains("namespaces/shop.yaml:3:") && wrong.1.contains("did you mean"),
            "{wrong:?}"
        );
        assert_eq!(described(of(&[], "nonsense")).0, "high");
        assert_eq!(described(Ok(Some(PolicyFiles::mounted([], [])))).0, "high");
        assert_eq!(described(Ok(None)).0, "medium");
        assert_eq!(described(Err("forbidden".to_owned())).0, "skipped");
    }
}

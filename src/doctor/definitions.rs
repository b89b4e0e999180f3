//! The definition of ReleaseOverrides, and the policies that replicas read.

use kube::CustomResourceExt;
use serde_json::Value;

use super::check::Check;
use super::{Cluster, Seen};
use crate::crd::ReleaseOverride;
use crate::policy::{Files, Reading};
use crate::scan::Severity::{High, Medium};

const DEFINITION: &str = "overrides";
const POLICIES: &str = "policies";

pub(super) fn checks(cluster: &Cluster) -> Vec<Check> {
    vec![definition(cluster), policies(cluster)]
}

fn definition(cluster: &Cluster) -> Check {
    let fix = "kubectl apply --server-side --force-conflicts -f manifests/base/releaseoverrides.yaml";
    let live = match &cluster.definition {
        Seen::Known(live) => live,
        Seen::Absent => {
            let evidence = "ReleaseOverrides are not defined: there is no break-glass";
            return Check::found(DEFINITION, Medium, evidence, fix);
        }
        Seen::Unknown(why) => return Check::skipped(DEFINITION, why),
    };
    let established = live["status"]["conditions"].as_array().into_iter().flatten();
    let established = established.into_iter().any(|it| it["type"] == "Established" && it["status"] == "True");
    let ours = serde_json::to_value(ReleaseOverride::crd()).unwrap_or_default();
    let version =
        |of: &Value| of["spec"]["versions"].as_array().and_then(|all| all.first()).cloned().unwrap_or_default();
    let (live, ours) = (version(live), version(&ours));
    if !established {
        Check::found(DEFINITION, Medium, "the definition of ReleaseOverrides is not served", fix)
    } else if live["name"] != ours["name"] || live["schema"] != ours["schema"] {
        Check::found(DEFINITION, Medium, "the definition of ReleaseOverrides is of another version of Interlock", fix)
    } else {
        Check::ok(DEFINITION, "ReleaseOverrides are defined as in this version")
    }
}

fn policies(cluster: &Cluster) -> Check {
    let namespace = &cluster.namespace;
    let cluster_policy = match &cluster.policies {
        Seen::Known(map) => match map["data"]["cluster.yaml"].as_str() {
            Some(text) => text.to_owned(),
            None => {
                let evidence = "the ConfigMap interlock-policies has no key cluster.yaml";
                return Check::found(POLICIES, High, evidence, publish(namespace));
            }
        },
        Seen::Absent => {
            let evidence = format!(
                "there is no ConfigMap interlock-policies in {namespace}: replicas have the shipped policy, or do not start"
            );
            return Check::found(POLICIES, Medium, evidence, publish(namespace));
        }
        Seen::Unknown(why) => return Check::skipped(POLICIES, why),
    };
    let of_namespaces = match &cluster.namespace_policies {
        Seen::Known(map) => map["data"].as_object().cloned().unwrap_or_default(),
        Seen::Absent => serde_json::Map::new(),
        Seen::Unknown(why) => return Check::skipped(POLICIES, why),
    };
    let namespaces = of_namespaces.into_iter().filter_map(|(key, text)| Some((key, text.as_str()?.to_owned())));
    let files = Files::mounted([("cluster.yaml".to_owned(), cluster_policy)], namespaces);
    match Reading::of(&files).whole() {
        Ok(policies) => Check::ok(
            POLICIES,
            format!("cluster.yaml and {} of namespaces read without an error", policies.namespaces().count()),
        ),
        Err(error) => {
            let evidence = format!("replicas go on with the last good policies, and new ones do not start: {error}");
            Check::found(POLICIES, High, evidence, publish(namespace))
        }
    }
}

fn publish(namespace: &str) -> String {
    format!(
        "interlock policy check policies/   # until it says nothing, then\n\
         kubectl -n {namespace} create configmap interlock-policies --from-file=policies/cluster.yaml \
         --dry-run=client -o yaml | kubectl apply -f -\n\
         (where a chart or GitOps installed it, through that)"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::cluster;
    use super::*;

    fn defined() -> Value {
        let mut live = serde_json::to_value(ReleaseOverride::crd()).unwrap();
        live["status"] = json!({"conditions": [{"type": "Established", "status": "True"}]});
        live
    }

    #[test]
    fn definitions_are_missing_older_or_right() {
        let state = |seen: Seen| definition(&Cluster { definition: seen, ..cluster() }).state.as_str();
        assert_eq!(state(Seen::Known(defined())), "ok");
        assert_eq!(state(Seen::Absent), "medium");
        assert_eq!(state(Seen::Unknown("forbidden".to_owned())), "skipped");
        let mut older = defined();
        older["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
            .as_object_mut()
            .unwrap()
            .remove("users");
        assert_eq!(state(Seen::Known(older)), "medium");
    }

    #[test]
    fn policies_are_read_as_replicas_read_them() {
        let good = include_str!("../../policies/cluster.yaml");
        let map = |text: &str| Seen::Known(json!({"data": {"cluster.yaml": text}}));
        let told = |policies: Seen, namespaces: Seen| {
            let check = super::policies(&Cluster { policies, namespace_policies: namespaces, ..cluster() });
            (check.state.as_str(), check.evidence)
        };
        assert_eq!(told(map(good), Seen::Absent).0, "ok");
        let shop = "apiVersion: interlock.dev/v1alpha1\nkind: NamespacePolicy\nrules: {manual-edit: {mode: of}}\n";
        let wrong = told(map(good), Seen::Known(json!({"data": {"shop.yaml": shop}})));
        assert!(
            wrong.0 == "high" && wrong.1.contains("namespaces/shop.yaml:3:") && wrong.1.contains("did you mean"),
            "{wrong:?}"
        );
        assert_eq!(told(map("nonsense"), Seen::Absent).0, "high");
        assert_eq!(told(Seen::Known(json!({"data": {}})), Seen::Absent).0, "high");
        assert_eq!(told(Seen::Absent, Seen::Absent).0, "medium");
    }
}

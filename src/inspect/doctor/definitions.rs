//! The definition of ReleaseOverrides, and the policies that replicas read.

use kube::CustomResourceExt;
use serde_json::Value;

use super::check::Check;
use super::{Cluster, Seen};
use crate::engine::policy::LoadedPolicies;
use crate::inspect::scan::Severity::{High, Medium};
use crate::world::kubernetes::override_definition::ReleaseOverride;

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
    let files = match &cluster.policies {
        Ok(Some(files)) => files,
        Ok(None) => {
            let evidence = format!(
                "there is no ConfigMap interlock-policies in {namespace}: replicas have the shipped policy, or do not start"
            );
            return Check::found(POLICIES, Medium, evidence, publish(namespace));
        }
        Err(why) => return Check::skipped(POLICIES, why),
    };
    match LoadedPolicies::of(files).into_policies() {
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

    use super::*;
    use crate::engine::policy::PolicyFiles;
    use crate::inspect::doctor::tests::cluster;

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
        let good = include_str!("../../../policies/cluster.yaml");
        let of = |namespaces: &[(String, String)], text: &str| {
            Ok(Some(PolicyFiles::mounted([("cluster.yaml".to_owned(), text.to_owned())], namespaces.to_vec())))
        };
        let told = |policies: Result<Option<PolicyFiles>, String>| {
            let check = super::policies(&Cluster { policies, ..cluster() });
            (check.state.as_str(), check.evidence)
        };
        assert_eq!(told(of(&[], good)).0, "ok");
        let shop = "apiVersion: interlock.dev/v1alpha1\nkind: NamespacePolicy\nrules: {manual-edit: {mode: of}}\n";
        let wrong = told(of(&[("shop.yaml".to_owned(), shop.to_owned())], good));
        assert!(
            wrong.0 == "high" && wrong.1.contains("namespaces/shop.yaml:3:") && wrong.1.contains("did you mean"),
            "{wrong:?}"
        );
        assert_eq!(told(of(&[], "nonsense")).0, "high");
        assert_eq!(told(Ok(Some(PolicyFiles::mounted([], [])))).0, "high");
        assert_eq!(told(Ok(None)).0, "medium");
        assert_eq!(told(Err("forbidden".to_owned())).0, "skipped");
    }
}

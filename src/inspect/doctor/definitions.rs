//! The CustomResourceDefinitions of ReleaseOverrides and Freezes, and the policies that replicas read.

use interlock_engine::policy_files::LoadedPolicies;
use interlock_engine::severity::Severity::{High, Medium};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::Value;

use super::diagnosis::{Checked, Diagnosis};
use super::fetch::Fetched;
use super::selector::each;
use super::snapshot::Snapshot;
use crate::world::kubernetes::freeze_definition::Freeze;
use crate::world::kubernetes::override_definition::ReleaseOverride;

pub(super) fn overrides(snapshot: &Snapshot) -> Checked {
    definition(&ReleaseOverride::crd(), "overrides", &snapshot.overrides_definition)
}

pub(super) fn freezes(snapshot: &Snapshot) -> Checked {
    definition(&Freeze::crd(), "freezes", &snapshot.freezes_definition)
}

/// `objects`: what users call the objects of the kind.
fn definition(shipped: &CustomResourceDefinition, objects: &str, live: &Fetched) -> Checked {
    let plural = &shipped.spec.names.plural;
    let fix = format!("kubectl apply --server-side --force-conflicts -f manifests/base/{plural}.yaml");
    let named = format!("the CustomResourceDefinition {plural}.interlock.dev");
    let Some(live) = live.object()? else {
        return Ok(Diagnosis::found(Medium, format!("{named} is missing: {objects} cannot be created"), fix));
    };
    let is_established =
        each(&live["status"]["conditions"]).any(|it| it["type"] == "Established" && it["status"] == "True");
    let shipped = first_version(&serde_json::to_value(shipped).unwrap_or_default());
    let live = first_version(live);
    Ok(if !is_established {
        Diagnosis::found(Medium, format!("{named} is not established"), fix)
    } else if live["name"] != shipped["name"] || live["schema"] != shipped["schema"] {
        Diagnosis::found(Medium, format!("{named} belongs to another version of Interlock"), fix)
    } else {
        Diagnosis::ok(format!("{named} matches this version"))
    })
}

fn first_version(definition: &Value) -> Value {
    each(&definition["spec"]["versions"]).next().cloned().unwrap_or_default()
}

pub(super) fn policies(snapshot: &Snapshot) -> Checked {
    let Snapshot { namespace, policies, .. } = snapshot;
    let publish = format!(
        "interlock policy check policies/   # until it reports no error, then\n\
         kubectl -n {namespace} create configmap interlock-policies --from-file=policies/cluster.yaml \
         --dry-run=client -o yaml | kubectl apply -f -\n\
         (if a chart or GitOps manages it, change it there)"
    );
    let Some(files) = policies.as_ref().map_err(Clone::clone)? else {
        let evidence = format!(
            "there is no ConfigMap interlock-policies in namespace {namespace}: replicas use the shipped policy, or do \
             not start"
        );
        return Ok(Diagnosis::found(Medium, evidence, publish));
    };
    Ok(match LoadedPolicies::of(files).into_policies() {
        Ok(policies) => {
            Diagnosis::ok(format!("cluster.yaml and {} namespace policies are valid", policies.namespaces().count()))
        }
        Err(error) => {
            let evidence =
                format!("running replicas keep the last valid policies, and new replicas do not start: {error}");
            Diagnosis::found(High, evidence, publish)
        }
    })
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
        let state =
            |fetched: Fetched| definition(&ReleaseOverride::crd(), "overrides", &fetched).map(|it| it.state.as_str());
        assert_eq!(state(Fetched::Known(defined())), Ok("ok"));
        assert_eq!(state(Fetched::Absent), Ok("medium"));
        assert_eq!(state(Fetched::Unknown("forbidden".to_owned())), Err("forbidden".to_owned()));
        let mut older = defined();
        older["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
            .as_object_mut()
            .unwrap()
            .remove("users");
        assert_eq!(state(Fetched::Known(older)), Ok("medium"));
    }

    #[test]
    fn policies_are_read_as_replicas_read_them() {
        let good = include_str!("../../../policies/cluster.yaml");
        let of = |namespaces: &[(String, String)], text: &str| {
            Ok(Some(PolicyFiles::mounted([("cluster.yaml".to_owned(), text.to_owned())], namespaces.to_vec())))
        };
        let described = |policies: Result<Option<PolicyFiles>, String>| {
            let check = super::policies(&Snapshot { policies, ..Snapshot::unread() });
            check.map_or_else(|why| ("skipped", why), |check| (check.state.as_str(), check.evidence))
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

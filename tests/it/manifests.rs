//! The registration: properties of every entry, and of the entries for objects.

use std::fs;

use interlock_engine::managed::Mark;
use interlock_engine::owners::{managers_of_releases, selecting_marks};
use serde_json::{Value, json};

use crate::harness::binary::repository;

/// The gates. They fail closed once a review has arrived: a missed write cannot be undone, and a refused one is retried.
const GATES: [&str; 4] =
    ["create-delete.records.interlock.dev", "commits.sveltos.interlock.dev", "overrides.interlock.dev", STATUSES];

/// The entry for statuses that prove something. Every other entry leaves statuses alone, because controllers write them all the time.
const STATUSES: &str = "statuses.interlock.dev";
const PROTECTION: &str = "protection.interlock.dev";

/// The entry for probes, which must tell why a call fails.
const PROBES: &str = "probes.interlock.dev";

/// How the names of the entries for the objects of owners end. The chart knows them by it.
const OF_OBJECTS: &str = "objects.interlock.dev";

/// Entries for every namespace, including Interlock's own.
const EVERYWHERE: [&str; 2] = ["overrides.interlock.dev", PROBES];

/// The entries of the validating half, with YAML anchors resolved.
fn entries() -> Vec<Value> {
    configuration()["webhooks"].as_array().unwrap().clone()
}

fn configuration() -> Value {
    let file = repository("manifests/base/validating-webhooks.yaml");
    serde_saphyr::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

fn entry(name: &str) -> Value {
    entries().into_iter().find(|entry| entry["name"] == name).unwrap_or_else(|| panic!("there is no entry {name}"))
}

fn strings(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn conditions(entry: &Value) -> Vec<&str> {
    entry["matchConditions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|condition| condition["name"].as_str())
        .collect()
}

#[test]
fn every_entry_is_narrow_patient_for_three_seconds_and_without_side_effects() {
    let entries = entries();
    let elsewhere = &entries[0]["namespaceSelector"];
    assert!(elsewhere.to_string().contains("kube-node-lease"), "{elsewhere}");
    for entry in &entries {
        let name = entry["name"].as_str().unwrap();
        assert_eq!(entry["timeoutSeconds"], 3, "{name}");
        assert_eq!(entry["sideEffects"], "NoneOnDryRun", "{name}");
        assert_eq!(entry["matchPolicy"], "Equivalent", "{name}");
        let selector = if EVERYWHERE.contains(&name) { &json!({}) } else { elsewhere };
        assert_eq!(&entry["namespaceSelector"], selector, "{name}");
        assert_eq!(entry["clientConfig"]["service"]["path"], "/validate", "{name}");
        assert!(!entry["matchConditions"].as_array().unwrap().is_empty(), "{name}");
        assert_eq!(entry["failurePolicy"] == "Fail", name == PROBES, "{name}");
        assert_eq!(conditions(entry).contains(&"not-a-probe"), name == "overrides.interlock.dev", "{name}");
        if GATES.contains(&name) {
            assert!(conditions(entry).contains(&"not-cascading-deletion"), "{name}");
        }
        for rule in entry["rules"].as_array().unwrap() {
            let all =
                [strings(&rule["apiGroups"]), strings(&rule["apiVersions"]), strings(&rule["resources"])].concat();
            let never = ["*", "*/*", "leases", "nodes", "events", "events.k8s.io", "coordination.k8s.io"];
            assert!(!all.iter().any(|item| never.contains(item)), "{name}: {all:?}");
            // A write of the status can take the annotation of a Namespace off.
            let is_of_status = name == STATUSES || (name == PROTECTION && all.contains(&"namespaces"));
            assert_eq!(all.iter().any(|item| item.ends_with("/status")), is_of_status, "{name}: {all:?}");
        }
    }
    let open = &configuration()["metadata"]["annotations"]["interlock.dev/open-until-called"];
    assert_eq!(open.as_str().unwrap().split(',').collect::<Vec<_>>(), GATES);
    let mut names: Vec<_> = entries.iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), entries.len());
}

#[test]
fn definitions_are_those_whose_fields_an_installer_of_releases_wrote() {
    let entry = entry("definitions.interlock.dev");
    let condition = entry["matchConditions"].as_array().unwrap().iter().find(|it| it["name"] == "installed-by-helm");
    let expression = condition.unwrap()["expression"].as_str().unwrap().to_owned();
    let managers: Vec<_> = expression.split('\'').skip(1).step_by(2).collect();
    assert_eq!(managers, managers_of_releases());
}

#[test]
fn objects_are_chosen_by_the_marks_of_their_owner() {
    let mut chosen: Vec<_> =
        entries().into_iter().filter(|entry| entry["name"].as_str().unwrap().ends_with(OF_OBJECTS)).collect();
    let shared = entry("objects.interlock.dev")["rules"].clone();
    for rule in shared.as_array().unwrap() {
        assert_eq!(rule["operations"], json!(["UPDATE", "DELETE"]));
        assert!(
            strings(&rule["resources"]).iter().all(|resource| *resource == "pods/resize" || !resource.contains('/')),
            "{rule}"
        );
    }
    for (label, name) in selecting_marks() {
        let selector = match label {
            None => Value::Null,
            Some(Mark { key, value: Some(value), .. }) => json!({"matchLabels": {key: value}}),
            Some(Mark { key, .. }) => json!({"matchExpressions": [{"key": key, "operator": "Exists"}]}),
        };
        let place = chosen.iter().position(|entry| entry["objectSelector"] == selector);
        let entry = chosen.remove(place.unwrap_or_else(|| panic!("no entry is for objects with {}", name.key)));
        assert_eq!(entry["rules"], shared, "{entry}");
        let conditions = entry["matchConditions"].as_array().unwrap();
        assert!(conditions[0]["expression"].as_str().unwrap().contains(name.key), "{entry}");
        assert_eq!(conditions[1]["name"], "not-cascading-deletion");
    }
    assert!(chosen.is_empty(), "of no owner: {chosen:?}");
}

#[test]
fn scaling_is_chosen_by_nothing_but_who_asks() {
    let scale = entry("scale.interlock.dev");
    assert_eq!(scale.get("objectSelector"), None);
    let resources: Vec<_> =
        scale["rules"].as_array().unwrap().iter().flat_map(|rule| strings(&rule["resources"])).collect();
    assert_eq!(
        resources,
        ["deployments/scale", "statefulsets/scale", "replicasets/scale", "replicationcontrollers/scale"]
    );
}

#[test]
fn helm_releases_are_sent_when_their_spec_changes() {
    let entry = entry("helmreleases.flux.interlock.dev");
    assert_eq!(entry.get("objectSelector"), None);
    assert_eq!(
        entry["rules"],
        json!([{
            "operations": ["CREATE", "UPDATE", "DELETE"], "apiGroups": ["helm.toolkit.fluxcd.io"], "apiVersions": ["v2"],
            "resources": ["helmreleases"], "scope": "Namespaced",
        }])
    );
    let conditions = entry["matchConditions"].as_array().unwrap();
    assert!(conditions[0]["expression"].as_str().unwrap().contains("object.spec != oldObject.spec"));
    assert_eq!(conditions[1]["name"], "not-cascading-deletion");
}

#[test]
fn commits_of_sveltos_are_sent_where_they_change_what_an_agent_does() {
    let commits = entry("commits.sveltos.interlock.dev");
    let rules = commits["rules"].as_array().unwrap();
    assert_eq!(rules.len(), 1);
    assert_eq!(rules[0]["operations"], json!(["CREATE", "UPDATE"]));
    assert_eq!(rules[0]["resources"], json!(["configurationgroups"]));
    let selector = commits["objectSelector"]["matchExpressions"].as_array().unwrap();
    let chosen: Vec<_> = selector.iter().map(|it| (it["key"].as_str().unwrap(), strings(&it["values"]))).collect();
    let label = "pullmode.projectsveltos.io/requestor";
    assert_eq!(chosen[0], (format!("{label}kind").as_str(), vec!["ClusterSummary"]));
    assert_eq!(chosen[1], (format!("{label}feature").as_str(), vec!["Helm", "Resources", "Kustomize"]));
    let names = conditions(&commits);
    assert_eq!(names, ["not-cascading-deletion", "new-specification", "no-teardown-nor-dry-run", "not-preparing"]);
}

#[test]
fn commits_that_only_claim_to_be_something_else_are_sent_too() {
    let (commits, claims) = (entry("commits.sveltos.interlock.dev"), entry("claims.sveltos.interlock.dev"));
    assert_eq!((&claims["rules"], &claims["failurePolicy"]), (&commits["rules"], &json!("Ignore")));
    assert_eq!(claims.get("objectSelector"), None);
    assert_eq!(claims["matchConditions"][1], commits["matchConditions"][1]);
    assert_eq!(conditions(&claims)[2..], ["of-a-profile", "only-what-the-other-entry-leaves-out", "removes-something"]);
}

#[test]
fn the_role_reads_what_commits_are_compared_with() {
    let file = repository("manifests/base/rbac.yaml");
    let text = fs::read_to_string(file).unwrap();
    let role = text.split("\n---\n").find(|document| document.contains("kind: ClusterRole\n")).unwrap();
    let role: Value = serde_saphyr::from_str(role).unwrap();
    let granted = |group: &str| {
        let rules = role["rules"].as_array().unwrap().iter().filter(|rule| strings(&rule["apiGroups"]) == [group]);
        rules.map(|rule| (strings(&rule["resources"]).join(" "), strings(&rule["verbs"]).join(" "))).collect::<Vec<_>>()
    };
    let rule = |resources: &str, verbs: &str| (resources.to_owned(), verbs.to_owned());
    let commits = rule("configurationbundles sveltosclusters", "get");
    // For the scan of the leader.
    let scanned = rule("configurationgroups configurationbundles", "list");
    assert_eq!(granted("lib.projectsveltos.io"), [commits, scanned]);
    let profiles = rule("clustersummaries clusterconfigurations profiles", "get");
    assert_eq!(granted("config.projectsveltos.io"), [profiles]);
}

#[test]
fn the_image_is_built_of_everything_that_the_sources_include() {
    let root = repository("");
    let ignore = fs::read_to_string(root.join(".dockerignore")).unwrap();
    let kept: Vec<_> = ignore.lines().filter_map(|line| line.strip_prefix('!')).map(|path| root.join(path)).collect();
    let mut included = 0;
    let mut directories = vec![root.join("src"), root.join("crates/engine/src")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            for after in text.split("include_str!(\"").skip(1) {
                let file = directory.join(after.split('"').next().unwrap()).canonicalize().unwrap();
                assert!(
                    kept.iter().any(|kept| file.starts_with(kept)),
                    "{} includes {}",
                    path.display(),
                    file.display()
                );
                included += 1;
            }
        }
    }
    assert!(included > 0);
}

//! The presets for platforms: the same for the chart and for kustomize, and the policies that kustomize needs.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value};

use super::{PRESETS, WRITE, object, preset, rendered};
use crate::harness::binary::{interlock, repository, stderr};

fn accounts(name: &str) -> Map<String, Value> {
    let text = fs::read_to_string(repository("manifests/chart/platforms").join(format!("{name}.yaml"))).unwrap();
    let values: Value = serde_saphyr::from_str(&text).unwrap();
    values["policies"]["accounts"][name].as_object().cloned().unwrap_or_default()
}

fn names(directory: &str) -> Vec<String> {
    let entries = fs::read_dir(repository(directory)).unwrap().map(|entry| entry.unwrap().path());
    let mut names: Vec<_> = entries.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

#[test]
fn each_preset_has_a_component_an_overlay_and_a_section_of_the_page() {
    assert_eq!(names("manifests/chart/platforms"), PRESETS);
    assert_eq!(names("manifests/components"), PRESETS);
    let page = fs::read_to_string(repository("docs/platforms.md")).unwrap();
    for name in PRESETS {
        assert!(repository("manifests/overlays").join(name).join("kustomization.yaml").is_file(), "{name}");
        for said in [format!("platforms/{name}.yaml"), format!("components/{name}")] {
            assert!(page.contains(&said), "docs/platforms.md does not say {said}");
        }
    }
}

#[test]
fn a_preset_that_does_not_exist_is_an_error_that_names_it() {
    let error = rendered(&[&preset("gcp")]).unwrap_err();
    assert!(error.contains("manifests/chart/platforms/gcp.yaml: no such file or directory"), "{error}");
}

/// kustomize replaces the policy as a whole, so each platform with accounts has one.
#[test]
fn the_policy_of_a_platform_adds_its_accounts() {
    let with_accounts: Vec<_> = PRESETS.into_iter().filter(|name| !accounts(name).is_empty()).collect();
    assert_eq!(names("policies/platforms"), with_accounts);
    for name in with_accounts {
        let mut made = format!(
            "# Adds the accounts of the platform to the shipped policy. Generated from manifests/chart/platforms/{name}.yaml.\n\
             apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\n"
        );
        for (list, accounts) in accounts(name) {
            made.push_str(&format!("{list}:\n"));
            let accounts = accounts.as_array().unwrap().iter().map(|account| account.as_str().unwrap());
            accounts.for_each(|account| made.push_str(&format!("  - '{account}'\n")));
        }
        let directory = repository("policies/platforms").join(name);
        let file = directory.join("cluster.yaml");
        if std::env::var_os(WRITE).is_some() {
            fs::write(&file, &made).unwrap();
        }
        assert!(fs::read_to_string(&file).unwrap_or_default() == made, "{WRITE}=1 writes {}", file.display());
        expect_good(&directory);
        let objects = rendered(&[&preset(name)]).unwrap();
        let rendered = object(&objects, "ConfigMap", "interlock-policies")["data"]["cluster.yaml"].as_str().unwrap();
        let [of_chart, of_file] = [rendered, &made].map(|text| serde_saphyr::from_str::<Value>(text).unwrap());
        assert_eq!(of_chart, of_file, "{name}");
    }
}

#[track_caller]
fn expect_good(directory: &Path) {
    let output = interlock(&["policy", "check", "--strict", directory.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
}

/// A glob over namespaces would let tenants make a platform's account.
#[test]
fn accounts_of_platforms_name_their_namespaces() {
    for name in PRESETS {
        for account in accounts(name).values().flat_map(|list| list.as_array().unwrap()) {
            let account = account.as_str().unwrap();
            if let Some(account) = account.strip_prefix("system:serviceaccount:") {
                assert!(!account.contains(['*', '?', '[', '{']), "{account}");
            }
        }
    }
}

//! Patterns that cannot be used, and examples that would be refused.

use crate::policy::{NamespaceLabels, Policies};
use crate::policy_files::{LoadedPolicies, PolicyFiles, SettingInForce, in_force};

const HEADER: &str = "apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\n";

fn files(cluster: &str, shop: Option<&str>) -> PolicyFiles {
    let mut files = PolicyFiles::default();
    files.set_cluster("c".into(), format!("{HEADER}overrides: {{{cluster}}}\n"));
    if let Some(shop) = shop {
        let header = HEADER.replace("Cluster", "Namespace");
        files.add_namespace("shop".into(), "n".into(), format!("{header}overrides: {{{shop}}}\n"));
    }
    files
}

fn problems(cluster: &str) -> Vec<String> {
    LoadedPolicies::of(&files(cluster, None)).problems.iter().map(ToString::to_string).collect()
}

#[test]
fn a_pattern_comes_with_an_example_that_matches_it() {
    let right = "reasonPattern: 'OPS-[0-9]+', reasonExample: 'OPS-12: roll back the image'";
    assert_eq!(problems(right), Vec::<String>::new());
    for (keys, place, wanted) in [
        ("reasonPattern: 'OPS-[0-9]+'", "c:3:13", "needs `reasonExample`, a reason that matches it"),
        ("reasonExample: 'OPS-12: why'", "c:3:13", "needs `reasonPattern`"),
        (
            "reasonPattern: 'OPS-[0-9]+', reasonExample: 'incident 7'",
            "c:3:57",
            "the example does not match `OPS-[0-9]+`",
        ),
        ("reasonPattern: '^OPS-[0-9]+$', reasonExample: 'OPS-12: why'", "c:3:59", "the example does not match"),
        ("reasonPattern: 'OPS', reasonExample: OPS", "c:3:50", "the example has 3 characters; a reason has 5 to 500"),
        ("reasonPattern: 'OPS-[0-9', reasonExample: 'OPS-12'", "c:3:28", "cannot be used: unclosed character class"),
        ("reasonPattern: '(\\w{100}){100}', reasonExample: 'OPS-12'", "c:3:28", "it is too large once compiled"),
        ("reasonPattern: '', reasonExample: 'OPS-12'", "c:3:28", "the pattern is empty"),
        ("reasonPattern: [OPS], reasonExample: 'OPS-12'", "c:3:28", "expected one value, got a list"),
    ] {
        let found = problems(keys);
        assert_eq!(found.len(), 1, "{keys}: {found:?}");
        assert!(found[0].contains(place) && found[0].contains(wanted), "{keys}: {}", found[0]);
    }
    let long = format!("reasonPattern: '{}', reasonExample: 'OPS-12'", "a".repeat(1025));
    assert!(problems(&long)[0].contains("it has 1025 bytes, and at most 1024 are allowed"), "{:?}", problems(&long));
}

#[test]
fn a_namespace_adds_a_pattern_to_that_of_the_cluster() {
    let cluster = "reasonPattern: 'OPS-[0-9]+', reasonExample: 'OPS-12: why'";
    let shop = "reasonPattern: '^[a-zA-Z]', reasonExample: 'see OPS-12'";
    let policies = |shop| -> Policies { LoadedPolicies::of(&files(cluster, shop)).into_policies().unwrap() };
    let of_shop = policies(Some(shop));
    let patterns = |policies: &Policies, namespace: &str| -> Vec<String> {
        policies.of(namespace).overrides.reason_patterns.iter().map(|it| it.as_str().to_owned()).collect()
    };
    assert_eq!(patterns(&of_shop, "shop"), ["OPS-[0-9]+", "^[a-zA-Z]"]);
    assert_eq!(patterns(&of_shop, "other"), ["OPS-[0-9]+"]);
    assert_eq!(patterns(&policies(Some("secondPerson: true")), "shop"), ["OPS-[0-9]+"]);
    let shown = in_force(&files(cluster, Some(shop)), "shop", &NamespaceLabels::new()).unwrap().overrides;
    let shown = shown.iter().filter(|it| it.name == "reasonPattern").map(|SettingInForce { value, .. }| value.as_str());
    assert_eq!(shown.collect::<Vec<_>>(), ["'^[a-zA-Z]'", "'OPS-[0-9]+'"]);
}

#[test]
fn only_the_cluster_sets_the_retention_of_overrides() {
    let retained = |keys: &str| {
        let policies = LoadedPolicies::of(&files(keys, None)).into_policies().unwrap();
        policies.of("").overrides.retain_expired.as_hours()
    };
    assert_eq!(
        (retained("allowed: true"), retained("retainExpired: 30d"), retained("retainExpired: 36h")),
        (2_160, 720, 36)
    );
    assert!(problems("retainExpired: 0s")[0].contains("is not a duration"), "{:?}", problems("retainExpired: 0s"));
    assert!(problems("retainExpired: 1 month")[0].contains("is not a duration"));
    let problems = LoadedPolicies::of(&files("allowed: true", Some("retainExpired: 1d"))).problems;
    let errors: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert!(errors[0].contains("only the cluster policy may set `retainExpired`"), "{errors:?}");
}

use serde_json::{Value, json};

use super::*;

fn group(labels: Value, requestor: &str, source: Value) -> String {
    json!({
        "metadata": {"name": "config-g", "labels": labels, "annotations": {"pullmode.projectsveltos.io/requestorname": requestor}},
        "spec": {"sourceRef": source},
    })
    .to_string()
}

fn of(feature: &str, requestor: &str, source: Value) -> Commit {
    let labels = json!({
        "pullmode.projectsveltos.io/clustername": "prod", "pullmode.projectsveltos.io/requestorkind": "ClusterSummary",
        "pullmode.projectsveltos.io/requestorfeature": feature,
    });
    let text = group(labels, requestor, source);
    let group: ConfigurationGroup<'_> = serde_json::from_str(&text).unwrap();
    Requestor::of(&group, None).commit("civ", "config-g")
}

fn shop() -> Value {
    json!({"kind": "ClusterProfile", "name": "shop"})
}

#[test]
fn a_commit_has_a_stable_name_that_leads_to_its_object() {
    let tenant = || json!({"kind": "Profile", "namespace": "civ", "name": "tenant"});
    for (feature, requestor, source, name, said) in [
        (
            "Helm",
            "shop-sveltos-prod",
            shop(),
            "shop-sveltos-prod.helm",
            "the Helm commit of ClusterSummary civ/shop-sveltos-prod",
        ),
        ("Resources", "a.b", shop(), "a.b.resources", "the Resources commit of ClusterSummary civ/a.b"),
        ("Kustomize", "s", shop(), "s.kustomize", "the Kustomize commit of ClusterSummary civ/s"),
        ("Later", "s", shop(), "s.other", "the commit of ClusterSummary civ/s"),
        ("Helm", "", shop(), "shop.helm.clusterprofile", "the Helm commit of ClusterProfile shop"),
        ("Helm", "", tenant(), "tenant.helm.profile", "the Helm commit of Profile civ/tenant"),
        // No object can have such a name.
        ("Helm", "Shop; rm -rf ~", shop(), "shop.helm.clusterprofile", "the Helm commit of ClusterProfile shop"),
        ("Helm", "", json!({}), "config-g.configurationgroup", "ConfigurationGroup civ/config-g"),
    ] {
        let commit = of(feature, requestor, source);
        assert_eq!((commit.name.as_str(), commit.to_string().as_str()), (name, said));
        let found = Commit::object_of(&commit.release("civ"));
        assert_eq!(found, Some(commit.object).filter(|object| object.group == CONFIG_GROUP), "{name}");
    }
    for other in ["web", "web.v1", "shop.clusterprofile", "config-g.configurationgroup"] {
        assert_eq!(Commit::object_of(&ReleaseRef::new("civ", other)), None, "{other}");
    }
}

#[test]
fn a_long_name_is_shortened_to_one_that_an_override_can_have() {
    // The cut is right after a dot.
    let long = |end: &str| format!("{}.{}{end}", "a".repeat(202), "b".repeat(46));
    let names: Vec<_> = ["x", "y"]
        .iter()
        .flat_map(|end| ["Helm", "Resources"].map(|feature| of(feature, &long(end), shop()).name))
        .collect();
    for (index, name) in names.iter().enumerate() {
        assert!(is_dns_subdomain(name, MAX_COMMIT_NAME_LENGTH) && name.ends_with(".digest"), "{name}");
        assert!(!names[..index].contains(name), "{name}");
        assert_eq!(Commit::object_of(&ReleaseRef::new("civ", name)), None);
    }
    let longest = "a".repeat(MAX_NAME_LENGTH);
    assert!(is_dns_subdomain(&of("Resources", &longest, shop()).name, MAX_COMMIT_NAME_LENGTH));
    let fits = "a".repeat(MAX_COMMIT_NAME_LENGTH - ".helm".len());
    assert_eq!(of("Helm", &fits, shop()).name, format!("{fits}.helm"));
}

#[test]
fn the_expected_summary_is_that_of_the_profile_on_the_cluster() {
    let expected = |source: Value, cluster: &str| {
        let text = group(json!({"pullmode.projectsveltos.io/clustername": cluster}), "x", source);
        let group: ConfigurationGroup<'_> = serde_json::from_str(&text).unwrap();
        Requestor::of(&group, None).expected_summary()
    };
    assert_eq!(expected(shop(), "prod").as_deref(), Some("shop-sveltos-prod"));
    assert_eq!(expected(json!({"kind": "Profile", "name": "t"}), "prod").as_deref(), Some("p--t-sveltos-prod"));
    assert_eq!(expected(shop(), ""), None);
    assert_eq!(expected(json!({"kind": "Classifier", "name": "t"}), "prod"), None);
}

//! Objects from ConfigMaps, Secrets and Flux sources.

use serde_json::json;

use super::*;

/// A profile that deploys a ConfigMap and a Flux source.
fn sources(source: Value) -> Shop {
    let mut shop = Shop::new();
    let config = json!({"kind": "ConfigMap", "namespace": "civ", "name": "quota"});
    shop.change("/spec/clusterProfileSpec/policyRefs", json!([config, source]));
    shop
}

fn repository() -> Value {
    json!({"kind": "GitRepository", "namespace": "flux", "name": "tenants", "path": "prod"})
}

fn delivered_from(owner: Value) -> Value {
    json!([{"featureID": "Resources", "resources": [{"kind": "Role", "name": "r", "owner": owner}]}])
}

#[test]
fn a_missing_required_flux_source_is_refused() {
    let shop = sources(repository());
    let config = shop.bundle("r1", json!({"referencedObjectKind": "ConfigMap", "referencedObjectName": "quota"}));
    let tenants =
        shop.bundle("r2", json!({"referencedObjectKind": "GitRepository", "referencedObjectName": "tenants"}));
    let (complete, bad) = ([config.clone(), tenants], [config]);
    let (complete, bad) = (of_feature(group(&complete), "Resources"), of_feature(group(&bad), "Resources"));
    assert_eq!(shop.create(&complete).admitted().asked.len(), 2);
    // Nothing was delivered from it yet.
    shop.create(&bad).admitted();
    shop.delivered(delivered_from(json!({"kind": "ConfigMap", "name": "quota"})));
    shop.create(&bad).admitted();
    let texts = ["leaves out GitRepository flux/tenants", "set optional: true", "Nothing was changed on the cluster"];
    shop.update(&complete, &bad).refused(&["dropped-bundles"], &texts);
    for owner in [json!({"kind": "GitRepository", "name": "tenants"}), json!({})] {
        shop.delivered(delivered_from(owner));
        shop.create(&bad).refused(&["dropped-bundles"], &texts);
    }

    for (field, value) in
        [("optional", json!(true)), ("deploymentType", json!("Local")), ("kind", json!("HelmRepository"))]
    {
        let mut reference = repository();
        reference[field] = value;
        let shop = sources(reference);
        shop.delivered(delivered_from(json!({"kind": "GitRepository", "name": "tenants"})));
        let config = shop.bundle("r1", json!({"referencedObjectKind": "ConfigMap", "referencedObjectName": "quota"}));
        shop.create(&of_feature(group(&[config]), "Resources")).admitted();
    }
}

fn reference(kind: &str, namespace: &str, name: &str) -> Value {
    json!({"kind": kind, "namespace": namespace, "name": name})
}

fn named(kind: &str, namespace: &str, name: &str) -> Value {
    json!({"referencedObjectKind": kind, "referencedObjectNamespace": namespace, "referencedObjectName": name})
}

/// A profile with these references, which were all delivered.
fn delivered(references: Value, owners: &[[&str; 3]]) -> Shop {
    let mut shop = Shop::new();
    shop.change("/spec/clusterProfileSpec/policyRefs", references);
    let resource = |[kind, namespace, name]: &[&str; 3]| json!({"kind": "Role", "name": "r", "owner": {"kind": kind, "namespace": namespace, "name": name}});
    let resources: Vec<_> = owners.iter().map(resource).collect();
    shop.delivered(json!([{"featureID": "Resources", "resources": resources}]));
    shop
}

fn commit(bundles: &[&String]) -> Value {
    of_feature(group(&bundles.iter().map(|name| (*name).clone()).collect::<Vec<_>>()), "Resources")
}

#[test]
fn sources_in_two_namespaces_are_different() {
    let references = json!([reference("GitRepository", "blue", "apps"), reference("GitRepository", "green", "apps")]);
    let owners = [["GitRepository", "blue", "apps"], ["GitRepository", "green", "apps"]];
    let shop = delivered(references, &owners);
    let blue = shop.bundle("blue", named("GitRepository", "blue", "apps"));
    let green = shop.bundle("green", named("GitRepository", "green", "apps"));
    shop.create(&commit(&[&blue, &green])).admitted();
    shop.create(&commit(&[&blue])).refused(&["dropped-bundles"], &["leaves out GitRepository green/apps, which"]);
    shop.create(&commit(&[&green])).refused(&["dropped-bundles"], &["leaves out GitRepository blue/apps, which"]);
    // A reference that was never delivered is not lost.
    shop.delivered(delivered_from(json!({"kind": "GitRepository", "namespace": "blue", "name": "apps"})));
    shop.create(&commit(&[&blue])).admitted();
    let gone = shop.bundle("gone", named("ConfigMap", "civ", "gone"));
    shop.update(&commit(&[&blue, &gone]), &commit(&[&blue])).admitted();
}

#[test]
fn a_missing_required_config_map_or_secret_is_refused() {
    for kind in ["ConfigMap", "Secret"] {
        let shop =
            delivered(json!([reference(kind, "", "quota"), reference(kind, "", "limits")]), &[[kind, "civ", "limits"]]);
        let quota = shop.bundle("quota", named(kind, "civ", "quota"));
        // The name as written in the profile.
        let limits = shop.bundle("limits", named(kind, "", "limits"));
        shop.create(&commit(&[&quota, &limits])).admitted();
        let text = format!("leaves out {kind} civ/limits, which");
        shop.create(&commit(&[&quota])).refused(&["dropped-bundles"], &[&text, "set optional: true"]);
        // An object in another namespace does not replace it.
        let other = shop.bundle("other", named(kind, "bar", "limits"));
        shop.create(&commit(&[&quota, &other])).refused(&["dropped-bundles"], &[&text]);
    }
}

#[test]
fn a_template_is_lost_if_no_matching_object_is_left() {
    let templated = reference("GitRepository", "flux", "{{ .Cluster.metadata.labels.env }}-apps");
    let plain = reference("GitRepository", "flux", "base");
    let owners = [["GitRepository", "flux", "eu-apps"], ["GitRepository", "flux", "base"]];
    let shop = delivered(json!([templated, plain]), &owners);
    let base = shop.bundle("base", named("GitRepository", "flux", "base"));
    let apps = shop.bundle("apps", named("GitRepository", "flux", "eu-apps"));
    shop.create(&commit(&[&base, &apps])).admitted();
    let text = "leaves out GitRepository flux/{{ .Cluster.metadata.labels.env }}-apps, which";
    shop.create(&commit(&[&base])).refused(&["dropped-bundles"], &[text]);
    shop.update(&commit(&[&base, &apps]), &commit(&[&base])).refused(&["dropped-bundles"], &[text]);
    // The label of the cluster has changed, so the template has a different meaning.
    let other = shop.bundle("us", named("GitRepository", "flux", "us-apps"));
    shop.create(&commit(&[&base, &other])).admitted();
    // The name as written in the profile.
    let raw = shop.bundle("raw", named("GitRepository", "flux", "{{ .Cluster.metadata.labels.env }}-apps"));
    shop.create(&commit(&[&base, &raw])).admitted();
    // Nothing that the template can mean was delivered.
    shop.delivered(delivered_from(json!({"kind": "GitRepository", "namespace": "flux", "name": "base"})));
    shop.create(&commit(&[&base])).admitted();
}

#[test]
fn the_names_of_the_cluster_are_known() {
    let named_after =
        reference("GitRepository", "{{.Cluster.metadata.namespace}}", "{{- .Cluster.metadata.name -}}-apps");
    let delivered_before = [["GitRepository", "civ", "test-apps"], ["GitRepository", "civ", "base"]];
    let shop = delivered(json!([named_after]), &delivered_before);
    // Nothing that it means was delivered, and other bundles do not replace it.
    let other = shop.bundle("other", named("GitRepository", "civ", "test-apps"));
    shop.create(&commit(&[&other])).admitted();
    shop.delivered(delivered_from(json!({"kind": "GitRepository", "namespace": "civ", "name": "prod-apps"})));
    shop.create(&commit(&[&other])).refused(&["dropped-bundles"], &["leaves out GitRepository civ/prod-apps, which"]);
    shop.create(&commit(&[&shop.bundle("apps", named("GitRepository", "civ", "prod-apps"))])).admitted();
}

#[test]
fn a_template_with_branches_matches_one_of_them() {
    let branches = "apps-{{ if eq .Cluster.metadata.labels.env \"eu\" }}one{{ else }}two{{ end }}";
    let owners = [["GitRepository", "flux", "apps-one"], ["GitRepository", "flux", "base"]];
    let shop = delivered(json!([reference("GitRepository", "flux", branches)]), &owners);
    shop.create(&commit(&[&shop.bundle("two", named("GitRepository", "flux", "apps-two"))])).admitted();
    let base = shop.bundle("base", named("GitRepository", "flux", "base"));
    shop.create(&commit(&[&base])).refused(&["dropped-bundles"], &["leaves out GitRepository flux/apps-{{ if"]);
}

#[test]
fn a_template_cannot_use_the_bundle_of_another_reference() {
    let anything = reference("ConfigMap", "{{ .Cluster.metadata.namespace }}", "{{ .Cluster.metadata.labels.env }}");
    let shop = delivered(
        json!([anything, reference("ConfigMap", "civ", "quota")]),
        &[["ConfigMap", "civ", "quota"], ["ConfigMap", "civ", "prod"]],
    );
    let quota = shop.bundle("quota", named("ConfigMap", "civ", "quota"));
    let prod = shop.bundle("prod", named("ConfigMap", "civ", "prod"));
    shop.create(&commit(&[&quota, &prod])).admitted();
    shop.create(&commit(&[&quota]))
        .refused(&["dropped-bundles"], &["ConfigMap civ/{{ .Cluster.metadata.labels.env }}"]);
    shop.create(&commit(&[&prod])).refused(&["dropped-bundles"], &["leaves out ConfigMap civ/quota, which"]);
    // Both can mean the same object, which exists.
    shop.delivered(delivered_from(json!({"kind": "ConfigMap", "namespace": "civ", "name": "quota"})));
    shop.create(&commit(&[&quota])).admitted();
    let without_namespace = shop.bundle("anywhere", named("ConfigMap", "", "quota"));
    shop.create(&commit(&[&without_namespace])).admitted();
}

#[test]
fn bundles_up_to_1_2_need_an_index() {
    let references = json!([reference("GitRepository", "flux", "tenants"), reference("ConfigMap", "", "quota")]);
    let shop = delivered(references, &[["GitRepository", "flux", "tenants"], ["ConfigMap", "civ", "quota"]]);
    let old = |name: &str, index: Option<&str>| shop.indexed(name, index, json!({"resources": ["kind: Role\n"]}));
    let tenants = old("tenants", Some("GitRepository-flux-tenants"));
    let quota = old("quota", Some("ConfigMap-civ-quota"));
    shop.create(&commit(&[&tenants, &quota])).admitted();
    shop.create(&commit(&[&quota])).refused(&["dropped-bundles"], &["leaves out GitRepository flux/tenants, which"]);
    let other = old("other", Some("GitRepository-blue-tenants"));
    shop.create(&commit(&[&other, &quota])).refused(&["dropped-bundles"], &["GitRepository flux/tenants"]);
    // Such a bundle may be anybody's.
    let (one, two) = (old("one", None), old("two", None));
    shop.create(&commit(&[&one, &quota])).refused(&["dropped-bundles"], &["GitRepository flux/tenants"]);
    shop.create(&commit(&[&one, &two]))
        .refused(&["dropped-bundles"], &["GitRepository flux/tenants and ConfigMap civ/quota"]);
    // Objects that Sveltos deploys for itself do not count.
    let own = shop.bundle("own", json!({"notTracked": true}));
    shop.create(&commit(&[&own, &quota])).refused(&["dropped-bundles"], &["GitRepository flux/tenants"]);
}

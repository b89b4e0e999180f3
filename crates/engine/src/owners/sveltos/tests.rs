use super::*;

#[test]
fn the_annotation_names_releases() {
    let named: Vec<_> = named_releases(" shop/cache,bar/web ,, cache,/").map(|release| release.to_string()).collect();
    assert_eq!(named, ["shop/cache", "bar/web", "/"]);
}

#[test]
fn a_bundle_is_parsed_without_its_objects() {
    let text = r#"{"spec":{"resources":["kind: A\n"],"helmReleaseNamespace":"shop","helmReleaseName":"web","isLastHelmReleaseBundle":true,
        "helmReleaseUninstall":null,"referencedObjectName":"","timeout":"5m0s"},"status":{"hash":"x"}}"#;
    let bundle = Bundle::read(text).unwrap();
    assert!(bundle.deploys(&RemoteRelease::new("shop", "web")) && bundle.is_last && bundle.source.is_none());
    assert_eq!(Bundle::read("{}").unwrap(), Bundle::default());
    assert!(Bundle::read("7").is_err() && Bundle::read(r#"{"spec":{"helmReleaseName":7}}"#).is_err());
}

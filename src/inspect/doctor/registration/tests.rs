use super::differences::NAMESPACE_LABEL;
use super::*;

/// Both configurations as stored for an installation in `guard`.
fn installed() -> [Value; 2] {
    Half::ALL.map(|half| {
        let mut all = shipped(manifest(half), "guard").unwrap();
        for entry in all["webhooks"].as_array_mut().unwrap() {
            *entry = defaulted(entry, half);
            entry["clientConfig"]["caBundle"] = "YWJj".into();
        }
        all
    })
}

fn checked(change: impl FnOnce(&mut Value)) -> Vec<(&'static str, String)> {
    let [mut validating, _] = installed();
    change(&mut validating["webhooks"]);
    let list = Fetched::Known(json!({"items": [validating]}));
    diagnose_configuration(Half::Validating, &list, "guard", false)
        .into_iter()
        .map(|check| (check.state.as_str(), check.evidence))
        .collect()
}

#[test]
fn the_shipped_registration_is_fine_in_any_namespace() {
    let found = checked(|_| {});
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, "ok");
    let mutating = Fetched::Known(json!({"items": [installed()[1].clone()]}));
    assert_eq!(diagnose_configuration(Half::Mutating, &mutating, "guard", false)[0].state, DiagnosisState::Ok);
}

#[test]
fn a_missing_configuration_differs_from_an_unreadable_one() {
    let absent = diagnose_configuration(Half::Validating, &Fetched::Known(json!({"items": []})), "guard", false);
    assert_eq!(absent[0].state, DiagnosisState::Finding(High));
    assert!(absent[0].fix.as_ref().unwrap().starts_with("interlock doctor -n guard --registration | kubectl apply"));
    let by_file = diagnose_configuration(Half::Validating, &Fetched::Known(json!({"items": []})), "guard", true);
    assert_eq!(by_file[0].state, DiagnosisState::Note);
    let unread = diagnose_configuration(Half::Validating, &Fetched::Unknown("cannot list".to_owned()), "guard", false);
    assert_eq!((unread[0].state, unread[0].evidence.ends_with("cannot list")), (DiagnosisState::Skipped, true));
}

#[test]
fn harmful_changes_are_findings_with_the_name_of_the_entry() {
    for (change, state, says) in [
        (
            Box::new(|all: &mut Value| _ = all.as_array_mut().unwrap().remove(0)) as Box<dyn FnOnce(&mut Value)>,
            "high",
            "create-delete.records.interlock.dev: is missing",
        ),
        (
            Box::new(|all| all[1]["failurePolicy"] = "Fail".into()),
            "medium",
            "update.records.interlock.dev: failurePolicy is Fail",
        ),
        (
            Box::new(|all| all[0]["rules"][0]["operations"] = json!(["DELETE"])),
            "high",
            "rules do not include CREATE configmaps, CREATE secrets",
        ),
        (
            Box::new(|all| all[0]["rules"][0]["resources"] = json!(["*"])),
            "medium",
            "which must work while Interlock \
            is down",
        ),
        (Box::new(|all| all[0]["namespaceSelector"] = json!({})), "high", "does not exclude guard"),
        (
            Box::new(|all| all[0]["matchConditions"][0]["expression"] = "true".into()),
            "medium",
            "matchCondition release-records was changed",
        ),
        (Box::new(|all| all[0]["matchConditions"] = json!([])), "medium", "not-cascading-deletion is missing"),
        (
            Box::new(|all| {
                all[0]["matchConditions"].as_array_mut().unwrap().push(json!({"name": "not-me", "expression": "false"}))
            }),
            "low",
            "not-me was added",
        ),
        (Box::new(|all| all[0]["timeoutSeconds"] = 30.into()), "low", "timeoutSeconds is 30"),
        (Box::new(|all| all[0]["sideEffects"] = "None".into()), "medium", "sideEffects is \"None\""),
        (Box::new(|all| all[0]["clientConfig"]["service"]["name"] = "other".into()), "high", "is sent to"),
    ] {
        let found = checked(change);
        assert!(found.iter().any(|(is, text)| *is == state && text.contains(says)), "{says}: {found:?}");
    }
}

#[test]
fn deliberate_choices_are_notes() {
    for (change, says) in [
        (
            Box::new(|all: &mut Value| {
                all.as_array_mut().unwrap().iter_mut().for_each(|it| it["failurePolicy"] = "Ignore".into())
            }) as Box<dyn FnOnce(&mut Value)>,
            "failurePolicy is Ignore",
        ),
        (
            Box::new(|all| {
                all[0]["rules"].as_array_mut().unwrap().push(json!({
                    "operations": ["CREATE"], "apiGroups": ["shop.example"], "apiVersions": ["v1"], "resources": ["carts"],
                }))
            }),
            "also include CREATE carts.shop.example",
        ),
        (
            Box::new(|all| {
                all[0]["namespaceSelector"] =
                    json!({"matchExpressions": [{"key": NAMESPACE_LABEL, "operator": "In", "values": ["shop"]}]})
            }),
            "guards only the namespaces shop",
        ),
        (
            Box::new(|all| {
                all[0]["namespaceSelector"]["matchExpressions"][0]["values"]
                    .as_array_mut()
                    .unwrap()
                    .push("legacy".into())
            }),
            "also excludes legacy",
        ),
        (
            Box::new(|all| all[0]["clientConfig"] = json!({"url": "https://10.0.0.1:8443/validate"})),
            "reached through \
            a URL",
        ),
        (Box::new(|all| all[0]["timeoutSeconds"] = 5.into()), "timeoutSeconds is 5"),
        (
            Box::new(|all| all.as_array_mut().unwrap().push(json!({"name": "more.example.dev"}))),
            "more.example.dev: is not part of",
        ),
    ] {
        let found = checked(change);
        assert!(found.iter().all(|(state, _)| *state == "note"), "{says}: {found:?}");
        assert!(found[0].1.contains(says), "{says}: {found:?}");
    }
}

#[test]
fn a_repair_is_complete_and_keeps_the_client_configuration() {
    let [mut validating, mutating] = installed();
    let entries = validating["webhooks"].as_array_mut().unwrap();
    entries.remove(0);
    entries[0]["clientConfig"]["caBundle"] = "".into();
    entries[1]["clientConfig"]["caBundle"] = "b3du".into();
    let repair = repair("guard", &validating, &mutating, true);
    let first = &repair["items"][0]["webhooks"][0];
    assert_eq!(first["name"], "create-delete.records.interlock.dev");
    assert_eq!(first["clientConfig"]["service"]["namespace"], "guard");
    // The first entry and the caBundle of the second are missing: both get the caBundle of the third.
    let bundles = repair["items"][0]["webhooks"].as_array().unwrap().iter().map(|it| &it["clientConfig"]["caBundle"]);
    assert_eq!(bundles.take(4).collect::<Vec<_>>(), ["b3du", "b3du", "b3du", "YWJj"]);
    assert!(!repair.to_string().contains(":null"), "{repair}");
    let url = json!({"webhooks": [{"name": "x", "clientConfig": {"url": "https://10.0.0.1:8443/validate"}}]});
    let by_url = super::repair("guard", &url, &Value::Null, true);
    assert_eq!(by_url["items"][1]["webhooks"][0]["clientConfig"], json!({"url": "https://10.0.0.1:8443/mutate"}));
}

/// The two configurations as overlays/namespaced renders them for `shop`.
fn of_shop() -> [Value; 2] {
    let name = json!({"key": NAMESPACE_LABEL, "operator": "In", "values": ["shop"]});
    let inside =
        json!({"name": IN_NAMESPACE_CONDITION, "expression": "has(request.namespace) && request.namespace != ''"});
    installed().map(|mut all| {
        let entries = all["webhooks"].as_array_mut().unwrap();
        entries.retain(|entry| !is_cluster_scoped(entry));
        for entry in entries.iter_mut().filter(|entry| !is_for_probes(entry)) {
            entry["namespaceSelector"] = json!({"matchExpressions": [name]});
            entry["matchConditions"].as_array_mut().unwrap().push(inside.clone());
        }
        all
    })
}

#[test]
fn selected_namespaces_are_no_finding_and_stay_selected() {
    let [mut validating, mutating] = of_shop();
    for (half, live) in Half::ALL.into_iter().zip([&validating, &mutating]) {
        let described = diagnose_configuration(half, &Fetched::Known(json!({"items": [live]})), "guard", false);
        assert!(described.iter().all(|check| check.state == DiagnosisState::Note), "{described:?}");
    }
    let repaired = repair("guard", &validating, &mutating, true);
    for (half, live) in Half::ALL.into_iter().zip([&validating, &mutating]) {
        let item = &repaired["items"][half as usize];
        let item: Vec<_> = entries(item).map(|entry| defaulted(entry, half)).collect();
        assert_eq!(&Value::from(item), &live["webhooks"], "nothing is to be repaired");
    }
    let entries = validating["webhooks"].as_array_mut().unwrap();
    let lost = entries.remove(0);
    let repaired = repair("guard", &validating, &mutating, true);
    let back = entries_named(&repaired, lost["name"].as_str().unwrap());
    assert_eq!(back, [lost]);
}

fn entries_named(list: &Value, name: &str) -> Vec<Value> {
    let all = list["items"].as_array().unwrap().iter().flat_map(entries);
    all.filter(|entry| entry["name"] == name).map(|entry| defaulted(entry, Half::Validating)).collect()
}

#[test]
fn a_repair_keeps_the_failure_policy_ignore() {
    let [mut validating, mutating] = installed();
    for entry in validating["webhooks"].as_array_mut().unwrap() {
        entry["timeoutSeconds"] = 2.into();
        if !is_for_probes(entry) {
            entry["failurePolicy"] = "Ignore".into();
        }
    }
    let lost = validating["webhooks"].as_array_mut().unwrap().remove(0);
    let repaired = repair("guard", &validating, &mutating, true);
    let all: Vec<_> = entries(&repaired["items"][0]).collect();
    assert!(all.iter().all(|entry| entry["failurePolicy"] == "Ignore" || is_for_probes(entry)), "{all:?}");
    assert!(all.iter().any(|entry| entry["name"] == lost["name"]) && all[1]["timeoutSeconds"] == 2);
}

/// The entries with this failure policy.
fn with_policy<'c>(configuration: &'c Value, policy: &str) -> Vec<&'c str> {
    entries(configuration).filter(|it| it["failurePolicy"] == policy).filter_map(|it| it["name"].as_str()).collect()
}

#[test]
fn without_an_answering_replica_no_entry_fails_closed() {
    let closed = [
        "create-delete.records.interlock.dev",
        "commits.sveltos.interlock.dev",
        "overrides.interlock.dev",
        "statuses.interlock.dev",
    ];
    let [validating, mutating] = installed();
    assert_eq!(with_policy(&validating, FAIL), [&closed[..], &["probes.interlock.dev"]].concat());
    for (validating, mutating) in [(&validating, &mutating), (&Value::Null, &Value::Null)] {
        let open = repair("guard", validating, mutating, false);
        assert_eq!(with_policy(&open["items"][0], FAIL), ["probes.interlock.dev"]);
        assert_eq!(with_policy(&open["items"][1], FAIL), ["stamp.probes.interlock.dev"]);
        assert_eq!(open["items"][0]["metadata"]["annotations"][OPEN_UNTIL_CALLED], closed.join(","));
        assert_eq!(open["items"][1]["metadata"]["annotations"], json!({"admissions.enforcer/disabled": "true"}));
        let answered = repair("guard", validating, mutating, true);
        assert_eq!(with_policy(&answered["items"][0], FAIL), [&closed[..], &["probes.interlock.dev"]].concat());
        assert_eq!(answered["items"][0]["metadata"]["annotations"], json!({"admissions.enforcer/disabled": "true"}));
    }
}

#[test]
fn an_entry_that_waits_is_no_choice_of_the_operator() {
    let [mut validating, mutating] = installed();
    validating["metadata"]["annotations"] = json!({OPEN_UNTIL_CALLED: "create-delete.records.interlock.dev"});
    validating["webhooks"][0]["failurePolicy"] = "Ignore".into();
    let list = Fetched::Known(json!({"items": [validating]}));
    let found = diagnose_configuration(Half::Validating, &list, "guard", false);
    assert!(found.len() == 1 && found[0].evidence.contains("fails open until a review has arrived"), "{found:?}");
    let name = "create-delete.records.interlock.dev";
    assert!(with_policy(&repair("guard", &validating, &mutating, true)["items"][0], FAIL).contains(&name));
    validating["metadata"]["annotations"] = Value::Null;
    assert!(!with_policy(&repair("guard", &validating, &mutating, true)["items"][0], FAIL).contains(&name), "chosen");
}

#[test]
fn another_port_of_the_service_is_a_choice() {
    let [mut validating, mutating] = installed();
    for entry in validating["webhooks"].as_array_mut().unwrap() {
        entry["clientConfig"]["service"]["port"] = 8443.into();
    }
    let list = Fetched::Known(json!({"items": [validating]}));
    let found = diagnose_configuration(Half::Validating, &list, "guard", false);
    assert!(found.iter().all(|it| it.state == DiagnosisState::Note && it.evidence.contains("port 8443")), "{found:?}");
    let repaired = repair("guard", &validating, &mutating, true);
    assert!(entries(&repaired["items"][0]).all(|entry| entry["clientConfig"]["service"]["port"] == 8443));
}

#[test]
fn what_protects_releases_needs_the_optional_entries() {
    let protected = json!({"annotations": {PROTECTED: "true"}});
    let named = |name: &str, namespace: Option<&str>, metadata: &Value| {
        let mut metadata = metadata.clone();
        metadata["name"] = name.into();
        metadata["namespace"] = namespace.into();
        json!({"items": [{"metadata": metadata}]})
    };
    let snapshot = |namespaces: Value, helm_releases: Value| Snapshot {
        validating: Fetched::Known(json!({"items": [installed()[0].clone()]})),
        namespaces: Fetched::Known(namespaces),
        declarations: vec![("HelmRelease", Fetched::Known(helm_releases)), ("ClusterExtension", Fetched::Absent)],
        ..Snapshot::unread()
    };
    let (plain, off) = (json!({}), json!({"annotations": {PROTECTED: "false"}}));
    let nothing = snapshot(named("shop", None, &plain), named("web", Some("shop"), &off));
    assert_eq!(protection(&nothing).map(|found| found.evidence), None);
    let both = snapshot(named("shop", None, &protected), named("web", Some("shop"), &protected));
    let found = protection(&both).unwrap();
    let wanted = "the annotation of Namespace shop, the annotation of HelmRelease shop/web protect releases, but ";
    assert!(found.evidence.starts_with(wanted), "{}", found.evidence);
    assert!(found.evidence.contains("objects.protected.interlock.dev and 2 more are missing"), "{}", found.evidence);
}

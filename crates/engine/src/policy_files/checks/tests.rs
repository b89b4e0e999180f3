//! Conditions that never or always hold, and names that are not what they seem.

use std::path::Path;

use crate::policy_files::{LoadedPolicies, PolicyFiles};

const HEADER: &str = "apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\n";

/// The errors and warnings of a cluster policy, each with its position.
fn checked(rest: &str) -> (Vec<String>, Vec<String>) {
    let mut files = PolicyFiles::default();
    files.set_cluster("c".into(), format!("{HEADER}{rest}"));
    said(&files)
}

/// The errors and warnings of the policy of a namespace.
fn checked_in(namespace: &str, rest: &str) -> (Vec<String>, Vec<String>) {
    let mut files = PolicyFiles::default();
    files.set_cluster("c".into(), HEADER.to_owned());
    let text = format!("{}{rest}", HEADER.replace("Cluster", "Namespace"));
    files.add_namespace(namespace.to_owned(), "n".into(), text);
    said(&files)
}

fn said(files: &PolicyFiles) -> (Vec<String>, Vec<String>) {
    let LoadedPolicies { problems, warnings, .. } = LoadedPolicies::of(files);
    let said = |all: Vec<_>| all.iter().map(ToString::to_string).collect();
    (said(problems), said(warnings))
}

/// A case of `manual-edit` with this condition. It changes the mode of the rule.
fn case(when: &str) -> String {
    format!("rules:\n  manual-edit: {{cases: [{{when: {{{when}}}, mode: warn}}]}}\n")
}

#[test]
fn a_condition_that_no_request_can_meet_is_an_error() {
    for (when, wanted) in [
        ("users: []", "the list is empty"),
        ("groups: ", "the list is empty"),
        ("serviceAccounts: ['system:serviceaccount:a:b']", "did you mean `a:b`?"),
        ("serviceAccounts: [deployer]", "is NAMESPACE:NAME here"),
        ("serviceAccounts: ['*:*:*']", "is NAMESPACE:NAME here"),
        ("serviceAccounts: ['ci/*']", "is NAMESPACE:NAME here"),
        ("serviceAccounts: ['CI:deployer']", "did you mean `ci:deployer`?"),
        ("namespaces: [Shop]", "did you mean `shop`?"),
        ("namespaces: ['shop/*']", "lower-case letters"),
        ("namespaces: ['{Shop,Bar}-*']", "lower-case letters"),
        ("namespaces: [shop.example]", "lower-case letters"),
        ("releases: [shop/web]", "did you mean `web`?"),
        ("releases: ['*/web']", "without its namespace"),
        ("kinds: [secrets]", "did you mean `Secret`?"),
        ("kinds: [deployment]", "did you mean `Deployment`?"),
        ("kinds: ['apps/*']", "a kind starts with a capital letter"),
        ("kinds: [apps/v1/Deployment]", "a kind starts with a capital letter"),
        ("operations: [update]", "did you mean `UPDATE`?"),
        ("operations: [PATCH]", "CREATE, UPDATE or DELETE"),
        ("owners: [Helm]", "did you mean `helm`?"),
        ("owners: ['flux*']", "an owner is helm or operator-controller"),
        ("users: ['system:serviceaccount:ci']", "system:serviceaccount:NAMESPACE:NAME"),
        ("users: ['system:serviceaccounts:ci:deployer']", "system:serviceaccount:NAMESPACE:NAME"),
        ("users: ['system:serviceaccount:ci/*']", "system:serviceaccount:NAMESPACE:NAME"),
        ("users: ['']", "never matches"),
        ("groups: ['system:serviceaccount:ci:*']", "system:serviceaccounts:NAMESPACE"),
        ("users: [alice], serviceAccounts: ['ci:*']", "no user is among `users` and among `serviceAccounts`"),
        ("owners: [operator-controller], kinds: [ConfigMap]", "no record of these owners is of these `kinds`"),
        ("namespaces: [shоp]", "has the Cyrillic letter U+043E, which looks like `o`"),
        ("kinds: [Sеcret]", "has the Cyrillic letter U+0435"),
        ("namespaces: [\"shop\\u200B\"]", "lower-case letters"),
    ] {
        let (errors, warnings) = checked(&case(when));
        assert!(errors.len() == 1 && errors[0].contains(wanted), "{when}: {errors:?} {warnings:?}");
        assert!(errors[0].starts_with("c:4:") && errors[0].lines().count() == 1, "{errors:?}");
    }
}

#[test]
fn a_condition_that_some_request_meets_is_fine() {
    for when in [
        "users: [alice, 'system:serviceaccount:ci:deployer', 'system:serviceaccount:*:flux', 'oidc:*', 'system:*']",
        "users: ['Jürgen Müller', иван, 'system:node:*', 'eks:node-manager', 'system:ovn-node:*']",
        "groups: [devs, 'system:masters', 'system:serviceaccounts:ci', 'Domain Users']",
        "serviceAccounts: ['*', 'ci:*', '*:deployer', ci*]",
        "namespaces: ['', shop, 'shop-*', '*-prod', '[a-z]*', '{a,b}', '?']",
        "releases: ['*', web, a.v1, Web]",
        "kinds: [Deployment, Rollout, HTTPRoute, '*Set', 'Deploy*']",
        "operations: [UPDATE, 'D*']",
        "users: ['system:serviceaccount:*'], serviceAccounts: ['ci:*']",
        "users: ['*bot'], serviceAccounts: ['ci:*bot']",
    ] {
        assert_eq!(checked(&case(when)), (vec![], vec![]), "{when}");
    }
}

#[test]
fn one_entry_of_several_that_never_matches_is_a_warning() {
    for (rest, wanted) in [
        (case("serviceAccounts: ['ci:a', 'system:serviceaccount:ci:b']"), "`system:serviceaccount:ci:b` never matches"),
        (case("namespaces: [shop, Bar]"), "`Bar` never matches"),
        ("managers: [flux, 'system:serviceaccount:flux/helm']\n".to_owned(), "never matches"),
    ] {
        let (errors, warnings) = checked(&rest);
        assert_eq!(errors, [""; 0], "{rest}");
        assert!(warnings.len() == 1 && warnings[0].contains(wanted), "{rest}: {warnings:?}");
    }
    let (errors, _) = checked("tools: {only: ['system:serviceaccount:velero']}\n");
    assert!(errors[0].contains("so the list names nobody"), "{errors:?}");
    // A list that intentionally names no user.
    assert_eq!(checked("managers: {only: []}\ntools: \ndelegate: []\nplatform: []\n"), (vec![], vec![]));
}

#[test]
fn a_condition_that_every_request_meets_is_a_warning() {
    for (when, wanted) in [
        ("", "holds for every request"),
        ("users: ['*']", "holds for every request"),
        ("namespaces: ['*'], kinds: ['**'], operations: ['*']", "holds for every request"),
        ("operations: [CREATE, UPDATE, DELETE]", "holds for every request"),
        ("kinds: ['[A-M]*', '[N-Z]*']", "holds for every request"),
        ("namespaces: ['*'], users: [alice]", "the list matches every request; remove the key"),
    ] {
        let (errors, warnings) = checked(&case(when));
        assert_eq!(errors, [""; 0], "{when}");
        assert!(warnings.len() == 1 && warnings[0].contains(wanted), "{when}: {warnings:?}");
    }
    for when in ["serviceAccounts: ['*']", "releases: ['*']", "groups: ['*']", "operations: [CREATE, UPDATE]"] {
        assert_eq!(checked(&case(when)), (vec![], vec![]), "{when}");
    }
}

#[test]
fn the_rule_determines_the_values_of_a_field() {
    let of = |rule: &str, when: &str| {
        checked(&format!("rules:\n  {rule}: {{cases: [{{when: {{{when}}}, mode: audit}}]}}\n"))
    };
    for (rule, when, wanted) in [
        ("pending-recovery", "kinds: [Deployment]", "this rule judges records"),
        ("retarget", "owners: [helm]", "this rule does not judge records"),
    ] {
        let (errors, _) = of(rule, when);
        assert!(errors.len() == 1 && errors[0].contains(wanted), "{rule} {when}: {errors:?}");
    }
    for (rule, when) in [
        ("concurrent-operation", "kinds: [ConfigMap]"),
        ("concurrent-operation", "kinds: [Application]"),
        ("manual-edit", "kinds: [ConfigMap]"),
        // The rule also judges the deletions of an uninstall.
        ("unusual-create", "kinds: [Deployment]"),
        ("record-deletion", "owners: [operator-controller]"),
        ("record-deletion", "owners: ['*']"),
        ("retarget", "kinds: [HelmRelease]"),
    ] {
        assert_eq!(of(rule, when), (vec![], vec![]), "{rule} {when}");
    }
    let (_, warnings) = of("pending-recovery", "kinds: [Secret, ConfigMap]");
    assert!(warnings[0].contains("holds for every request"), "{warnings:?}");
    let (_, warnings) = of("concurrent-operation", "kinds: [Deployment]");
    assert!(warnings[0].contains("judges objects of the kind Secret or ConfigMap or Application"), "{warnings:?}");
}

#[test]
fn a_case_hidden_by_another_one_is_a_warning() {
    let cases = |list: &[&str]| {
        let cases: String = list.iter().map(|case| format!("    - {{{case}}}\n")).collect();
        checked(&format!("rules:\n  manual-edit:\n    mode: enforce\n    cases:\n{cases}"))
    };
    let hidden = "because the case on line 7 matches all its requests";
    for (list, wanted) in [
        (&["when: {users: ['ci-*']}, mode: audit", "when: {users: [ci-bot]}, mode: warn"][..], hidden),
        (&["when: {users: [a, b]}, mode: audit", "when: {users: [b], kinds: [Secret]}, mode: warn"], hidden),
        (&["when: {serviceAccounts: ['*']}, mode: audit", "when: {serviceAccounts: ['ci:*']}, mode: off"], hidden),
        (&["when: {users: [a]}, mode: off", "when: {users: [b]}, mode: enforce"], "has the mode enforce anyway"),
        (
            &["when: {groups: [a]}, mode: off", "when: {serviceAccounts: ['ci:bot'], kinds: [Pod]}, mode: audit"],
            "the shipped case",
        ),
    ] {
        let (errors, warnings) = cases(list);
        assert_eq!(errors, [""; 0], "{list:?}");
        assert!(warnings.len() == 1 && warnings[0].contains(wanted), "{list:?}: {warnings:?}");
        assert!(warnings[0].starts_with("c:8:"), "{warnings:?}");
    }
    for list in [
        &["when: {users: [ci-bot]}, mode: audit", "when: {users: ['ci-*']}, mode: warn"][..],
        &["when: {users: [a], kinds: [Secret]}, mode: audit", "when: {users: [a]}, mode: warn"],
        &["when: {users: [a]}, mode: audit", "when: {groups: [a]}, mode: warn"],
        // An exception to a later case.
        &["when: {users: [a]}, mode: enforce", "when: {users: ['*a*']}, mode: audit"],
    ] {
        assert_eq!(cases(list), (vec![], vec![]), "{list:?}");
    }
    // A rule without `mode` has the shipped one.
    let (_, warnings) = checked("rules:\n  retry-strategy: {cases: [{when: {users: [a]}, mode: warn}]}\n");
    assert!(warnings[0].contains("retry-strategy has the mode warn anyway"), "{warnings:?}");
}

#[test]
fn a_namespace_policy_matches_only_its_namespace() {
    let of = |when: &str| {
        checked_in("shop", &format!("rules:\n  retry-strategy: {{cases: [{{when: {{{when}}}, mode: enforce}}]}}\n"))
    };
    let (errors, _) = of("namespaces: [bar]");
    assert!(errors[0].contains("applies to namespace shop only"), "{errors:?}");
    for when in ["namespaces: ['sh*']", "namespaces: [shop]", "users: [alice]"] {
        assert_eq!(of(when), (vec![], vec![]), "{when}");
    }
}

#[test]
fn ignored_fields_and_settings_that_name_nothing_are_errors() {
    for (rest, wanted) in [
        ("ignore: [{paths: []}]\n", "the list is empty"),
        ("ignore: [{paths: [/a], target: {kind: deployments}}]\n", "did you mean `Deployment`?"),
        ("ignore: [{paths: [/a], target: {namespace: Shop}}]\n", "so nothing is ignored"),
        ("ignore: [{paths: [/a], target: {name: shop/web}}]\n", "the name of an object has no `/`"),
        ("overrides: {namespace: Interlock}\n", "no overrides for cluster-scoped releases"),
        ("rules: {manual-scale: {resources: [{resource: widgets, kind: widget}]}}\n", "the resource is never found"),
    ] {
        let (errors, _) = checked(rest);
        assert!(errors.len() == 1 && errors[0].contains(wanted), "{rest}: {errors:?}");
    }
    let (errors, warnings) = checked("ignore: [{paths: ['', /a]}]\n");
    assert!(errors.is_empty() && warnings[0].contains("is the whole object"), "{errors:?} {warnings:?}");
    let rest =
        "ignore: [{paths: [/a], target: {kind: CustomResourceDefinition, name: '*.example.com', namespace: ''}}]\n";
    assert_eq!(checked(rest), (vec![], vec![]));
}

#[test]
fn problems_and_warnings_name_look_alikes() {
    for (rest, wanted) in [
        ("rules:\n  mаnual-edit: {mode: warn}\n", "`mаnual-edit` has the Cyrillic letter U+0430, which looks like `a`"),
        ("rules:\n  manual-edit: {mоde: warn}\n", "`mоde` has the Cyrillic letter U+043E"),
        ("rules:\n  manual-edit: {mode: wаrn}\n", "`wаrn` has the Cyrillic letter U+0430"),
        ("delegate: [mаnual-edit]\n", "`mаnual-edit` has the Cyrillic letter U+0430"),
        ("rules:\n  manual-edit:\u{a0}{mode: warn}\n", "U+00A0, which looks like a space"),
    ] {
        let (errors, _) = checked(rest);
        assert!(errors.iter().any(|error| error.contains(wanted)), "{rest}: {errors:?}");
    }
    // Users may have such names.
    for when in ["users: [аlice]", "groups: [dеvs]", "users: [\"alice\u{200b}\"]"] {
        let (errors, warnings) = checked(&case(when));
        assert!(
            errors.is_empty() && warnings.len() == 1 && warnings[0].contains("U+"),
            "{when}: {errors:?} {warnings:?}"
        );
    }
    for (when, wanted) in
        [("kinds: [Deploymnet]", "Deployment"), ("users: ['sytem:serviceaccount:a:b']", "system:serviceaccount:a:b")]
    {
        let (errors, warnings) = checked(&case(when));
        assert!(
            errors.is_empty() && warnings[0].contains(&format!("did you mean `{wanted}`?")),
            "{when}: {warnings:?}"
        );
    }
}

#[test]
fn a_file_of_many_globs_is_checked_within_bounds() {
    let globs: Vec<_> = (0..5_000).map(|number| format!("'*a{number}??????'")).collect();
    let (errors, _) = checked(&case(&format!("namespaces: [{}]", globs.join(", "))));
    assert_eq!(errors, [""; 0]);
    let cases: String =
        (0..1_000).map(|number| format!("    - {{when: {{users: ['a{number:04}*']}}, mode: audit}}\n")).collect();
    assert_eq!(checked(&format!("rules:\n  manual-edit:\n    cases:\n{cases}")), (vec![], vec![]));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the examples are many, and read by this test alone")]
fn the_shipped_policies_give_no_warning() {
    assert_eq!(said(&PolicyFiles::shipped()), (vec![], vec![]));
    for path in ["audit-first", "gitops-only", "hpa-friendly", "operators-managed", "roll-forward-only"] {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policies/examples").join(path).join("cluster.yaml");
        let mut files = PolicyFiles::default();
        files.set_cluster(path.into(), std::fs::read_to_string(file).unwrap());
        assert_eq!(said(&files), (vec![], vec![]), "{path}");
    }
}

#[test]
fn a_platform_that_tenants_can_be_is_a_warning() {
    for (glob, wanted) in [
        ("*", "`*` matches every user"),
        ("system:serviceaccount:*", "matches service accounts of tenants"),
        ("system:serviceaccount:openshift-*:*", "matches service accounts of tenants"),
        ("system:serviceaccount:*:router", "matches service accounts of tenants"),
        ("system:*", "matches service accounts of tenants"),
        ("*:router", "matches service accounts of tenants"),
        ("system:serviceaccount:default:*", "of the namespace default"),
    ] {
        let (errors, warnings) = checked(&format!("platform:\n  - 'aksService'\n  - '{glob}'\n"));
        assert!(errors.is_empty() && warnings.len() == 1, "{glob}: {errors:?} {warnings:?}");
        assert!(warnings[0].starts_with("c:5:5:") && warnings[0].contains(wanted), "{glob}: {warnings:?}");
    }
    let fine =
        "platform: ['eks:*', aksService, 'system:serviceaccount:openshift-ingress-operator:*', 'system:gke-*']\n";
    assert_eq!(checked(fine), (vec![], vec![]));
    let (errors, _) = checked("platform: ['system:serviceaccount:shop']\n");
    assert!(errors.len() == 1 && errors[0].contains("so the list names nobody"), "{errors:?}");
}

#[test]
fn pipelines_that_match_or_share_too_much_are_warnings() {
    let of = |keys: &str| checked(&format!("pipelines:\n  - {{name: ci, {keys}}}\n"));
    for (keys, wanted) in [
        ("users: ['*']", "the pipeline ci matches everybody"),
        ("users: [a, '*']", "the pipeline ci matches everybody"),
        ("users: ['?*']", "the pipeline ci matches everybody"),
        ("users: ['*'], groups: ['*']", "the pipeline ci matches everybody"),
        ("groups: ['system:*']", "the pipeline ci matches everybody"),
        ("groups: ['system:authenticated']", "the pipeline ci matches everybody"),
        ("users: ['job-*'], holder: pipeline", "may end the operation of the other"),
        ("users: ['job-*'], holder: 'group:*'", "also matches system:authenticated"),
    ] {
        let (errors, warnings) = of(keys);
        assert!(errors.is_empty() && warnings.len() == 1, "{keys}: {errors:?} {warnings:?}");
        assert!(warnings[0].starts_with("c:4:") && warnings[0].contains(wanted), "{keys}: {warnings:?}");
    }
    for keys in [
        "users: ['*'], groups: [ci]",
        "users: ['job-*'], groups: ['system:authenticated']",
        "users: ['job-*'], holder: session",
        "groups: ['gitlab:ci_job'], holder: 'group:gitlab:project:*'",
        "users: ['system:serviceaccount:ci:*']",
    ] {
        assert_eq!(of(keys), (vec![], vec![]), "{keys}");
    }
}

#[test]
fn a_pipeline_that_cannot_be_used_is_an_error() {
    let of = |list: &str| checked(&format!("pipelines:\n{list}"));
    for (list, at, wanted) in [
        ("  - {name: ci}\n", "c:4:12:", "give `users`, `groups` or both"),
        ("  - {users: [a]}\n", "c:4:5:", "the key `name` is missing"),
        ("  - {name: Ci, users: [a]}\n", "c:4:12:", "is not a name of a pipeline"),
        ("  - {name: a/b, users: [a]}\n", "c:4:12:", "is not a name of a pipeline"),
        ("  - {name: ci, users: []}\n", "c:4:23:", "the list is empty"),
        ("  - {name: ci, users: [a], holder: pipelin}\n", "c:4:36:", "did you mean `pipeline`?"),
        ("  - {name: ci, users: [a], holder: 'group:'}\n", "c:4:36:", "names no group"),
        ("  - {name: ci, users: [a], holder: 'group:[a'}\n", "c:4:36:", "is not a glob"),
        ("  - {name: ci, users: [a], holder: [pipeline]}\n", "c:4:36:", "expected one value"),
        ("  - {name: ci, users: ['system:admin']}\n", "c:4:24:", "so the pipeline has no sessions"),
        ("  - {name: ci, user: [a]}\n", "c:4:16:", "did you mean `users`?"),
        (
            "  - {name: ci, users: [a]}\n  - {name: ci, users: [b]}\n",
            "c:5:12:",
            "the pipeline on line 4 has the name ci",
        ),
    ] {
        let (errors, _) = of(list);
        let is_reported = |error: &String| error.starts_with(at) && error.contains(wanted);
        assert!(errors.iter().any(is_reported), "{list}: {errors:?}");
    }
    let two = "  - {name: ci, users: [a]}\n  - {name: cd, users: [a]}\n";
    assert_eq!(of(two), (vec![], vec![]));
    // Only the policy of the cluster has these lists.
    for list in ["platform: [a]", "pipelines: [{name: ci, users: [a]}]"] {
        let (errors, _) = checked_in("shop", &format!("{list}\n"));
        assert!(errors.len() == 1 && errors[0].contains("only the cluster policy may set"), "{list}: {errors:?}");
    }
}

#[test]
fn a_case_for_a_pipeline_that_is_not_listed_is_a_warning() {
    let of = |name: &str| {
        let list = "pipelines: [{name: deploy, users: ['job-*']}]";
        checked(&format!(
            "{list}\nrules:\n  manual-edit:\n    cases: [{{when: {{pipelines: [{name}]}}, mode: warn}}]\n"
        ))
    };
    for (name, wanted) in [("deplyo", "did you mean `deploy`?"), ("nightly", "no pipeline named nightly")] {
        let (errors, warnings) = of(name);
        assert!(errors.is_empty() && warnings.len() == 1 && warnings[0].contains(wanted), "{name}: {warnings:?}");
    }
    for name in ["deploy", "'*'", "'de*'"] {
        assert_eq!(of(name), (vec![], vec![]), "{name}");
    }
    let (errors, _) = of("Deploy");
    assert!(errors.len() == 1 && errors[0].contains("so the case never applies"), "{errors:?}");
}

#[test]
fn a_case_on_a_field_that_the_rule_lacks_is_a_warning() {
    let of = |rule: &str, when: &str| {
        checked(&format!("rules:\n  {rule}:\n    cases: [{{when: {{{when}}}, mode: audit}}]\n"))
    };
    for (rule, when, at, wanted) in [
        ("manual-edit", "operations: [DELETE]", 33, "finds nothing but in requests with the operation UPDATE, so"),
        ("record-deletion", "operations: [CREATE, UPDATE]", 33, "the operation DELETE"),
        ("dropped-bundles", "kinds: [ClusterSummary]", 28, "judges objects of the kind ConfigurationGroup"),
        ("dropped-bundles", "operations: [DELETE]", 33, "the operation CREATE and UPDATE"),
        ("dropped-bundles", "releases: [web]", 31, "whose names end in .helm or .resources"),
        ("manual-edit", "owners: [helm]", 29, "only records have owners, and manual-edit judges other objects"),
        ("extension-safety", "namespaces: [shop]", 33, "judges objects without a namespace"),
        ("retarget", "kinds: [ClusterExtension]", 28, "judges objects of the kind HelmRelease"),
    ] {
        let (errors, warnings) = of(rule, when);
        assert!(errors.is_empty() && warnings.len() == 1, "{rule} {when}: {errors:?} {warnings:?}");
        assert!(warnings[0].contains(wanted) && warnings[0].starts_with("c:5:"), "{rule} {when}: {warnings:?}");
        assert!(warnings[0].starts_with(&format!("c:5:{at}:")), "{rule} {when}: {warnings:?}");
    }
    for (rule, when) in [
        ("dropped-bundles", "releases: ['shop-*']"),
        ("dropped-bundles", "releases: [shop-sveltos-prod.helm], operations: [CREATE]"),
        ("freeze", "owners: [helm], operations: [DELETE]"),
        ("extension-safety", "kinds: [ClusterObjectSet], namespaces: ['']"),
        ("manual-edit", "operations: [UPDATE, DELETE], users: [bob]"),
    ] {
        assert_eq!(of(rule, when), (vec![], vec![]), "{rule} {when}");
    }
}

#[test]
fn entries_for_everybody_or_for_no_user_are_warnings() {
    let flux = "did you mean `system:serviceaccount:flux-system:helm-controller`?";
    for (rest, at, wanted) in [
        ("managers: ['*']\n", "c:3:12:", "everybody is among `managers`"),
        ("controllers: ['**']\n", "c:3:15:", "everybody is among `controllers`"),
        ("tools: [a, 'flux-system:helm-controller']\n", "c:3:12:", flux),
        ("managers: {only: ['flux-system:helm-controller']}\n", "c:3:19:", flux),
        ("managers: {only: []}\nrules: {unusual-create: {startedBy: managers}}\n", "c:4:37:", "`managers` is empty"),
        (
            "protected: {releases: [db]}\nrules: {protected-release: {mode: off}}\n",
            "c:3:1:",
            "protected-release is off",
        ),
        ("ignore: [{paths: [/a, '/spec/*/x']}]\n", "c:3:23:", "`*` in `'/spec/*/x'` is the name of a field"),
        (
            "ignore: [{paths: [/metadata/annotations/example.com/team]}]\n",
            "c:3:19:",
            "did you mean `/metadata/annotations/example.com~1team`?",
        ),
    ] {
        let (errors, warnings) = checked(rest);
        assert!(errors.is_empty() && warnings.len() == 1, "{rest}: {errors:?} {warnings:?}");
        assert!(warnings[0].starts_with(at) && warnings[0].contains(wanted), "{rest}: {warnings:?}");
    }
    for rest in [
        "managers: ['system:serviceaccount:*:helm-controller', 'oidc:Alice', alice]\n",
        "rules: {unusual-create: {startedBy: managers}}\n",
        "protected: {releases: [db]}\nrules: {protected-release: {mode: off, cases: [{when: {users: [bob]}, mode: warn}]}}\n",
        "ignore: [{paths: [/metadata/annotations/example.com~1team, /spec/template/metadata/labels/a]}]\n",
    ] {
        assert_eq!(checked(rest), (vec![], vec![]), "{rest}");
    }
}

//! Policies for many namespaces, by the labels of the Namespaces.

use super::{CLUSTER, NAMESPACE};
use crate::policy::NamespaceLabels;
use crate::policy_files::in_force;
use crate::policy_files::loaded::*;
use crate::release::ReleaseRef;
use crate::rule::{Mode, RuleId};

fn files(cluster: &str, namespaces: &[(&str, &str)]) -> PolicyFiles {
    let mut files = PolicyFiles::default();
    files.set_cluster("cluster.yaml".into(), format!("{CLUSTER}{cluster}"));
    for (name, text) in namespaces {
        files.add_namespace((*name).to_owned(), format!("namespaces/{name}.yaml").into(), format!("{NAMESPACE}{text}"));
    }
    files
}

fn labels(all: &[(&str, &[(&str, &str)])]) -> Arc<NamespaceLabels> {
    let of =
        |labels: &[(&str, &str)]| labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Arc::new(all.iter().map(|(name, labels)| ((*name).to_owned(), Arc::new(of(labels)))).collect())
}

fn mode(policies: &Policies, namespace: &str) -> Mode {
    super::mode(policies, namespace, RuleId::known("manual-edit"), "bob")
}

fn problems(cluster: &str, namespaces: &[(&str, &str)]) -> Vec<String> {
    LoadedPolicies::of(&files(cluster, namespaces)).problems.iter().map(ToString::to_string).collect()
}

#[test]
fn cases_freezes_and_protection_follow_namespace_labels() {
    let prod = "{matchLabels: {env: prod}}";
    let cluster = format!(
        "rules:\n  manual-edit: {{mode: warn, cases: [{{when: {{namespaceSelector: {prod}}}, mode: enforce}}]}}\n\
         protected: {{releases: [db], namespaceSelector: {prod}}}\n\
         freezes: [{{name: a, reason: b, timeZone: UTC, from: 2026-01-01, to: 2027-01-01, namespaceSelector: {prod}}}]\n"
    );
    let unaware = Policies::of_files(&files(&cluster, &[])).unwrap();
    assert!(unaware.uses_labels());
    let settings = |policies: &Policies| {
        let policy = policies.of("shop");
        let frozen = policies.freezes(&[]).any(|it| it.freeze.concerns(&ReleaseRef::new("shop", "db")));
        (mode(policies, "shop"), policy.protected.covers(&ReleaseRef::new("shop", "db")), frozen)
    };
    assert_eq!(settings(&unaware), (Mode::Warn, false, false), "no labels are known");
    let aware = unaware.knowing(labels(&[("shop", &[("env", "prod")]), ("bank", &[("env", "dev")])]));
    assert_eq!(settings(&aware), (Mode::Enforce, true, true));
    assert_eq!((mode(&aware, "bank"), mode(&aware, "")), (Mode::Warn, Mode::Warn));
    let changed = aware.clone().knowing(labels(&[("shop", &[])]));
    assert_eq!(settings(&changed), (Mode::Warn, false, false));
    let replaced = Policies::of_files(&files(&cluster, &[])).unwrap().following(&aware);
    assert_eq!(settings(&replaced), (Mode::Enforce, true, true), "a changed file keeps the labels");
    let scope = replaced.freezes(&[]).next().map(|it| it.freeze.scope.clone());
    assert_eq!(scope.as_deref(), Some("every release in namespaces with the labels env=prod"));
}

#[test]
fn a_namespaces_own_file_counts_before_a_shared_one() {
    let team = "namespaces: ['team-*']\nnamespaceSelector: {matchExpressions: [{key: env, operator: NotIn, values: [dev]}]}\n\
                rules: {manual-edit: {mode: enforce}}\noverrides: {maxDuration: 30m}\nprotected: {releases: [db]}\n\
                freezes: [{name: a, reason: b, timeZone: UTC, from: 2026-01-01, to: 2027-01-01}]\n";
    let rest = "namespaces: ['*']\nrules: {manual-edit: {mode: warn}}\n";
    let all = [("a-team", team), ("b-rest", rest), ("team-own", "rules: {}\n")];
    let cluster = "rules: {manual-edit: {mode: audit}}\n";
    let files = files(cluster, &all);
    let known = labels(&[("team-a", &[]), ("team-own", &[]), ("team-dev", &[("env", "dev")]), ("bank", &[])]);
    let policies = Policies::of_files(&files).unwrap().knowing(Arc::clone(&known));
    let modes = ["team-a", "team-dev", "bank", "team-own", ""].map(|namespace| mode(&policies, namespace));
    assert_eq!(modes, [Mode::Enforce, Mode::Warn, Mode::Warn, Mode::Audit, Mode::Warn]);
    let of = |namespace: &str| {
        let release = ReleaseRef::new(namespace, "db");
        let frozen = policies.freezes(&[]).any(|it| it.freeze.concerns(&release));
        // Another namespace may have the objects of the release.
        let policy = policies.of("bank");
        (policy.overrides_in(namespace).max_duration.as_mins(), policy.protected.covers(&release), frozen)
    };
    assert_eq!(
        [of("team-a"), of("team-own"), of("bank")],
        [(30, true, true), (240, false, false), (240, false, false)]
    );
    assert_eq!(policies.namespaces().collect::<Vec<_>>(), ["team-own"]);
    let shown = in_force(&files, "team-a", &known).unwrap();
    assert!(shown.has_file && shown.freezes.len() == 1 && shown.freezes[0].freeze.scope.contains("team-a"));
    assert!(in_force(&files, "team-own", &known).unwrap().freezes.is_empty());
}

#[test]
fn a_wrong_selector_is_an_error() {
    let case = |selector: &str| {
        format!("rules: {{manual-edit: {{cases: [{{when: {{namespaceSelector: {selector}}}, mode: warn}}]}}}}\n")
    };
    for (selector, wanted) in [
        ("{}", "the selector has no requirement"),
        ("{matchLabels: {my env: prod}}", "`my env` is not the key of a label"),
        ("{matchExpressions: [{key: env, operator: In}]}", "In needs `values`"),
        ("{matchExpressions: [{key: env, operator: Exists, values: [a]}]}", "Exists takes no `values`"),
        ("{matchExpressions: [{key: env, operator: Equals}]}", "unknown value `Equals`"),
        ("{matchExpressions: [{operator: Exists}]}", "the key `key` is missing"),
    ] {
        let found = problems(&case(selector), &[]);
        assert!(found.len() == 1 && found[0].contains(wanted), "{selector}: {found:?}");
    }
    let found = problems("namespaceSelector: {matchLabels: {a: b}}\n", &[]);
    assert!(found[0].contains("the policy of the cluster is for every namespace"), "{found:?}");
    let own = "freezes: [{name: a, reason: b, timeZone: UTC, weekdays: [friday], namespaceSelector: {matchLabels: {a: b}}}]\n";
    let found = problems("", &[("shop", own)]);
    assert!(found[0].contains("concerns this namespace alone; remove `namespaceSelector`"), "{found:?}");
    let found = problems("", &[("shop", "protected: {releases: [a], namespaceSelector: {matchLabels: {a: b}}}\n")]);
    assert!(found[0].contains("only the cluster policy may set `namespaceSelector` of `protected`"), "{found:?}");
    let within =
        "namespaces: ['team-*']\nrules: {manual-edit: {cases: [{when: {namespaces: [team-a]}, mode: enforce}]}}\n";
    assert_eq!(problems("rules: {manual-edit: {mode: warn}}\n", &[("team", within)]), Vec::<String>::new());
}

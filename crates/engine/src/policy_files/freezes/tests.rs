//! Windows that are empty, never pause, or contradict each other.

use std::path::Path;

use crate::policy::Policy;
use crate::policy_files::{LoadedPolicies, PolicyFiles};

const HEADER: &str = "apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\n";

/// The errors and warnings of freezes.
fn problems(freezes: &[&str]) -> (Vec<String>, Vec<String>) {
    let mut files = PolicyFiles::default();
    let list: String = freezes.iter().map(|freeze| format!("  - {{{freeze}}}\n")).collect();
    files.set_cluster("c".into(), format!("{HEADER}freezes:\n{list}"));
    let LoadedPolicies { problems, warnings, .. } = LoadedPolicies::of(&files);
    let texts = |all: Vec<_>| all.iter().map(ToString::to_string).collect();
    (texts(problems), texts(warnings))
}

const BASE: &str = "name: a, reason: r, timeZone: Europe/Berlin";

#[test]
fn an_impossible_window_is_an_error() {
    for (window, wanted) in [
        ("", "needs `from` and `to` as dates, or `weekdays`"),
        ("from: 2026-12-20", "needs `from` and `to`"),
        ("from: 2026-12-20, to: 2026-12-20", "the window is empty"),
        ("from: 2026-12-20, to: 2026-12-19T23:00", "the window is empty"),
        ("from: \"17:00\", to: \"18:00\"", "a time of the day needs `weekdays`"),
        ("weekdays: [friday], from: 2026-12-20", "beside `weekdays`, set a time of the day"),
        ("weekdays: [friday], from: \"17:00\", to: \"17:00\"", "begins and ends at the same time"),
        ("weekdays: [friday], from: \"24:00\"", "begins at 00:00 of the next day"),
        ("weekdays: []", "the list is empty"),
        ("weekdays: [friday, friday]", "friday is listed twice"),
        ("weekdays: [fri]", "unknown value `fri`"),
        ("weekdays: [monday, tuesday, wednesday, thursday, friday, saturday, sunday]", "the window has no pause"),
        ("weekdays: [friday], from: 5 pm", "`5 pm` is neither a time like 17:00, nor a date"),
        ("weekdays: [friday], effect: allow", "unknown value `allow`"),
        ("weekdays: [friday], releases: [shop/web]", "so that nothing is frozen"),
        ("weekdays: [friday], exempt: {users: [\"system:serviceaccount:ci\"]}", "so that nobody is exempt"),
    ] {
        let (errors, _) = problems(&[&format!("{BASE}, {window}")]);
        assert!(errors.iter().any(|error| error.contains(wanted)), "{window}: {errors:?}");
    }
    let (errors, _) = problems(&["name: a, reason: r, timeZone: Europe/Berlim, weekdays: [friday]"]);
    assert!(errors[0].contains("there is no time zone `Europe/Berlim`; did you mean `Europe/Berlin`?"), "{errors:?}");
    let (errors, _) = problems(&["name: a, reason: r, timeZone: Mars, weekdays: [friday]"]);
    assert!(errors[0].contains("for example Europe/Berlin or UTC"), "{errors:?}");
    let (errors, _) = problems(&["weekdays: [friday]"]);
    assert_eq!(errors.len(), 3, "{errors:?}");
}

#[test]
fn the_usual_windows_have_no_problem() {
    for window in [
        "from: 2026-12-20, to: 2027-01-02T06:00",
        "weekdays: [friday], from: \"17:00\", to: \"08:00\"",
        "weekdays: [saturday, sunday]",
        "weekdays: [friday], from: \"17:00\", to: \"00:00\"",
        "weekdays: [monday, tuesday, wednesday, thursday, friday, saturday, sunday], from: \"22:00\", to: \"06:00\"",
        "weekdays: [tuesday], effect: allowOnly, from: \"09:00\", to: \"11:00\", exempt: {groups: [sre]}",
    ] {
        assert_eq!(problems(&[&format!("{BASE}, {window}")]), (vec![], vec![]), "{window}");
    }
}

#[test]
fn conflicts_of_two_freezes_are_reported() {
    let other = |rest: &str| format!("name: b, reason: r, timeZone: UTC, {rest}");
    let one = |rest: &str| format!("{BASE}, {rest}");
    let pair = |a: &str, b: &str| problems(&[&one(a), &other(b)]);
    let (errors, warnings) = pair("weekdays: [friday]", "weekdays: [friday], from: \"17:00\"");
    assert!(errors.is_empty() && warnings[0].contains("the freezes `a` and `b` overlap"), "{errors:?} {warnings:?}");
    assert_eq!(pair("weekdays: [friday]", "weekdays: [sunday]"), (vec![], vec![]));
    assert_eq!(pair("weekdays: [friday]", "weekdays: [friday], releases: [web]"), (vec![], vec![]), "another scope");
    let holidays = "from: 2026-12-20, to: 2026-12-28";
    assert_eq!(pair(holidays, "weekdays: [friday]"), (vec![], vec![]), "a holiday may fall on a weekend");
    assert_eq!(pair(holidays, "from: 2026-12-27, to: 2027-01-02").1.len(), 1);
    assert_eq!(pair(holidays, "from: 2026-12-28, to: 2027-01-02"), (vec![], vec![]));
    let only = |rest: &str| format!("effect: allowOnly, {rest}");
    let (errors, _) = pair(&only("weekdays: [monday]"), &only("weekdays: [thursday]"));
    assert!(errors[0].contains("nothing could ever start"), "{errors:?}");
    assert_eq!(pair(&only("weekdays: [monday]"), &only("weekdays: [monday, thursday]")), (vec![], vec![]));
    let (errors, _) = problems(&[&one("weekdays: [friday]"), &one("weekdays: [sunday]")]);
    assert!(errors[0].contains("two freezes are called `a`"), "{errors:?}");
}

#[test]
fn a_scope_is_described_in_the_words_of_the_policy() {
    for (lists, wanted) in [
        ("", "every release"),
        (", releases: [web, api-*]", "releases web, api-*"),
        (", namespaces: [prod-*]", "every release in namespaces prod-*"),
        (", releases: [web], namespaces: [prod-*, shop]", "releases web in namespaces prod-*, shop"),
    ] {
        let policy =
            Policy::parse(&format!("{HEADER}freezes: [{{{BASE}, weekdays: [friday]{lists}}}]\n"), Path::new("c"))
                .unwrap();
        assert_eq!(policy.freezes[0].scope, wanted);
    }
    for (exempt, wanted) in [
        ("", None),
        (", exempt: {}", None),
        (", exempt: {users: [bob]}", Some("users bob")),
        (", exempt: {groups: [sre, on-call], users: [bob]}", Some("users bob, groups sre, on-call")),
    ] {
        let text = format!("{HEADER}freezes: [{{{BASE}, weekdays: [friday]{exempt}}}]\n");
        assert_eq!(Policy::parse(&text, Path::new("c")).unwrap().freezes[0].exemption.as_deref(), wanted, "{exempt}");
    }
}

#[test]
fn a_freeze_that_covers_an_allowed_window_is_a_warning() {
    let only = format!("{BASE}, effect: allowOnly, weekdays: [friday, saturday], from: \"09:00\", to: \"16:00\"");
    let deny = |rest: &str| problems(&[&only, &format!("name: b, reason: r, timeZone: Europe/Berlin, {rest}")]).1;
    for (covers, other) in [
        (true, "weekdays: [friday, saturday]"),
        (true, "weekdays: [friday, saturday], from: \"08:00\", to: \"16:00\""),
        (true, "weekdays: [friday, saturday, sunday], releases: [web]"),
        (false, "weekdays: [friday, saturday], from: \"10:00\", to: \"16:00\""),
        (false, "weekdays: [saturday, sunday]"),
        (false, "from: 2026-12-20, to: 2027-06-28"),
    ] {
        let warnings = deny(other);
        let is_covered = warnings.iter().any(|warning| warning.contains("`b` denies the whole window of `a`"));
        assert_eq!(is_covered, covers, "{other}: {warnings:?}");
    }
    let once = format!("{BASE}, effect: allowOnly, from: 2026-12-24T09:00, to: 2026-12-24T17:00");
    let of_once = |rest: &str| problems(&[&format!("name: b, reason: r, timeZone: UTC, {rest}"), &once]).1.len();
    assert_eq!((of_once("from: 2026-12-20, to: 2026-12-28"), of_once("weekdays: [thursday]")), (1, 1));
    assert_eq!(of_once("from: 2026-12-20, to: 2026-12-24T12:00"), 0);
}

#[test]
fn a_namespace_adds_freezes_of_its_own() {
    let mut files = PolicyFiles::default();
    files.set_cluster("c".into(), format!("{HEADER}freezes: [{{{BASE}, weekdays: [friday]}}]\n"));
    let header = HEADER.replace("Cluster", "Namespace");
    files.add_namespace("shop".into(), "n".into(), format!("{header}freezes: [{{{BASE}, weekdays: [monday]}}]\n"));
    let policies = LoadedPolicies::of(&files).into_policies().unwrap();
    // An object of its releases may be elsewhere.
    let count = |policy: &Policy| policy.freezes.len();
    assert_eq!((count(policies.of("shop")), count(policies.of("other")), count(policies.of(""))), (2, 2, 2));
    let own = &policies.of("shop").freezes[1];
    assert!(own.concerns_namespace("shop") && !own.concerns_namespace("other"));
    let all: Vec<_> = policies.freezes(&[]).map(|it| (it.freeze.home.as_deref(), &*it.freeze.scope)).collect();
    assert_eq!(all, [(None, "every release"), (Some("shop"), "every release in namespace shop")]);
    let text = format!("{header}freezes: [{{{BASE}, weekdays: [monday], namespaces: [other]}}]\n");
    files.add_namespace("shop".into(), "n".into(), text);
    let error = LoadedPolicies::of(&files).into_policies().unwrap_err().to_string();
    assert!(error.contains("concerns this namespace alone; remove `namespaces`"), "{error}");
    assert!(Policy::parse(&format!("{HEADER}freezes: []\n"), Path::new("c")).is_ok());
}

#[test]
fn past_freezes_and_exemptions_of_everybody_are_warnings() {
    let past = |window: &str| {
        let mut files = PolicyFiles::default();
        files.set_cluster("c".into(), format!("{HEADER}freezes:\n  - {{{BASE}, {window}}}\n"));
        let past = files.past_freezes("2026-11-21T10:00:00Z".parse().unwrap());
        past.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let over = past("from: 2026-11-01, to: 2026-11-02");
    assert!(over.len() == 1 && over[0].starts_with("c:4:12: the freeze is over"), "{over:?}");
    let closed = past("from: 2026-11-01, to: 2026-11-02, effect: allowOnly");
    assert!(closed.len() == 1 && closed[0].contains("no operation starts ever again"), "{closed:?}");
    assert_eq!((past("from: 2026-11-01, to: 2026-12-02"), past("weekdays: [friday]")), (vec![], vec![]));
    for exempt in ["{users: ['*']}", "{groups: ['system:*']}", "{groups: [a, 'system:authenticated']}"] {
        let (errors, warnings) = problems(&[&format!("{BASE}, weekdays: [friday], exempt: {exempt}")]);
        assert!(errors.is_empty() && warnings.len() == 1, "{exempt}: {errors:?} {warnings:?}");
        assert!(warnings[0].contains("everybody is exempt"), "{warnings:?}");
    }
}

#[test]
fn allowed_windows_that_never_overlap_are_reported() {
    let only = |name: &str, rest: &str| format!("name: {name}, reason: r, timeZone: UTC, effect: allowOnly, {rest}");
    let pair = |a: &str, b: &str| {
        problems(&[&only("a", &format!("weekdays: [monday], {a}")), &only("b", &format!("weekdays: [friday], {b}"))])
    };
    for (a, b, warned) in [
        ("releases: [web]", "namespaces: [shop]", true),
        ("releases: ['web-*']", "releases: [web-1]", true),
        ("releases: [web]", "releases: [api]", false),
        ("namespaces: [shop], releases: [web]", "namespaces: ['sh*']", true),
    ] {
        let (errors, warnings) = pair(a, b);
        assert!(errors.is_empty() && (warnings.len() == 1) == warned, "{a} {b}: {errors:?} {warnings:?}");
        assert!(warnings.iter().all(|it| it.contains("nothing could ever start")), "{warnings:?}");
    }
}

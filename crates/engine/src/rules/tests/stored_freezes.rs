//! Freezes stored in the cluster: what they stop, for how long, and which ones may be created.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::objects::{record, web};
use super::overrides::review;
use super::scenario::{Cluster, rec, start};
use crate::effort::Effort;
use crate::evidence::{Evidence, Question, question};
use crate::facts::{Facts, RecordBodies, RequestObjects, Subject};
use crate::freezes::{MAX_OF_NAMESPACE, outcome};
use crate::policy::{Creation, Freeze, Policy};
use crate::policy_files::FreezeName;
use crate::release_override::CREATED_BY;
use crate::review::Review;

const HOUR: i64 = 3_600;

/// A Freeze from the start of the scenario, for this many minutes.
fn freeze(namespace: &str, minutes: i64) -> Value {
    let civil = |minutes: i64| {
        let moment = start().checked_add(SignedDuration::from_mins(minutes)).unwrap();
        moment.to_zoned(jiff::tz::TimeZone::UTC).datetime().to_string()
    };
    json!({
        "apiVersion": "interlock.dev/v1alpha1", "kind": "Freeze",
        "metadata": {"name": "stop-1", "namespace": namespace, "creationTimestamp": start().to_string()},
        "spec": {"reason": "INC-7", "timeZone": "UTC", "from": civil(-1), "to": civil(minutes)},
    })
}

fn with(mut freeze: Value, key: &str, value: Value) -> Value {
    freeze["spec"][key] = value;
    freeze
}

/// A deployed release with its objects.
fn release(policy: &str) -> Cluster {
    let mut cluster = Cluster::with_policy(policy);
    cluster.given_record(&record(5, "deployed", "alice"));
    cluster.given(web());
    cluster
}

#[test]
fn a_stored_freeze_stops_operations_until_it_ends() {
    let mut cluster = release("");
    let (deployed, upgrade) = (record(5, "deployed", "alice"), rec(6, "pending-upgrade"));
    let judged = cluster.judged("alice", None, freeze("shop", 60));
    let patch = serde_json::to_value(judged.patch.unwrap()).unwrap();
    assert!(judged.allowed && patch[0]["value"][CREATED_BY] == "alice", "{patch}");
    assert_eq!(cluster.create("bob", &upgrade), Err(vec!["freeze"]));
    assert_eq!(cluster.update("bob", &deployed, &deployed.to("uninstalling")), Err(vec!["freeze"]));
    assert!(cluster.delete_object("bob", web()).unwrap_err().contains(&"freeze"));
    let text = cluster.refusal("CREATE", "bob", &upgrade);
    let wanted = "Cannot start the upgrade of release shop/web, revision 6: the freeze stop-1, created by alice, is in force until \
                  2026-11-21 11:00 UTC (INC-7). Wait until the freeze ends";
    assert!(text.starts_with(wanted), "{text}");
    cluster.later(HOUR);
    assert_eq!(cluster.create("bob", &upgrade), Ok(()));
}

#[test]
fn a_freeze_ends_with_its_deletion() {
    let mut cluster = release("");
    let upgrade = rec(6, "pending-upgrade");
    assert_eq!(cluster.create_object("alice", freeze("shop", 60)), Ok(()));
    assert_eq!(cluster.create("bob", &upgrade), Err(vec!["freeze"]));
    assert_eq!(cluster.delete_object("alice", freeze("shop", 60)), Ok(()));
    assert_eq!(cluster.create("bob", &upgrade), Ok(()));
}

#[test]
fn a_stored_freeze_stops_nothing_else() {
    let upgrade = rec(6, "pending-upgrade");
    for freeze in [
        freeze("billing", 60),
        with(freeze("shop", 60), "releases", json!(["api-*"])),
        with(freeze("shop", 60), "exempt", json!({"users": ["bob"]})),
    ] {
        let mut cluster = release("");
        assert_eq!(cluster.create_object("alice", freeze.clone()), Ok(()), "{freeze}");
        assert_eq!(cluster.create("bob", &upgrade), Ok(()), "{freeze}");
    }
    // Operations that started earlier may finish.
    let mut cluster = release("");
    assert_eq!(cluster.create("bob", &upgrade), Ok(()));
    assert_eq!(cluster.create_object("alice", freeze("shop", 60)), Ok(()));
    let deployed = record(5, "deployed", "alice");
    assert_eq!(cluster.update("bob", &deployed, &deployed.to("superseded")), Ok(()));
    assert_eq!(cluster.update("bob", &upgrade, &upgrade.to("deployed")), Ok(()));
}

#[test]
fn the_policy_says_whether_and_for_how_long_whatever_was_stored_while_the_webhook_was_away() {
    let upgrade = rec(6, "pending-upgrade");
    let mut forbidden = release("teamFreezes: {allowed: false}");
    forbidden.given(freeze("shop", 60));
    assert_eq!(forbidden.create("bob", &upgrade), Ok(()));
    for long in [
        freeze("shop", 600),
        with(with(freeze("shop", 60), "from", json!("2020-01-01")), "to", json!("2120-01-01")),
        // This Freeze would never end.
        with(freeze("shop", 60), "effect", json!("allowOnly")),
    ] {
        let mut cluster = release("teamFreezes: {maxDuration: 2h}");
        cluster.given(long.clone());
        cluster.later(if long["spec"]["effect"] == "allowOnly" { 2 * HOUR - 10 } else { HOUR });
        assert_eq!(cluster.create("bob", &upgrade), Err(vec!["freeze"]), "{long}");
        cluster.now = start().checked_add(SignedDuration::from_hours(2)).unwrap();
        assert_eq!(cluster.create("bob", &upgrade), Ok(()), "{long}");
    }
}

#[test]
fn an_exempt_user_and_an_override_pass() {
    let mut cluster = release("");
    assert_eq!(cluster.create_object("alice", freeze("shop", 60)), Ok(()));
    let opened = super::overrides::override_of("web", &["freeze"], 30);
    assert_eq!(cluster.create_object("alice", opened), Ok(()));
    assert_eq!(cluster.create("bob", &rec(6, "pending-upgrade")), Ok(()));
}

/// The answer of the validating half to the creation of a Freeze with others stored, or to its change.
fn objection(policy: &str, stored: usize, old: Option<&Value>, new: &Value) -> Option<String> {
    let operation = if old.is_some() { "UPDATE" } else { "CREATE" };
    let body = review("alice", operation, ["interlock.dev", "v1alpha1", "Freeze", "shop"], old, Some(new));
    let review = Review::parse(&body).unwrap();
    let (objects, bodies) = (RequestObjects::read(&review.request).unwrap(), RecordBodies::default());
    let effort = Effort::of_review();
    let facts = Facts::of(&review.request, &objects, &bodies, &effort);
    let Subject::Own(write) = &facts.subject else { panic!("expected a Freeze") };
    let policy = format!("apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\nteamFreezes: {policy}\n");
    let policy = Policy::parse(&policy, std::path::Path::new("test")).unwrap();
    let mut evidence = Evidence::default();
    if old.is_none() {
        assert_eq!(outcome(write, &facts.actor, &policy, &evidence, start()), Err(question::Freezes.into()));
    }
    let spec = freeze("shop", 60)["spec"].to_string();
    let one = Freeze::of_spec(FreezeName { namespace: "shop", name: "stop" }, &spec).unwrap();
    let one = one.created(Creation { by: None, at: start() });
    evidence.add(question::Freezes.into(), question::Freezes.answered(vec![one; stored].into()));
    let outcome = outcome(write, &facts.actor, &policy, &evidence, start()).unwrap();
    (!outcome.allowed).then_some(outcome.message)
}

#[test]
fn the_refusal_of_an_invalid_freeze_names_the_field() {
    let fine = freeze("shop", 60);
    for (policy, object, wanted) in [
        ("{}", fine.clone(), None),
        ("{}", freeze("shop", 7 * 24 * 60), None),
        ("{allowed: false}", fine.clone(), Some("The policy allows no Freezes")),
        (
            "{maxDuration: 30m}",
            fine.clone(),
            Some("would end in 1h, but the policy allows at most 30m. Set an earlier end"),
        ),
        (
            "{}",
            freeze("shop", 0),
            Some("The Freeze has already ended: at 2026-11-21 10:00 UTC, and it is 2026-11-21 10:00 UTC now."),
        ),
        (
            "{}",
            with(fine.clone(), "timeZone", json!("Europe/Berlim")),
            Some("4 | timeZone: Europe/Berlim\n  |           ^^^^^^^^^^^^^"),
        ),
        ("{}", with(fine.clone(), "to", json!("2026-11-20")), Some("the window is empty: it ends at")),
        ("{}", with(fine.clone(), "exempt", json!({"users": ["Upper Case", ""]})), None),
        ("{}", with(fine.clone(), "releases", json!(["shop/web"])), Some("so that nothing is frozen")),
        (
            "{}",
            with(fine.clone(), "weekdays", json!(["monday"])),
            Some("is a date; beside `weekdays`, set a time of the day"),
        ),
        (
            "{}",
            with(fine.clone(), "namespaces", json!(["billing"])),
            Some("concerns this namespace alone; remove `namespaces`"),
        ),
        ("{}", with(fine.clone(), "reason", json!("x".repeat(5_000))), Some("its spec has more than 4096 bytes")),
        ("{}", json!({"metadata": {"name": "stop-1"}}), Some("it has no spec")),
        ("{}", json!({"metadata": {"name": "stop-1"}, "spec": {"reason": "x"}}), Some("the key `timeZone` is missing")),
    ] {
        let text = objection(policy, 0, None, &object);
        match wanted {
            None => assert_eq!(text, None, "{object}"),
            Some(wanted) => {
                assert!(text.as_deref().unwrap_or_default().contains(wanted), "{wanted}: {}", text.unwrap_or_default())
            }
        }
    }
    let text = objection("{}", MAX_OF_NAMESPACE, None, &fine).unwrap();
    assert!(text.ends_with("Delete those that are over: kubectl delete freezes -n shop NAME"), "{text}");
    assert_eq!(objection("{}", MAX_OF_NAMESPACE - 1, None, &fine), None);
    assert_eq!(objection("{allowed: false}", MAX_OF_NAMESPACE, Some(&fine), &fine), None, "a change of its labels");
}

#[test]
fn nobody_writes_the_name_of_another_creator() {
    let stamped = |user: &str| {
        let mut freeze = freeze("shop", 60);
        freeze["metadata"]["annotations"] = json!({CREATED_BY: user});
        freeze
    };
    assert_eq!(objection("{}", 0, None, &stamped("alice")), None);
    let forged = objection("{}", 0, None, &stamped("bob")).unwrap();
    assert!(forged.contains("names the user who created a Freeze, and only Interlock writes it"), "{forged}");
    assert_eq!(objection("{}", 0, Some(&stamped("bob")), &stamped("bob")), None);
    assert!(objection("{}", 0, Some(&stamped("bob")), &stamped("alice")).is_some());
    // The mutating half corrects it first.
    let mut cluster = release("");
    let judged = cluster.judged("alice", None, stamped("bob"));
    let patch = serde_json::to_value(judged.patch.unwrap()).unwrap();
    assert!(judged.allowed && patch[0]["value"] == "alice", "{patch}");
}

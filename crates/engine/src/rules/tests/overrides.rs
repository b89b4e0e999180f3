//! What overrides open, from their creation to their end.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::objects::{image, record, web};
use super::scenario::{Cluster, Rec, decided, rec, start};
use crate::effort::Effort;
use crate::evidence::{Answer, Evidence, Freshness, Knowledge, Query};
use crate::facts::{Facts, RecordBodies, RequestObjects};
use crate::outcome::Outcome;
use crate::policy::Policy;
use crate::release::ReleaseRef;
use crate::release_override::CREATED_BY;
use crate::review::Review;
use crate::rule::RuleId;
use crate::stamp::ClusterStamps;

/// A deployed release with its objects.
fn release(policy: &str) -> Cluster {
    let mut cluster = Cluster::with_policy(policy);
    cluster.given_record(&record(5, "deployed", "alice"));
    cluster
}

pub(crate) fn override_of(release: &str, rules: &[&str], minutes: i64) -> Value {
    let expires = start().checked_add(SignedDuration::from_mins(minutes)).unwrap();
    json!({
        "apiVersion": "interlock.dev/v1alpha1", "kind": "ReleaseOverride",
        "metadata": {"name": "web-1", "namespace": "shop", "creationTimestamp": start().to_string()},
        "spec": {"release": release, "rules": rules, "reason": "incident 7", "expiresAt": expires.to_string()},
    })
}

fn edit(cluster: &mut Cluster, user: &str) -> super::scenario::Verdict {
    cluster.update_objects(user, web(), image("evil"))
}

#[test]
fn an_override_admits_an_edit_with_a_warning_until_it_expires() {
    let mut cluster = release("");
    assert_eq!(edit(&mut cluster, "bob"), Err(vec!["manual-edit"]));
    assert_eq!(cluster.create_object("alice", override_of("web", &["manual-edit"], 30)), Ok(()));
    let admitted = cluster.judged("bob", Some(web()), image("evil"));
    assert!(admitted.allowed);
    assert_eq!(
        admitted.warnings,
        ["interlock: manual-edit is overridden by ReleaseOverride shop/web-1 until 2026-11-21T10:30:00Z: incident 7"]
    );
    assert_eq!(cluster.delete_object("bob", web()), Err(vec!["manual-delete"]), "another rule");
    cluster.given(web());
    cluster.later(30 * 60);
    assert_eq!(edit(&mut cluster, "bob"), Err(vec!["manual-edit"]));
}

#[test]
fn an_override_older_than_the_pattern_still_works() {
    let mut cluster = release("overrides: {reasonPattern: 'OPS-[0-9]+', reasonExample: 'OPS-12: why'}");
    let mut before = override_of("web", &["manual-edit"], 30);
    before["spec"]["ticket"] = "CHG-1".into();
    assert!(cluster.create_object("alice", before.clone()).is_err(), "it would not be created any more");
    cluster.given(before);
    let admitted = cluster.judged("bob", Some(web()), image("evil"));
    assert!(admitted.allowed);
    assert!(admitted.warnings.iter().any(|line| line.ends_with("(ticket CHG-1)")), "{:?}", admitted.warnings);
}

#[test]
fn an_override_opens_one_release_in_its_own_namespace() {
    for (name, namespace) in [("other", "shop"), ("web", "bar")] {
        let mut cluster = release("");
        let mut other = override_of(name, &["manual-edit"], 30);
        other["metadata"]["namespace"] = namespace.into();
        cluster.given(other);
        assert_eq!(edit(&mut cluster, "bob"), Err(vec!["manual-edit"]), "{namespace}/{name}");
    }
}

/// A release with a ClusterRole, and the ClusterRole before and after an edit. `shop` is the policy of its namespace.
fn with_cluster_role(shop: &str) -> (Cluster, Value, Value) {
    const MANIFEST: &str = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: web}\n\
                            rules:\n- {apiGroups: [''], resources: [pods], verbs: [get]}\n";
    let mut cluster = Cluster::with_policies("", Some(shop));
    cluster.given_record(&Rec { manifest: MANIFEST, ..record(5, "deployed", "alice") });
    let role = |verb: &str| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {
                "name": "web", "labels": {"app.kubernetes.io/managed-by": "Helm"},
                "annotations": {"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop"},
            },
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": [verb]}],
        })
    };
    (cluster, role("get"), role("*"))
}

#[test]
fn namespace_policy_binds_overrides_of_cluster_scoped_objects() {
    let (mut cluster, old, new) = with_cluster_role("overrides: {secondPerson: true, maxDuration: 20m}");
    let refused = cluster.update_cluster_scoped("alice", old.clone(), new.clone());
    assert!(!refused.allowed, "{refused:?}");
    assert_eq!(cluster.create_object("alice", override_of("web", &["manual-edit"], 20)), Ok(()));
    let by_its_maker = cluster.update_cluster_scoped("alice", old.clone(), new.clone());
    assert!(!by_its_maker.allowed, "{by_its_maker:?}");
    let by_another = cluster.update_cluster_scoped("bob", old.clone(), new.clone());
    assert!(by_another.allowed, "{by_another:?}");
    for (shop, open) in [("overrides: {allowed: false}", false), ("overrides: {allowed: true}", true)] {
        let (mut cluster, old, new) = with_cluster_role(shop);
        cluster.given(override_of("web", &["manual-edit"], 30));
        assert_eq!(cluster.update_cluster_scoped("bob", old, new).allowed, open, "{shop}");
    }
}

#[test]
fn overrides_apply_to_records_too() {
    let mut cluster = Cluster::new();
    cluster.given_record(&rec(1, "pending-install").annotated(crate::release::stamps::HOLDER, "alice"));
    let next = rec(2, "pending-upgrade");
    assert_eq!(cluster.create("bob", &next), Err(vec!["concurrent-operation"]));
    assert_eq!(cluster.create_object("bob", override_of("web", &["concurrent-operation"], 30)), Ok(()));
    assert_eq!(cluster.create("bob", &next), Ok(()));
}

#[test]
fn the_maker_is_stamped_and_cannot_be_the_second_person() {
    let mut cluster = release("overrides: {secondPerson: true}");
    let mut made = override_of("web", &["manual-edit"], 30);
    made["metadata"]["annotations"] = json!({CREATED_BY: "bob", "team": "blue"});
    let judged = cluster.judged("alice", None, made.clone());
    assert!(judged.allowed);
    let patch = serde_json::to_value(judged.patch.unwrap()).unwrap();
    assert_eq!(
        patch,
        json!([{"op": "add", "path": "/metadata/annotations/interlock.dev~1created-by", "value": "alice"}])
    );
    assert_eq!(edit(&mut cluster, "alice"), Err(vec!["manual-edit"]));
    assert_eq!(edit(&mut cluster, "bob"), Ok(()));
    // The creator cannot be changed.
    let mut stored = made.clone();
    stored["metadata"]["annotations"][CREATED_BY] = "alice".into();
    for annotations in [json!({CREATED_BY: "carol"}), json!({"team": "red"}), Value::Null] {
        let mut sent = stored.clone();
        sent["metadata"]["annotations"] = annotations;
        let judged = cluster.judged("carol", Some(stored.clone()), sent);
        assert!(judged.allowed && judged.patch.is_some());
    }
    assert_eq!(edit(&mut cluster, "alice"), Err(vec!["manual-edit"]));
}

/// The answer of the validating half to a write that the mutating half has not seen.
fn objection(user: &str, policy: &str, old: Option<&Value>, new: &Value) -> Option<String> {
    let operation = if old.is_some() { "UPDATE" } else { "CREATE" };
    let body = review(user, operation, ["interlock.dev", "v1alpha1", "ReleaseOverride", "shop"], old, Some(new));
    let review = Review::parse(&body).unwrap();
    let (objects, bodies) = (RequestObjects::read(&review.request).unwrap(), RecordBodies::default());
    let effort = Effort::of_review();
    let facts = Facts::of(&review.request, &objects, &bodies, &effort);
    let crate::facts::Subject::Own(write) = &facts.subject else { panic!("expected an override") };
    let policy = format!("apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\noverrides: {policy}\n");
    let policy = Policy::parse(&policy, std::path::Path::new("test")).unwrap();
    let evidence = Evidence::default();
    let outcome = crate::freezes::outcome(write, &facts.actor, &policy, &evidence, start()).unwrap();
    (!outcome.allowed).then_some(outcome.message)
}

pub(crate) fn review(
    user: &str,
    operation: &str,
    kind: [&str; 4],
    old: Option<&Value>,
    new: Option<&Value>,
) -> Vec<u8> {
    let [group, version, kind, namespace] = kind;
    let request = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u", "operation": operation, "name": "web-1", "namespace": namespace,
            "userInfo": {"username": user}, "oldObject": old, "object": new,
            "kind": {"group": group, "version": version, "kind": kind},
            "resource": {"group": group, "version": version, "resource": "things"},
        },
    });
    serde_json::to_vec(&request).unwrap()
}

#[test]
fn an_invalid_override_is_refused_with_a_sentence() {
    let with = |pointer: &str, value: Value| {
        let mut object = override_of("web", &["manual-edit"], 30);
        *object.pointer_mut(pointer).unwrap() = value;
        object
    };
    const TICKETED: &str = "{reasonPattern: 'OPS-[0-9]+', reasonExample: 'OPS-12: why'}";
    let fine = override_of("web", &["manual-edit"], 30);
    // The pattern applies to the reason, not to the ticket.
    let mut ticketed = fine.clone();
    ticketed["spec"]["ticket"] = "OPS-7".into();
    for (policy, object, wanted) in [
        ("{}", &fine, None),
        ("{}", &override_of("web", &["manual-edit"], 240), None),
        ("{allowed: false}", &fine, Some("The policy allows no overrides in namespace shop.")),
        ("{maxDuration: 20m}", &fine, Some("would be open for 30m, but the policy allows at most 20m")),
        ("{}", &override_of("web", &["manual-edit"], 0), Some("has already expired")),
        ("{}", &override_of("web", &["manual-edits"], 30), Some("there is no rule `manual-edits`")),
        ("{}", &with("/spec", json!({"release": "web"})), Some("missing field `rules`")),
        ("{}", &with("/spec", Value::Null), Some("cannot be parsed")),
        (TICKETED, &fine, Some("for example \"OPS-12: why\". The reason must match `OPS-[0-9]+`.")),
        (TICKETED, &with("/spec/reason", "roll back, see OPS-7".into()), None),
        (TICKETED, &ticketed, Some("The policy requires another reason for an override")),
        ("{}", &with("/spec/reason", "      ".into()), Some("The override has no reason")),
        ("{}", &with("/spec/reason", ".....".into()), Some("The override has no reason")),
        ("{}", &with("/spec/release", "shop/web".into()), Some("Create it with `release: web`.")),
        ("{}", &with("/spec/release", "crm/web".into()), Some("Create it in namespace crm with `release: web`.")),
        ("{}", &with("/spec/release", "*".into()), Some("`*` is no name of one. Write the name alone")),
        ("{}", &with("/spec/release", "a//b".into()), Some("`a//b` is no name of one")),
        ("{}", &with("/spec/release", "shop-sveltos-prod.helm".into()), None),
    ] {
        let text = objection("alice", policy, None, object);
        match wanted {
            None => assert_eq!(text, None),
            Some(wanted) => assert!(text.as_deref().unwrap_or_default().contains(wanted), "{wanted}: {text:?}"),
        }
    }
    let stamped = |user: &str| with("/metadata", json!({"name": "web-1", "annotations": {CREATED_BY: user}}));
    for (old, new, fine) in [
        (None, stamped("alice"), true),
        (None, stamped("bob"), false),
        (Some(stamped("bob")), stamped("bob"), true),
        (Some(stamped("bob")), stamped("alice"), false),
        (Some(fine.clone()), stamped("alice"), false),
        // A lost stamp only means that the creator is unknown.
        (Some(stamped("bob")), fine.clone(), true),
    ] {
        let text = objection("alice", "{}", old.as_ref(), &new);
        assert_eq!(text.is_none(), fine, "{old:?} {new}: {text:?}");
    }
}

/// Judges the creation of a record if only the overrides are known.
fn blind(overrides: impl Fn(Freshness) -> Answer) -> (bool, Option<String>, usize) {
    let next = rec(2, "pending-upgrade").object();
    let body = review("bob", "CREATE", ["", "v1", "Secret", "shop"], None, Some(&next));
    let review = Review::parse(&body).unwrap();
    let objects = RequestObjects::read(&review.request).unwrap();
    let bodies = objects.payloads(review.request.operation).inflate(&Effort::of_review());
    let effort = Effort::of_review();
    let facts = Facts::of(&review.request, &objects, &bodies, &effort);
    let (policy, mut asked) = (Policy::shipped().unwrap(), 0);
    let judged = decided(&facts, &policy, |query| match query {
        Query::Overrides(it) => {
            asked += 1;
            overrides(it.freshness)
        }
        _ => Answer::Unavailable("away".to_owned()),
    });
    let outcome = Outcome::of(&policy, judged);
    let audit = outcome.audit.into_iter().find(|(key, _)| *key == "override");
    (outcome.allowed, audit.map(|(_, value)| value), asked)
}

fn stored(rules: &[RuleId]) -> Answer {
    Answer::Known(Knowledge::Overrides(vec![crate::release_override::Override {
        namespace: "shop".into(),
        name: "web-1".into(),
        created: Some(start()),
        created_by: None,
        is_void: false,
        spec: crate::release_override::OverrideSpec {
            release: "web".into(),
            rules: rules.to_vec(),
            users: None,
            reason: "incident 7".into(),
            ticket: None,
            expires_at: Timestamp::MAX,
        },
    }]))
}

#[test]
fn overrides_also_open_undecided_requests() {
    let none = || Answer::Known(Knowledge::Overrides(Vec::new()));
    let opened = Some("shop/web-1".to_owned());
    assert_eq!(
        blind(|_| stored(&crate::rules::all().collect::<Vec<_>>())),
        (true, opened.clone(), 1),
        "a copy may open"
    );
    let live = |freshness| {
        if freshness == Freshness::Live { stored(&crate::rules::all().collect::<Vec<_>>()) } else { none() }
    };
    assert_eq!(blind(live), (true, opened, 2), "and may not close");
    assert_eq!(blind(|_| none()), (false, None, 2));
    assert_eq!(blind(|_| Answer::Unavailable("away".to_owned())), (false, None, 2));
    assert_eq!(
        blind(|_| stored(&[RuleId::known("concurrent-operation")])),
        (false, None, 2),
        "all that refuses, or nothing"
    );
}

#[test]
fn every_declaration_has_a_release() {
    let named = |spec: Value| json!({"metadata": {"name": "web-1", "namespace": "apps"}, "spec": spec});
    let flux = named(json!({"storageNamespace": "records", "targetNamespace": "shop"}));
    let mut set = named(json!({}));
    set["metadata"]["labels"] = json!({"olm.operatorframework.io/owner-name": "argocd"});
    let mut group = named(json!({}));
    group["metadata"]["labels"] = json!({"pullmode.projectsveltos.io/requestorfeature": "Helm"});
    group["metadata"]["annotations"] = json!({"pullmode.projectsveltos.io/requestorname": "shop-sveltos-prod"});
    for (kind, object, wanted) in [
        (["helm.toolkit.fluxcd.io", "v2", "HelmRelease", "apps"], flux, ("records", "shop-web-1")),
        (["olm.operatorframework.io", "v1", "ClusterExtension", ""], named(json!({})), ("", "web-1")),
        (["olm.operatorframework.io", "v1", "ClusterObjectSet", ""], set, ("", "argocd")),
        (["lib.projectsveltos.io", "v1beta1", "ConfigurationGroup", "civ"], group, ("civ", "shop-sveltos-prod.helm")),
        (["helm.toolkit.fluxcd.io", "v2", "HelmRelease", "apps"], named(json!([])), ("apps", "web-1")),
    ] {
        let body = review("bob", "CREATE", kind, None, Some(&object));
        let review = Review::parse(&body).unwrap();
        let (objects, bodies) = (RequestObjects::read(&review.request).unwrap(), RecordBodies::default());
        let release = Facts::of(&review.request, &objects, &bodies, &Effort::of_review()).release();
        assert_eq!(release, Some(ReleaseRef::new(wanted.0, wanted.1)), "{kind:?}");
    }
}

/// The outcome if Interlock's own account creates an override in Interlock's namespace, and the patch of the mutating half.
fn created_by_interlock(object: &Value, is_dry_run: bool) -> (crate::outcome::Outcome, Option<crate::json::Patch>) {
    let own = "system:serviceaccount:interlock-system:interlock";
    let kind = ["interlock.dev", "v1alpha1", "ReleaseOverride", "interlock-system"];
    let mut body: Value = serde_json::from_slice(&review(own, "CREATE", kind, None, Some(object))).unwrap();
    body["request"]["dryRun"] = is_dry_run.into();
    let body = body.to_string();
    let review = Review::parse(body.as_bytes()).unwrap();
    let (objects, bodies) = (RequestObjects::read(&review.request).unwrap(), RecordBodies::default());
    let effort = Effort::of_review();
    let facts = Facts::of(&review.request, &objects, &bodies, &effort);
    let facts = Facts { actor: facts.actor.or_interlock(Some(own)), ..facts };
    let crate::facts::Subject::Own(write) = &facts.subject else { panic!("expected an override") };
    let policy = Policy::parse(
        "apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\noverrides: {allowed: false}\n",
        std::path::Path::new("test"),
    );
    let policy = policy.unwrap();
    let evidence = Evidence::default();
    let outcome = crate::freezes::outcome(write, &facts.actor, &policy, &evidence, start()).unwrap();
    (outcome, crate::stamp::stamp(&facts, &policy, None, ClusterStamps::default(), start()))
}

#[test]
fn both_halves_return_the_nonce_of_a_probe() {
    use crate::release_override::{ARRIVED, NONCE, PROBE};
    let mut probe = override_of("interlock-probe", &["manual-edit"], 1);
    probe["metadata"] =
        json!({"name": "interlock-probe", "labels": {PROBE: "validating"}, "annotations": {NONCE: "n0nce"}});
    let (outcome, patch) = created_by_interlock(&probe, true);
    assert!(outcome.allowed);
    assert_eq!(outcome.warnings, ["interlock: the probe n0nce arrived"]);
    let patch = serde_json::to_value(patch.unwrap()).unwrap();
    assert_eq!(patch[0]["value"], "n0nce");
    assert!(patch[0]["path"].as_str().unwrap().ends_with(&ARRIVED.replace('/', "~1")), "{patch}");
    // A nonce must not put arbitrary text into a warning.
    probe["metadata"]["annotations"][NONCE] = "n0nce\" and more".into();
    assert_eq!(created_by_interlock(&probe, true).0.warnings, Vec::<String>::new());
}

#[test]
fn a_real_override_by_interlock_itself_is_refused_and_one_by_a_person_is_not() {
    use crate::release_override::{NONCE, PROBE};
    let mut probe = override_of("interlock-probe", &["manual-edit"], 1);
    probe["metadata"] =
        json!({"name": "interlock-probe", "labels": {PROBE: "validating"}, "annotations": {NONCE: "n0nce"}});
    let (outcome, _) = created_by_interlock(&probe, false);
    assert!(
        !outcome.allowed
            && outcome.message.starts_with("Interlock's own account may create overrides for its probes only")
    );
    // A dry run is refused too if it is not a probe.
    assert!(!created_by_interlock(&override_of("web", &["manual-edit"], 1), true).0.allowed);
    assert_eq!(objection("alice", "{}", None, &probe), None);
}

/// Under a cap, an invalid override is admitted with a warning and marked. It opens nothing, even after the cap is removed.
#[test]
fn under_a_cap_an_override_that_is_not_valid_is_void_for_good() {
    use crate::release_override::VOID;
    let mut cluster = release("cap: audit\noverrides: {maxDuration: 20m}");
    assert_eq!(edit(&mut cluster, "bob"), Ok(()));
    let valid = cluster.judged("alice", None, override_of("web", &["manual-edit"], 10));
    let patch = serde_json::to_string(&valid.patch).unwrap();
    assert!(valid.allowed && valid.warnings.is_empty() && !patch.contains("void"), "{patch}");
    let mut long = override_of("web", &["manual-edit"], 30);
    let voided = cluster.judged("alice", None, long.clone());
    assert!(
        voided.allowed && voided.warnings[0].starts_with("interlock: The override is void. "),
        "{:?}",
        voided.warnings
    );
    let patch = serde_json::to_value(&voided.patch).unwrap();
    let why = "The override would be open for 30m, but the policy allows at most 20m.";
    assert!(patch[0]["value"][VOID].as_str().is_some_and(|mark| mark.starts_with(why)), "{patch}");
    // The mark stays, even if a client removes it.
    long["metadata"]["annotations"] = json!({VOID: why, CREATED_BY: "alice"});
    let mut unmarked = long.clone();
    unmarked["metadata"]["annotations"].as_object_mut().unwrap().remove(VOID);
    let restored = cluster.judged("alice", Some(long.clone()), unmarked.clone());
    assert!(restored.allowed && serde_json::to_string(&restored.patch).unwrap().contains("interlock.dev~1void"));
    let text = objection("alice", "{}", Some(&long), &unmarked);
    assert!(text.is_some_and(|text| text.contains("Create another one")));
    let mut without_cap = release("");
    without_cap.given(long);
    assert_eq!(edit(&mut without_cap, "alice"), Err(vec!["manual-edit"]));
}

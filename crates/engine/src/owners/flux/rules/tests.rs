//! HelmReleases as declarations, and as the owners of records and objects.

mod duplicates;
mod exceptions;
mod retarget;

use serde_json::{Value, json};

use crate::rules::tests::objects::{image, record, web};
use crate::rules::tests::scenario::{Cluster, Rec, Verdict, rec};

const CONTROLLER: &str = "system:serviceaccount:flux-system:helm-controller";
const TENANT: &str = "system:serviceaccount:shop:deployer";
const FORMER: &str = "system:serviceaccount:shop:former";
const FOREIGNER: &str = "system:serviceaccount:bar:deployer";
const STALE: i64 = 15 * 60;

fn helm_release(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {"name": name, "namespace": "shop", "uid": format!("uid of {name}"), "generation": 1},
        "spec": spec,
    })
}

fn with(mut object: Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    object.pointer_mut(parent).unwrap()[key.replace("~1", "/")] = value;
    object
}

/// The same object, with this release installed.
fn installed(object: Value) -> Value {
    let snapshot = json!({"name": "web", "namespace": "shop", "status": "deployed", "chartName": "nginx"});
    with(object, "/status", json!({"storageNamespace": "shop", "history": [snapshot]}))
}

fn dying(object: Value) -> Value {
    with(object, "/metadata/deletionTimestamp", json!("2026-11-21T09:59:00Z"))
}

fn refused(rule: &'static str) -> Verdict {
    Err(vec![rule])
}

/// HelmRelease shop/web, which drives release shop/web.
fn first() -> Value {
    helm_release("web", json!({"interval": "10m"}))
}

fn risks(old: Option<Value>, new: Value) -> Vec<String> {
    let object = |spec| helm_release("web", spec);
    Cluster::new().findings("alice", old.map(object), Some(object(new)))
}

#[test]
fn only_the_write_that_introduces_a_risk_is_warned_of_it() {
    let retry = |interval: &str| json!({"strategy": {"name": "RetryOnFailure", "retryInterval": interval}});
    let remedy = |retries: i64, strategy: &str| json!({"remediation": {"retries": retries, "strategy": strategy}});
    let both = json!({"install": retry("5m"), "upgrade": retry("5m")});
    let mut ignored = both.clone();
    ignored["upgrade"]["remediation"] = json!({"retries": 3});
    let mut unbounded = retry("5m");
    unbounded["remediation"] = json!({"retries": -1});
    let mut endless = both.clone();
    endless["maxHistory"] = json!(0);
    for (spec, text) in [
        (json!({}), vec![]),
        (both, vec![]),
        (json!({"upgrade": remedy(3, "rollback"), "install": remedy(3, "")}), vec![]),
        (json!({"timeout": "15m"}), vec![]),
        (json!({"install": retry("5m")}), vec!["only one of install and upgrade"]),
        (json!({"upgrade": retry("5m")}), vec!["a failed first install is not tried again"]),
        (json!({"upgrade": retry("5m"), "install": remedy(3, "")}), vec![]),
        (
            json!({"install": retry("5m"), "upgrade": remedy(1, "")}),
            vec!["only one of install and upgrade", "no revision to roll back to"],
        ),
        (ignored, vec!["its retries still count"]),
        (json!({"install": unbounded, "upgrade": unbounded}), vec![]),
        (
            json!({"install": unbounded, "upgrade": with(unbounded.clone(), "/remediation/strategy", json!("rollback"))}),
            vec!["its retries still count"],
        ),
        (json!({"install": remedy(-1, "")}), vec!["uninstalls a failed install and installs again without limit"]),
        (
            json!({"upgrade": remedy(-1, "uninstall")}),
            vec!["uninstalls the running release", "remediates a failed upgrade"],
        ),
        (
            json!({"maxHistory": 0, "install": remedy(-1, "")}),
            vec!["keeps every record", "installs again without limit"],
        ),
        (endless, vec!["keeps every record"]),
        (json!({"maxHistory": 0, "upgrade": remedy(-1, "")}), vec!["keeps every record", "without limit"]),
        (json!({"install": retry("29s"), "upgrade": retry("1m")}), vec!["less than 30 s"]),
        (json!({"upgrade": remedy(1, "uninstall")}), vec!["uninstalls the running release"]),
        (json!({"upgrade": {"force": true}}), vec!["sets force"]),
        (json!({"rollback": {"force": true}}), vec!["sets force"]),
        (json!({"upgrade": {"preserveValues": true}}), vec!["preserves the values"]),
        (json!({"uninstall": {"keepHistory": true}, "install": remedy(1, "")}), vec!["the name is in use"]),
        (json!({"install": {"createNamespace": true}}), vec!["no effect"]),
        (json!({"install": {"createNamespace": true}, "targetNamespace": "prod"}), vec![]),
        (json!({"timeout": "5m", "install": {"timeout": "15m1s"}}), vec!["counts as stuck only after that"]),
    ] {
        let found = risks(None, spec.clone());
        assert_eq!(found.len(), text.len(), "{spec}: {found:#?}");
        for (found, text) in found.iter().zip(text) {
            assert!(found.starts_with("HelmRelease shop/web ") && found.contains(text), "{spec}: {found}");
            assert!(found.ends_with("[retry-strategy]"), "{found}");
        }
        let mut later = spec.clone();
        later["values"] = json!({"a": 1});
        assert_eq!(risks(Some(spec.clone()), later), [""; 0], "{spec}");
        assert_eq!(Cluster::new().create_object("alice", helm_release("web", spec)), Ok(()), "advice only");
    }
}

#[test]
fn nearly_risky_specs_get_no_warning() {
    let retry = |interval: &str| json!({"strategy": {"name": "RetryOnFailure", "retryInterval": interval}});
    let remedy = |retries: i64, strategy: &str| json!({"remediation": {"retries": retries, "strategy": strategy}});
    let last = |strategy: &str| json!({"remediation": {"remediateLastFailure": true, "strategy": strategy}});
    let mut counted = retry("5m");
    counted["remediation"] = json!({"retries": 0});
    for (spec, text) in [
        (json!({"install": remedy(0, ""), "upgrade": remedy(0, "")}), vec![]),
        (json!({"maxHistory": 0, "install": remedy(0, ""), "upgrade": remedy(0, "")}), vec![]),
        (json!({"maxHistory": 1, "install": retry("5m"), "upgrade": retry("5m")}), vec![]),
        (
            json!({"maxHistory": 0, "install": retry("5m")}),
            vec!["only one of install and upgrade", "keeps every record"],
        ),
        (json!({"maxHistory": 0, "upgrade": retry("5m")}), vec!["not tried again", "keeps every record"]),
        (json!({"install": retry("30s"), "upgrade": retry("30s")}), vec![]),
        (json!({"install": retry("1m"), "upgrade": retry("29s")}), vec!["less than 30 s"]),
        (json!({"upgrade": remedy(0, "uninstall")}), vec![]),
        (json!({"upgrade": last("uninstall")}), vec!["uninstalls the running release"]),
        (json!({"upgrade": last("rollback")}), vec![]),
        (json!({"install": counted, "upgrade": retry("5m")}), vec!["its retries still count"]),
        (json!({"install": retry("5m"), "upgrade": remedy(0, "")}), vec!["only one of install and upgrade"]),
        (
            json!({"install": retry("5m"), "upgrade": remedy(1, "uninstall")}),
            vec!["only one of install and upgrade", "uninstalls the running release"],
        ),
        (json!({"uninstall": {"keepHistory": true}}), vec![]),
        (json!({"uninstall": {"keepHistory": true}, "install": remedy(0, "")}), vec![]),
        (
            json!({"uninstall": {"keepHistory": true}, "install": {"replace": true, "remediation": {"retries": 1}}}),
            vec![],
        ),
        (json!({"rollback": {"recreate": true}}), vec!["no effect"]),
    ] {
        let found = risks(None, spec.clone());
        assert_eq!(found.len(), text.len(), "{spec}: {found:#?}");
        assert!(found.iter().zip(text).all(|(found, text)| found.contains(text)), "{spec}: {found:#?}");
    }
}

#[test]
fn a_write_is_warned_only_of_its_new_risks() {
    let forced = json!({"upgrade": {"force": true}});
    let both = json!({"upgrade": {"force": true, "preserveValues": true}});
    let found = risks(Some(forced.clone()), both.clone());
    assert!(found.len() == 1 && found[0].contains("preserves the values"), "{found:?}");
    assert_eq!(risks(Some(both), forced.clone()), [""; 0]);
    let slow = |timeout: &str| json!({"timeout": timeout});
    assert_eq!(risks(Some(slow("20m")), slow("30m")), [""; 0]);
    // A HelmRelease that is being deleted gets no advice.
    let dying = dying(helm_release("web", forced));
    assert_eq!(Cluster::new().findings("alice", Some(first()), Some(dying)), [""; 0]);
}

#[test]
fn a_deletion_is_warned_of_what_it_keeps_or_interrupts() {
    let mut cluster = Cluster::new();
    let text = |cluster: &mut Cluster, object: Value| cluster.findings("alice", Some(object), None).concat();
    assert_eq!(text(&mut cluster, first()), "");
    let suspended = helm_release("web", json!({"suspend": true}));
    assert!(text(&mut cluster, suspended).contains(
        "leaves the objects and records of its release behind. To uninstall the release, resume the HelmRelease first."
    ));
    cluster.given_record(&record(5, "deployed", CONTROLLER));
    assert_eq!(text(&mut cluster, first()), "");
    cluster.given_record(&record(6, "pending-upgrade", CONTROLLER));
    let pending = text(&mut cluster, first());
    assert!(pending.contains("is deleted while release shop/web is pending-upgrade, revision 6, held by"), "{pending}");
    let elsewhere = installed(helm_release("web", json!({"releaseName": "other", "storageNamespace": "records"})));
    assert!(text(&mut cluster, elsewhere).contains("release shop/web"), "where the records really are");
    assert_eq!(text(&mut cluster, dying(first())), "");
    assert_eq!(text(&mut cluster, helm_release("web", json!({"kubeConfig": {}}))), "");
    assert_eq!(cluster.delete_object("alice", first()), Ok(()));
}

#[test]
fn an_object_that_cannot_be_parsed_is_undecided() {
    let mut cluster = Cluster::new();
    let strange = helm_release("web", json!({"suspend": "perhaps"}));
    let found = cluster.findings("alice", None, Some(strange.clone())).concat();
    assert!(found.contains("Could not check HelmRelease shop/web: it cannot be parsed"), "{found}");
    assert_eq!(cluster.create_object("alice", strange), Ok(()));
}

/// An upgrade of release shop/web by this user over a deployed revision, with this age in seconds and a HelmRelease.
fn running(spec: Value, holder: &str, seconds: i64) -> Cluster {
    let mut cluster = Cluster::new();
    cluster.given(helm_release("web", spec));
    cluster.given_record(&rec(5, "deployed"));
    assert_eq!(cluster.create(holder, &rec(6, "pending-upgrade")), Ok(()));
    cluster.later(seconds);
    cluster
}

#[test]
fn an_operation_of_flux_is_stale_after_its_longest_timeout() {
    let patient = || json!({"timeout": "10m", "upgrade": {"timeout": "1h"}});
    let rollback = rec(7, "pending-rollback");
    let (pending, failed) = (rec(6, "pending-upgrade"), rec(6, "failed"));
    assert_eq!(running(json!({}), CONTROLLER, STALE).create("alice", &rollback), Ok(()));
    assert_eq!(running(patient(), CONTROLLER, STALE).create("alice", &rollback), refused("pending-recovery"));
    assert_eq!(running(patient(), CONTROLLER, 3_599).create("alice", &rollback), refused("pending-recovery"));
    assert_eq!(running(patient(), CONTROLLER, 3_600).create("alice", &rollback), Ok(()));
    assert_eq!(running(patient(), CONTROLLER, STALE).update("alice", &pending, &failed), refused("pending-recovery"));
    assert_eq!(running(patient(), CONTROLLER, 3_600).update("alice", &pending, &failed), Ok(()));
    let remote = json!({"timeout": "1h", "kubeConfig": {"secretRef": {"name": "prod"}}});
    assert_eq!(running(remote, CONTROLLER, STALE).create("alice", &rollback), Ok(()), "its release is elsewhere");

    let message = running(patient(), CONTROLLER, STALE).refusal("CREATE", "alice", &rollback);
    assert!(message.contains("you can roll back 60 min after it started"), "{message}");
    let message = running(patient(), CONTROLLER, STALE).refusal("DELETE", "alice", &pending);
    assert!(message.contains("counts as stuck after 60 min"), "{message}");
    let message = running(patient(), CONTROLLER, STALE).refusal("CREATE", "alice", &rec(7, "pending-upgrade"));
    assert!(message.contains("Wait until that operation ends"), "{message}");
    let message = running(patient(), CONTROLLER, 3_600).refusal("CREATE", "alice", &rec(7, "pending-upgrade"));
    assert!(message.contains("counts as stuck"), "{message}");
}

#[test]
fn objects_are_guarded_until_the_longest_timeout_of_flux() {
    for (spec, verdict) in
        [(json!({}), refused("manual-edit")), (json!({"timeout": "1h"}), refused("foreign-edit-in-transition"))]
    {
        let mut cluster = Cluster::new();
        cluster.given(helm_release("web", spec));
        cluster.given_record(&record(5, "deployed", CONTROLLER));
        cluster.given_record(&record(6, "pending-upgrade", CONTROLLER));
        cluster.later(STALE);
        assert_eq!(cluster.update_objects("bob", web(), image("2")), verdict);
    }
}

/// Who may unlock an operation: who works for the HelmRelease that it was started for, as whatever user.
#[test]
fn flux_may_unlock_its_operation_of_another_account() {
    let under = |account: &str| json!({"serviceAccountName": account});
    let suspended = || json!({"serviceAccountName": "former", "suspend": true});
    let (pending, failed) = (rec(6, "pending-upgrade"), rec(6, "failed"));
    for (then, holder, now, actor, open) in [
        (under("former"), FORMER, under("deployer"), TENANT, true),
        (json!({}), CONTROLLER, under("deployer"), TENANT, true),
        (under("deployer"), TENANT, json!({}), CONTROLLER, true),
        // Who worked for it once, and who never did.
        (under("former"), FORMER, under("deployer"), FOREIGNER, false),
        (under("deployer"), TENANT, under("deployer"), FORMER, false),
        (under("former"), FORMER, under("deployer"), "alice", false),
        // The operation was not started for the HelmRelease, although the account is of its namespace.
        (under("deployer"), "alice", under("deployer"), TENANT, false),
        (under("deployer"), FOREIGNER, under("deployer"), TENANT, false),
        (under("deployer"), FORMER, under("deployer"), TENANT, false),
        (under("deployer"), FORMER, under("deployer"), CONTROLLER, false),
        // Another manager writes under the account of none.
        (under("deployer"), CONTROLLER, under("deployer"), TENANT, false),
        (under("deployer"), TENANT, under("deployer"), CONTROLLER, false),
        (under("other"), FORMER, under("former"), TENANT, false),
        (suspended(), FORMER, under("deployer"), TENANT, false),
        // It names another release now, or one on another cluster.
        (under("former"), FORMER, json!({"serviceAccountName": "deployer", "releaseName": "other"}), TENANT, false),
        (under("former"), FORMER, json!({"serviceAccountName": "deployer", "kubeConfig": {}}), TENANT, false),
    ] {
        let mut cluster = running(then.clone(), holder, 1);
        cluster.given(helm_release("web", now.clone()));
        let verdict = cluster.update(actor, &pending, &failed);
        assert_eq!(verdict.is_ok(), open, "{actor} over {holder}, {then} then {now}: {verdict:?}");
    }
}

#[test]
fn a_helm_release_of_the_same_name_is_another_driver() {
    let mut cluster = running(json!({"serviceAccountName": "former"}), FORMER, 1);
    let next = helm_release("web", json!({"serviceAccountName": "deployer"}));
    cluster.given(with(next, "/metadata/uid", json!("created later")));
    assert_eq!(cluster.update(TENANT, &rec(6, "pending-upgrade"), &rec(6, "failed")), refused("pending-recovery"));
}

#[test]
fn an_operation_for_two_helm_releases_has_no_driver() {
    let spec = || json!({"releaseName": "web", "serviceAccountName": "former"});
    let mut cluster = Cluster::new();
    cluster.given(helm_release("web", spec()));
    cluster.given(helm_release("other", spec()));
    cluster.given_record(&rec(5, "deployed"));
    assert_eq!(cluster.create(FORMER, &rec(6, "pending-upgrade")), Ok(()));
    cluster.given(helm_release("web", json!({"serviceAccountName": "deployer"})));
    assert_eq!(cluster.update(TENANT, &rec(6, "pending-upgrade"), &rec(6, "failed")), refused("pending-recovery"));
}

#[test]
fn a_helm_release_beside_the_records_comes_before_one_elsewhere() {
    let elsewhere = json!({"releaseName": "web", "targetNamespace": "shop", "storageNamespace": "shop"});
    let elsewhere = with(helm_release("elsewhere", elsewhere), "/metadata/namespace", json!("bar"));
    let mut cluster = Cluster::new();
    cluster.given(first());
    cluster.given(elsewhere);
    cluster.given_record(&rec(5, "deployed"));
    assert_eq!(cluster.create(CONTROLLER, &rec(6, "pending-upgrade")), Ok(()));
    cluster.given(helm_release("web", json!({"serviceAccountName": "deployer"})));
    assert_eq!(cluster.update(TENANT, &rec(6, "pending-upgrade"), &rec(6, "failed")), Ok(()));
}

/// Flux would install again what helm uninstalls, unless it is suspended.
#[test]
fn who_deletes_a_record_is_told_how_its_owner_removes_the_release() {
    let refusal = |spec: Value| {
        let mut cluster = Cluster::new();
        cluster.given(installed(helm_release("web", spec)));
        cluster.given_record(&rec(5, "deployed"));
        cluster.refusal("DELETE", "bob", &rec(5, "deployed"))
    };
    let (of_flux, of_helm) = ("`kubectl delete helmrelease web -n shop`", "`helm uninstall web -n shop`");
    let found = refusal(json!({}));
    assert!(found.contains(of_flux) && !found.contains(of_helm), "{found}");
    let found = refusal(json!({"suspend": true}));
    assert!(found.contains(of_helm) && !found.contains(of_flux), "{found}");
}

#[test]
fn a_refused_unlock_says_how_to_wake_flux() {
    let (pending, failed) = (rec(6, "pending-upgrade"), rec(6, "failed"));
    let text = |cluster: &mut Cluster, user: &str| cluster.messages_for(user, pending.object(), failed.object());
    let command = "Then `flux reconcile helmrelease web --with-source -n shop` makes Flux go on at once.";
    let tenant = || json!({"serviceAccountName": "deployer"});
    for (spec, actor, named) in [
        (json!({}), CONTROLLER, true),
        (tenant(), TENANT, true),
        (tenant(), FOREIGNER, false),
        (json!({}), "bob", false),
        (json!({"releaseName": "other"}), CONTROLLER, false),
        (json!({"kubeConfig": {"secretRef": {"name": "a"}}}), CONTROLLER, false),
    ] {
        let found = text(&mut running(spec.clone(), "alice", 12), actor);
        assert!(
            found.contains("Cannot unlock release shop/web") && found.contains("Wait until the operation ends."),
            "{found}"
        );
        assert_eq!(found.contains(command), named, "{actor} with {spec}: {found}");
        assert_eq!(found.contains("flux reconcile"), named, "{actor} with {spec}: {found}");
    }
    // The record says that Flux unlocks it. Its HelmRelease may be on another cluster.
    let unlocked =
        Rec { description: "Release unlocked from stale 'pending-upgrade' state".to_owned(), ..failed.clone() };
    let found = running(json!({"releaseName": "other"}), "alice", 12).messages_for(
        CONTROLLER,
        pending.object(),
        unlocked.object(),
    );
    assert!(found.contains("Then `flux reconcile helmrelease NAME --with-source` makes Flux go on"), "{found}");
    let found = running(json!({}), "alice", 12).messages_for(CONTROLLER, pending.object(), unlocked.object());
    assert!(found.contains(command), "{found}");
    // Other ends of the operation are not unlocks.
    let found = running(json!({}), "alice", 12).messages_for(CONTROLLER, pending.object(), rec(6, "deployed").object());
    assert!(found.contains("Cannot promote") && !found.contains("flux reconcile"), "{found}");
    // Flux stores its records as Secrets.
    let config_map = |record: &Rec| Rec { kind: "ConfigMap", ..record.clone() }.object();
    let found = running(json!({}), "alice", 12).messages_for(CONTROLLER, config_map(&pending), config_map(&failed));
    assert!(!found.contains("flux reconcile"), "{found}");
    // A HelmRelease that names the records from another namespace is not the one to wake.
    let mut cluster = running(json!({"releaseName": "other"}), "alice", 12);
    let elsewhere = helm_release("x", json!({"releaseName": "web", "storageNamespace": "shop"}));
    cluster.given(with(elsewhere, "/metadata/namespace", json!("bar")));
    assert!(!text(&mut cluster, CONTROLLER).contains("flux reconcile"));
}

#[test]
fn the_account_of_a_helm_release_may_always_write_its_objects() {
    let mut cluster = Cluster::new();
    cluster.given(helm_release("web", json!({"serviceAccountName": "deployer"})));
    cluster.given(helm_release("other", json!({"serviceAccountName": "other"})));
    cluster.given_record(&record(6, "deployed", TENANT));
    for (user, text) in
        [(TENANT, ""), ("system:serviceaccount:shop:other", "[manual-edit]"), (FOREIGNER, "[manual-edit]")]
    {
        let found = cluster.messages_for(user, web(), image("2"));
        assert_eq!(found.is_empty(), text.is_empty(), "{user}: {found}");
        assert!(found.contains(text), "{user}: {found}");
        assert_eq!(cluster.findings(user, Some(web()), None).is_empty(), text.is_empty(), "{user}");
        // The marks are among the fields that Flux restores.
        let mut stripped = web();
        stripped["metadata"]["labels"] = json!({"app": "web"});
        assert_eq!(cluster.messages_for(user, stripped, web()).is_empty(), text.is_empty(), "{user}");
    }
    // Another user's operation, and one with an unknown holder.
    for holder in ["alice", ""] {
        let mut cluster = Cluster::new();
        cluster.given(installed(helm_release("web", json!({"serviceAccountName": "deployer"}))));
        cluster.given_record(&record(6, "pending-upgrade", holder));
        assert_eq!(cluster.messages_for(TENANT, web(), image("2")), "", "{holder}");
        assert_ne!(cluster.messages_for(FOREIGNER, web(), image("2")), "", "{holder}");
    }
    // Flux stores its records as Secrets. A release with that name in ConfigMaps is a different one.
    let mut cluster = Cluster::new();
    cluster.given(helm_release("web", json!({"serviceAccountName": "deployer"})));
    cluster.given_record(&Rec { kind: "ConfigMap", ..record(6, "deployed", "alice") });
    assert!(cluster.messages_for(TENANT, web(), image("2")).contains("[manual-edit]"));
}

#[test]
fn the_origin_labels_lead_to_records_in_another_namespace() {
    let stored =
        |revision| with(record(revision, "deployed", CONTROLLER).object(), "/metadata/namespace", json!("records"));
    let labels = json!({
        "app.kubernetes.io/managed-by": "Helm",
        "helm.toolkit.fluxcd.io/name": "web", "helm.toolkit.fluxcd.io/namespace": "shop",
    });
    let flux_s = |object: Value| with(object, "/metadata/labels", labels.clone());
    let mut cluster = Cluster::new();
    cluster.given(stored(6));
    assert_eq!(cluster.messages_for("bob", flux_s(web()), flux_s(image("2"))), "", "nothing leads there");
    cluster.given(helm_release("web", json!({"storageNamespace": "records"})));
    assert_eq!(cluster.messages_for("bob", flux_s(web()), flux_s(image("2"))), "", "wanting is not having");
    // The spec now names another namespace, but the records are still in the old one.
    let status = json!({"storageNamespace": "records", "history": [{"name": "web", "namespace": "shop"}]});
    cluster.given(with(helm_release("web", json!({})), "/status", status));
    let text = cluster.messages_for("bob", flux_s(web()), flux_s(image("2")));
    assert!(text.contains("is managed by release records/web (revision 6, deployed)"), "{text}");
    assert_eq!(cluster.messages_for("bob", web(), image("2")), "", "without the labels nothing leads there");
}

#[test]
fn naming_another_users_release_gives_no_power_over_it() {
    // The release in shop belongs to Helm alone. A HelmRelease in bar names its records, but Flux has not installed it for that
    // HelmRelease.
    let spec = json!({
        "releaseName": "web", "storageNamespace": "shop", "serviceAccountName": "deployer", "timeout": "1000h",
    });
    let intruder = |status: Value| {
        with(with(helm_release("x", spec.clone()), "/metadata/namespace", json!("bar")), "/status", status)
    };
    let (pending, failed) = (rec(6, "pending-upgrade"), rec(6, "failed"));
    let mut cluster = Cluster::new();
    cluster.given(intruder(json!({})));
    cluster.given_record(&record(5, "deployed", "alice"));
    assert_ne!(cluster.messages_for(FOREIGNER, web(), image("2")), "");
    assert_eq!(cluster.create("alice", &pending), Ok(()));
    assert_eq!(cluster.update(FOREIGNER, &pending, &failed), refused("pending-recovery"));
    cluster.later(STALE);
    assert_eq!(
        cluster.create("bob", &rec(7, "pending-rollback")),
        Ok(()),
        "its timeout does not keep a stuck release locked"
    );
    // The same if Flux holds the release for a HelmRelease in shop: both have the same controller.
    let mut cluster = running(json!({}), CONTROLLER, STALE);
    cluster.given(intruder(json!({})));
    assert_eq!(cluster.create("bob", &rec(7, "pending-rollback")), Ok(()));

    let mut cluster = Cluster::new();
    let history = json!([{"name": "web", "namespace": "shop", "status": "deployed"}]);
    cluster.given(intruder(json!({"storageNamespace": "shop", "history": history})));
    cluster.given_record(&record(5, "deployed", "alice"));
    assert_ne!(cluster.messages_for(FOREIGNER, web(), image("2")), "", "a status proves nothing across namespaces");
}

/// HelmReleases of a namespace that name the records of shop/web, and whose status says that Flux has installed them.
fn claims(namespace: &'static str, count: usize) -> impl Iterator<Item = Value> {
    let spec = json!({"releaseName": "web", "storageNamespace": "shop", "timeout": "1000h", "suspend": true});
    (0..count).map(move |number| {
        let claim = with(helm_release(&format!("x{number}"), spec.clone()), "/metadata/namespace", json!(namespace));
        installed(claim)
    })
}

#[test]
fn any_number_of_helm_releases_elsewhere_changes_no_verdict_and_too_many_at_home_refuse() {
    let (pending, rollback) = (rec(6, "pending-upgrade"), rec(7, "pending-rollback"));
    let stuck = |namespace: &'static str, count: usize| {
        let mut cluster = running(json!({}), CONTROLLER, STALE);
        claims(namespace, count).for_each(|claim| cluster.given(claim));
        cluster
    };
    let plain = stuck("evil", 0).refusal("DELETE", "bob", &pending);
    for count in [1, 100] {
        assert_eq!(stuck("evil", count).refusal("DELETE", "bob", &pending), plain, "{count}");
        assert_eq!(stuck("evil", count).create("bob", &rollback), Ok(()), "{count}");
    }
    // With the HelmRelease of `running` there are eight, then nine.
    // The stamp says for which of the eight the operation runs: the patience of the others does not count.
    assert_eq!(stuck("shop", 7).refusal("DELETE", "bob", &pending), plain);
    let message = stuck("shop", 8).refusal("DELETE", "bob", &pending);
    assert!(
        message.contains("9 HelmReleases in namespace shop drive its release, and at most 8 are read."),
        "{message}"
    );
    assert!(message.contains("Delete all HelmReleases but the one that manages the release"), "{message}");
    assert_eq!(stuck("shop", 8).create("bob", &rollback), refused("pending-recovery"), "never admitted");
    // The way out is not blocked.
    let mut cluster = stuck("shop", 8);
    let claim = with(claims("shop", 1).next().unwrap(), "/spec/suspend", json!(false));
    let text = cluster.findings("bob", Some(claim.clone()), None).concat();
    assert!(text.contains("another HelmRelease claims release shop/web too"), "{text}");
    assert_eq!(cluster.delete_object("bob", claim), Ok(()));
}

#[test]
fn a_helm_release_elsewhere_counts_if_its_account_is_holder() {
    let flux_s = |account: &str| {
        let spec =
            json!({"releaseName": "web", "storageNamespace": "shop", "serviceAccountName": account, "timeout": "1h"});
        with(helm_release("x", spec), "/metadata/namespace", json!("bar"))
    };
    for (account, waits) in [("deployer", true), ("other", false)] {
        let mut cluster = Cluster::new();
        cluster.given(flux_s(account));
        cluster.given_record(&rec(5, "deployed"));
        assert_eq!(cluster.create(FOREIGNER, &rec(6, "pending-upgrade")), Ok(()));
        cluster.later(STALE);
        let verdict = cluster.create("bob", &rec(7, "pending-rollback"));
        assert_eq!(verdict, if waits { refused("pending-recovery") } else { Ok(()) }, "{account}");
    }
}

use interlock_engine::owners::flux::{Driver, HelmRelease};
use interlock_engine::policy::{AllowRollback, Policy};
use interlock_engine::release::stamps::{CHART, DRIVER, ENDED, HOLDER, INTERRUPTED, STARTED};
use interlock_engine::release::{DecodeError, Entry, History, ReleaseRef, Status, Storage};
use interlock_engine::rules::{RunbookCheck, RunbookCheckName, RunbookResult};
use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::inspect::wait::FreezeInForce;
use Status::{
    Deployed, Failed, PendingInstall, PendingRollback, PendingUpgrade, Superseded, Uninstalled, Uninstalling,
};

const NOW: &str = "2026-11-21T10:00:00Z";

fn ago(seconds: i64) -> Timestamp {
    NOW.parse::<Timestamp>().unwrap().checked_sub(SignedDuration::from_secs(seconds)).unwrap()
}

fn aged(revision: u64, status: Status, seconds_ago: i64) -> Entry {
    let entry = Entry { created: Some(ago(seconds_ago)), ..Entry::of_web(revision, status) };
    stamped(stamped(entry, HOLDER, "alice"), CHART, &format!("web-{revision}.0.0"))
}

fn old(revision: u64, status: Status) -> Entry {
    aged(revision, status, 100_000)
}

fn young(revision: u64, status: Status) -> Entry {
    aged(revision, status, 60)
}

fn stamped(mut entry: Entry, key: &'static str, value: &str) -> Entry {
    entry.stamps.set(key, value.to_owned());
    entry
}

fn driver(timeout: &str, suspend: bool) -> Driver {
    let object = serde_json::json!({
        "metadata": {"name": "web", "namespace": "shop", "uid": "u"}, "spec": {"timeout": timeout, "suspend": suspend},
        "status": {"storageNamespace": "shop", "history": [{"name": "web", "status": "deployed"}]},
    });
    Driver::from(&serde_json::from_value::<HelmRelease>(object).unwrap())
}

/// A release with complete information and without obstacles.
struct Case {
    storage: Storage,
    records: Vec<Entry>,
    broken: BrokenRecords,
    checks: Option<Vec<RunbookCheck>>,
    drivers: Option<Vec<Driver>>,
    policy: Policy,
    is_opened: bool,
    is_live_in_sibling: bool,
    copy: Option<&'static str>,
    freeze: Option<FreezeInForce>,
}

impl Case {
    fn of(records: Vec<Entry>) -> Self {
        let (storage, policy) = (Storage::Secret, Policy::shipped().unwrap());
        let (broken, drivers) = (BrokenRecords::new(), Some(Vec::new()));
        Self {
            storage,
            records,
            broken,
            checks: None,
            drivers,
            policy,
            is_opened: false,
            is_live_in_sibling: false,
            copy: None,
            freeze: None,
        }
    }

    fn of_olm(records: Vec<Entry>) -> Self {
        Self { storage: Storage::Index, ..Self::of(records) }
    }

    fn diagnose(self) -> Diagnosis {
        diagnose(&ReleaseState {
            release: &ReleaseRef::new("shop", "web"),
            storage: self.storage,
            history: &History::new(self.records.clone()),
            broken: &self.broken,
            checks: self.checks.as_deref(),
            chart: self.records.last().and_then(|newest| newest.stamps.chart()).map(str::to_owned).as_deref(),
            drivers: self.drivers.as_deref(),
            policy: &self.policy,
            is_opened: self.is_opened,
            is_live_in_sibling: self.is_live_in_sibling,
            copy: self.copy,
            freeze: self.freeze.as_ref(),
            now: NOW.parse().unwrap(),
        })
        .unwrap()
    }

    fn next(self) -> String {
        self.diagnose().next.map_or_else(String::new, |next| next.to_string())
    }
}

fn kinds(records: Vec<Entry>) -> Vec<&'static str> {
    Case::of(records).diagnose().problems.iter().map(|problem| problem.kind.as_str()).collect()
}

fn failing(name: RunbookCheckName, why: &str) -> Option<Vec<RunbookCheck>> {
    let passed = |name| RunbookCheck { name, evidence: String::new(), result: RunbookResult::Passed };
    let failed = RunbookCheck { name, evidence: String::new(), result: RunbookResult::Failed(why.to_owned()) };
    Some(vec![passed(RunbookCheckName::Stale), failed])
}

const UNHEALTHY: &str = "Deployment shop/web is not Available (0 of 1 available, 1 updated)";

#[test]
fn every_state_has_its_problems() {
    let noted = |entry| stamped(entry, INTERRUPTED, "shop-2.0.0@2");
    let nothing: [&str; 0] = [];
    for (records, wanted) in [
        (vec![old(1, Deployed)], &nothing[..]),
        (vec![old(1, Superseded), old(2, Superseded), old(3, Deployed)], &nothing),
        (vec![old(1, Uninstalled)], &nothing),
        // A failure that a newer revision has fixed.
        (vec![old(1, Failed), old(2, Deployed)], &nothing),
        (vec![old(1, Deployed), old(2, Deployed)], &["several-deployed"]),
        (vec![old(1, Deployed), old(2, Deployed), old(3, Failed)], &["several-deployed", "failed-release"]),
        (vec![young(1, PendingInstall)], &nothing),
        (vec![old(1, PendingInstall)], &["stuck-operation"]),
        (vec![aged(1, PendingInstall, 900)], &["stuck-operation"]),
        (vec![aged(1, PendingInstall, 899)], &nothing),
        (vec![old(1, Deployed), old(2, PendingUpgrade)], &["stuck-operation"]),
        (vec![old(1, Deployed), old(2, PendingRollback)], &["stuck-operation"]),
        // The record of an uninstall is older than its operation.
        (vec![stamped(old(1, Uninstalling), STARTED, &ago(5).to_string())], &nothing),
        (vec![stamped(old(1, Uninstalling), STARTED, &ago(5_000).to_string())], &["stuck-operation"]),
        // The start is unknown.
        (vec![Entry { created: None, ..old(1, PendingInstall) }], &nothing),
        (vec![old(1, Failed)], &["failed-release"]),
        (vec![old(1, Deployed), old(2, Failed)], &["failed-release"]),
        (vec![old(1, PendingUpgrade), old(2, PendingRollback)], &["stuck-operation"]),
        (vec![noted(old(1, Deployed))], &["interrupted-operation"]),
        (vec![old(1, Deployed), noted(old(2, Failed))], &["interrupted-operation", "failed-release"]),
        (vec![noted(old(1, Superseded)), old(2, Deployed)], &nothing),
        (vec![noted(old(1, Deployed)), young(2, PendingUpgrade)], &nothing),
        // The newest deployed record is gone.
        (vec![old(1, Superseded)], &["not-deployed"]),
        (vec![noted(old(1, Superseded))], &["interrupted-operation", "not-deployed"]),
    ] {
        assert_eq!(kinds(records.clone()), wanted, "{records:?}");
    }
}

#[test]
fn every_state_has_one_next_step_that_can_be_pasted() {
    let back = "helm rollback web 1 -n shop";
    for (records, stuck, wanted) in [
        (vec![old(1, Deployed)], Stuck::No, ""),
        (vec![old(1, Uninstalled)], Stuck::No, ""),
        (vec![old(1, Deployed), young(2, PendingUpgrade)], Stuck::No, "wait until 10:14 UTC"),
        (vec![young(1, PendingInstall)], Stuck::No, "wait until 10:14 UTC"),
        (vec![old(1, Deployed), old(2, PendingUpgrade)], Stuck::Yes, "interlock unstick shop/web"),
        (vec![old(1, Deployed), old(2, PendingRollback)], Stuck::Yes, "interlock unstick shop/web"),
        (vec![old(1, Superseded), old(2, PendingUpgrade)], Stuck::Yes, back),
        (vec![old(1, PendingInstall)], Stuck::Yes, "helm uninstall web -n shop"),
        (vec![old(1, Uninstalling)], Stuck::Yes, "helm uninstall web -n shop"),
        (vec![old(1, Deployed), old(2, Failed)], Stuck::No, back),
        (vec![old(1, Superseded), old(2, Failed)], Stuck::No, back),
        (vec![old(1, Failed)], Stuck::No, "helm upgrade web CHART -n shop"),
        (vec![old(1, Superseded)], Stuck::No, back),
        (vec![old(1, Deployed), old(2, Superseded)], Stuck::No, back),
        (vec![old(1, Deployed), old(2, Deployed)], Stuck::No, "helm rollback web 2 -n shop"),
        (
            vec![stamped(old(1, Deployed), INTERRUPTED, "demo-2.0.0@2")],
            Stuck::No,
            "helm upgrade web CHART --version 2.0.0 -n shop",
        ),
        (vec![old(1, Deployed), Entry { created: None, ..old(2, PendingUpgrade) }], Stuck::No, "wait"),
    ] {
        let found = Case::of(records.clone()).diagnose();
        let next = found.next.map_or_else(String::new, |next| next.to_string());
        assert_eq!((found.stuck, next.as_str()), (stuck, wanted), "{records:?}");
    }
    let in_config_maps = Case { storage: Storage::ConfigMap, drivers: None, ..Case::of(vec![old(1, Failed)]) };
    assert_eq!(in_config_maps.next(), "HELM_DRIVER=configmap helm upgrade web CHART -n shop");
    let mut forward = Case::of(vec![old(1, Deployed), old(2, Failed)]);
    forward.policy.recovery.roll_forward_only = true;
    assert_eq!(forward.next(), "helm upgrade web CHART -n shop");
}

#[test]
fn an_installation_over_the_other_storage_leaves_only_records() {
    let over = |records| Case { storage: Storage::ConfigMap, is_live_in_sibling: true, ..Case::of(records) };
    assert_eq!(over(vec![old(1, PendingInstall)]).next(), "interlock unstick shop/web --storage configmap");
    assert_eq!(
        over(vec![old(1, Failed), old(2, Failed)]).next(),
        "kubectl delete configmap -n shop sh.helm.release.v1.web.v1 sh.helm.release.v1.web.v2"
    );
}

#[test]
fn a_stuck_upgrade_with_unhealthy_pods_goes_back_and_says_why() {
    let stuck = |checks, rollback, is_opened| {
        let mut case = Case::of(vec![old(1, Deployed), old(2, PendingUpgrade)]);
        case.policy.recovery.rollback = rollback;
        Case { checks, is_opened, ..case }.diagnose().next.unwrap()
    };
    let unhealthy = || failing(RunbookCheckName::Healthy, UNHEALTHY);
    let back = stuck(unhealthy(), AllowRollback::WhenStale, false);
    assert_eq!(back.to_string(), "helm rollback web 1 -n shop");
    assert_eq!(back.why(), format!("{UNHEALTHY}, so the record must stay: go back to revision 1"));
    let closed = stuck(unhealthy(), AllowRollback::Never, false).to_string();
    assert!(closed.starts_with("interlock override shop/web --rule pending-recovery --for 15m --reason "), "{closed}");
    assert_eq!(stuck(unhealthy(), AllowRollback::Never, true).to_string(), "interlock unstick shop/web");
    let leased = stuck(failing(RunbookCheckName::NoLease, "it is held"), AllowRollback::WhenStale, false).to_string();
    assert!(leased.starts_with("interlock wait shop/web --until free"), "{leased}");
    let hooked =
        failing(RunbookCheckName::NoHookRuns, "Job shop/migrate of a hook is still running with 1 active pods");
    let hooked = stuck(hooked, AllowRollback::WhenStale, false).to_string();
    assert_eq!(hooked, "kubectl wait job/migrate -n shop '--for=condition=Complete' '--timeout=15m'");
}

#[test]
fn owners_are_named_and_go_on_by_themselves() {
    let upgrade = || stamped(aged(2, PendingUpgrade, 3_600), DRIVER, "HelmRelease/shop/web/u/1");
    let stuck = || vec![aged(1, Deployed, 9_000), upgrade()];
    let with = |drivers: Option<Vec<Driver>>| Case { drivers, ..Case::of(stuck()) };
    let patient = with(Some(vec![driver("2h", false)])).diagnose();
    assert_eq!((&patient.owner, patient.stuck), (&ReleaseOwner::Flux("shop/web".to_owned()), Stuck::No));
    assert_eq!(patient.next.unwrap().to_string(), "wait until 11:00 UTC");
    let brisk = with(Some(vec![driver("5m", false)])).diagnose();
    assert_eq!((brisk.owner.display().as_str(), brisk.stuck), ("Flux (shop/web)", Stuck::Yes));
    assert_eq!(brisk.next.unwrap().to_string(), "flux reconcile helmrelease web --with-source -n shop");
    assert_eq!(
        with(Some(vec![driver("5m", true)])).next(),
        "interlock unstick shop/web",
        "it does nothing for a suspended one"
    );
    let failed = Case { drivers: Some(vec![driver("5m", false)]), ..Case::of(vec![old(1, Deployed), old(2, Failed)]) };
    assert_eq!(failed.next(), "flux reconcile helmrelease web --reset -n shop");
    // Flux stores no records in ConfigMaps.
    let elsewhere = Case { storage: Storage::ConfigMap, ..with(Some(vec![driver("2h", false)])) };
    assert_eq!(elsewhere.diagnose().stuck, Stuck::Yes);
    // Flux may be at work for as long as the policy allows.
    let unread = with(None).diagnose();
    assert_eq!((&unread.owner, unread.stuck), (&ReleaseOwner::Unknown, Stuck::Unknown));
    assert_eq!(unread.next.unwrap().to_string(), "wait until 15:00 UTC");
    let unread = Case { drivers: None, ..Case::of(vec![old(1, Deployed), aged(2, PendingUpgrade, 6 * 3_600)]) };
    assert_eq!(unread.next(), "interlock unstick shop/web");
    let sveltos = stamped(old(1, Failed), HOLDER, "system:serviceaccount:projectsveltos:addon-controller");
    assert_eq!(Case::of(vec![sveltos]).next(), "interlock wait shop/web --until deployed --timeout 15m");
}

#[test]
fn an_extension_is_described_in_the_terms_of_olm() {
    let pin =
        r#"kubectl patch clusterextension web --type merge -p '{"spec":{"source":{"catalog":{"version":"2.0.0"}}}}'"#;
    let delete = |revision: u64| format!("kubectl delete secret -n shop sh.helm.release.v1.web.v{revision}");
    let retries = "interlock wait shop/web --until deployed --timeout 15m".to_owned();
    for (records, wanted) in [
        (vec![old(1, Deployed), old(2, Deployed)], delete(1)),
        (vec![old(1, Deployed), old(2, PendingUpgrade)], "interlock unstick shop/web".to_owned()),
        (vec![old(1, PendingInstall)], "interlock unstick shop/web".to_owned()),
        (vec![old(1, Uninstalling)], delete(1)),
        (vec![old(1, Uninstalled)], delete(1)),
        (vec![stamped(old(1, Superseded), INTERRUPTED, "web-2.0.0@2")], pin.to_owned()),
        (vec![stamped(old(1, Deployed), INTERRUPTED, "web-2.0.0@2")], pin.to_owned()),
        // OLM has nothing to do for it.
        (
            vec![stamped(old(1, Deployed), INTERRUPTED, "web-1.0.0@2")],
            "kubectl annotate secret -n shop sh.helm.release.v1.web.v1 interlock.dev/interrupted-".to_owned(),
        ),
        (vec![old(1, Failed)], retries.clone()),
        (vec![old(1, Superseded)], retries),
    ] {
        let found = Case::of_olm(records).diagnose();
        assert_eq!(found.owner, ReleaseOwner::Olm("web".to_owned()));
        let text: Vec<_> = found.problems.iter().map(|problem| problem.message.as_str()).collect();
        let text = format!("{} {}", text.join(" "), found.next.as_ref().unwrap().sentence());
        assert_eq!(found.next.unwrap().to_string(), wanted);
        for foreign in ["helm ", "history", "rollback", "oll back"] {
            assert!(!text.contains(foreign), "{foreign}: {text}");
        }
    }
}

#[test]
fn an_incomplete_record_of_olm_is_deleted_after_a_while() {
    let index = |revision: u64| format!("sh.helm.release.v1.web.v{revision}");
    let lacking = |revisions: &[u64]| -> BrokenRecords {
        revisions
            .iter()
            .map(|revision| (index(*revision), DecodeError::MissingChunks(vec![format!("{}-abc", index(*revision))])))
            .collect()
    };
    let ended = |entry, seconds| stamped(entry, ENDED, &ago(seconds).to_string());
    let broken = |records, revisions: &[u64]| Case { broken: lacking(revisions), ..Case::of_olm(records) };
    let deployed = || vec![old(1, Superseded), ended(old(2, Deployed), 100)];
    let found = broken(deployed(), &[2]).diagnose();
    assert_eq!((found.stuck, found.problems[0].kind), (Stuck::Yes, FindingKind::BrokenRecord));
    let message = format!("OLM can do nothing for the release: the record {0} lacks its part {0}-abc.", index(2));
    assert_eq!(found.problems[0].message, message);
    let delete = format!("kubectl delete secret -n shop {}", index(2));
    assert_eq!(found.next.unwrap().to_string(), delete);
    let all = broken(deployed(), &[1, 2]).next();
    assert_eq!(all, format!("kubectl delete secret -n shop {} {}", index(1), index(2)));
    let written = broken(vec![old(1, Superseded), ended(old(2, Deployed), 5)], &[2]).diagnose();
    assert_eq!((written.stuck, written.problems.len()), (Stuck::No, 0));
    assert_eq!(written.next.unwrap().to_string(), "wait until 10:00 UTC");
    // An operation in flight writes the parts.
    let running = broken(vec![old(1, Deployed), young(2, PendingUpgrade)], &[1]).diagnose();
    assert_eq!((running.stuck, running.problems.len()), (Stuck::No, 0));
    let dead = broken(vec![old(1, Deployed), old(2, PendingUpgrade)], &[1]).diagnose();
    let kinds: Vec<_> = dead.problems.iter().map(|problem| problem.kind.as_str()).collect();
    assert_eq!(kinds, ["stuck-operation", "broken-record"]);
    assert_eq!(dead.next.unwrap().to_string(), "interlock unstick shop/web");
}

#[test]
fn a_record_that_nobody_can_read_is_deleted_with_a_copy_once_it_is_stale() {
    let broken = |records, name: &str| {
        let broken = [(name.to_owned(), DecodeError::Base64("it is cut off".to_owned()))].into();
        Case { broken, ..Case::of(records) }.diagnose()
    };
    let newest = old(2, Deployed).name;
    let found = broken(vec![old(1, Superseded), old(2, Deployed)], &newest);
    assert_eq!((found.stuck, found.problems[0].kind), (Stuck::Yes, FindingKind::BrokenRecord));
    let message = format!(
        "Helm can do nothing for the release: the record {newest} cannot be decoded: the payload is not base64: it is cut off."
    );
    assert_eq!(found.problems[0].message, message);
    assert_eq!(found.next.unwrap().to_string(), "interlock unstick shop/web");
    let fresh = broken(vec![old(1, Superseded), young(2, Deployed)], &newest);
    assert_eq!(fresh.stuck, Stuck::No);
    assert!(fresh.next.unwrap().to_string().starts_with("wait until "));
}

#[test]
fn a_freeze_is_waited_out_or_opened_by_an_override() {
    let frozen = |records, until: Option<&str>| {
        let until = until.map(|until| until.parse().unwrap());
        let (name, reason) = ("sale".to_owned(), "the sale".to_owned());
        let freeze = Some(FreezeInForce { name, reason, until, sentence: String::new() });
        Case { freeze, ..Case::of(records) }.next()
    };
    let failed = || vec![old(1, Deployed), old(2, Failed)];
    assert_eq!(frozen(failed(), Some("2026-11-21T18:00:00Z")), "wait until 18:00 UTC");
    assert_eq!(frozen(failed(), Some("2027-01-02T06:00:00Z")), "wait until 2027-01-02 06:00 UTC");
    assert!(frozen(failed(), None).starts_with("interlock override shop/web --rule freeze "));
    // A step out of a stuck operation starts no operation.
    let stuck = vec![old(1, Deployed), old(2, PendingUpgrade)];
    assert_eq!(frozen(stuck, Some("2026-11-21T18:00:00Z")), "interlock unstick shop/web");
}

#[test]
fn once_the_record_is_deleted_its_upgrade_is_finished() {
    let history = History::new(vec![old(1, Deployed), young(2, PendingUpgrade)]);
    let left: Vec<Entry> =
        after_unstick(&history, history.newest().unwrap(), Some("web-2.0.0")).iter().cloned().collect();
    assert_eq!(Case::of(left.clone()).next(), "helm upgrade web CHART --version 2.0.0 -n shop");
    let upgrade = "helm upgrade web CHART --version 2.0.0 --reset-values -f - -n shop";
    let values = "kubectl get secret interlock-copy-web-v2-x -n shop -o 'go-template={{.data.values | base64decode}}'";
    let copied = Case { copy: Some("interlock-copy-web-v2-x"), ..Case::of(left) };
    assert_eq!(copied.next(), format!("{values} | {upgrade}"));
    // An unlocked record is still there.
    let unlocked = stamped(old(2, Failed), INTERRUPTED, "web-2.0.0@2");
    let values = "helm get values web --revision 2 -o yaml -n shop";
    assert_eq!(Case::of(vec![old(1, Deployed), unlocked]).next(), format!("{values} | {upgrade}"));
}

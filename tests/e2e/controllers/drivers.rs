//! The driver stamp: who may go on with an operation that Flux started for a HelmRelease under another account.

use std::time::Duration;

use serde_json::json;

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::controllers::{Flux, account, failed, reached};
use crate::harness::eventually::eventually;
use crate::harness::helm_releases::{SERVED, helm_release, shared};
use crate::harness::namespace::Namespace;

const ROLLOUT: Duration = Duration::from_secs(60);

/// The driver stamp on the newest record.
fn driver(namespace: &Namespace<'_>) -> Option<String> {
    let newest = namespace.records(Driver::Secret, "demo").pop()?;
    newest.annotations.get("interlock.dev/driver").cloned()
}

#[test]
fn who_works_for_the_same_helm_release_goes_on_with_its_operation() {
    let namespace = Namespace::new(shared(), "driver");
    let [former, heir, robot] = ["former", "heir", "robot"].map(|name| namespace.service_account(name));
    let admin = namespace.kubectl("admin");
    let object = helm_release(namespace.name(), "demo", json!({"serviceAccountName": "former"}));
    admin.with_file("create", &object, &[]).expect_success();
    let uid = admin.get(&["helmrelease", "demo"])["metadata"]["uid"].as_str().unwrap().to_owned();
    let chart = Chart::new("demo");
    let acting = |account| Flux::new(account, &namespace, "demo");
    let waiting = acting(&former).waiting(ROLLOUT);
    let mut note = 0;
    eventually(SERVED, "the mutating half has seen the HelmRelease", || {
        note += 1;
        let _ = waiting.reconcile(&chart, &json!({"note": note.to_string()}));
        driver(&namespace).map(drop).ok_or_else(|| "no stamp".to_owned())
    });
    assert_eq!(driver(&namespace), Some(format!("HelmRelease/{}/demo/{uid}/1", namespace.name())));

    // Flux dies in the middle of an upgrade, and the HelmRelease gets another account.
    let killed = |image: &str| {
        namespace.hang_pods();
        let upgrade = acting(&former).waiting(ROLLOUT * 5).spawn(&chart, &json!({"image": image}));
        namespace.await_image("demo", image);
        upgrade.kill();
        namespace.ready_pods();
    };
    killed("killed");
    let handover = r#"{"spec":{"serviceAccountName":"heir"}}"#;
    admin.ok(&["patch", "helmrelease/demo", "--type=merge", "-p", handover]);
    let next = json!({"note": "next"});
    failed(acting(&robot).reconcile(&chart, &next), &unlocked(&namespace, "pending-upgrade"), &["[pending-recovery]"]);
    let before = newest(&namespace);
    let wanted = format!("unlock {before} failed, upgrade {} deployed", before + 1);
    reached(acting(&heir).waiting(ROLLOUT).reconcile(&chart, &next), &wanted);

    // What helm runs under an account of the namespace is not the operation of the HelmRelease, and what another manager runs neither.
    for (who, image) in [(&robot, "ci"), (&account(namespace.plane(), "projectsveltos", "addon-controller"), "addon")] {
        let before = newest(&namespace);
        namespace.hang_pods();
        let helm = namespace.helm_as(HelmVersion::V4, Driver::Secret, who);
        let set = format!("--set=image={image}");
        let upgrade =
            helm.spawn(&["upgrade", "demo", chart.path(), &set, "--force-conflicts", "--wait", "--timeout=100s"]);
        namespace.await_status(Driver::Secret, "demo", before + 1, "pending-upgrade");
        assert_eq!(driver(&namespace), None, "{image}");
        let unlock = unlocked(&namespace, "pending-upgrade");
        failed(acting(&heir).reconcile(&chart, &next), &unlock, &["[pending-recovery]"]);
        namespace.ready_pods();
        upgrade.wait(ROLLOUT * 2).expect_success();
    }
}

/// The revision of the newest record.
fn newest(namespace: &Namespace<'_>) -> u32 {
    let records = namespace.records(Driver::Secret, "demo");
    records.iter().filter_map(|record| record.body["version"].as_u64()).max().unwrap().try_into().unwrap()
}

/// What a controller reports whose unlock is refused.
fn unlocked(namespace: &Namespace<'_>, status: &str) -> String {
    format!("unlock {} {status}", newest(namespace))
}

//! Commits in a freeze.

use std::path::Path;

use super::*;
use crate::policy::Policy;

fn frozen(scope: &str) -> Shop {
    let freeze = format!("name: sale, reason: the sale, timeZone: UTC, from: 2026-01-01, to: 2027-01-01, {scope}");
    let text = format!("apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\nfreezes: [{{{freeze}}}]\n");
    Shop { policy: Policy::parse(&text, Path::new("test")).unwrap(), ..Shop::new() }
}

#[test]
fn no_commit_changes_a_cluster_in_a_freeze() {
    let shop = frozen("namespaces: [civ]");
    let complete = shop.complete();
    let texts = [
        "would change cluster civ/prod: the freeze sale is in force until 2027-01-01 00:00 UTC",
        "Wait until the freeze ends",
    ];
    shop.create(&complete).with_code(&["freeze"], 403, &texts);
    // What is not a commit yet, changes nothing, or is of another cluster.
    shop.create(&with(&complete, "dryRun", true)).admitted();
    shop.update(&complete, &with(&complete, "updatePhase", "Preparing")).admitted();
    shop.update(&complete, &with_finalizer(&complete)).admitted();
    let elsewhere = frozen("namespaces: [other]");
    elsewhere.create(&elsewhere.complete()).admitted();
    let exempt = frozen("namespaces: [civ], exempt: {users: ['system:serviceaccount:projectsveltos:*']}");
    exempt.create(&exempt.complete()).admitted();
}

#[test]
fn a_withdrawal_waits_for_the_end_of_a_freeze() {
    let mut shop = frozen("namespaces: [civ]");
    shop.change("/metadata/deletionTimestamp", "2026-11-21T10:00:00Z".into());
    for withdrawal in [with(&group(&[]), "action", "Remove"), with(&group(&[]), "sourceStatus", "Deleted")] {
        shop.create(&withdrawal).with_code(&["freeze"], 403, &["would change cluster civ/prod"]);
    }
    shop.remove(CONFIG, "ClusterSummary", SUMMARY);
    shop.create(&with(&group(&[]), "action", "Remove")).admitted();
}

//! Every pair of statuses, including creation and deletion, and the verdict in the two situations that matter.

use super::scenario::{Cluster, Rec, rec};
use crate::release::Status;
use crate::release::status::{Guard, transition};

fn alone(record: &Rec) -> Cluster {
    let mut cluster = Cluster::new();
    cluster.given_record(record);
    cluster
}

#[test]
fn every_update_on_the_newest_record_by_a_stranger() {
    for from in Status::ALL {
        for to in Status::ALL {
            let before = rec(5, from.as_str()).annotated("interlock.dev/holder", "alice");
            // A repeated uninstall writes a different body.
            let after = Rec { hooks_run: 1, ..before.to(to.as_str()) };
            let verdict = alone(&before).update("bob", &before, &after);
            let wanted = match transition(Some(from), Some(to)) {
                Guard::Free | Guard::NothingInFlight => Ok(()),
                Guard::Unlock => Err(vec!["pending-recovery"]),
                _ => Err(vec!["illegal-transition"]),
            };
            assert_eq!(verdict, wanted, "{from} -> {to}");
        }
    }
}

#[test]
fn every_update_by_the_holder_under_a_newer_pending_rollback() {
    for from in Status::ALL {
        for to in Status::ALL {
            let before = rec(5, from.as_str()).annotated("interlock.dev/holder", "alice");
            let mut cluster = alone(&before);
            cluster.given_record(&rec(6, "pending-rollback"));
            let verdict = cluster.update("alice", &before, &before.to(to.as_str()));
            let wanted = match transition(Some(from), Some(to)) {
                Guard::Unlock if to == Status::Deployed => Err(vec!["illegal-transition"]),
                Guard::NothingInFlight => Err(vec!["concurrent-operation"]),
                Guard::Unlock if to == Status::Uninstalling && from != to => Err(vec!["concurrent-operation"]),
                Guard::Never if to == Status::Uninstalling => Err(vec!["concurrent-operation", "illegal-transition"]),
                Guard::Free | Guard::Unlock | Guard::NewerRollback => Ok(()),
                _ => Err(vec!["illegal-transition"]),
            };
            assert_eq!(verdict, wanted, "{from} -> {to}");
        }
    }
}

#[test]
fn every_creation_over_every_newest_status() {
    for newest in Status::ALL {
        for created in Status::ALL {
            let verdict = alone(&rec(5, newest.as_str())).create("bob", &rec(6, created.as_str()));
            let wanted = match created {
                Status::PendingRollback if newest.is_in_flight() => Err(vec!["pending-recovery"]),
                Status::PendingInstall | Status::PendingUpgrade if newest.is_in_flight() => {
                    Err(vec!["concurrent-operation"])
                }
                Status::PendingInstall if newest == Status::Deployed => Err(vec!["unusual-create"]),
                created if created.is_pending() => Ok(()),
                // The copy that helm-mapkubeapis creates.
                Status::Deployed if newest == Status::Superseded => Ok(()),
                _ => Err(vec!["unusual-create"]),
            };
            assert_eq!(verdict, wanted, "{created} over {newest}");
        }
    }
}

#[test]
fn every_deletion_of_the_newest_record() {
    for status in Status::ALL {
        let record = rec(5, status.as_str());
        let wanted = match status {
            Status::Deployed | Status::Superseded => Err(vec!["record-deletion"]),
            status if status.is_pending() => Err(vec!["pending-recovery"]),
            _ => Ok(()),
        };
        assert_eq!(alone(&record).delete("alice", &record), wanted, "{status}");
    }
}

#[test]
fn every_deletion_of_an_older_record_under_every_newest_status() {
    for newest in Status::ALL {
        for status in Status::ALL {
            let record = rec(4, status.as_str());
            let mut cluster = alone(&record);
            cluster.given_record(&rec(5, newest.as_str()));
            let purged = matches!(newest, Status::Uninstalling | Status::Uninstalled);
            let live = status == Status::Deployed && newest != Status::Deployed && !purged;
            let wanted = if live { Err(vec!["record-deletion"]) } else { Ok(()) };
            assert_eq!(cluster.delete("alice", &record), wanted, "{status} under {newest}");
        }
    }
}

#[test]
fn a_status_that_helm_does_not_know_is_refused() {
    let verdict = Cluster::new().create("alice", &rec(1, "pending"));
    assert_eq!(verdict, Err(vec!["unusual-create", "record-integrity"]));
    let before = rec(1, "deployed");
    assert_eq!(alone(&before).update("alice", &before, &before.to("done")), Err(vec!["record-integrity"]));
}

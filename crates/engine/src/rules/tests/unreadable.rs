//! Records that no client can read: nobody is stuck with one, and nobody deletes one that is still being written.

use super::deletion::STALE;
use super::scenario::{Cluster, Rec, rec};
use crate::owners::olm::rules::tests::index;
use crate::release::stamps::HOLDER;

/// An upgrade to revision 5 by alice, whose body is no base64.
fn damaged(status: &'static str) -> Rec {
    Rec { payload: Some("%".to_owned()), ..rec(5, status) }
}

/// Revision 4 is superseded, and nobody can read revision 5, which alice deployed some seconds ago.
fn blocked(seconds: i64) -> Cluster {
    let mut cluster = Cluster::new();
    cluster.given_record(&rec(4, "superseded"));
    cluster.given_record(&damaged("deployed").annotated(HOLDER, "alice"));
    cluster.later(seconds);
    cluster
}

fn deployed() -> Rec {
    damaged("deployed").annotated(HOLDER, "alice")
}

#[test]
fn a_record_that_nobody_can_read_is_deleted_by_its_holder_and_by_everybody_once_it_is_stale() {
    assert_eq!(blocked(0).delete("bob", &deployed()), Err(vec!["record-deletion"]));
    assert_eq!(blocked(0).delete("alice", &deployed()), Ok(()));
    assert_eq!(blocked(STALE).delete("bob", &deployed()), Ok(()));
    let readable = Rec { payload: None, ..deployed() };
    let mut sound = Cluster::new();
    sound.given_record(&readable);
    sound.later(STALE);
    assert_eq!(sound.delete("alice", &readable), Err(vec!["record-deletion"]), "it is live");
    let text = blocked(0).refusal("DELETE", "bob", &deployed());
    assert!(text.contains("the payload is not base64") && text.contains("alice may still be writing it"), "{text}");
    assert!(text.contains("run `interlock unstick shop/web`, which keeps a copy"), "{text}");
}

#[test]
fn a_pending_record_that_nobody_can_read_is_deleted_once_it_is_stale() {
    let pending = damaged("pending-upgrade");
    for below in [None, Some("deployed"), Some("superseded")] {
        let mut cluster = Cluster::new();
        below.into_iter().for_each(|status| cluster.given_record(&rec(4, status)));
        cluster.given_record(&pending.clone().annotated(HOLDER, "alice"));
        assert_eq!(cluster.delete("bob", &pending.clone().annotated(HOLDER, "alice")), Err(vec!["pending-recovery"]));
        cluster.later(STALE);
        assert_eq!(cluster.delete("bob", &pending.clone().annotated(HOLDER, "alice")), Ok(()), "{below:?}");
    }
}

/// What Helm does where it passes over a record: it starts from the one below.
#[test]
fn refusals_over_such_a_record_say_so_and_how_to_delete_it() {
    let says = |text: String| {
        assert!(
            text.contains("nobody can read the record of revision 5, the newest (the payload is not base64"),
            "{text}"
        );
        assert!(text.contains("helm passes over it"), "{text}");
        assert!(
            text.contains("Run `interlock unstick shop/web`, which keeps a copy of that record and deletes it"),
            "{text}"
        );
    };
    let upgrade = rec(5, "pending-upgrade");
    assert_eq!(blocked(STALE).create("bob", &upgrade), Err(vec!["revision-order"]));
    says(blocked(STALE).refusal("CREATE", "bob", &upgrade));
    let install = rec(1, "pending-install");
    says(blocked(STALE).refusal("CREATE", "bob", &install));
    let below = rec(4, "superseded");
    let mut cluster = blocked(STALE);
    assert_eq!(cluster.update("bob", &below, &below.to("uninstalling")), Err(vec!["illegal-transition"]));
    let messages = cluster.messages_for("bob", below.object(), below.to("uninstalling").object());
    says(messages);
    assert_eq!(cluster.delete("bob", &deployed()), Ok(()));
    assert_eq!(cluster.update("bob", &below, &below.to("uninstalling")), Ok(()));
}

#[test]
fn a_record_of_olm_that_nobody_can_read_is_deleted_too() {
    let mut broken = index(&rec(5, "deployed"), &[]);
    broken["data"]["chunk"] = "%".into();
    let mut cluster = Cluster::new();
    cluster.given(broken.clone());
    cluster.later(STALE);
    assert_eq!(cluster.delete_object("bob", broken), Ok(()));
}

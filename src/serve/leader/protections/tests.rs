//! Which stamps are due.

use interlock_engine::release::{History, Stamps};

use super::*;

const STAMP: &str = "HelmRelease/shop/web/u1";

fn protector(stamp: &str, is_annotated: bool, records: Option<&CandidateRecords>) -> Protector {
    Protector { stamp: stamp.to_owned(), is_annotated, records: records.into_iter().cloned().collect() }
}

fn records(entries: &[(u64, Status, Option<&str>)]) -> CandidateRecords {
    let entry = |&(revision, status, stamp): &(u64, Status, Option<&str>)| {
        let mut stamps = Stamps::default();
        stamps.set_or_remove(PROTECTED_BY, stamp.map(str::to_owned));
        Entry { stamps, ..Entry::of_web(revision, status) }
    };
    CandidateRecords {
        storage: Storage::Secret,
        namespace: "shop".to_owned(),
        history: History::new(entries.iter().map(entry).collect()),
        held_for_origin: false,
    }
}

/// The revisions to change, and their new stamps.
fn changed(protectors: &[Protector], stamped: &[CandidateRecords]) -> Vec<(u64, Option<String>)> {
    due(protectors, stamped).into_iter().map(|it| (it.record.revision.0, it.stamp)).collect()
}

#[test]
fn the_newest_record_gets_the_stamp_once() {
    let fresh = records(&[(1, Status::Deployed, None)]);
    let declared = [protector(STAMP, true, Some(&fresh))];
    assert_eq!(changed(&declared, &[]), [(1, Some(STAMP.to_owned()))]);
    let stamped = records(&[(1, Status::Deployed, Some(STAMP))]);
    assert_eq!(changed(&[protector(STAMP, true, Some(&stamped))], &[stamped]), []);
    let upgraded = records(&[(2, Status::PendingUpgrade, None), (1, Status::Deployed, Some(STAMP))]);
    let declared = [protector(STAMP, true, Some(&upgraded))];
    assert_eq!(changed(&declared, std::slice::from_ref(&upgraded)), [(2, Some(STAMP.to_owned()))]);
    // What protects it may be deleted already.
    assert_eq!(changed(&[], &[upgraded]), [(2, Some(STAMP.to_owned()))]);
}

#[test]
fn what_is_uninstalled_gets_no_stamp() {
    for status in [Status::Uninstalled, Status::Uninstalling] {
        let records = records(&[(1, status, None)]);
        assert_eq!(changed(&[protector(STAMP, true, Some(&records))], &[]), [], "{status}");
    }
    let next_life = records(&[(3, Status::PendingInstall, None), (2, Status::Uninstalled, Some(STAMP))]);
    assert_eq!(changed(&[], &[next_life]), []);
}

#[test]
fn the_stamp_of_an_object_without_its_annotation_is_removed() {
    let stamped = records(&[(2, Status::Failed, Some(STAMP)), (1, Status::Deployed, Some(STAMP))]);
    let void = protector(STAMP, false, None);
    assert_eq!(changed(&[void], std::slice::from_ref(&stamped)), [(1, None), (2, None)]);
    // It is unknown, so it is gone.
    assert_eq!(changed(&[], std::slice::from_ref(&stamped)), []);
    // Another object of this name has another uid.
    let other = protector("HelmRelease/shop/web/u2", false, None);
    assert_eq!(changed(&[other], std::slice::from_ref(&stamped)), []);
    let next = protector("HelmRelease/shop/site/u3", true, Some(&stamped));
    let void = protector(STAMP, false, None);
    let next_stamp = Some("HelmRelease/shop/site/u3".to_owned());
    assert_eq!(changed(&[void, next], &[stamped]), [(1, None), (2, next_stamp)]);
}

#[test]
fn two_objects_that_declare_one_release_do_not_replace_each_others_stamps() {
    let stamped = records(&[(1, Status::Deployed, Some(STAMP))]);
    let both = [protector("HelmRelease/shop/a/u0", true, Some(&stamped)), protector(STAMP, true, Some(&stamped))];
    assert_eq!(changed(&both, &[stamped]), []);
}

//! Which freeze a refusal names, and when operations may start again.

use std::path::Path;

use super::*;
use crate::policy::Policy;
use crate::review::UserInfo;

const WEEKEND: &str = "{name: evening, reason: r, timeZone: UTC, weekdays: [friday], from: \"16:00\"}, \
                       {name: days, reason: r, timeZone: UTC, weekdays: [saturday, sunday]}";

/// The sentence of the freeze that stops alice from upgrading `shop/web`.
fn sentence(freezes: &str, now: &str) -> Option<String> {
    let text = format!("apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\nfreezes: [{freezes}]\n");
    let policy = Policy::parse(&text, Path::new("c")).unwrap();
    let alice = UserInfo { username: "alice".into(), groups: vec!["devs".into()], ..UserInfo::default() };
    let release = ReleaseRef::new("shop", "web");
    let active = in_force(policy.all_freezes(&[]), &release, Actor::of(&alice), now.parse().unwrap());
    active.map(|active| active.sentence())
}

#[test]
fn adjacent_freezes_end_with_the_last_one() {
    let on_friday = sentence(WEEKEND, "2026-11-27T18:00:00Z").unwrap();
    let wanted =
        "the freeze evening is in force until 2026-11-28 00:00 UTC (r), and others follow until 2026-11-30 00:00 UTC";
    assert_eq!(on_friday, wanted);
    let on_saturday = sentence(WEEKEND, "2026-11-28T18:00:00Z").unwrap();
    assert_eq!(on_saturday, "the freeze days is in force until 2026-11-30 00:00 UTC (r)");
    assert_eq!(sentence(WEEKEND, "2026-11-30T00:00:00Z"), None);
}

#[test]
fn only_freezes_of_the_release_and_user_extend_a_row() {
    for changed in ["releases: [other]", "namespaces: [other]", "exempt: {users: [alice]}", "exempt: {groups: [devs]}"]
    {
        let freezes = WEEKEND.replace("[saturday, sunday]", &format!("[saturday, sunday], {changed}"));
        let alone = sentence(&freezes, "2026-11-27T18:00:00Z").unwrap();
        assert_eq!(alone, "the freeze evening is in force until 2026-11-28 00:00 UTC (r)", "{changed}");
    }
}

#[test]
fn the_freeze_that_lasts_longest_is_named() {
    let freezes =
        format!("{WEEKEND}, {{name: sale, reason: r, timeZone: UTC, from: 2026-11-28T10:00, to: 2026-12-01}}");
    assert!(
        sentence(&freezes, "2026-11-28T12:00:00Z").unwrap().contains("the freeze sale is in force until 2026-12-01")
    );
    let before = sentence(&freezes, "2026-11-27T18:00:00Z").unwrap();
    assert!(before.ends_with(", and others follow until 2026-12-01 00:00 UTC"), "{before}");
}

#[test]
fn freezes_that_leave_no_pause_are_in_force_for_good() {
    let week = "{name: a, reason: r, timeZone: UTC, weekdays: [monday, tuesday, wednesday]}, \
                {name: b, reason: r, timeZone: UTC, weekdays: [thursday, friday, saturday, sunday]}";
    let sentence_of_week = sentence(week, "2026-11-27T18:00:00Z").unwrap();
    assert_eq!(sentence_of_week, "the freeze b is in force until 2026-11-30 00:00 UTC (r), and others follow for good");
    let over = "{name: once, reason: r, timeZone: UTC, effect: allowOnly, from: 2026-01-01, to: 2026-01-02}";
    assert_eq!(sentence(over, "2026-11-27T18:00:00Z").unwrap(), "the freeze once is in force for good (r)");
}

#[test]
fn the_log_names_the_freeze_that_a_refusal_names() {
    let text = format!("apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\nfreezes: [{WEEKEND}]\n");
    let policy = Policy::parse(&text, Path::new("c")).unwrap();
    let named = |now: &str| frozen_by(policy.all_freezes(&[]), &ReleaseRef::new("shop", "web"), now.parse().unwrap());
    assert_eq!(named("2026-11-27T18:00:00Z").as_deref(), Some("evening"));
    assert_eq!(named("2026-11-30T00:00:00Z"), None);
}

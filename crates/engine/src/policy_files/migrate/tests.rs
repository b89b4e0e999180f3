//! Rewritten files of an earlier version.

use std::path::Path;

use super::super::file::{PolicyKind, tree};
use super::*;

const HEADER: &str = "apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\n";

fn migrated(rest: &str) -> String {
    let mut files = PolicyFiles::default();
    files.set_cluster("c".into(), format!("{HEADER}{rest}"));
    let (_, text) = files.migrated().unwrap();
    text.map_or_else(|| rest.to_owned(), |text| text.strip_prefix(HEADER).unwrap().to_owned())
}

/// The text that a file without any list gets.
const OTHERS: &str =
    "managers: {only: []}\ntools: {only: []}\ncontrollers: {only: []}\npipelines: {only: []}\nignore: {only: []}\n";
const RULES: &str = "resume-interrupted: {cases: {only: []}}, foreign-edit-in-transition: {cases: {only: []}}, \
                     manual-edit: {cases: {only: []}}, manual-delete: {cases: {only: []}}, manual-scale: {cases: {only: []}}";

#[test]
fn missing_lists_are_written_at_the_end() {
    let all = format!("{OTHERS}rules: {{{RULES}}}\n");
    assert_eq!(
        migrated("# two lines\nprotected: {releases: [db]}"),
        format!("# two lines\nprotected: {{releases: [db]}}\n{all}")
    );
}

#[test]
fn lists_are_marked_in_place_and_comments_stay() {
    let lists = "managers: # ours\n  - a # one\n\n  - b\n# after\ntools: [c]\ncontrollers:\n- d\nplatform:\npipelines: &p []\nignore: *p\n";
    let wanted = "managers:\n  only: # ours\n    - a # one\n\n    - b\n# after\ntools: {only: [c]}\ncontrollers:\n  only:\n  - d\nplatform:\n\
                  pipelines: {only: &p []}\nignore: {only: *p}\n";
    let got = migrated(lists);
    assert!(got.starts_with(wanted), "{got}");
}

#[test]
fn rules_are_completed_in_their_own_style() {
    let rest = format!(
        "{OTHERS}rules:\n  # ours\n  manual-edit:\n    mode: enforce\n  manual-scale: {{mode: enforce}}\n  manual-delete:\n    \
                cases: &c\n      - {{when: {{users: [bot]}}, mode: audit}}\n  foreign-edit-in-transition: {{cases: *c}}\n  resume-interrupted:\n"
    );
    let wanted = format!(
        "{OTHERS}rules:\n  # ours\n  manual-edit:\n    cases: {{only: []}}\n    mode: enforce\n  \
                manual-scale: {{cases: {{only: []}}, mode: enforce}}\n  manual-delete:\n    cases:\n      only: &c\n        - {{when: {{users: [bot]}}, \
                mode: audit}}\n  foreign-edit-in-transition: {{cases: {{only: *c}}}}\n  resume-interrupted: {{cases: {{only: []}}}}\n"
    );
    assert_eq!(migrated(&rest), wanted);
}

#[test]
fn a_rule_that_is_an_alias_is_expanded() {
    let rest = format!(
        "{OTHERS}rules:\n  manual-edit: &e {{mode: enforce}}\n  manual-delete: *e\n  manual-scale: {{mode: 'off'}}\n  \
                foreign-edit-in-transition: {{mode: 'off'}}\n  resume-interrupted: {{mode: audit}}\n"
    );
    let got = migrated(&rest);
    assert!(got.contains("manual-edit: &e {cases: {only: []}, mode: enforce}"), "{got}");
    assert!(got.contains("manual-delete: {mode: enforce, cases: {only: []}}"), "{got}");
    assert!(
        got.contains("manual-scale: {mode: 'off'}\n") && got.contains("resume-interrupted: {mode: audit}\n"),
        "{got}"
    );
}

#[test]
fn an_intentionally_empty_list_stays_empty() {
    let got = migrated("managers: []\nrules: {manual-edit: {cases: []}}\n");
    assert!(got.starts_with("managers: {only: []}\nrules: {"), "{got}");
    assert!(got.contains("manual-edit: {cases: {only: []}}"), "{got}");
}

#[test]
fn a_file_with_the_same_meaning_is_not_changed() {
    let shipped = super::super::files::SHIPPED_POLICY;
    assert_eq!(migrated(shipped), shipped);
    let stated = migrated("");
    assert_eq!(migrated(&stated), stated);
    assert!(PolicyFiles::default().migrated().is_err());
    let mut wrong = PolicyFiles::default();
    wrong.set_cluster("c".into(), "a: [\n".to_owned());
    assert!(wrong.migrated().unwrap_err().to_string().starts_with("c:1:4: "));
}

#[test]
fn a_rewritten_file_has_no_problem() {
    let text = format!("{HEADER}{}", migrated("managers: []\ntools:\n- a\n"));
    let source = SourceFile { path: Path::new("c").into(), text };
    let mut problems = Problems::of(&source);
    assert!(tree(&source, PolicyKind::Cluster, &mut problems).is_some() && problems.is_empty());
}

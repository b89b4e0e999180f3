//! Policy files: of the cluster, and of a namespace over the shipped policy of the cluster.
//!
//! Input: the text of a file.

use std::path::Path;

use interlock_engine::policy::{NamespaceLabels, Policy};
use interlock_engine::policy_files::{LoadedPolicies, PolicyFiles, Problem, in_force};

use super::Input;

const SHIPPED: &str = include_str!("../../policies/cluster.yaml");

pub fn run(input: &[u8]) -> Input {
    let Ok(text) = std::str::from_utf8(input) else { return Input::Foreign };
    let as_cluster = Policy::parse(text, Path::new("cluster.yaml"));
    let own = || [("cluster.yaml".to_owned(), text.to_owned())];
    let files = PolicyFiles::mounted(own(), []);
    let loaded = LoadedPolicies::of(&files);
    are_shown(&loaded, text);
    match &as_cluster {
        Ok(_) => assert!(loaded.problems.is_empty() && loaded.policies.is_some(), "{:?}", loaded.problems),
        Err(error) => assert!(error.problems == loaded.problems && !loaded.problems.is_empty(), "{error}"),
    }
    assert_eq!(in_force(&files, "shop", &NamespaceLabels::new()).is_ok(), as_cluster.is_ok());

    let shipped = ("cluster.yaml".to_owned(), SHIPPED.to_owned());
    let files = PolicyFiles::mounted([shipped], [("shop.yaml".to_owned(), text.to_owned())]);
    let loaded = LoadedPolicies::of(&files);
    are_shown(&loaded, text);
    // A wrong file of a namespace never takes the cluster policy out of force.
    assert!(loaded.policies.is_some(), "{:?}", loaded.problems);
    assert_eq!(in_force(&files, "shop", &NamespaceLabels::new()).is_ok(), loaded.problems.is_empty());
    Input::Own
}

/// Every problem can be shown: on one line, at a place that the text has.
fn are_shown(loaded: &LoadedPolicies, text: &str) {
    for problem in loaded.problems.iter().chain(&loaded.warnings) {
        let Problem { location, message, .. } = problem;
        assert!(!message.is_empty() && !problem.to_string().contains('\n'), "{problem:?}");
        if let Some(at) = location {
            // A line may also be the one after the last.
            assert!((1..=text.split('\n').count() + 1).contains(&at.line) && at.column > 0, "{problem:?}");
            assert!(at.text.is_empty() || at.text.get(at.range.clone()).is_some(), "{problem:?}");
        }
    }
}

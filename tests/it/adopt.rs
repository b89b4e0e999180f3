//! `interlock adopt`, on logs with the accounts of platforms and on recordings of real clients: the classes of accounts, honest work and
//! incidents, and the policy that follows, under which the same log is judged again.

mod input;
mod log;
mod platforms;
mod recordings;
mod rollout;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::harness::binary::{interlock, stderr, stdout};

/// The report on a log.
struct Adopted {
    report: Value,
}

/// Reads a log with further arguments.
fn adopted(file: &Path, arguments: &[&str]) -> Adopted {
    let mut all = vec!["adopt", file.to_str().unwrap(), "-o", "json"];
    all.extend(arguments);
    let output = interlock(&all);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    Adopted { report: serde_json::from_str(stdout(&output)).unwrap() }
}

impl Adopted {
    /// The class of each account.
    fn classes(&self) -> BTreeMap<String, String> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let accounts = self.report["accounts"].as_array().unwrap();
        accounts.iter().map(|account| (text(&account["account"]), text(&account["class"]))).collect()
    }

    fn findings(&self, kind: &str) -> &Vec<Value> {
        self.report[kind].as_array().unwrap()
    }

    /// The number of refused writes of one kind.
    fn count(&self, kind: &str) -> usize {
        let refused = self.findings(kind).iter().filter(|finding| finding["refused"] == true);
        refused.map(|finding| finding["count"].as_u64().unwrap() as usize).sum()
    }

    /// The acts that are refused, of one kind: rules and objects. The account is left out, because the sessions of a pipeline have
    /// another name once the policy lists it.
    fn refused(&self, kind: &str) -> BTreeSet<String> {
        let refused = self.findings(kind).iter().filter(|finding| finding["refused"] == true);
        refused.map(|it| format!("{} {} {}", it["rules"], it["operation"], it["objects"]["named"])).collect()
    }
}

/// Reads a log, writes the policy that follows, and judges the log again under it: nothing honest may be refused, and every incident must
/// be. Returns the first report, and the policy.
fn round_trip(file: &Path) -> (Adopted, String) {
    let dir = tempfile::tempdir().unwrap();
    let policies = dir.path().join("policies");
    let policies = policies.to_str().unwrap();
    let first = adopted(file, &["--write", policies]);
    let text = fs::read_to_string(format!("{policies}/cluster.yaml")).unwrap();
    let checked = interlock(&["policy", "check", policies]);
    assert_eq!(checked.status.code(), Some(0), "{}\n{text}", stderr(&checked));
    assert!(text.contains("\ncap: audit\n"), "{text}");
    // Under its cap, nothing is refused.
    let replayed = interlock(&["replay", "--as-recorded", "--policies", policies, file.to_str().unwrap()]);
    assert_eq!(replayed.status.code(), Some(0), "{}", stdout(&replayed));
    let again = adopted(file, &["--policies", policies]);
    assert!(again.refused("disturbed").is_empty(), "{:?}\n{text}", again.refused("disturbed"));
    assert_eq!(again.refused("incidents"), first.refused("incidents"), "{text}");
    assert_eq!(again.refused("decisions"), first.refused("decisions"), "{text}");
    assert!(
        again.findings("disturbed").is_empty(),
        "nothing is left to open: {:?}\n{text}",
        again.findings("disturbed")
    );
    (first, text)
}

/// Writes a log, and takes it there and back.
fn round_trip_of(text: &str) -> (Adopted, String) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("audit.log");
    fs::write(&file, text).unwrap();
    round_trip(&file)
}

/// The accounts with another class than wanted.
fn wrong(adopted: &Adopted, wanted: &[(&str, &str)]) -> Vec<String> {
    let found = adopted.classes();
    // NAMESPACE:NAME is a service account; other names with a colon have more of them, or a reserved prefix.
    let full = |name: &str| match name.split(':').collect::<Vec<_>>()[..] {
        [namespace, _] if !["system", "eks"].contains(&namespace) => format!("system:serviceaccount:{name}"),
        _ => name.to_owned(),
    };
    let wanted: BTreeMap<_, _> = wanted.iter().map(|(name, class)| (full(name), (*class).to_owned())).collect();
    let names: BTreeSet<_> = found.keys().chain(wanted.keys()).collect();
    let differing = names.into_iter().filter(|name| found.get(*name) != wanted.get(*name));
    differing.map(|name| format!("{name}: {:?}, wanted {:?}", found.get(name), wanted.get(name))).collect()
}

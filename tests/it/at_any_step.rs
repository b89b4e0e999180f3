//! A freeze and a protection that begin and end at any step of what real controllers did: they stop what starts or removes something,
//! and nothing else.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use interlock_engine::policy::Policy;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use release_interlock::offline::replay::{Replay, Replayed};
use serde_json::Value;

use crate::harness::binary::repository;

const RECORDINGS: [&str; 4] = ["flux", "olm", "sveltos-v1.9.0", "helm"];

/// So many windows begin in a recording, evenly spread. Each lasts for a quarter of it.
const WINDOWS: usize = 12;

/// A recorded review.
struct Step {
    line: usize,
    at: Timestamp,
    request: Value,
}

fn lines(name: &str) -> Vec<String> {
    let file = BufReader::new(File::open(repository(&format!("tests/recordings/{name}.jsonl.gz"))).unwrap());
    BufReader::new(MultiGzDecoder::new(file)).lines().map(Result::unwrap).collect()
}

fn steps(lines: &[String]) -> Vec<Step> {
    let read = lines.iter().enumerate().filter_map(|(index, text)| {
        let line: Value = serde_json::from_str(text).unwrap();
        let seconds = line["t"].as_f64()?;
        let at = Timestamp::from_millisecond((seconds * 1_000.0) as i64).unwrap();
        let request = line.get("review")?["request"].clone();
        Some(Step { line: index + 1, at, request })
    });
    read.collect()
}

/// What each judged review gets under a policy: the line, whether it is admitted, and the rules.
async fn verdicts(policy: &str, lines: &[String]) -> Vec<Replayed> {
    let text = format!("apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\n{policy}");
    let mut replay = Replay::new(Policy::parse(&text, Path::new("test")).unwrap(), true);
    let mut results = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        results.extend(replay.line(index + 1, line).await.unwrap());
    }
    results
}

fn rules(result: &Replayed) -> BTreeSet<String> {
    result.violations.iter().map(|violation| violation.rule.to_owned()).collect()
}

/// The status of a record, before or after a request.
fn status<'s>(step: &'s Step, side: &str) -> &'s str {
    step.request[side]["metadata"]["labels"]["status"].as_str().unwrap_or_default()
}

/// Whether a request can be the start of an operation, or belongs to one that deletes objects.
fn may_start(step: &Step) -> bool {
    let kind = step.request["kind"]["kind"].as_str().unwrap_or_default();
    match step.request["operation"].as_str().unwrap_or_default() {
        "CREATE" => true,
        "DELETE" => true,
        _ if kind == "ConfigurationGroup" || kind == "HelmRelease" => true,
        _ => !status(step, "oldObject").starts_with("pending-") && status(step, "object").starts_with("uninstall"),
    }
}

/// Whether a request can take something of a release away.
fn may_remove(step: &Step) -> bool {
    let marks = |side: &str| {
        let metadata = &step.request[side]["metadata"];
        let (label, annotation) = ("app.kubernetes.io/managed-by", "meta.helm.sh/release-name");
        (metadata["labels"][label].clone(), metadata["annotations"][annotation].clone())
    };
    // An object without its marks could be deleted next.
    let removes = step.request["operation"] == "DELETE" || status(step, "object").starts_with("uninstall");
    removes
        || marks("oldObject") != marks("object")
        || ["ConfigurationGroup", "HelmRelease"].iter().any(|kind| step.request["kind"]["kind"] == *kind)
}

#[tokio::test]
async fn a_freeze_changes_only_the_verdict_of_what_starts_in_it() {
    for name in RECORDINGS {
        let lines = lines(name);
        let steps = steps(&lines);
        let before = verdicts("", &lines).await;
        let mut refused = 0;
        for window in 0..WINDOWS {
            let begin = steps[window * steps.len() / WINDOWS].at;
            let end = steps[(window * steps.len() / WINDOWS + steps.len() / 4).min(steps.len() - 1)].at;
            let shown = |moment: Timestamp| {
                Timestamp::from_second(moment.as_second()).unwrap().to_zoned(TimeZone::UTC).datetime()
            };
            let freeze = format!(
                "freezes: [{{name: sale, reason: sale, timeZone: UTC, from: {}, to: {}}}]\n",
                shown(begin),
                shown(end)
            );
            let frozen = verdicts(&freeze, &lines).await;
            assert_eq!(before.len(), frozen.len(), "{name}");
            for (was, is) in before.iter().zip(&frozen) {
                let step = steps.iter().find(|step| step.line == is.line).unwrap();
                let (had, mut has) = (rules(was), rules(is));
                if !has.remove("freeze") {
                    assert_eq!((had, was.allowed), (has, is.allowed), "{name} line {} in {freeze}", is.line);
                    continue;
                }
                refused += 1;
                let whole = |moment: Timestamp| moment.as_second();
                assert!((whole(begin)..=whole(end)).contains(&whole(step.at)), "{name} line {} in {freeze}", is.line);
                assert!(!is.allowed && may_start(step), "{name} line {}: {}", is.line, step.request["operation"]);
            }
        }
        assert!(refused > 0, "{name} has nothing that starts");
    }
}

/// As the state follows the recording, a protection from one step to another gives each line one of these two verdicts.
#[tokio::test]
async fn a_protection_changes_only_the_verdict_of_what_removes_something() {
    for name in RECORDINGS {
        let lines = lines(name);
        let steps = steps(&lines);
        let (before, protected) =
            (verdicts("", &lines).await, verdicts("protected: {releases: ['*']}\n", &lines).await);
        let mut refused = 0;
        for (was, is) in before.iter().zip(&protected) {
            let step = steps.iter().find(|step| step.line == is.line).unwrap();
            let (had, mut has) = (rules(was), rules(is));
            if has.remove("protected-release") {
                refused += 1;
                assert!(!is.allowed && may_remove(step), "{name} line {}", is.line);
            } else {
                assert_eq!((had, was.allowed), (has, is.allowed), "{name} line {}", is.line);
            }
        }
        assert!(refused > 0, "{name} removes nothing");
    }
}

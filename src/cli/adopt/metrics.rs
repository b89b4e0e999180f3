//! What the replicas of Interlock have counted since they started, from files of their metrics.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use interlock_engine::outcome::Verdict;
use interlock_engine::rule::RuleId;
use interlock_engine::rules;
use serde::Serialize;

use crate::offline::adopt::counted;

/// The counter of findings, with the labels `rule`, `mode` and `verdict`.
const FINDINGS: &str = "interlock_findings_total{";

/// How often a rule had a finding with this verdict, over all replicas.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CountedRule {
    rule: &'static str,
    verdict: &'static str,
    count: u64,
}

/// Reads files with the text of `/metrics`, one for each replica.
///
/// # Errors
/// When a file cannot be read, or is none of Interlock's metrics.
pub(super) fn read(files: &[PathBuf]) -> anyhow::Result<Vec<CountedRule>> {
    let mut counts = BTreeMap::new();
    for file in files {
        let text = std::fs::read_to_string(file).with_context(|| format!("failed to read {}", file.display()))?;
        add(&mut counts, &text, file)?;
    }
    let rules = counts.into_iter().filter(|(_, count)| *count > 0);
    let rules = rules.map(|((rule, verdict), count): ((RuleId, Verdict), u64)| CountedRule {
        rule: rule.as_str(),
        verdict: verdict.as_str(),
        count,
    });
    let mut rules: Vec<_> = rules.collect();
    rules.sort_by_key(|rule| std::cmp::Reverse(rule.count));
    Ok(rules)
}

fn add(counts: &mut BTreeMap<(RuleId, Verdict), u64>, text: &str, file: &Path) -> anyhow::Result<()> {
    ensure!(
        text.contains("interlock_ready"),
        "{} has no metrics of Interlock. Write it with kubectl get --raw \
         /api/v1/namespaces/interlock-system/pods/POD:8081/proxy/metrics",
        file.display()
    );
    for (labels, count) in text.lines().filter_map(|line| line.strip_prefix(FINDINGS)?.rsplit_once("} ")) {
        let rule = label(labels, "rule").and_then(rules::named);
        let verdict = label(labels, "verdict").and_then(|verdict| verdict.parse().ok());
        // A rule of another version counts for nothing.
        if let (Some(rule), Some(verdict), Ok(count)) = (rule, verdict, count.trim().parse::<u64>()) {
            *counts.entry((rule, verdict)).or_default() += count;
        }
    }
    Ok(())
}

/// The value of a label. Values of Interlock's labels need no escaping.
fn label<'t>(labels: &'t str, name: &str) -> Option<&'t str> {
    let mut values = labels.split(',').filter_map(|label| label.split_once("=\""));
    values.find(|(key, _)| *key == name)?.1.strip_suffix('"')
}

impl CountedRule {
    pub(super) fn sentence(&self) -> String {
        let Self { rule, verdict, count } = self;
        let times = if *count == 1 {
            "once".to_owned()
        } else {
            counted(usize::try_from(*count).unwrap_or(usize::MAX), "time")
        };
        format!("The replicas have counted {rule} as {verdict} {times} since they started.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# HELP interlock_ready Ready\ninterlock_ready 1\n\
        interlock_findings_total{cluster=\"eu\",rule=\"manual-edit\",mode=\"audit\",verdict=\"would-deny\"} 3\n\
        interlock_findings_total{rule=\"manual-edit\",mode=\"warn\",verdict=\"would-deny\"} 1\n\
        interlock_findings_total{rule=\"manual-scale\",mode=\"audit\",verdict=\"would-deny\"} 0\n\
        interlock_findings_total{rule=\"of-another-version\",mode=\"audit\",verdict=\"would-deny\"} 9\n";

    #[test]
    fn findings_of_all_replicas_are_added_up() {
        let directory = tempfile::tempdir().unwrap();
        let files = ["a", "b"].map(|name| directory.path().join(name));
        files.iter().for_each(|file| std::fs::write(file, TEXT).unwrap());
        let counted = read(&files).unwrap();
        let sentences: Vec<_> = counted.iter().map(CountedRule::sentence).collect();
        assert_eq!(sentences, ["The replicas have counted manual-edit as would-deny 8 times since they started."]);
        std::fs::write(&files[0], "go_goroutines 7\n").unwrap();
        assert!(read(&files).unwrap_err().to_string().contains("has no metrics of Interlock"));
    }
}

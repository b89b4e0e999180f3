//! The policy that follows from a log: only what differs from the policy in force, each line with its evidence.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use interlock_engine::policy::Policy;
use interlock_engine::text::printable;

use super::opening::{Entry, Opening, case_yaml};
use super::policy_text::{PolicyText, Unusual};
use super::seen::{Names, Times, counted};

/// The start of a policy that nobody has written yet.
const SKELETON: &str = "\
# Written by `interlock adopt` from audit logs. It states differences from the shipped policy, each with its evidence.
apiVersion: interlock.dev/v1alpha1
kind: ClusterPolicy

# Refuses nothing, and reports everything. Run `interlock adopt --policies` with this directory on a later log: it names the rule to
# enforce first.
cap: audit
";

/// The longest comment, in bytes.
const MAX_COMMENT_BYTES: usize = 300;

/// The names in a comment.
const MAX_NAMED: usize = 3;

/// What shows that a line is needed.
#[derive(Debug, Clone)]
pub(super) struct Evidence {
    pub(super) times: Times,
    pub(super) objects: Names,
    pub(super) fields: BTreeSet<String>,
    pub(super) rules: BTreeSet<&'static str>,
    /// What the account is, and why.
    pub(super) why: String,
}

/// The lines that open honest work.
#[derive(Debug, Default)]
pub(super) struct Proposal {
    entries: BTreeMap<Entry, Evidence>,
    /// By rule and account: the kinds.
    cases: BTreeMap<(&'static str, String), (BTreeSet<String>, Evidence)>,
}

/// The text of a policy, or why it cannot be written.
pub(super) type Written = Result<PolicyText, Unusual>;

impl Proposal {
    pub(super) fn add(&mut self, opening: &Opening, evidence: &Evidence) {
        match opening {
            Opening::Entry(entry) => {
                self.entries
                    .entry(entry.clone())
                    .and_modify(|known| known.extend(evidence))
                    .or_insert_with(|| evidence.clone());
            }
            Opening::Cases { rules, account, kinds } => {
                for rule in rules {
                    let (known, shown) = self
                        .cases
                        .entry((*rule, account.clone()))
                        .and_modify(|(_, known)| known.extend(evidence))
                        .or_insert_with(|| (BTreeSet::new(), evidence.clone()));
                    known.extend(kinds.iter().cloned());
                    shown.rules.insert(rule);
                }
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.cases.is_empty()
    }

    /// The number of lines.
    pub(super) fn len(&self) -> usize {
        self.entries.len() + self.cases.len()
    }

    /// A policy for a cluster that has none of its own.
    pub(super) fn first(&self) -> Written {
        self.onto(PolicyText::of(SKELETON))
    }

    /// The lines in the text of a policy.
    pub(super) fn onto(&self, mut text: PolicyText) -> Written {
        for (entry, evidence) in &self.entries {
            text.add_to_list(entry.list.key(), &evidence.comments(), &entry.yaml())?;
        }
        for ((rule, account), (kinds, evidence)) in &self.cases {
            text.add_case(rule, &evidence.comments(), &case_yaml(account, kinds))?;
        }
        Ok(text)
    }
}

impl Evidence {
    fn extend(&mut self, other: &Self) {
        self.times.extend(&other.times);
        self.objects.extend(&other.objects);
        self.fields.extend(other.fields.iter().cloned());
        self.rules.extend(other.rules.iter().copied());
    }

    /// Why the line is there.
    fn comments(&self) -> Vec<String> {
        let fields: Vec<_> = self.fields.iter().take(MAX_NAMED).map(String::as_str).collect();
        let fields = if fields.is_empty() { String::new() } else { format!(" of {}", fields.join(", ")) };
        let rules: Vec<_> = self.rules.iter().copied().collect();
        let [first, last] = [self.times.first, self.times.last].map(|time| time.strftime("%Y-%m-%d %H:%M"));
        let seen = format!(
            "{}{fields}, {first} to {last}: {} ({}). [{}]",
            counted(self.times.count, "write"),
            self.objects.counted("object"),
            self.objects.shown(MAX_NAMED),
            rules.join(", ")
        );
        [self.why.clone(), seen].map(|comment| printable(&comment, MAX_COMMENT_BYTES).into_owned()).to_vec()
    }
}

/// Whether a text is a valid cluster policy. A change of a text that somebody wrote by hand is checked before it is shown.
pub(super) fn parsed(text: &PolicyText) -> Option<Policy> {
    Policy::parse(&text.text(), Path::new("cluster.yaml")).ok()
}

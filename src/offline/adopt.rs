//! Whom would Interlock refuse in a cluster? The answer from audit logs: what each account is, which acts are honest work and which are
//! incidents, and the policy that follows.
//!
//! ```text
//! replay -> Adoption::add ->  account (who)            -> class ----\
//!                             act (what breaks a rule) -> verdict ---> opening -> proposal -> policy_text
//!                             in_flight                    report <--/               rollout <--/
//! ```

mod account;
mod act;
mod class;
mod in_flight;
mod machine;
mod modes;
mod opening;
mod platforms;
mod policy_text;
mod proposal;
mod report;
mod rollout;
mod seen;
mod verdict;

use std::collections::{BTreeMap, HashMap};

use interlock_engine::object::ObjectKey;
use interlock_engine::policy::Policies;
use interlock_engine::policy_files::PolicyError;
use interlock_engine::rules;
use jiff::Timestamp;

use crate::offline::replay::{Applier, Replayed};
use account::{Account, AccountBook};
use act::{Act, ActKey, Acts, Effect};
use class::{Class, Classified, Classifier};
use in_flight::Operations;
use opening::{Opening, case_yaml};
use platforms::Platforms;
use proposal::{Evidence, Proposal, parsed};
use verdict::{Verdict, verdict};

pub(crate) use report::{AccountReport, AdoptReport, Finding, OwnerReport, RuleReport};
pub(crate) use seen::counted;

/// The most findings of one kind in a report.
const MAX_FINDINGS: usize = 1_000;

/// What a log has shown so far.
pub(crate) struct Adoption {
    policies: Policies,
    /// The same policies without their cap. They judge, because the question is what they would refuse.
    uncapped: Policies,
    platforms: Platforms,
    book: AccountBook,
    acts: Acts,
    operations: Operations,
    owners: Vec<OwnerReport>,
    reviews: usize,
    times: Option<(Timestamp, Timestamp)>,
}

impl Adoption {
    /// Starts a report. `policies` are those in force, or the shipped ones.
    ///
    /// # Errors
    /// Not in a build whose tests passed: the policies for platforms are shipped.
    pub(crate) fn new(policies: Policies) -> Result<Self, PolicyError> {
        Ok(Self {
            uncapped: policies.clone().uncapped(),
            policies,
            platforms: Platforms::shipped()?,
            book: AccountBook::default(),
            acts: Acts::default(),
            operations: Operations::default(),
            owners: Vec::new(),
            reviews: 0,
            times: None,
        })
    }

    /// The policies under which the log is judged.
    pub(crate) fn judging(&self) -> Policies {
        self.uncapped.clone()
    }

    /// Adds a judged request.
    pub(crate) fn add(&mut self, replayed: &Replayed) {
        self.reviews += 1;
        let (first, last) = self.times.unwrap_or((replayed.at, replayed.at));
        self.times = Some((first.min(replayed.at), last.max(replayed.at)));
        if !replayed.context.concerns_releases || replayed.user.is_empty() {
            return;
        }
        if let Some(name) = self.book.add(replayed, &self.policies, &self.operations) {
            self.acts.add(&name, replayed);
        }
        if !replayed.context.is_dry_run {
            self.operations.follow(replayed);
        }
    }

    /// Adds the objects that apply others, once the log is read.
    pub(crate) fn add_owners<'a>(&mut self, appliers: impl Iterator<Item = (&'a ObjectKey, Applier)>) {
        let reports = appliers.map(|(key, Applier { objects, operations })| OwnerReport {
            kind: key.kind.clone(),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            objects,
            operations,
        });
        self.owners.extend(reports);
    }

    /// The report. `text` is that of the cluster policy in force, if there is one.
    pub(crate) fn report(&self, text: Option<&str>) -> AdoptReport {
        let classifier = Classifier { policies: &self.uncapped, platforms: &self.platforms, book: &self.book };
        let classified: HashMap<_, _> =
            self.book.iter().map(|(name, account)| (name, classifier.of(name, account))).collect();
        let mut sorted = Sorted::default();
        for (key, (act, account, classified)) in self.of_accounts(&classified) {
            sorted.add(&key, &act, account, classified);
        }
        let (first, last) = self.times.unzip();
        let rules = self.rules(&sorted.rules, last.unwrap_or_default());
        let next = text.map(|text| {
            let policy = self.policies.of("");
            rollout::next_step(policy, text, &sorted.proposal, &rules, first.unwrap_or_default())
        });
        let policy = match (&next, text) {
            (Some(next), Some(_)) => next.text.clone(),
            _ => sorted.proposal.first().ok().filter(|text| parsed(text).is_some()).map(|text| text.text()),
        };
        sorted.order();
        AdoptReport {
            first,
            last,
            reviews: self.reviews,
            accounts: accounts(&self.book, &classified),
            owners: self.owners.clone(),
            rules,
            incidents: sorted.incidents,
            disturbed: sorted.disturbed,
            decisions: sorted.decisions,
            policy,
            next,
            not_listed: self.book.further + self.acts.further + sorted.not_listed,
        }
    }

    /// The acts in order. The same act of several sessions is one.
    fn of_accounts<'a>(&'a self, classified: &'a HashMap<&str, Classified>) -> BTreeMap<ActKey, AccountAct<'a>> {
        let mut acts: BTreeMap<ActKey, AccountAct<'a>> = BTreeMap::new();
        for (key, act) in self.acts.sorted() {
            if let (Some(account), Some(classified)) = (self.book.get(&key.user), classified.get(key.user.as_str())) {
                let key = ActKey { user: classified.shown(&key.user), ..key.clone() };
                acts.entry(key)
                    .and_modify(|(known, ..)| known.extend(act))
                    .or_insert_with(|| (act.clone(), account, classified));
            }
        }
        acts
    }

    fn rules(&self, counts: &BTreeMap<&'static str, RuleCounts>, until: Timestamp) -> Vec<RuleReport> {
        let policy = self.policies.of("");
        let reports = rules::all().map(|id| {
            let counts = counts.get(id.as_str()).cloned().unwrap_or_default();
            RuleReport {
                rule: id.as_str(),
                id,
                what: id.specification().summary,
                why: id.specification().why,
                caught: counts.caught,
                disturbed: counts.disturbed,
                to_decide: counts.to_decide,
                unknown: counts.unknown,
                recorded: counts.recorded,
                wrongly_refused_last: counts.wrongly_refused_last,
                enforced: !rollout::is_loosened(policy, id),
                until,
            }
        });
        reports.collect()
    }
}

/// An act, and its account.
type AccountAct<'a> = (Act, &'a Account, &'a Classified);

/// The acts by their verdicts.
#[derive(Default)]
struct Sorted {
    incidents: Vec<Finding>,
    disturbed: Vec<Finding>,
    decisions: Vec<Finding>,
    rules: BTreeMap<&'static str, RuleCounts>,
    proposal: Proposal,
    not_listed: usize,
}

/// The counts of a rule.
#[derive(Debug, Clone, Default)]
struct RuleCounts {
    caught: usize,
    disturbed: usize,
    to_decide: usize,
    unknown: usize,
    recorded: usize,
    wrongly_refused_last: Option<Timestamp>,
}

impl Sorted {
    fn add(&mut self, key: &ActKey, act: &Act, account: &Account, classified: &Classified) {
        let found = verdict(key, act, account, classified);
        for rule in &key.rules {
            self.rules.entry(rule).or_default().add(key.effect, &found, act);
        }
        let (list, then) = match found {
            Verdict::Noted | Verdict::Unknown => return,
            Verdict::Incident => (&mut self.incidents, act.way_out.clone()),
            Verdict::Ask(question) => (&mut self.decisions, question),
            Verdict::Honest(opening) => {
                self.proposal.add(&opening, &evidence(key, act, classified));
                (&mut self.disturbed, opened_by(&opening))
            }
        };
        if list.len() < MAX_FINDINGS {
            list.push(finding(key, act, classified, then));
        } else {
            self.not_listed += act.times.count;
        }
    }

    /// Puts the oldest incident first, and the most frequent work.
    fn order(&mut self) {
        self.incidents.sort_by_key(|finding| finding.times.first);
        for list in [&mut self.disturbed, &mut self.decisions] {
            list.sort_by_key(|finding| (!finding.refused, std::cmp::Reverse(finding.times.count)));
        }
    }
}

impl RuleCounts {
    fn add(&mut self, effect: Effect, verdict: &Verdict, act: &Act) {
        let count = act.times.count;
        let is_refused = effect == Effect::Refused;
        match verdict {
            Verdict::Unknown => self.unknown += count,
            _ if !is_refused => self.recorded += count,
            Verdict::Incident | Verdict::Noted => self.caught += count,
            Verdict::Honest(_) => self.disturbed += count,
            Verdict::Ask(_) => self.to_decide += count,
        }
        if is_refused && matches!(verdict, Verdict::Honest(_) | Verdict::Ask(_)) {
            self.wrongly_refused_last = self.wrongly_refused_last.max(Some(act.times.last));
        }
    }
}

fn evidence(key: &ActKey, act: &Act, classified: &Classified) -> Evidence {
    Evidence {
        times: act.times.clone(),
        objects: act.objects.clone(),
        fields: key.fields.iter().cloned().collect(),
        rules: key.rules.iter().copied().collect(),
        why: format!("{}: {}.", classified.class.as_str(), classified.why),
    }
}

fn opened_by(opening: &Opening) -> String {
    match opening {
        Opening::Entry(entry) => format!("{}: [{}]", entry.list.key(), entry.yaml()),
        Opening::Cases { rules, account, kinds } => {
            format!("a case of {}: {}", rules.join(" and "), case_yaml(account, kinds))
        }
    }
}

fn finding(key: &ActKey, act: &Act, classified: &Classified, then: String) -> Finding {
    let ActKey { user, effect, rules, operation, resource, release, .. } = key;
    Finding {
        account: user.clone(),
        class: classified.class,
        rules: rules.clone(),
        refused: *effect == Effect::Refused,
        times: act.times.clone(),
        operation: operation.clone(),
        resource: resource.clone(),
        objects: act.objects.clone(),
        release: release.clone(),
        story: act.sentence.clone(),
        then,
    }
}

/// The accounts by class and name. The sessions of one pipeline are one row.
fn accounts(book: &AccountBook, classified: &HashMap<&str, Classified>) -> Vec<AccountReport> {
    let mut rows: BTreeMap<(Class, String), AccountReport> = BTreeMap::new();
    for (name, account) in book.iter() {
        let Some(found @ Classified { class, why, .. }) = classified.get(name) else { continue };
        let shown = found.shown(name);
        match rows.get_mut(&(*class, shown.clone())) {
            Some(row) => row.extend(account),
            None => drop(rows.insert((*class, shown.clone()), AccountReport::of(shown, *class, why, account))),
        }
    }
    let mut rows: Vec<_> = rows.into_values().collect();
    rows.iter_mut().for_each(|row| row.writes.sort_by_key(|(_, count)| std::cmp::Reverse(*count)));
    rows
}

impl AccountReport {
    fn of(name: String, class: Class, why: &str, account: &Account) -> Self {
        Self {
            account: name,
            class,
            why: why.to_owned(),
            names: 1,
            times: account.times.clone(),
            writes: account.writes.iter().map(|(write, count)| (write.clone(), *count)).collect(),
            operations: account.starts,
            releases: account.releases.clone(),
            namespaces: account.namespaces.clone(),
        }
    }

    fn extend(&mut self, account: &Account) {
        self.names += 1;
        self.times.extend(&account.times);
        self.operations += account.starts;
        self.releases.extend(&account.releases);
        self.namespaces.extend(&account.namespaces);
        for (write, count) in &account.writes {
            match self.writes.iter_mut().find(|(known, _)| known == write) {
                Some((_, known)) => *known += count,
                None => self.writes.push((write.clone(), *count)),
            }
        }
    }
}

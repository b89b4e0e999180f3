//! The checker can fail: without each rule, and with each guarded transition open, it finds a counterexample. The table of them is in
//! `tests/model/README.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use interlock_engine::policy::{Policies, Policy};
use interlock_engine::release::Status;
use interlock_engine::release::status::{Guard, State, Transitions, transition};
use interlock_engine::rule::RuleId;
use interlock_engine::rules::Family;
use release_interlock::offline::replay::Replay;
use release_interlock::world::policy_directory;

use crate::client::Stamp;
use crate::clients::helm::Way;
use crate::clients::olm::Olm;
use crate::clients::person::{Deed, Person};
use crate::cluster::{Cluster, Driver, Object};
use crate::court::Ruling;
use crate::explore::{Counterexample, Explorer};
use crate::properties;
use crate::recording;
use crate::scopes::{Actor, DEEDS, Pair, change_control, helm, installed, person, record};
use crate::users::User;

/// What is taken away from the guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opening {
    Rule(&'static str),
    Edge(State, State),
}

/// Transitions with a guard that no property needs, and why they keep it.
const KEPT: [(State, State, &str); 1] = [(
    Some(Status::Unknown),
    Some(Status::Superseded),
    "none: no client stores `unknown`, and nothing runs under it. The row is there for records that were written by hand",
)];

/// The actions that lead to every status within two operations.
const SHORT: &[Way] = &[
    Way::Install,
    Way::InstallFails,
    Way::Upgrade,
    Way::UpgradeFails,
    Way::Rollback,
    Way::Uninstall,
    Way::KeepHistory,
    Way::UninstallFails,
];

impl Opening {
    fn all() -> Vec<Self> {
        let at_work = at_work();
        let rules = records().filter(|rule| at_work.contains(rule)).map(Self::Rule);
        // Helm never stores `unknown`.
        let states = || [None].into_iter().chain(Status::ALL.map(Some));
        let edges = states().flat_map(|from| states().map(move |to| (from, to)));
        let written = |state: State| state != Some(Status::Unknown);
        let guarded = edges.filter(|(from, to)| match transition(*from, *to) {
            Guard::Free => false,
            Guard::Never => written(*from) && written(*to) && from.is_some(),
            _ => true,
        });
        rules.chain(guarded.map(|(from, to)| Self::Edge(from, to))).collect()
    }

    fn policies(self) -> Policies {
        match self {
            Self::Rule(rule) => without_rule(rule),
            Self::Edge(from, to) => {
                let mut policy = Policy::shipped().unwrap();
                policy.transitions = Transitions::with_open(from, to);
                policy.into()
            }
        }
    }

    /// Pairs that may find it, the quickest first.
    fn pairs(self) -> Vec<Pair> {
        let deeds: &'static [Deed] = match self {
            Self::Rule(_) => DEEDS,
            Self::Edge(None, Some(to)) => Box::leak(Box::new([Deed::Create(to)])),
            Self::Edge(_, Some(to)) => Box::leak(Box::new([Deed::SetStatus(to)])),
            Self::Edge(..) => &[Deed::Delete],
        };
        let alice = || helm(User::Alice, 1, SHORT);
        if self == Self::Rule("resume-interrupted") {
            let olm: Actor = Box::new(Olm { charts: &[1, 2, 3], fails: false, unstuck_by: User::Alice });
            let index: Actor = Box::new(Person { user: User::Bob, driver: Driver::Olm, deeds: &[Deed::Delete] });
            return vec![Pair::new("OLM, kubectl", [olm, index], [3, 1]).from([installed(Driver::Olm)])];
        }
        let with_kubectl = Pair::new("helm, kubectl", [alice(), person(User::Bob, deeds)], [1, 1]).from(starts());
        if KEPT.iter().any(|(from, to, _)| self == Self::Edge(*from, *to)) {
            return vec![with_kubectl];
        }
        vec![
            with_kubectl,
            Pair::new("helm, helm", [alice(), helm(User::Bob, 2, SHORT)], [1, 1]).from(starts()),
            Pair::new("helm twice, kubectl", [alice(), person(User::Bob, deeds)], [2, 1]).from(starts()),
        ]
    }

    fn text(self) -> String {
        let name = |state: State| state.map_or("no record".to_owned(), |status| format!("`{status}`"));
        match self {
            Self::Rule(rule) => format!("rule `{rule}` off"),
            Self::Edge(from, to) => format!("{} → {}", name(from), name(to)),
        }
    }

    /// The first counterexample, and the pair that finds it.
    fn counterexample(self) -> Option<(Counterexample, String)> {
        let mut explorer = Explorer::new(self.policies());
        self.pairs().iter().find_map(|pair| Some((explorer.explore(&pair.scope(0)).counterexample?, pair.name.clone())))
    }
}

/// The rules over records.
fn records() -> impl Iterator<Item = &'static str> {
    Family::Records.rules().map(RuleId::as_str)
}

/// The rules that refuse a write of any pair. The shipped policy freezes and protects nothing, so a rule about that refuses none.
fn at_work() -> BTreeSet<&'static str> {
    let mut explorer = Explorer::new(Policy::shipped().unwrap());
    let pairs = records().flat_map(|rule| Opening::Rule(rule).pairs());
    for pair in pairs.map(|pair| (pair.name.clone(), pair)).collect::<BTreeMap<_, _>>().into_values() {
        explorer.explore(&pair.scope(0));
    }
    let rulings = explorer.rulings().into_iter();
    let refusals = rulings.filter_map(|(_, _, _, ruling)| match &*ruling {
        Ruling::Refused(refusals) => Some(refusals.iter().map(|refusal| refusal.rule).collect::<Vec<_>>()),
        _ => None,
    });
    refusals.flatten().collect()
}

/// Releases in every status in which no operation runs, and one whose first revision was pruned.
fn starts() -> Vec<Cluster> {
    let at_rest = [Status::Unknown, Status::Uninstalled, Status::Superseded, Status::Failed];
    let single = at_rest.map(|status| {
        let mut cluster = Cluster::default();
        cluster.object = (status != Status::Uninstalled).then_some(Object::of(1));
        cluster.put(record(Driver::Secret, 1, status));
        cluster
    });
    let mut pruned = installed(Driver::Secret);
    pruned.remove(Driver::Secret, 1);
    [Cluster::default(), installed(Driver::Secret), pruned].into_iter().chain(single).collect()
}

/// The shipped policy with one rule off.
pub(crate) fn without_rule(rule: &str) -> Policies {
    let shipped = include_str!("../../policies/cluster.yaml");
    let directory = tempfile::tempdir().unwrap();
    let text = format!("{shipped}rules:\n  {rule}: {{mode: off}}\n");
    fs::write(directory.path().join("cluster.yaml"), text).unwrap();
    policy_directory::load(directory.path()).unwrap()
}

const BEGIN: &str = "<!-- counterexamples: written by INTERLOCK_WRITE_DOCS=1 cargo test --test model guards -->\n";
const END: &str = "<!-- end -->\n";

/// Without a rule, or with a transition open, some property breaks: the rule or the guard is needed, and the checker sees what it
/// prevents.
#[test]
fn without_each_rule_and_each_guard_there_is_a_counterexample() {
    let mut table = String::from("\n| open | found by | writes | what breaks |\n|---|---|---|---|\n");
    for opening in Opening::all() {
        let kept = KEPT.iter().find(|(from, to, _)| opening == Opening::Edge(*from, *to));
        let found = opening.counterexample();
        match (found, kept) {
            (Some((found, pair)), None) => {
                writeln!(table, "| {} | {pair} | {} | {} |", opening.text(), found.writes(), found.property).unwrap();
            }
            (None, Some((_, _, why))) => writeln!(table, "| {} | | | {why} |", opening.text()).unwrap(),
            (Some((found, _)), Some(_)) => panic!("{opening:?} is needed:\n{}", recording::story(&found)),
            (None, None) => panic!("nothing breaks with {opening:?}"),
        }
    }
    table.push('\n');
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/model/README.md");
    let text = fs::read_to_string(&path).unwrap();
    let (head, rest) = text.split_once(BEGIN).unwrap();
    let (_, tail) = rest.split_once(END).unwrap();
    let made = format!("{head}{BEGIN}{table}{END}{tail}");
    if std::env::var_os("INTERLOCK_WRITE_DOCS").is_some() {
        fs::write(&path, &made).unwrap();
    }
    assert!(
        made == text,
        "tests/model/README.md is old; INTERLOCK_WRITE_DOCS=1 cargo test --test model guards writes it"
    );
}

/// The two rules that refuse nothing under the shipped policy.
#[test]
fn without_the_rules_of_change_control_there_is_a_counterexample() {
    for (rule, property) in [("freeze", properties::FROZEN), ("protected-release", properties::TAKEN)] {
        let mut explorer = Explorer::new(Opening::Rule(rule).policies());
        let clients = [helm(User::Bob, 1, SHORT), change_control()];
        let found = explorer.explore(&Pair::new("helm", clients, [1, 1]).scope(0)).counterexample;
        assert_eq!(found.map(|found| found.property), Some(property), "{rule}");
    }
}

/// The stamp of the driver opens an operation to whoever works for its HelmRelease, so nobody may write another one.
#[test]
fn without_the_rule_about_stamps_somebody_writes_a_driver() {
    let mut explorer = Explorer::new(Opening::Rule("forged-stamp").policies());
    let clients = [helm(User::Pipeline, 1, SHORT), person(User::Bob, &[Deed::Forge(Stamp::Driver)])];
    let pair = Pair::new("helm, kubectl", clients, [1, 1]).with_helm_release(User::FluxTenant);
    let found = explorer.explore(&pair.scope(0)).counterexample;
    assert_eq!(found.map(|found| found.property), Some(properties::DRIVEN));
}

/// A counterexample is printed as a recording, and replay comes to the same verdicts.
#[test]
fn a_counterexample_can_be_replayed() {
    let opening = Opening::Rule("pending-recovery");
    let (found, _) = opening.counterexample().unwrap();
    let mut replay = Replay::new(opening.policies(), false);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let mut verdicts = Vec::new();
    for (number, line) in recording::lines(&found).iter().enumerate() {
        verdicts
            .extend(runtime.block_on(replay.line(number + 1, line)).unwrap().into_iter().map(|review| review.allowed));
    }
    assert_eq!(verdicts, recording::verdicts(&found));
    assert!(verdicts.len() > 1);
}

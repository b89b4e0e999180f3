use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use interlock_engine::evidence::{Answer, Query, Question};
use interlock_engine::policy::{Creation, Policy};
use interlock_engine::policy_files::{FreezeName, LoadedPolicies, PolicyFiles};
use interlock_engine::release::{Entry, ReleaseRef, Status, Storage};
use interlock_engine::release_override::OverrideSpec;
use interlock_engine::rule::RuleId;
use jiff::SignedDuration;

use super::*;
use crate::world::{AnswerFuture, QueryBudget, World};
use Status::{Deployed, PendingUpgrade, Superseded};

const NOW: &str = "2026-11-21T10:00:00Z";

/// The copies, the histories that can be listed, and the releases that were queried.
#[derive(Default)]
struct Copies {
    in_flight: Vec<InFlight>,
    overrides: Option<Vec<Override>>,
    freezes: Vec<Freeze>,
    histories: BTreeMap<String, Vec<Entry>>,
    asked: Mutex<Vec<String>>,
}

impl World for Copies {
    fn answer_for<'w>(&'w self, query: &'w Query, _: QueryBudget<'w>) -> AnswerFuture<'w> {
        let Query::History(question) = query else {
            return Box::pin(std::future::ready(Answer::Unavailable("it is not asked here".to_owned())));
        };
        let release = format!("{}/{}", question.namespace, question.release);
        let mut found = self.histories.get(&release).cloned();
        if question.storage == Storage::ConfigMap {
            found = found.map(|_| Vec::new());
        }
        self.asked.lock().unwrap().push(release);
        Box::pin(async move {
            match found {
                Some(entries) => question.answered(History::new(entries)),
                // The API server does not answer.
                None => std::future::pending().await,
            }
        })
    }
}

impl Known for Copies {
    fn in_flight(&self, limit: usize) -> (Vec<InFlight>, usize, bool) {
        (self.in_flight.iter().take(limit).cloned().collect(), self.in_flight.len(), true)
    }

    fn drivers(&self) -> Option<Vec<Driver>> {
        Some(vec![])
    }

    fn overrides_that(&self, matches: &dyn Fn(&Override) -> bool, limit: usize) -> Option<(Vec<Override>, usize)> {
        let matching: Vec<_> = self.overrides.as_ref()?.iter().filter(|it| matches(it)).cloned().collect();
        let total = matching.len();
        Some((matching.into_iter().take(limit).collect(), total))
    }

    fn freezes(&self) -> Arc<[Freeze]> {
        self.freezes.clone().into()
    }
}

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn ago(minutes: i64) -> Option<Timestamp> {
    now().checked_sub(SignedDuration::from_mins(minutes)).ok()
}

fn entry(revision: u64, status: Status, minutes_ago: i64) -> Entry {
    Entry { created: ago(minutes_ago), ..Entry::of_web(revision, status) }
}

fn in_flight(release: &str, entries: Vec<Entry>) -> InFlight {
    let started = entries.last().unwrap().started();
    InFlight { started, release: ReleaseRef::new("shop", release), storage: Storage::Secret, entries }
}

fn shipped() -> Policies {
    Policies::from(Policy::shipped().unwrap())
}

async fn next_steps(world: &Copies) -> Vec<(String, String)> {
    let shown = take(world, &shipped(), now()).await;
    shown.operations.into_iter().map(|row| (row.release, row.next.unwrap())).collect()
}

fn pairs(wanted: &[(&str, &str)]) -> Vec<(String, String)> {
    wanted.iter().map(|(release, next)| ((*release).to_owned(), (*next).to_owned())).collect()
}

#[tokio::test(start_paused = true)]
async fn stuck_operations_come_first_and_are_examined() {
    let world = Copies {
        in_flight: vec![
            in_flight("young", vec![entry(1, Deployed, 90), entry(2, PendingUpgrade, 1)]),
            in_flight("old", vec![entry(1, Deployed, 90), entry(2, PendingUpgrade, 60)]),
        ],
        ..Copies::default()
    };
    assert_eq!(
        next_steps(&world).await,
        pairs(&[("old", "interlock unstick shop/old"), ("young", "wait until 10:14 UTC")])
    );
    assert_eq!(*world.asked.lock().unwrap(), ["shop/old"]);
}

#[tokio::test(start_paused = true)]
async fn superseded_records_are_listed_for_few_and_with_a_timeout() {
    let stuck = |release: &str| in_flight(release, vec![entry(2, PendingUpgrade, 60)]);
    let records = vec![entry(1, Superseded, 90), entry(2, PendingUpgrade, 60)];
    let ended = vec![entry(1, Superseded, 90), entry(2, Deployed, 60)];
    let world = Copies {
        in_flight: vec![stuck("a"), stuck("ended"), stuck("silent"), stuck("z")],
        histories: [("shop/a".to_owned(), records.clone()), ("shop/ended".to_owned(), ended)].into(),
        ..Copies::default()
    };
    let begun = Instant::now();
    assert_eq!(
        next_steps(&world).await,
        pairs(&[
            ("a", "helm rollback a 1 -n shop"),
            ("ended", "interlock status shop/ended"),
            ("silent", "interlock status shop/silent"),
            ("z", "interlock status shop/z"),
        ])
    );
    assert_eq!(begun.elapsed(), PATIENCE);

    let names: Vec<_> = (0..=EXAMINED).map(|number| format!("r{number:02}")).collect();
    let world = Copies {
        in_flight: names.iter().map(|name| stuck(name)).collect(),
        histories: names.iter().map(|name| (format!("shop/{name}"), records.clone())).collect(),
        ..Copies::default()
    };
    // No own record is deployed, so the records in the other storage are queried too.
    let steps = next_steps(&world).await;
    assert_eq!((world.asked.lock().unwrap().len(), &*steps[9].1), (2 * EXAMINED, "helm rollback r09 1 -n shop"));
    assert_eq!(steps[EXAMINED].1, "interlock status shop/r10");
}

#[tokio::test]
async fn operations_are_counted_beyond_those_shown() {
    let one = |number: usize| in_flight(&format!("r{number}"), vec![entry(1, PendingUpgrade, 1)]);
    let world = Copies { in_flight: (0..SHOWN + 5).map(one).collect(), ..Copies::default() };
    let shown = take(&world, &shipped(), now()).await;
    assert_eq!((shown.operations.len(), shown.in_flight, shown.overrides), (SHOWN, SHOWN + 5, None));
}

#[tokio::test]
async fn only_overrides_in_force_are_shown_with_their_end() {
    let overriding = |name: &str, created: i64, expires_in: i64| Override {
        namespace: "shop".to_owned(),
        name: name.to_owned(),
        created: ago(created),
        is_void: false,
        created_by: None,
        spec: OverrideSpec {
            release: "web".to_owned(),
            rules: vec![RuleId::known("manual-edit")],
            users: None,
            reason: "r".to_owned(),
            ticket: None,
            expires_at: now().checked_add(SignedDuration::from_mins(expires_in)).unwrap(),
        },
    };
    let world = Copies {
        overrides: Some(vec![overriding("open", 1, 30), overriding("over", 60, -1), overriding("long", 1, 100_000)]),
        ..Copies::default()
    };
    let shown = take(&world, &shipped(), now()).await;
    let overrides = shown.overrides.unwrap();
    let named: Vec<_> = overrides.iter().map(|(it, end)| (&*it.name, *end)).collect();
    let longest = ago(1).unwrap().checked_add(shipped().of("shop").overrides.max_duration).unwrap();
    assert_eq!(named, [("open", ago(-30)), ("long", Some(longest))]);
    assert_eq!(shown.overrides_in_force, 2);
}

/// The policies of a cluster and of the namespace `shop`, with these freezes.
fn policies(cluster: &str, shop: &str) -> Policies {
    let mut files = PolicyFiles::default();
    let file =
        |kind: &str, freezes: &str| format!("apiVersion: interlock.dev/v1alpha1\nkind: {kind}\nfreezes: [{freezes}]\n");
    files.set_cluster("c".into(), file("ClusterPolicy", cluster));
    files.add_namespace("shop".into(), "n".into(), file("NamespacePolicy", shop));
    LoadedPolicies::of(&files).into_policies().unwrap()
}

#[tokio::test]
async fn freezes_in_force_come_first_and_ended_ones_are_omitted() {
    let policies = policies(
        "{name: later, reason: r, timeZone: UTC, from: 2027-04-01, to: 2027-04-02}, \
         {name: over, reason: r, timeZone: UTC, from: 2026-10-01, to: 2026-10-02}, \
         {name: soon, reason: r, timeZone: UTC, weekdays: [sunday], releases: [web]}, \
         {name: year-end, reason: stock-taking, timeZone: Europe/Berlin, from: 2026-11-20, to: 2027-01-02T06:00}",
        "{name: own, reason: r, timeZone: UTC, effect: allowOnly, from: 2026-10-01, to: 2026-10-02}",
    );
    let stop = r#"{"reason": "INC-7", "timeZone": "UTC", "from": "2026-11-21T09:00", "to": "2026-11-21T18:00"}"#;
    let stored = |name: &str, by: Option<&str>, days_ago: i64| {
        let at = ago(days_ago * 24 * 60).unwrap();
        let freeze = Freeze::of_spec(FreezeName { namespace: "shop", name }, stop).unwrap();
        freeze.created(Creation { by: by.map(str::to_owned), at })
    };
    // The policy has ended the second one.
    let copies =
        Copies { freezes: vec![stored("stop-1", Some("alice"), 0), stored("stop-2", None, 8)], ..Copies::default() };
    let shown = take(&copies, &policies, now()).await;
    assert_eq!(shown.freezes[0].creator.as_deref(), Some("alice"));
    let freezes: Vec<_> = shown.freezes.iter().map(|it| (&*it.name, it.in_force, &*it.when, &*it.scope)).collect();
    assert_eq!(
        freezes,
        [
            ("stop-1", true, "until 2026-11-21 18:00 UTC", "every release in namespace shop"),
            ("year-end", true, "until 2027-01-02 06:00 Europe/Berlin", "every release"),
            ("own", true, "for good", "every release in namespace shop"),
            ("soon", false, "from 2026-11-22 00:00 UTC", "releases web"),
            ("later", false, "from 2027-04-01 00:00 UTC", "every release"),
        ]
    );
    assert_eq!((shown.freezes_in_force, shown.freezes_to_come, &*shown.freezes[1].reason), (3, 2, "stock-taking"));
}

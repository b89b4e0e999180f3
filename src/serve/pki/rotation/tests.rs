use jiff::SignedDuration;
use proptest::prelude::*;

use super::*;

/// A second of these tests, which begin 1,000,000 seconds after 1970.
const TIMES: Lifetimes = Lifetimes {
    ca: SignedDuration::from_secs(400),
    leaf: SignedDuration::from_secs(60),
    settle: SignedDuration::from_secs(8),
};

/// The largest error of a replica's clock. Two errors together are within the settle time.
const SKEW: i64 = 3;

/// Entries of the two configurations.
const ENTRIES: [usize; 2] = [2, 1];

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

fn ca(number: u8, made: Timestamp) -> Ca {
    Ca { id: [number; 32], pem: format!("CA {number}\n"), not_after: made + TIMES.ca }
}

/// The API server: the stored objects, each with a version.
#[derive(Debug, Clone)]
struct World {
    now: i64,
    secret: Option<Option<CaSet>>,
    secret_version: u64,
    configurations: [(Vec<CaBundle>, u64); 2],
    made: u8,
}

/// A replica and its progress in a round: it reads one object after the other, plans, and acts.
#[derive(Debug, Clone, Default)]
struct Replica {
    skew: i64,
    leads: bool,
    known: Option<CaSet>,
    leaf: Option<Leaf>,
    trusted_since: TrustHistory,
    ready: bool,
    at: Round,
}

#[derive(Debug, Clone, Default)]
enum Round {
    #[default]
    Rests,
    HasRead(Vec<(Vec<CaBundle>, u64)>),
    HasPlanned(Box<Planned>),
}

#[derive(Debug, Clone)]
struct Planned {
    step: RotationStep,
    live: Vec<(Vec<CaBundle>, u64)>,
    secret_version: u64,
    now: Timestamp,
}

#[derive(Debug, Clone)]
enum Event {
    /// A replica does its next read or write.
    Steps(usize),
    Passes(i64),
    Restarts(usize),
    Leads(usize),
    Asks,
    DeletesSecret,
    CorruptsSecret,
    Wipes(usize),
    /// A foreign CA replaces the own one.
    Adds(usize),
}

impl World {
    fn new() -> Self {
        let configurations = ENTRIES.map(|entries| (vec![CaBundle::default(); entries], 0));
        Self { now: 0, secret: None, secret_version: 0, configurations, made: 0 }
    }

    fn live(&self) -> Vec<CaBundle> {
        self.configurations.iter().flat_map(|(entries, _)| entries.clone()).collect()
    }

    fn generate(&mut self, now: Timestamp) -> Ca {
        self.made += 1;
        ca(self.made, now)
    }

    /// Writes the Secret if it still has the version `over`.
    fn write(&mut self, over: u64, cas: CaSet) {
        if over == self.secret_version {
            self.secret = Some(Some(cas));
            self.secret_version += 1;
        }
    }

    fn publish(&mut self, live: &[(Vec<CaBundle>, u64)], write: impl Fn(&CaBundle) -> CaBundle) {
        for (found, (entries, version)) in self.configurations.iter_mut().zip(live) {
            if found.1 == *version {
                *found = (entries.iter().map(&write).collect(), version + 1);
            }
        }
    }
}

impl Replica {
    fn now(&self, world: &World) -> Timestamp {
        at(world.now + self.skew)
    }

    fn step(&mut self, world: &mut World) {
        self.at = match std::mem::take(&mut self.at) {
            Round::Rests => Round::HasRead(world.configurations.to_vec()),
            Round::HasRead(live) => Round::HasPlanned(Box::new(self.plan(world, live))),
            Round::HasPlanned(planned) => {
                self.act(world, *planned);
                Round::Rests
            }
        };
    }

    fn plan(&mut self, world: &World, live: Vec<(Vec<CaBundle>, u64)>) -> Planned {
        let now = self.now(world);
        let bundles: Vec<_> = live.iter().flat_map(|(entries, _)| entries.clone()).collect();
        self.trusted_since.observe(&bundles, now);
        let stored = match &world.secret {
            None => StoredCa::Absent,
            Some(Some(cas)) if cas.current.not_after > now => StoredCa::Good(self.known.insert(cas.clone()).clone()),
            Some(_) => StoredCa::Unusable(self.known.clone().filter(|known| known.current.not_after > now)),
        };
        let (leaf, trusted_since, leads) = (self.leaf.as_ref(), &self.trusted_since, self.leads);
        let situation = Situation { stored: &stored, live: &bundles, trusted_since, leaf, leads, now };
        let step = plan(&situation, &TIMES);
        self.ready |= leaf.is_some_and(|leaf| situation.trusts(&leaf.issuer));
        Planned { step, live, secret_version: world.secret_version, now }
    }

    fn act(&mut self, world: &mut World, planned: Planned) {
        let Planned { step, live, secret_version, now } = planned;
        let written = self.now(world);
        let known = self.known.clone();
        match step {
            RotationStep::Wait(_) => {}
            RotationStep::Create | RotationStep::Replace => {
                let remembered = known.filter(|known| step == RotationStep::Create && known.current.not_after > now);
                let current = remembered.map_or_else(|| world.generate(now), |known| known.current);
                let mut trusted: Vec<_> = live.into_iter().flat_map(|(entries, _)| entries).collect();
                trusted.extend(self.leaf.iter().map(|leaf| CaBundle::from_iter([leaf.issuer.clone()])));
                if step == RotationStep::Replace || world.secret.is_none() {
                    world.write(secret_version, CaSet::fresh(current, &trusted, written));
                }
            }
            RotationStep::Sign => {
                let issuer = known.unwrap().current;
                let not_after = (now + TIMES.leaf).min(issuer.not_after);
                let renew_at = not_after - not_after.duration_since(now) / 3;
                // An expired leaf is no longer served.
                self.ready &= self.leaf.as_ref().is_some_and(|leaf| leaf.not_after > now);
                self.leaf = Some(Leaf { issuer, renew_at, not_after });
            }
            RotationStep::Add(required) => world.publish(&live, |entry| entry.clone().unexpired(now).with(&required)),
            RotationStep::Tidy => {
                let bundle = known.unwrap().bundle;
                world.publish(&live, |_| bundle.clone());
            }
            RotationStep::Begin => {
                let next = world.generate(now);
                world.write(secret_version, known.unwrap().begun(next));
            }
            RotationStep::Promote => world.write(secret_version, known.unwrap().promoted(written)),
            RotationStep::Retire(bundle) => world.write(secret_version, known.unwrap().retired(bundle)),
        }
    }
}

fn apply(event: &Event, world: &mut World, replicas: &mut [Replica]) {
    match *event {
        Event::Steps(which) => replicas[which].step(world),
        Event::Passes(seconds) => world.now += seconds,
        Event::Restarts(which) => {
            let Replica { skew, .. } = replicas[which];
            replicas[which] = Replica { skew, ..Replica::default() };
        }
        Event::Leads(which) => replicas[which].leads ^= true,
        Event::Asks => {
            if let Some(Some(cas)) = &mut world.secret {
                cas.asked = true;
                world.secret_version += 1;
            }
        }
        Event::DeletesSecret => {
            world.secret = None;
            world.secret_version += 1;
        }
        Event::CorruptsSecret => {
            if let Some(secret) = &mut world.secret {
                *secret = None;
                world.secret_version += 1;
            }
        }
        Event::Wipes(which) => {
            let (entries, version) = &mut world.configurations[which];
            *entries = vec![CaBundle::default(); entries.len()];
            *version += 1;
        }
        Event::Adds(which) => {
            let stranger = ca(255, at(world.now));
            let (entries, version) = &mut world.configurations[which];
            entries[0].add(&stranger);
            *version += 1;
        }
    }
}

/// Everything that can happen to replicas and the Secret, without edits by other clients.
fn harmless() -> impl Strategy<Value = Event> {
    prop_oneof![
        200 => (0_usize..3).prop_map(Event::Steps),
        20 => (1_i64..12).prop_map(Event::Passes),
        2 => (0_usize..3).prop_map(Event::Restarts),
        2 => (0_usize..3).prop_map(Event::Leads),
        2 => Just(Event::Asks),
        1 => Just(Event::DeletesSecret),
        1 => Just(Event::CorruptsSecret),
        1 => (0_usize..2).prop_map(Event::Adds),
    ]
}

fn harmful() -> impl Strategy<Value = Event> {
    prop_oneof![20 => harmless(), 1 => (0_usize..2).prop_map(Event::Wipes)]
}

fn replicas() -> impl Strategy<Value = Vec<Replica>> {
    let replica = (-SKEW..=SKEW, any::<bool>());
    prop::collection::vec(replica.prop_map(|(skew, leads)| Replica { skew, leads, ..Replica::default() }), 3)
}

/// A served leaf that is not trusted everywhere, if there is one.
fn distrusted(world: &World, replicas: &[Replica]) -> Option<String> {
    let live = world.live();
    let serving = replicas.iter().filter(|replica| replica.ready).filter_map(|replica| replica.leaf.as_ref());
    let mut serving = serving.filter(|leaf| leaf.not_after > at(world.now));
    let leaf = serving.find(|leaf| live.iter().any(|entry| !entry.has(&leaf.issuer)))?;
    Some(format!("{leaf:?}"))
}

/// Lets all replicas run in turn, without other events.
fn settle(world: &mut World, replicas: &mut [Replica], seconds: i64) {
    for _ in 0..seconds {
        world.now += 1;
        for _ in 0..12 {
            replicas.iter_mut().for_each(|replica| replica.step(world));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_leaf_that_is_served_is_trusted_everywhere(
        mut replicas in replicas(),
        events in prop::collection::vec(harmless(), 1..900),
    ) {
        let mut world = World::new();
        for (number, event) in events.iter().enumerate() {
            apply(event, &mut world, &mut replicas);
            let distrusted = distrusted(&world, &replicas);
            prop_assert!(distrusted.is_none(), "after event {number}, {event:?}: {distrusted:?}\n{world:?}\n{replicas:?}");
        }
    }

    #[test]
    fn replicas_converge_to_one_served_and_trusted_ca(
        mut replicas in replicas(),
        events in prop::collection::vec(harmful(), 1..300),
    ) {
        let mut world = World::new();
        events.iter().for_each(|event| apply(event, &mut world, &mut replicas));
        // Only a starting replica replaces an unusable Secret.
        if world.secret == Some(None) {
            apply(&Event::Restarts(0), &mut world, &mut replicas);
        }
        replicas[1].leads = true;
        settle(&mut world, &mut replicas, 20);
        prop_assert_eq!(distrusted(&world, &replicas), None);
        prop_assert!(replicas.iter().all(|replica| replica.ready));
        // The last rotation ends when its old CA is retired.
        for _ in 0..1000 {
            settle(&mut world, &mut replicas, 1);
            prop_assert_eq!(distrusted(&world, &replicas), None);
            let Some(Some(cas)) = &world.secret else { panic!("no Secret") };
            if cas.bundle.len() == 1 && world.live().iter().all(|entry| *entry == cas.bundle) {
                prop_assert!(replicas.iter().all(|replica| replica.leaf.as_ref().unwrap().issuer == cas.current));
                return Ok(());
            }
        }
        prop_assert!(false, "{world:?}");
    }
}

/// The inputs of one replica's plan.
struct Scene {
    stored: StoredCa,
    live: Vec<CaBundle>,
    trusted_since: TrustHistory,
    leaf: Option<Leaf>,
}

impl Scene {
    fn plan(&self, leads: bool, second: i64) -> RotationStep {
        let Self { stored, live, trusted_since, leaf } = self;
        plan(&Situation { stored, live, trusted_since, leaf: leaf.as_ref(), leads, now: at(second) }, &TIMES)
    }

    /// At rest: one CA, served and trusted since second 0.
    fn rest() -> Self {
        let cas = CaSet::fresh(ca(1, at(0)), &[], at(0));
        let live = vec![cas.bundle.clone(); 3];
        let mut trusted_since = TrustHistory::default();
        trusted_since.observe(&live, at(0));
        let leaf = Some(Leaf { issuer: cas.current.clone(), renew_at: at(40), not_after: at(60) });
        Self { stored: StoredCa::Good(cas), live, trusted_since, leaf }
    }
}

#[test]
fn at_rest_the_plan_waits_until_a_renewal_is_due() {
    let scene = Scene::rest();
    assert_eq!(scene.plan(true, 1), RotationStep::Wait(at(40)));
    assert_eq!(scene.plan(false, 40), RotationStep::Sign);
    assert_eq!(scene.plan(true, 39), RotationStep::Wait(at(40)));
}

#[test]
fn only_the_leader_rotates_in_phases() {
    let mut scene = Scene::rest();
    let StoredCa::Good(mut cas) = scene.stored.clone() else { unreachable!() };
    cas.asked = true;
    scene.stored = StoredCa::Good(cas.clone());
    assert_eq!(scene.plan(false, 10), RotationStep::Wait(at(40)), "only the leader rotates");
    assert_eq!(scene.plan(true, 10), RotationStep::Begin);

    cas = cas.begun(ca(2, at(10)));
    scene.stored = StoredCa::Good(cas.clone());
    assert!(!cas.asked);
    assert_eq!(scene.plan(false, 10), RotationStep::Add(cas.bundle.clone()), "anybody publishes");
    scene.live = vec![cas.bundle.clone(), cas.bundle.clone(), scene.live[0].clone()];
    assert_eq!(scene.plan(true, 11), RotationStep::Add(cas.bundle.clone()), "one entry is behind");
    scene.live = vec![cas.bundle.clone(); 3];
    scene.trusted_since.observe(&scene.live, at(12));
    assert_eq!(scene.plan(true, 12), RotationStep::Wait(at(20)), "it settles");
    assert_eq!(scene.plan(true, 20), RotationStep::Promote);

    cas = cas.promoted(at(20));
    scene.stored = StoredCa::Good(cas.clone());
    assert_eq!(scene.plan(false, 20), RotationStep::Sign);
    scene.leaf = Some(Leaf { issuer: cas.current.clone(), renew_at: at(60), not_after: at(80) });
    assert_eq!(scene.plan(true, 21), RotationStep::Wait(at(60)));
    scene.leaf = Some(Leaf { issuer: cas.current.clone(), renew_at: at(100), not_after: at(120) });
    assert_eq!(
        scene.plan(true, 87),
        RotationStep::Wait(at(88)),
        "a leaf's life and the time to settle after the promotion"
    );
    let RotationStep::Retire(remaining) = scene.plan(true, 88) else { panic!("expected the old CA to be retired") };
    assert_eq!(remaining, CaBundle::from_iter([cas.current.clone()]));
    scene.stored = StoredCa::Good(cas.retired(remaining));
    assert_eq!(scene.plan(false, 88), RotationStep::Wait(at(100)));
    assert_eq!(scene.plan(true, 88), RotationStep::Tidy);
}

#[test]
fn a_full_bundle_delays_a_rotation_until_a_ca_is_retired() {
    let mut scene = Scene::rest();
    let StoredCa::Good(mut cas) = scene.stored.clone() else { unreachable!() };
    for number in 2..=8 {
        cas = cas.begun(ca(number, at(10))).promoted(at(10));
    }
    cas.asked = true;
    scene.live = vec![cas.bundle.clone(); 3];
    scene.trusted_since.observe(&scene.live, at(10));
    scene.leaf = Some(Leaf { issuer: cas.current.clone(), renew_at: at(200), not_after: at(220) });
    scene.stored = StoredCa::Good(cas.clone());
    assert_eq!(scene.plan(true, 77), RotationStep::Wait(at(78)));
    let RotationStep::Retire(remaining) = scene.plan(true, 78) else { panic!("expected the old CAs to be retired") };
    scene.stored = StoredCa::Good(cas.retired(remaining));
    assert_eq!(scene.plan(true, 78), RotationStep::Begin, "the request is not forgotten");
}

#[test]
fn an_earlier_promotion_time_retires_a_leaked_ca() {
    let mut scene = Scene::rest();
    let StoredCa::Good(cas) = scene.stored.clone() else { unreachable!() };
    let mut cas = cas.begun(ca(2, at(10)));
    scene.live = vec![cas.bundle.clone(); 3];
    scene.trusted_since.observe(&scene.live, at(12));
    cas = cas.promoted(at(20));
    scene.leaf = Some(Leaf { issuer: cas.current.clone(), renew_at: at(60), not_after: at(80) });
    scene.stored = StoredCa::Good(cas.clone());
    assert_eq!(scene.plan(true, 28), RotationStep::Wait(at(60)), "by itself it stays for the life of a leaf");

    cas.promoted = Some(at(-1_000_000));
    let remaining = CaBundle::from_iter([cas.current.clone()]);
    scene.stored = StoredCa::Good(cas.clone());
    assert_eq!(scene.plan(true, 21), RotationStep::Retire(remaining.clone()));
    scene.stored = StoredCa::Good(cas.retired(remaining));
    assert_eq!(scene.plan(true, 21), RotationStep::Wait(at(29)), "the other replicas get their time to sign");
    assert_eq!(scene.plan(true, 28), RotationStep::Tidy);
}

#[test]
fn any_replica_heals_a_wiped_or_foreign_ca_bundle() {
    let mut scene = Scene::rest();
    let own = scene.live[0].clone();
    let foreign = CaBundle::from_iter([ca(7, at(0))]);
    for broken in [CaBundle::default(), foreign] {
        scene.live[1] = broken;
        assert_eq!(scene.plan(false, 1), RotationStep::Add(own.clone()));
    }
    scene.live.clear();
    assert_eq!(scene.plan(true, 1), RotationStep::Wait(at(40)), "nothing is registered");
}

#[test]
fn only_a_replica_without_a_leaf_replaces_an_unusable_secret() {
    let mut scene = Scene::rest();
    scene.stored = StoredCa::Absent;
    assert_eq!(scene.plan(false, 1), RotationStep::Create);
    scene.stored = StoredCa::Unusable(None);
    assert_eq!(scene.plan(true, 1), RotationStep::Wait(at(40)), "what is served goes on");
    scene.live[0] = CaBundle::default();
    let issuer = CaBundle::from_iter([scene.leaf.as_ref().unwrap().issuer.clone()]);
    assert_eq!(scene.plan(false, 1), RotationStep::Add(issuer), "and stays trusted");
    assert_eq!(scene.plan(false, 60), RotationStep::Replace, "until it ends");
    scene.leaf = None;
    assert_eq!(scene.plan(false, 1), RotationStep::Replace);
}

#[test]
fn a_remembered_ca_renews_leaves_with_an_unusable_secret() {
    let mut scene = Scene::rest();
    let StoredCa::Good(mut cas) = scene.stored.clone() else { unreachable!() };
    cas.asked = true;
    scene.stored = StoredCa::Unusable(Some(cas));
    assert_eq!(scene.plan(true, 1), RotationStep::Wait(at(40)), "nothing is rotated");
    assert_eq!(scene.plan(true, 40), RotationStep::Sign);
}

//! The next step that `interlock status` prints, carried out, changes the state, and repeated steps end in a deployed release or in none:
//! from every state of the checker with its clients dead, with healthy and unhealthy pods, and with each record of OLM whole or without
//! its parts.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use release_interlock::inspect::diagnosis::NextStep;

use crate::cluster::{Cluster, Driver, Other, Passing};
use crate::commands::{carry_out, has_ended};
use crate::explore::Explorer;
use crate::users::User;

/// Who takes the steps: in most states somebody else than the holder.
const READER: User = User::Bob;

/// No state is further away from its end.
const MOST_STEPS: usize = 12;

/// The states that steps were followed from.
#[derive(Default)]
pub(crate) struct Followed {
    states: HashSet<(Cluster, Driver)>,
    /// The longest chain, as it was printed.
    longest: Vec<String>,
}

impl Followed {
    pub(crate) fn text(&self) -> String {
        let Self { states, longest } = self;
        format!(
            "the next step followed from {} states; the longest chain has {} steps: {longest:#?}",
            states.len(),
            longest.len()
        )
    }
}

/// Follows the steps from every state that an explorer has seen.
pub(crate) fn follow_all(explorer: &mut Explorer, followed: &Mutex<Followed>) {
    let mut known = HashMap::new();
    for cluster in explorer.left() {
        for driver in [Driver::Secret, Driver::ConfigMap, Driver::Olm] {
            for state in variants(&cluster, driver) {
                let lock = || followed.lock().unwrap_or_else(PoisonError::into_inner);
                if state.newest(driver).is_none() || !lock().states.insert((state.clone(), driver)) {
                    continue;
                }
                let chain = follow(explorer, &state, driver, &mut known);
                let mut followed = lock();
                if chain.len() > followed.longest.len() {
                    followed.longest = chain;
                }
            }
        }
    }
}

/// A cluster with its pods healthy and not, with the HelmRelease of Flux if Flux holds the release, and with OLM's records broken one by
/// one and all together.
fn variants(cluster: &Cluster, driver: Driver) -> Vec<Cluster> {
    let mut variants = vec![cluster.clone()];
    let mut unhealthy = cluster.clone();
    unhealthy.object.iter_mut().for_each(|object| object.unhealthy = true);
    variants.push(unhealthy);
    let holder = cluster.newest(driver).and_then(|newest| newest.holder);
    if let Some(user) = holder.filter(|holder| driver == Driver::Secret && holder.is_flux()) {
        let mut with_flux = variants.clone();
        with_flux.iter_mut().for_each(|cluster| cluster.put_other(Other::HelmRelease(user)));
        variants.extend(with_flux);
    }
    if driver == Driver::Olm {
        let revisions: Vec<_> = cluster.history(driver).map(|record| record.body.revision).collect();
        let broken = |variant: &Cluster, which: &[u8]| {
            let mut variant = variant.clone();
            let records: Vec<_> = variant.history(driver).copied().collect();
            for mut record in records.into_iter().filter(|record| which.contains(&record.body.revision)) {
                record.broken = true;
                variant.put(record);
            }
            variant
        };
        let whole = variants.clone();
        for variant in &whole {
            variants.extend(revisions.iter().map(|revision| broken(variant, &[*revision])));
            variants.push(broken(variant, &revisions));
        }
    }
    variants
}

type Known = HashMap<(Cluster, Driver), Vec<String>>;

/// The steps from a state to the end, as they are printed.
fn follow(explorer: &mut Explorer, start: &Cluster, driver: Driver, known: &mut Known) -> Vec<String> {
    let (mut state, mut passed, mut chain) = (start.clone(), Vec::new(), Vec::new());
    loop {
        if let Some(rest) = known.get(&(state.clone(), driver)) {
            chain.extend(rest.iter().cloned());
            break;
        }
        let step = explorer.diagnose(&state, driver, READER).and_then(|diagnosis| diagnosis.next);
        let text = |why: &str| format!("{why}\nfrom {start:?}\nafter {chain:#?}\nat {state:?}\nthe step is {step:?}");
        let Some(step) = &step else {
            assert!(has_ended(&state, driver), "{}", text("there is no next step, and the release is not at an end"));
            break;
        };
        assert!(chain.len() < MOST_STEPS, "{}", text("the steps do not end"));
        let next = match step {
            NextStep::Wait { until, .. } => {
                assert!(until.is_some(), "{}", text("nobody knows until when"));
                Ok(state.later(Passing::UntilStale))
            }
            NextStep::Run { command, .. } => carry_out(explorer, &state, (driver, READER), command),
        };
        let next = next.unwrap_or_else(|why| panic!("{}", text(&why)));
        assert!(next != state, "{}", text("the step changes nothing"));
        passed.push(std::mem::replace(&mut state, next));
        chain.push(step.to_string());
    }
    let length = chain.len();
    for (at, state) in passed.into_iter().enumerate() {
        known.insert((state, driver), chain[at..length].to_vec());
    }
    chain
}

//! Lives of releases and of what Argo CD applies, with forbidden acts of a stranger in between.

mod argo;
mod flux;
mod helm;

use std::time::Duration;

use super::chance::Chance;
use super::place::Place;
use super::site::Site;

/// The policy's staleAfter.
pub(crate) const STALE: Duration = Duration::from_secs(45);
/// Acts against an operation in flight begin before this, so that they end long before it is stale.
const FRESH: Duration = Duration::from_secs(20);
/// How long one operation may take on a busy machine.
const OPERATION: Duration = Duration::from_secs(110);

/// What a life is, from its first to its last act. An act that did not end as expected ends it: it changes the verdicts of later acts.
type Life = fn(&Place<'_>, &mut Chance) -> Option<()>;

/// Helm's lives are the longest, with the most acts.
const LIVES: [Life; 4] = [helm::live, helm::live, flux::live, argo::live];

/// Lives one life after the other until the stop.
pub(crate) fn live(site: &Site<'_>, worker: usize, mut chance: Chance, round: &str) {
    let mut number = 0;
    while !site.is_stopped() {
        number += 1;
        let Some(place) = Place::begin(site, &format!("soak-{round}-{worker}-{number}")) else {
            site.sleep(Duration::from_secs(1));
            continue;
        };
        let life = *chance.pick(&LIVES);
        let _ = life(&place, &mut chance);
        place.end();
    }
}

//! What the command line asks for.

use std::time::Duration;

use anyhow::{Result, bail};

/// The floor of the direct rounds.
pub(crate) const NULL: &str = "null webhook";
/// The floor of the writes.
pub(crate) const NOBODY: &str = "no webhook";
pub(crate) const INTERLOCK: &str = "Interlock";
pub(crate) const ADMISSION_POLICY: &str = "ValidatingAdmissionPolicy";
pub(crate) const OPA: &str = "OPA";
pub(crate) const GATEKEEPER: &str = "Gatekeeper";
pub(crate) const KYVERNO: &str = "Kyverno";
const PEERS: [&str; 7] = [NULL, NOBODY, INTERLOCK, ADMISSION_POLICY, OPA, GATEKEEPER, KYVERNO];

pub(crate) const FOREIGN: &str = "an object that is not ours";
pub(crate) const LABEL: &str = "a label of a release's object";
pub(crate) const IMAGE: &str = "an image of a release's object";
pub(crate) const RECORD: &str = "CREATE of a record";
pub(crate) const WRITES: &str = "writes through the API server";
const TRAFFIC: [&str; 5] = [FOREIGN, LABEL, IMAGE, RECORD, WRITES];

pub(crate) struct Selection {
    peers: Vec<&'static str>,
    traffic: Vec<&'static str>,
    pub(crate) rounds: usize,
    /// The measured part of a round.
    pub(crate) measured: Duration,
}

impl Selection {
    pub(crate) fn from_arguments(arguments: impl Iterator<Item = String>) -> Result<Self> {
        let (mut peers, mut traffic) = (Vec::new(), Vec::new());
        let (mut rounds, mut measured) = (5, Duration::from_secs(2));
        for argument in arguments {
            let part = argument.to_lowercase();
            let named = |names: &[&'static str]| -> Vec<&'static str> {
                names.iter().copied().filter(|name| name.to_lowercase().contains(&part)).collect()
            };
            match part.as_str() {
                "--quick" => (rounds, measured) = (1, Duration::from_millis(400)),
                // Cargo's own.
                "--bench" => {}
                _ if !named(&PEERS).is_empty() => peers.extend(named(&PEERS)),
                _ if !named(&TRAFFIC).is_empty() => traffic.extend(named(&TRAFFIC)),
                _ => bail!("{argument}: expected --quick, or a part of one of {PEERS:?} or {TRAFFIC:?}"),
            }
        }
        Ok(Self { peers, traffic, rounds, measured })
    }

    /// Without a choice, all are selected. What the others are compared with always is.
    pub(crate) fn has_peer(&self, name: &str) -> bool {
        self.peers.is_empty() || [NULL, NOBODY].contains(&name) || self.peers.contains(&name)
    }

    pub(crate) fn has_traffic(&self, name: &str) -> bool {
        self.traffic.is_empty() || self.traffic.contains(&name)
    }

    /// The order of the peers in a round: every other round is swapped.
    pub(crate) fn order(&self, round: usize, count: usize) -> Vec<usize> {
        let mut order: Vec<_> = (0..count).collect();
        if !round.is_multiple_of(2) {
            order.reverse();
        }
        order
    }
}

//! The lock of nelm and werf, which other rules respect.
//!
//! lockgate stores it in the ConfigMap `werf-synchronization` of the release's namespace, as one annotation per lock. The key is
//! the SHA3-224 of the lock's name. The value is a lease with its expiry, which is renewed every 3 s for 10 s.

use serde::Deserialize;
use sha3::{Digest, Sha3_224};

use super::case::RecordCase;
use crate::rules::undecided::Undecided;

/// The maximum seconds until the expiry of a lockgate lease, with a margin for clock skew. A lease that is valid for longer is
/// not from lockgate and does not count.
const MOST_SECONDS_LEFT: i64 = 60;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Lease {
    #[serde(default)]
    expire_at_timestamp: i64,
}

/// Whether an unexpired lease says that nelm or werf is working on the release.
pub(crate) fn is_held(case: &RecordCase<'_>) -> Result<bool, Undecided> {
    let Some(annotations) = case.leases()? else {
        return Ok(false);
    };
    let lease = annotations.get(&annotation(&case.id.release));
    let lease = lease.and_then(|lease| serde_json::from_str::<Lease>(lease).ok());
    let left = lease.map(|lease| lease.expire_at_timestamp.saturating_sub(case.now.as_second()));
    Ok(left.is_some_and(|left| (1..=MOST_SECONDS_LEFT).contains(&left)))
}

/// The annotation that holds the lease of a release.
pub(crate) fn annotation(release: &str) -> String {
    let digest = Sha3_224::digest(format!("release/{release}"));
    digest.iter().fold("lockgate.io/".to_owned(), |key, byte| format!("{key}{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::annotation;

    #[test]
    fn the_key_is_the_sha3_224_of_the_lock_name() {
        // Computed with `printf release/web | openssl dgst -sha3-224`.
        assert_eq!(annotation("web"), "lockgate.io/677a2281576abd2c8dd9fd8cda1612a3ac2e693db87adabeda34b016");
    }
}

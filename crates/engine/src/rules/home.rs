//! Which records count as the records of a release. Those in the release's own namespace come first.
//!
//! Anybody can choose any release name, and can name any namespace in the body of a record. So a record in another namespace
//! decides about the objects of a release only with a proof of the link that the record's author cannot write.

use std::cmp::Reverse;

use crate::evidence::CandidateRecords;
use crate::policy::Policy;
use crate::release::{History, Storage};

/// The records of a release whose objects are in a namespace.
///
/// The order is: live records, records in that namespace, records in the storage that fewer users can write, and then the records
/// whose newest record was created last. Older ones are left over from an earlier life of the release.
pub(crate) fn records_of_release<'l>(
    found: &'l [CandidateRecords],
    target_namespace: &str,
    policy: &Policy,
) -> Option<&'l CandidateRecords> {
    let at_home = |candidate: &CandidateRecords| candidate.namespace == target_namespace;
    let proven = found.iter().filter(|candidate| at_home(candidate) || is_proven(candidate, policy));
    proven.max_by_key(|candidate| {
        let CandidateRecords { storage, namespace, history, .. } = candidate;
        let created = history.newest().and_then(|newest| newest.created);
        (history.is_live(), at_home(candidate), Reverse(exposure(*storage)), created, namespace)
    })
}

/// The live records elsewhere that are proven and outrank these for what they declare, newest first: these are not proven.
pub(crate) fn proven_elsewhere<'l>(
    found: &'l [CandidateRecords],
    target_namespace: &str,
    policy: &Policy,
) -> Vec<&'l CandidateRecords> {
    let elsewhere = found.iter().filter(|candidate| candidate.namespace != target_namespace);
    let mut proven: Vec<_> =
        elsewhere.filter(|candidate| candidate.history.is_live() && is_proven(candidate, policy)).collect();
    proven.sort_by_key(|candidate| Reverse(candidate.history.newest().and_then(|newest| newest.created)));
    proven
}

/// The records of a ClusterExtension, which has no namespace. If several are proven, the ones created last.
pub(crate) fn records_of_extension<'l>(found: &'l [CandidateRecords], policy: &Policy) -> Option<&'l CandidateRecords> {
    let proven = found.iter().filter(|candidate| is_proven(candidate, policy));
    proven.max_by_key(|candidate| candidate.history.newest().and_then(|newest| newest.created))
}

/// Whether there is a proof that the records belong to the release, which their author cannot write. One of three is enough: the
/// stamp of an account of the HelmRelease that the object names, the stamp of a manager, or a manager's own account in the
/// namespace of the records.
pub(crate) fn is_proven(candidate: &CandidateRecords, policy: &Policy) -> bool {
    candidate.held_for_origin || are_of_manager(&candidate.history, &candidate.namespace, policy)
}

/// Whether a manager keeps these records: it holds the newest one, or it has an account in their namespace.
#[must_use]
pub fn are_of_manager(history: &History, namespace: &str, policy: &Policy) -> bool {
    history.stamps().holder().is_some_and(|holder| policy.managers.contains(holder))
        || policy.managers.have_an_account_in(namespace)
}

/// How many users can usually write a storage.
fn exposure(storage: Storage) -> u8 {
    match storage {
        Storage::Secret => 0,
        Storage::ConfigMap => 1,
        // In OLM's own namespace.
        Storage::Index => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::release::stamps::HOLDER;
    use crate::release::{Entry, Stamps, Status};

    const MANAGER: &str = "system:serviceaccount:flux-system:helm-controller";

    fn candidate(storage: Storage, namespace: &str, status: Status, holder: &str) -> CandidateRecords {
        let stamps = Stamps::of(|key| (key == HOLDER && !holder.is_empty()).then(|| holder.to_owned()));
        let history = History::new(vec![Entry { stamps, ..Entry::of_web(1, status) }]);
        CandidateRecords { storage, namespace: namespace.to_owned(), history, held_for_origin: false }
    }

    fn chosen(found: &[CandidateRecords]) -> Option<(Storage, &str)> {
        let chosen = records_of_release(found, "shop", &Policy::shipped().unwrap());
        chosen.map(|candidate| (candidate.storage, candidate.namespace.as_str()))
    }

    /// Which records win: by place, and by proof.
    #[test]
    fn a_record_elsewhere_counts_only_with_a_proof_and_never_before_a_live_one_at_home() {
        use Status::{Deployed, Failed, PendingUpgrade, Uninstalled};
        use Storage::{ConfigMap, Index, Secret};
        let home = |status| candidate(Secret, "shop", status, "alice");
        let strangers = || candidate(Secret, "evil", PendingUpgrade, "bob");
        let index = || candidate(Index, "evil", Deployed, "bob");
        let managers = || candidate(Secret, "flux", Deployed, MANAGER);
        let olms = || candidate(Index, "olmv1-system", Deployed, "");
        let of_origin = || CandidateRecords { held_for_origin: true, ..candidate(Secret, "flux", Deployed, "bob") };
        for (found, wanted) in [
            (vec![], None),
            (vec![home(Deployed)], Some((Secret, "shop"))),
            // No proof.
            (vec![strangers()], None),
            (vec![index()], None),
            (vec![home(Deployed), strangers(), index()], Some((Secret, "shop"))),
            (vec![home(Uninstalled), strangers()], Some((Secret, "shop"))),
            // Proven.
            (vec![managers()], Some((Secret, "flux"))),
            (vec![olms()], Some((Index, "olmv1-system"))),
            (vec![of_origin()], Some((Secret, "flux"))),
            (vec![home(Uninstalled), of_origin()], Some((Secret, "flux"))),
            (vec![home(Failed), managers()], Some((Secret, "flux"))),
            // Live records at home win even over proven ones.
            (vec![home(Deployed), managers(), olms(), of_origin()], Some((Secret, "shop"))),
            (vec![home(PendingUpgrade), of_origin()], Some((Secret, "shop"))),
            // At home, more users can write ConfigMaps than Secrets.
            (vec![home(Deployed), candidate(ConfigMap, "shop", PendingUpgrade, "bob")], Some((Secret, "shop"))),
            (vec![home(Uninstalled), candidate(ConfigMap, "shop", Deployed, "bob")], Some((ConfigMap, "shop"))),
            (vec![home(Deployed), candidate(Index, "shop", Deployed, "bob")], Some((Secret, "shop"))),
        ] {
            assert_eq!(chosen(&found), wanted, "{found:?}");
        }
    }

    #[test]
    fn records_of_an_extension_need_a_proof() {
        let policy = Policy::shipped().unwrap();
        let strangers = candidate(Storage::Index, "evil", Status::Deployed, "bob");
        let olms = candidate(Storage::Index, "olmv1-system", Status::Deployed, "");
        let found = [strangers, olms];
        assert_eq!(records_of_extension(&found, &policy), Some(&found[1]));
        assert_eq!(records_of_extension(&found[..1], &policy), None);
    }
}

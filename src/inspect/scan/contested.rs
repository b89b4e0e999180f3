//! Releases with one name and one namespace of objects, each of which a manager keeps: nothing tells which of them owns an object.

use std::collections::BTreeMap;

use interlock_engine::policy::Policies;
use interlock_engine::release::{History, ReleaseRef, Storage};
use interlock_engine::rules::home::are_of_manager;
use interlock_engine::rules::wording::{MAX_ENUMERATED, enumerated};

use super::finding::Finding;
use super::finding_kind::FindingKind;

/// The live releases that managers keep, by name and namespace of their objects.
#[derive(Default)]
pub(super) struct Claims(BTreeMap<ReleaseRef, Vec<(ReleaseRef, Storage)>>);

impl Claims {
    /// Adds a release.
    pub(super) fn add(&mut self, release: &ReleaseRef, storage: Storage, history: &History, policies: &Policies) {
        let target = history.stamps().target_namespace().unwrap_or(&release.namespace);
        if history.is_live() && are_of_manager(history, &release.namespace, policies.of(target)) {
            let claimed = ReleaseRef::new(target, &release.name);
            self.0.entry(claimed).or_default().push((release.clone(), storage));
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        for (claimed, releases) in other.0 {
            self.0.entry(claimed).or_default().extend(releases);
        }
    }

    /// A finding for each name that several releases claim.
    pub(super) fn findings(self) -> impl Iterator<Item = Finding> {
        let contested = self.0.into_iter().filter(|(_, releases)| releases.len() > 1);
        contested.map(|(claimed, releases)| {
            let places =
                releases.iter().map(|(release, storage)| format!("{}s of {}", storage.kind(), release.namespace));
            let places = enumerated(places.collect::<Vec<_>>().into_iter(), MAX_ENUMERATED);
            Finding {
                kind: FindingKind::ContestedRelease,
                message: format!(
                    "Managers keep several releases {} with objects in {}, with records in {places}.",
                    claimed.name, claimed.namespace
                ),
                release: Some(claimed),
                object: None,
                way_out: "Give one of them another release name, or uninstall it.".to_owned(),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use interlock_engine::policy_files::PolicyFiles;
    use interlock_engine::release::stamps::{HOLDER, TARGET_NAMESPACE};
    use interlock_engine::release::{Entry, Stamps, Status};

    use super::*;

    const FLUX: &str = "system:serviceaccount:flux-system:helm-controller";

    fn history(holder: &'static str, status: Status) -> History {
        let stamps = Stamps::of(|key| match key {
            HOLDER => Some(holder.to_owned()),
            TARGET_NAMESPACE => Some("shop".to_owned()),
            _ => None,
        });
        History::new(vec![Entry { stamps, ..Entry::of_web(1, status) }])
    }

    fn found(releases: &[(&str, &'static str, Status)]) -> Vec<String> {
        let (mut claims, policies) = (Claims::default(), Policies::of_files(&PolicyFiles::shipped()).unwrap());
        for (namespace, holder, status) in releases {
            let release = ReleaseRef::new(*namespace, "web");
            claims.add(&release, Storage::Secret, &history(holder, *status), &policies);
        }
        claims.findings().map(|finding| finding.message).collect()
    }

    #[test]
    fn two_releases_that_managers_keep_are_contested() {
        let two = found(&[("shop", FLUX, Status::Deployed), ("flux", FLUX, Status::Deployed)]);
        assert_eq!(
            two,
            [
                "Managers keep several releases web with objects in shop, with records in Secrets of shop and Secrets of flux."
            ]
        );
        for other in [("shop", "alice", Status::Deployed), ("shop", FLUX, Status::Uninstalled)] {
            assert_eq!(found(&[("flux", FLUX, Status::Deployed), other]), [""; 0], "{other:?}");
        }
    }
}

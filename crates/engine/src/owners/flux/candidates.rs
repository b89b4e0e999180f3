//! Which HelmReleases may be behind a release.
//!
//! Anybody who may write a HelmRelease can name the records of any namespace, and until a rule guards its status, can say there that
//! Flux has installed them. So a HelmRelease is a candidate only by what its author cannot write: it is in the namespace of the
//! records, or its account holds the newest record, as the stamp says. All others are no candidates, however many there are: they cost
//! no read and change no verdict.

use super::Driver;
use crate::object::account_namespace;

/// The most HelmReleases that one question reads from the API server. Two that drive one release already fight over it.
pub const MOST_CANDIDATES: usize = 8;

/// A question for the HelmReleases behind a release.
#[derive(Debug, Clone, Copy)]
pub struct CandidateSearch<'q> {
    /// The namespace of the records.
    pub namespace: &'q str,
    /// The name of the release, shortened as Flux does.
    pub release: &'q str,
    /// The account of another namespace that holds the newest record.
    pub account: Option<&'q str>,
}

/// More HelmReleases of the records' namespace drive a release than a question reads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{count} HelmReleases in namespace {namespace} drive its release, and at most {MOST_CANDIDATES} are read")]
pub struct TooMany {
    count: usize,
    namespace: String,
}

impl CandidateSearch<'_> {
    /// The candidates: those of the records' namespace first, then those elsewhere as far as there is room. A foreign namespace
    /// never leads to [`TooMany`].
    ///
    /// # Errors
    /// [`TooMany`] if more than [`MOST_CANDIDATES`] of the records' namespace drive the release.
    pub fn among<'d>(self, all: impl Iterator<Item = &'d Driver>) -> Result<Vec<&'d Driver>, TooMany> {
        let driving = all.filter(|driver| driver.drives(self.namespace, self.release));
        let (mut near, mut far): (Vec<_>, Vec<_>) =
            driving.filter(|driver| self.includes(driver)).partition(|driver| driver.namespace == self.namespace);
        if near.len() > MOST_CANDIDATES {
            return Err(TooMany { count: near.len(), namespace: self.namespace.to_owned() });
        }
        far.sort_by_key(|driver| (driver.created.is_none(), driver.created, &driver.name));
        far.truncate(MOST_CANDIDATES - near.len());
        near.append(&mut far);
        Ok(near)
    }

    /// Whether a HelmRelease that drives the release is a candidate, by what its author cannot write.
    pub(crate) fn includes(self, driver: &Driver) -> bool {
        driver.namespace == self.namespace || self.account.is_some_and(|account| driver.is_account(account))
    }
}

/// The holder, if it is a service account of another namespace: only such a holder leads to HelmReleases elsewhere.
pub fn account_elsewhere<'h>(holder: Option<&'h str>, namespace: &str) -> Option<&'h str> {
    holder.filter(|holder| account_namespace(holder).is_some_and(|elsewhere| elsewhere != namespace))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const HOLDER: &str = "system:serviceaccount:flux:deployer";

    fn driver(namespace: &str, name: &str, account: &str) -> Driver {
        let object = json!({
            "metadata": {"namespace": namespace, "name": name},
            "spec": {"releaseName": "web", "storageNamespace": "shop", "serviceAccountName": account},
            "status": {"storageNamespace": "shop", "history": [{"name": "web", "namespace": "shop", "status": "deployed"}]},
        });
        Driver::from(&serde_json::from_value(object).unwrap())
    }

    fn found(all: &[Driver], account: Option<&str>) -> Result<Vec<(String, String)>, TooMany> {
        let found = CandidateSearch { namespace: "shop", release: "web", account }.among(all.iter())?;
        Ok(found.iter().map(|driver| (driver.namespace.clone(), driver.name.clone())).collect())
    }

    fn named(names: &[(&str, &str)]) -> Result<Vec<(String, String)>, TooMany> {
        Ok(names.iter().map(|(namespace, name)| ((*namespace).to_owned(), (*name).to_owned())).collect())
    }

    #[test]
    fn a_helm_release_elsewhere_is_a_candidate_only_under_the_account_that_holds_the_release() {
        let mut all: Vec<_> = (0..3_000).map(|number| driver("evil", &number.to_string(), "deployer")).collect();
        all.extend([driver("shop", "web", ""), driver("flux", "web", "deployer"), driver("flux", "other", "other")]);
        assert_eq!(found(&all, None), named(&[("shop", "web")]));
        assert_eq!(found(&all, Some(HOLDER)), named(&[("shop", "web"), ("flux", "web")]));
        assert_eq!(found(&all, Some("alice")), named(&[("shop", "web")]));
    }

    #[test]
    fn too_many_in_the_namespace_of_the_records_are_an_answer_and_elsewhere_they_are_cut() {
        let many = |namespace: &str, count: usize| {
            (0..count).map(|number| driver(namespace, &number.to_string(), "deployer")).collect::<Vec<_>>()
        };
        assert_eq!(found(&many("shop", MOST_CANDIDATES), None).map(|found| found.len()), Ok(MOST_CANDIDATES));
        let too_many = TooMany { count: MOST_CANDIDATES + 1, namespace: "shop".to_owned() };
        assert_eq!(found(&many("shop", MOST_CANDIDATES + 1), None), Err(too_many));
        let both = [many("shop", 3), many("flux", 20)].concat();
        let kept = found(&both, Some(HOLDER)).unwrap();
        assert_eq!(kept.iter().filter(|(namespace, _)| namespace == "flux").count(), MOST_CANDIDATES - 3);
    }

    #[test]
    fn only_an_account_of_another_namespace_leads_elsewhere() {
        for (holder, leads) in [
            (HOLDER, true),
            ("system:serviceaccount:shop:deployer", false),
            ("system:serviceaccount:flux", false),
            ("alice", false),
        ] {
            assert_eq!(account_elsewhere(Some(holder), "shop").is_some(), leads, "{holder}");
        }
        assert_eq!(account_elsewhere(None, "shop"), None);
    }
}

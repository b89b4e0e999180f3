//! Which HelmReleases may be behind a release.
//!
//! Any author of a HelmRelease can name records in any namespace. Until a rule guards its status, the author can also claim there
//! that Flux has installed them. So a HelmRelease is a candidate only by facts that its author cannot write: it is in the
//! namespace of the records, or the stamps on the newest record name it or its account. All others cost no read and change no
//! verdict, regardless of their number.

use super::Driver;
use crate::object::account_namespace;

/// The maximum number of HelmReleases that one query reads from the API server. Two that drive one release already conflict.
pub const MOST_CANDIDATES: usize = 8;

/// A search for the HelmReleases of a release.
#[derive(Debug, Clone, Copy)]
pub struct CandidateSearch<'q> {
    /// The namespace of the records.
    pub namespace: &'q str,
    /// The name of the release, shortened as Flux does.
    pub release: &'q str,
    /// The account that holds the newest record, if it is of another namespace.
    pub account: Option<&'q str>,
    /// The namespace and name of the HelmRelease that the stamp on the newest record names.
    pub stamped: Option<(&'q str, &'q str)>,
}

/// More HelmReleases in the records' namespace drive the release than a query reads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{count} HelmReleases in namespace {namespace} drive its release, and at most {MOST_CANDIDATES} are read")]
pub struct TooMany {
    count: usize,
    namespace: String,
}

impl CandidateSearch<'_> {
    /// The candidates: those in the records' namespace first, and then others up to the limit. HelmReleases in other namespaces
    /// never cause [`TooMany`].
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
        far.sort_by_key(|driver| (!self.is_stamped(driver), driver.created.is_none(), driver.created, &driver.name));
        far.truncate(MOST_CANDIDATES - near.len());
        near.append(&mut far);
        Ok(near)
    }

    /// Whether a HelmRelease that drives the release is a candidate, by facts that its author cannot write.
    pub(crate) fn includes(self, driver: &Driver) -> bool {
        driver.namespace == self.namespace
            || self.account.is_some_and(|account| driver.is_account(account))
            || self.is_stamped(driver)
    }

    fn is_stamped(self, driver: &Driver) -> bool {
        self.stamped == Some((&driver.namespace, &driver.name))
    }
}

/// The holder, if it is a service account of another namespace. Only then can HelmReleases elsewhere be candidates.
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
        let found = CandidateSearch { namespace: "shop", release: "web", account, stamped: None }.among(all.iter())?;
        Ok(found.iter().map(|driver| (driver.namespace.clone(), driver.name.clone())).collect())
    }

    fn named(names: &[(&str, &str)]) -> Result<Vec<(String, String)>, TooMany> {
        Ok(names.iter().map(|(namespace, name)| ((*namespace).to_owned(), (*name).to_owned())).collect())
    }

    #[test]
    fn a_helm_release_elsewhere_needs_the_account_of_the_holder() {
        let mut all: Vec<_> = (0..3_000).map(|number| driver("evil", &number.to_string(), "deployer")).collect();
        all.extend([driver("shop", "web", ""), driver("flux", "web", "deployer"), driver("flux", "other", "other")]);
        assert_eq!(found(&all, None), named(&[("shop", "web")]));
        assert_eq!(found(&all, Some(HOLDER)), named(&[("shop", "web"), ("flux", "web")]));
        assert_eq!(found(&all, Some("alice")), named(&[("shop", "web")]));
    }

    #[test]
    fn only_too_many_in_the_records_namespace_are_an_error() {
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
    fn only_an_account_of_another_namespace_extends_the_search() {
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

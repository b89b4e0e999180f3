//! Whose records count for an object.

use super::case::ObjectCase;
use super::declared_fields::Declaration;
use super::operation_holder::record_ref;
use crate::evidence::{CandidateRecords, Freshness, question};
use crate::managed::Owner;
use crate::rules::home::{is_proven, proven_elsewhere, records_of_extension, records_of_release};
use crate::rules::undecided::{Undecided, ask};

impl<'a> ObjectCase<'a> {
    /// The records of an owner; `None` if there are none. A profile never has records.
    pub(crate) fn records_of(
        &self,
        owner: &Owner,
        freshness: Freshness,
    ) -> Result<Option<&'a CandidateRecords>, Undecided> {
        let Owner::Release { name, target_namespace, origin, of_extension } = owner else {
            return Ok(None);
        };
        let release = question::Release {
            name: name.clone(),
            target_namespace: target_namespace.clone(),
            origin: origin.clone(),
            freshness,
        };
        let found = ask(self.evidence, release)?.map_or(&[][..], Vec::as_slice);
        let of_release = records_of_release(found, target_namespace, self.policy);
        let Some(near) = of_release.filter(|candidate| candidate.history.is_live()) else {
            return if *of_extension {
                Ok(self.extension_records(name, freshness)?.or(of_release))
            } else {
                Ok(of_release)
            };
        };
        if is_proven(near, self.policy) {
            return Ok(Some(near));
        }
        let extension = if *of_extension { self.extension_records(name, freshness)? } else { None };
        for candidate in proven_elsewhere(found, target_namespace, self.policy).into_iter().chain(extension) {
            if self.is_declared_by(candidate, target_namespace)? {
                return Ok(Some(candidate));
            }
        }
        Ok(Some(near))
    }

    /// The records of the ClusterExtension that the labels of an object name.
    fn extension_records(&self, name: &str, freshness: Freshness) -> Result<Option<&'a CandidateRecords>, Undecided> {
        let found = ask(self.evidence, question::Extension { name: name.to_owned(), freshness })?;
        Ok(found.and_then(|found| records_of_extension(found, self.policy)))
    }

    /// Whether the newest deployed revision of a release declares the object.
    fn is_declared_by(&self, candidate: &CandidateRecords, target_namespace: &str) -> Result<bool, Undecided> {
        let Some(deployed) = candidate.history.newest_deployed() else { return Ok(false) };
        let declared = self.declaration(record_ref(candidate, deployed), target_namespace.to_owned())?;
        Ok(!matches!(declared, Declaration::Nothing))
    }
}

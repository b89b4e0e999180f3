//! Which of the owners that an object's marks name has it.

use super::case::ObjectCase;
use super::declared_fields::Declaration;
use super::operation_holder::declaring;
use crate::evidence::Freshness;
use crate::managed::Owner;
use crate::owners::Marks;
use crate::rules::undecided::Undecided;

/// What there is for the owner that marks name.
enum Proof {
    None,
    /// A tenant may have written it.
    Forgeable,
    Certain,
}

impl ObjectCase<'_> {
    /// The marks whose owner counts: the first one that is proven, and not by what a stranger may have written. Else one that may be
    /// forged, else a profile, which nothing in this cluster proves.
    pub(crate) fn owning<'m>(&self, first: &'m Marks, freshness: Freshness) -> Result<&'m Marks, Undecided> {
        let mut forgeable = None;
        for marks in first.all().filter(|_| first.other.is_some()) {
            match self.proof(marks, freshness)? {
                Proof::Certain => return Ok(marks),
                Proof::Forgeable => forgeable = forgeable.or(Some(marks)),
                Proof::None => {}
            }
        }
        Ok(forgeable.or_else(|| first.all().find(|marks| is_profile(marks))).unwrap_or(first))
    }

    /// Whether the owner that the marks name knows of the object. Everybody who may write it can add the marks of another one.
    fn proof(&self, marks: &Marks, freshness: Freshness) -> Result<Proof, Undecided> {
        match &marks.owner {
            Owner::Release { target_namespace, .. } => {
                let Some(record) = self.records_of(&marks.owner, freshness)?.and_then(declaring) else {
                    return Ok(Proof::None);
                };
                match self.declaration(record, target_namespace.clone()) {
                    Err(need @ Undecided::Ask(_)) => Err(need),
                    Ok(Declaration::Nothing) => Ok(Proof::None),
                    Ok(_) | Err(_) => Ok(Proof::Certain),
                }
            }
            Owner::Applied { .. } => Ok(match self.applier(marks, freshness)? {
                Some(applier) if applier.may_be_forged => Proof::Forgeable,
                Some(_) => Proof::Certain,
                None => Proof::None,
            }),
            Owner::Profile { .. } => Ok(Proof::None),
        }
    }
}

fn is_profile(marks: &Marks) -> bool {
    matches!(marks.owner, Owner::Profile { .. })
}

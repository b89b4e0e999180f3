//! The removal of a revision that a ClusterExtension uses.

use crate::evidence::question;
use crate::facts::DeclarationWrite;
use crate::object::ObjectKey;
use crate::owners::olm::rules::extension::extension;
use crate::owners::olm::{ClusterExtension, ClusterObjectSet, GROUP};
use crate::rules::declarations::case::DeclarationCase;
use crate::rules::undecided::{Undecided, ask};

/// A revision in use that a write deletes or archives.
pub(crate) struct Removed<'e> {
    /// The name of the ClusterExtension.
    pub(crate) extension: String,
    pub(crate) read: ClusterExtension<'e>,
    /// Whether no other revision of the extension is in use, so that its objects go.
    pub(crate) is_only: bool,
}

/// The revision that a write deletes or archives, if the ClusterExtension uses it.
///
/// The author of a revision chooses its labels, so the ClusterExtension decides: its status lists the revisions in use. While it lists
/// none, the label counts.
pub(crate) fn removed<'e>(
    case: &DeclarationCase<'e>,
    written: &DeclarationWrite<'_, ClusterObjectSet<'_>>,
) -> Result<Option<Removed<'e>>, Undecided> {
    let Some(before) = retired(written) else {
        return Ok(None);
    };
    let named = before.extension();
    // The name tells, should somebody have removed the label before: `EXTENSION-NUMBER`.
    let by_name = written.name.rsplit_once('-').map(|(stem, _)| stem);
    let Some(name) = named.or(by_name) else {
        return Ok(None);
    };
    let Some(read) = extension(case.evidence, name)? else {
        return Ok(None);
    };
    let listed: Vec<_> = read.status.active_revisions.iter().map(|revision| revision.name.to_string()).collect();
    let counts = if listed.is_empty() { named.is_some() } else { listed.contains(&written.name) };
    if !counts {
        return Ok(None);
    }
    let is_only = !any_other_active(case, written, &listed)?;
    Ok(Some(Removed { extension: name.to_owned(), read, is_only }))
}

/// The active revision that a write deletes or archives.
pub(crate) fn retired<'w, 'r>(
    written: &'w DeclarationWrite<'_, ClusterObjectSet<'r>>,
) -> Option<&'w ClusterObjectSet<'r>> {
    let stays = written.after.as_ref().is_some_and(ClusterObjectSet::is_active);
    written.before.as_ref().filter(|before| before.is_active() && !stays)
}

/// Whether another listed revision is active, read live.
fn any_other_active(
    case: &DeclarationCase<'_>,
    written: &DeclarationWrite<'_, ClusterObjectSet<'_>>,
    listed: &[String],
) -> Result<bool, Undecided> {
    for other in listed.iter().filter(|other| **other != written.name) {
        let text = ask(case.evidence, question::Object(ObjectKey::new(GROUP, written.kind, "", other)))?;
        let read = text.and_then(|text| serde_json::from_str::<ClusterObjectSet<'_>>(text).ok());
        if read.is_some_and(|revision| revision.is_active()) {
            return Ok(true);
        }
    }
    Ok(false)
}

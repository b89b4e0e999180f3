//! What the ClusterExtension of a release says about it.

use crate::evidence::{Evidence, question};
use crate::object::ObjectKey;
use crate::owners::olm::{CLUSTER_EXTENSION, CONTROLLER, ClusterExtension, GROUP};
use crate::policy::Policy;
use crate::rules::proven_status::proves;
use crate::rules::undecided::{Undecided, ask};

/// Whether a ClusterExtension has migrated to revisions, which now own its objects. Its Helm records remain unchanged. The
/// existence of ClusterObjectSets with its name proves nothing: their authors can name any extension.
pub(crate) fn is_migrated(evidence: &Evidence, policy: &Policy, name: &str) -> Result<bool, Undecided> {
    Ok(extension(evidence, name)?.is_some_and(|it| it.has_revisions()) && proves(evidence, policy, CONTROLLER)?)
}

/// The namespace of the objects of a ClusterExtension.
pub(crate) fn namespace_of_extension(evidence: &Evidence, name: &str) -> Result<Option<String>, Undecided> {
    let namespace = extension(evidence, name)?.map(|it| it.spec.namespace.to_string());
    Ok(namespace.filter(|namespace| !namespace.is_empty()))
}

/// A ClusterExtension; `None` if it does not exist. One with an unknown shape counts as missing.
pub(crate) fn extension<'e>(evidence: &'e Evidence, name: &str) -> Result<Option<ClusterExtension<'e>>, Undecided> {
    let text = ask(evidence, question::Object(ObjectKey::new(GROUP, CLUSTER_EXTENSION, "", name)))?;
    Ok(text.and_then(|text| serde_json::from_str(text).ok()))
}

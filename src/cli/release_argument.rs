//! A release as the command line names it.

use super::helm::HelmFlags;
use crate::engine::object::{MAX_NAME_LENGTH, is_dns_subdomain};
use crate::engine::release::ReleaseRef;

/// `NAMESPACE/RELEASE`. As a plugin of helm also `RELEASE`, in the namespace of helm.
pub(super) fn release(text: &str) -> Result<ReleaseRef, String> {
    let Some((namespace, name)) = text.split_once('/') else {
        let namespace = HelmFlags::of_plugin().and_then(|helm| helm.namespace);
        return in_namespace(&namespace.ok_or("use NAMESPACE/RELEASE, for example shop/web")?, text);
    };
    in_namespace(namespace, name)
}

fn in_namespace(namespace: &str, name: &str) -> Result<ReleaseRef, String> {
    if namespace.is_empty() || namespace.contains('.') {
        return Err(format!("{namespace:?} is not a namespace"));
    }
    // Names of profiles and extensions may be longer than names of releases.
    if !is_dns_subdomain(name, MAX_NAME_LENGTH) {
        return Err(format!(
            "{name:?} is not a name: a lower-case DNS subdomain of at most {MAX_NAME_LENGTH} characters"
        ));
    }
    Ok(ReleaseRef::new(namespace, name))
}

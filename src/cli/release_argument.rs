//! A release as the command line names it.

use crate::engine::object::is_dns_subdomain;
use crate::engine::release::ReleaseRef;

/// The longest name that an object can have, in bytes.
const LONGEST_NAME: usize = 253;

/// `NAMESPACE/RELEASE`.
pub(super) fn release(text: &str) -> Result<ReleaseRef, String> {
    let (namespace, name) = text.split_once('/').ok_or("name it as NAMESPACE/RELEASE, for example shop/web")?;
    if namespace.is_empty() || namespace.contains('.') {
        return Err(format!("{namespace:?} is not a namespace"));
    }
    // Profiles and extensions may have longer names than releases.
    if !is_dns_subdomain(name, LONGEST_NAME) {
        return Err(format!("{name:?} is not a name: a lower-case DNS subdomain of at most {LONGEST_NAME} characters"));
    }
    Ok(ReleaseRef::new(namespace, name))
}

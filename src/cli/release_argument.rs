//! A release on the command line: `NAMESPACE/NAME`, or `-n NAMESPACE NAME`.

use interlock_engine::object::{MAX_NAME_LENGTH, is_dns_subdomain};
use interlock_engine::release::ReleaseRef;

/// The arguments that name one release.
#[derive(Debug, clap::Args)]
pub(super) struct ReleaseArgument {
    /// Release, as NAME or NAMESPACE/NAME
    #[arg(value_name = "RELEASE")]
    release: String,
    /// Namespace of the release [default: the namespace of the kubeconfig]
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
}

impl ReleaseArgument {
    /// The release. `own` is the namespace of the kubeconfig.
    pub(super) fn within(&self, own: &str) -> anyhow::Result<ReleaseRef> {
        named(&self.release, self.namespace.as_deref(), own).map_err(anyhow::Error::msg)
    }
}

/// Parses a release. The namespace is in the name or in the option `namespace`, otherwise it is `own`.
pub(super) fn named(release: &str, namespace: Option<&str>, own: &str) -> Result<ReleaseRef, String> {
    let (namespace, name) = match (release.split_once('/'), namespace) {
        (Some((of_name, _)), Some(namespace)) if of_name != namespace => {
            return Err(format!("{release} is not in namespace {namespace}: name the namespace once"));
        }
        (Some(both), _) => both,
        (None, namespace) => (namespace.unwrap_or(own), release),
    };
    if namespace.is_empty() || namespace.contains('.') {
        return Err(format!("{namespace:?} is not a namespace"));
    }
    // Names of profiles and extensions may be longer than release names.
    if !is_dns_subdomain(name, MAX_NAME_LENGTH) {
        return Err(format!(
            "{name:?} is not a name: a lower-case DNS subdomain of at most {MAX_NAME_LENGTH} characters"
        ));
    }
    Ok(ReleaseRef::new(namespace, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_named_as_in_kubectl_and_in_refusals() {
        let named = |release, namespace| named(release, namespace, "mine").map(|release| release.to_string());
        for (release, namespace, wanted) in [
            ("web", None, "mine/web"),
            ("web", Some("shop"), "shop/web"),
            ("shop/web", None, "shop/web"),
            ("shop/web", Some("shop"), "shop/web"),
        ] {
            assert_eq!(named(release, namespace).as_deref(), Ok(wanted));
        }
        for (release, namespace, why) in [
            ("shop/web", Some("other"), "name the namespace once"),
            ("Web", None, "is not a name"),
            ("/web", None, "is not a namespace"),
            ("a.b/web", None, "is not a namespace"),
            ("web", Some(""), "is not a namespace"),
        ] {
            assert!(named(release, namespace).unwrap_err().contains(why), "{release}");
        }
    }
}

//! A release on the command line: `NAMESPACE/NAME`, or `-n NAMESPACE NAME`; and an object that carries its own operation, in the words of
//! kubectl.

use interlock_engine::object::{MAX_NAME_LENGTH, is_dns_subdomain};
use interlock_engine::owners::{CARRIERS, Carrier};
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

/// What a command frees.
pub(super) enum Named {
    Release(ReleaseRef),
    /// An object that carries its own operation, by namespace and name.
    Object(&'static Carrier, ReleaseRef),
}

impl ReleaseArgument {
    /// The release. `own` is the namespace of the kubeconfig.
    pub(super) fn within(&self, own: &str) -> anyhow::Result<ReleaseRef> {
        named(&self.release, self.namespace.as_deref(), own).map_err(anyhow::Error::msg)
    }

    /// The release, or the object that carries its own operation: `-n NAMESPACE KIND/NAME`, as at kubectl.
    pub(super) fn stuck(&self, own: &str) -> anyhow::Result<Named> {
        match carrier(&self.release, self.namespace.as_deref(), own).map_err(anyhow::Error::msg)? {
            Some((carrier, object)) => Ok(Named::Object(carrier, object)),
            None => self.within(own).map(Named::Release),
        }
    }
}

/// Parses an object that carries its own operation; `None` if a release is named. A kind without a dot may also be a namespace, so it
/// counts only beside the option `namespace`.
pub(super) fn carrier(
    object: &str,
    namespace: Option<&str>,
    own: &str,
) -> Result<Option<(&'static Carrier, ReleaseRef)>, String> {
    let Some((kind, name)) = object.split_once('/') else { return Ok(None) };
    let is_a_namespace = namespace == Some(kind) || namespace.is_none() && !kind.contains('.');
    let carrier = CARRIERS.iter().find(|carrier| carrier.is_named(kind) && !is_a_namespace);
    carrier.map(|carrier| Ok((carrier, named(name, Some(namespace.unwrap_or(own)), own)?))).transpose()
}

/// How the same words name an object that carries its own operation: `-n NAMESPACE app/web` for release `app/web`.
pub(super) fn as_carrier(release: &ReleaseRef) -> Option<(&'static Carrier, String)> {
    let carrier = CARRIERS.iter().find(|carrier| carrier.is_named(&release.namespace))?;
    Some((carrier, format!("-n NAMESPACE {release}")))
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

    #[test]
    fn an_object_with_its_own_operation_is_named_by_its_kind_and_namespace() {
        let found = |object, namespace| {
            carrier(object, namespace, "mine").unwrap().map(|(carrier, place)| format!("{} {place}", carrier.plural))
        };
        let in_shop = Some("applications shop/web".to_owned());
        for object in ["app/web", "application/web", "applications.argoproj.io/web"] {
            assert_eq!(found(object, Some("shop")), in_shop, "{object}");
        }
        assert_eq!(found("applications.argoproj.io/web", None).as_deref(), Some("applications mine/web"));
        for (release, namespace) in
            [("app/web", None), ("app/web", Some("app")), ("shop/web", Some("shop")), ("app", None)]
        {
            assert_eq!(found(release, namespace), None, "{release}");
        }
        assert!(carrier("app/Web", Some("shop"), "mine").unwrap_err().contains("is not a name"));
        let (_, words) = as_carrier(&ReleaseRef::new("app", "web")).unwrap();
        assert_eq!(words, "-n NAMESPACE app/web");
        assert!(as_carrier(&ReleaseRef::new("shop", "web")).is_none());
    }
}

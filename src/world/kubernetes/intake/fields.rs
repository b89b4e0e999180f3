//! The fields of objects that this program reads, by resource.

use http::Request;
use http::header::ACCEPT;
use interlock_engine::evidence::WERF_LEASES;
use interlock_engine::freeze_resource;
use interlock_engine::object::PROTECTED;
use interlock_engine::owners;
use interlock_engine::release::stamps;
use interlock_engine::release_override::{self, CREATED_BY, VOID};

use super::projector::Keep;

/// The maximum kept size of an object in a list or a watch, in bytes. An ordinary HelmRelease keeps one or two KiB.
const MAX_LISTED_BYTES: usize = 32 << 10;

/// The maximum kept size of an object that is read alone, in bytes.
const MAX_OBJECT_BYTES: usize = 256 << 10;

/// The maximum kept size of the part outside of objects, in bytes: the token of a page, the message of a status.
const MAX_FRAME_BYTES: usize = 64 << 10;

/// The labels that rules read. Other labels are as large as their writers like.
const LABELS: Keep = Keep::Members(&[
    // For records.
    ("owner", Keep::Short),
    ("name", Keep::Short),
    ("version", Keep::Short),
    ("status", Keep::Short),
    ("type", Keep::Short),
    // For marks.
    ("app.kubernetes.io/managed-by", Keep::Short),
    (owners::HELM_RELEASE_NAME_LABEL, Keep::Short),
    (owners::HELM_RELEASE_NAMESPACE_LABEL, Keep::Short),
    (owners::EXTENSION_LABEL, Keep::Short),
    (owners::PROFILE_LABEL, Keep::Short),
    (owners::APPLIED_LABELS[0], Keep::Short),
    (owners::APPLIED_LABELS[1], Keep::Short),
    (owners::TRACKING_LABEL, Keep::Short),
]);

const ANNOTATIONS: Keep = Keep::Members(&[
    (stamps::HOLDER, Keep::Short),
    (stamps::PIPELINE, Keep::Short),
    (stamps::DRIVER, Keep::Short),
    (stamps::STARTED, Keep::Short),
    (stamps::ENDED, Keep::Short),
    (stamps::CHART, Keep::Short),
    (stamps::TARGET_NAMESPACE, Keep::Short),
    (stamps::INTERRUPTED, Keep::Short),
    (stamps::HOOKS, Keep::Short),
    (stamps::PROTECTED_BY, Keep::Short),
    (PROTECTED, Keep::Short),
    (CREATED_BY, Keep::Short),
    (VOID, Keep::Short),
    // For bookmarks.
    ("k8s.io/initial-events-end", Keep::Short),
    // For marks.
    ("meta.helm.sh/release-name", Keep::Short),
    ("meta.helm.sh/release-namespace", Keep::Short),
    (owners::PROFILE_KIND, Keep::Short),
    (owners::PROFILE_NAME, Keep::Short),
    (owners::TRACKING, Keep::Short),
]);

/// The metadata of an object or a list, with these labels.
macro_rules! metadata {
    ($labels:expr $(, $more:expr)?) => {
        Keep::Members(&[
            ("name", Keep::Short),
            ("namespace", Keep::Short),
            ("uid", Keep::Short),
            ("resourceVersion", Keep::Short),
            ("creationTimestamp", Keep::Short),
            ("deletionTimestamp", Keep::Short),
            ("generation", Keep::Short),
            ("labels", $labels),
            ("annotations", ANNOTATIONS),
            ("continue", Keep::All),
            $($more)?
        ])
    };
}

const METADATA: Keep = metadata!(LABELS);

/// Policies select Namespaces by any label.
const METADATA_OF_NAMESPACE: Keep = metadata!(Keep::Members(&[("*", Keep::All)]));

/// An object with its metadata and these fields. A watch may send a `Status` instead.
macro_rules! object {
    ($metadata:expr; $limit:expr $(, $field:expr)*) => {
        Keep::Object(
            &[
                ("apiVersion", Keep::All),
                ("kind", Keep::All),
                ("metadata", $metadata),
                ("code", Keep::All),
                ("message", Keep::All),
                ("reason", Keep::All),
                $($field),*
            ],
            $limit,
        )
    };
}

/// The fields of a kind: for an object that is read alone, and for a list or watch.
struct Row {
    object: Keep,
    collection: Keep,
}

/// A list or a watch of objects with these fields.
macro_rules! collection {
    ($metadata:expr; $($field:expr),*) => {
        Keep::Object(
            &[
                ("apiVersion", Keep::All),
                ("kind", Keep::All),
                ("metadata", METADATA),
                ("items", object!($metadata; MAX_LISTED_BYTES $(, $field)*)),
                ("type", Keep::Short),
                ("object", object!($metadata; MAX_LISTED_BYTES $(, $field)*)),
            ],
            MAX_FRAME_BYTES,
        )
    };
}

macro_rules! row {
    ($($field:expr),*) => {
        Row { object: object!(METADATA; MAX_OBJECT_BYTES $(, $field)*), collection: collection!(METADATA; $($field),*) }
    };
}

const TIMEOUT: Keep = Keep::Members(&[("timeout", Keep::All)]);

const HISTORY: Keep =
    Keep::Members(&[("name", Keep::All), ("namespace", Keep::All), ("status", Keep::All), ("version", Keep::All)]);

const HELM_RELEASE_STATUS: Keep = Keep::Members(&[("storageNamespace", Keep::All), ("history", HISTORY)]);

macro_rules! helm_release_spec {
    ($($more:expr)?) => {
        Keep::Members(&[
            ("releaseName", Keep::All),
            ("targetNamespace", Keep::All),
            ("storageNamespace", Keep::All),
            ("serviceAccountName", Keep::All),
            ("kubeConfig", Keep::All),
            ("suspend", Keep::All),
            ("timeout", Keep::All),
            ("install", TIMEOUT),
            ("upgrade", TIMEOUT),
            ("rollback", TIMEOUT),
            ("test", TIMEOUT),
            ("uninstall", TIMEOUT),
            $($more)?
        ])
    };
}

static HELM_RELEASES: Row = Row {
    object: object!(
        METADATA; MAX_OBJECT_BYTES,
        ("spec", helm_release_spec!(("driftDetection", Keep::Members(&[("ignore", Keep::All)])))),
        ("status", HELM_RELEASE_STATUS)
    ),
    collection: collection!(METADATA; ("spec", helm_release_spec!()), ("status", HELM_RELEASE_STATUS)),
};

/// For Interlock's own kinds.
static SPECIFICATIONS: Row = row!(("spec", Keep::All));

static WORKLOADS: Row = row!(
    (
        "spec",
        Keep::Members(&[
            ("replicas", Keep::All),
            ("paused", Keep::All),
            ("progressDeadlineSeconds", Keep::All),
            (
                "updateStrategy",
                Keep::Members(&[("type", Keep::All), ("rollingUpdate", Keep::Members(&[("partition", Keep::All)])),]),
            ),
        ])
    ),
    (
        "status",
        Keep::Members(&[
            ("observedGeneration", Keep::All),
            ("updatedReplicas", Keep::All),
            ("availableReplicas", Keep::All),
            ("readyReplicas", Keep::All),
            ("desiredNumberScheduled", Keep::All),
            ("updatedNumberScheduled", Keep::All),
            ("numberAvailable", Keep::All),
            ("conditions", Keep::Members(&[("type", Keep::All), ("status", Keep::All)])),
        ])
    )
);

static METADATA_ONLY: Row = row!();

/// The metadata of an object that is scaled, with the fields that each manager wrote.
static SCALED: Keep = object!(metadata!(LABELS, ("managedFields", Keep::All)); MAX_OBJECT_BYTES);

static NAMESPACES: Keep = collection!(METADATA_OF_NAMESPACE;);

/// The origin of a bundle, without the objects in it, which can be megabytes.
static CONFIGURATION_BUNDLE: Keep = Keep::Object(
    &[
        (
            "metadata",
            Keep::Members(&[
                ("name", Keep::Short),
                ("annotations", Keep::Members(&[(owners::BUNDLE_INDEX, Keep::Short)])),
            ]),
        ),
        (
            "spec",
            Keep::Members(&[
                ("helmReleaseNamespace", Keep::All),
                ("helmReleaseName", Keep::All),
                ("helmReleaseUninstall", Keep::All),
                ("isLastHelmReleaseBundle", Keep::All),
                ("notTracked", Keep::All),
                ("referencedObjectKind", Keep::All),
                ("referencedObjectNamespace", Keep::All),
                ("referencedObjectName", Keep::All),
            ]),
        ),
    ],
    MAX_OBJECT_BYTES,
);

static LEASES: Keep = Keep::Object(
    &[(
        "metadata",
        Keep::Members(&[("name", Keep::Short), ("annotations", Keep::Members(&[("lockgate.io/*", Keep::Short)]))]),
    )],
    MAX_OBJECT_BYTES,
);

/// The address of an object, or of a collection of them.
#[derive(Debug, PartialEq, Eq)]
struct Address<'p> {
    resource: &'p str,
    /// `None` for a collection.
    name: Option<&'p str>,
}

impl<'p> Address<'p> {
    /// `None` for a path of discovery or of a subresource.
    fn of(path: &'p str) -> Option<Self> {
        let mut parts: Vec<_> = path.split('/').skip(1).collect();
        let is_of_group = match parts.first() {
            Some(&"api") => false,
            Some(&"apis") => true,
            _ => return None,
        };
        parts.drain(..if is_of_group { 3 } else { 2 }.min(parts.len()));
        match parts[..] {
            ["namespaces", _, resource] | [resource] => Some(Self { resource, name: None }),
            ["namespaces", _, resource, name] | [resource, name] => Some(Self { resource, name: Some(name) }),
            _ => None,
        }
    }
}

/// The fields that are kept of the answer to a request, and the resource for the metrics. `None` if the complete text is kept: for
/// single objects without a row here, and for discovery. Collections without a row keep only their metadata.
pub(super) fn kept<B>(request: &Request<B>) -> Option<(&'static str, &'static Keep)> {
    let address = Address::of(request.uri().path())?;
    let accepted = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let is_metadata = accepted.contains("as=PartialObjectMetadata");
    let (resource, row) = match (address.resource, address.name) {
        ("namespaces", None) => return Some(("namespaces", &NAMESPACES)),
        ("namespaces" | "secrets" | "configmaps", _) if is_metadata => ("metadata", &METADATA_ONLY),
        (_, Some(_)) if is_metadata => return Some(("metadata", &SCALED)),
        _ if is_metadata => ("metadata", &METADATA_ONLY),
        ("helmreleases", _) => ("helmreleases", &HELM_RELEASES),
        (release_override::PLURAL, _) => (release_override::PLURAL, &SPECIFICATIONS),
        (freeze_resource::PLURAL, _) => (freeze_resource::PLURAL, &SPECIFICATIONS),
        ("deployments" | "statefulsets" | "daemonsets", _) => ("workloads", &WORKLOADS),
        ("configurationbundles", Some(_)) => return Some(("configurationbundles", &CONFIGURATION_BUNDLE)),
        ("configmaps", Some(WERF_LEASES)) => return Some(("leases", &LEASES)),
        (_, Some(_)) => return None,
        (_, None) => ("metadata", &METADATA_ONLY),
    };
    Some((resource, if address.name.is_some() { &row.object } else { &row.collection }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_collection_and_every_kind_with_a_row_is_projected() {
        let kept = |path: &str, accept: &str| {
            let request = Request::get(path).header(ACCEPT, accept).body(()).unwrap();
            kept(&request).map(|(resource, keep)| (resource, matches!(keep, Keep::Object(_, MAX_OBJECT_BYTES))))
        };
        const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
        for (path, accept, wanted) in [
            ("/apis/helm.toolkit.fluxcd.io/v2/helmreleases?watch=true", "", Some(("helmreleases", false))),
            ("/apis/helm.toolkit.fluxcd.io/v2/namespaces/shop/helmreleases", "", Some(("helmreleases", false))),
            ("/apis/helm.toolkit.fluxcd.io/v2/namespaces/shop/helmreleases/web", "", Some(("helmreleases", true))),
            (
                "/apis/interlock.dev/v1alpha1/namespaces/shop/releaseoverrides?limit=5",
                "",
                Some(("releaseoverrides", false)),
            ),
            ("/apis/interlock.dev/v1alpha1/freezes?watch=true", "", Some(("freezes", false))),
            ("/api/v1/secrets", "", Some(("metadata", false))),
            ("/api/v1/secrets", METADATA, Some(("metadata", false))),
            ("/api/v1/namespaces/shop", METADATA, Some(("metadata", true))),
            ("/api/v1/namespaces?watch=true", METADATA, Some(("namespaces", false))),
            ("/apis/apps/v1/namespaces/shop/deployments/web", "", Some(("workloads", true))),
            ("/apis/apps/v1/namespaces/shop/deployments/web", METADATA, Some(("metadata", true))),
            ("/api/v1/namespaces/shop/configmaps/werf-synchronization", "", Some(("leases", true))),
            (
                "/apis/lib.projectsveltos.io/v1beta1/namespaces/civ/configurationbundles/a",
                "",
                Some(("configurationbundles", true)),
            ),
            ("/api/v1/namespaces/shop/secrets/web", "", None),
            ("/apis/olm.operatorframework.io/v1/clusterextensions/web", "", None),
            ("/apis/helm.toolkit.fluxcd.io/v2", "", None),
            ("/apis", "", None),
            ("/version", "", None),
        ] {
            assert_eq!(kept(path, accept), wanted, "{path}");
        }
    }
}

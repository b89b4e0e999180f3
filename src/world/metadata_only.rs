//! Objects of any kind, reduced to their metadata.
//!
//! All kinds share one type, because the code of a watch or a list is large and would be compiled for each type.

use kube::Resource;
use kube::api::{ApiResource, DynamicObject, PartialObjectMeta};

/// The metadata of an object of any kind.
pub(crate) type MetadataOnly = PartialObjectMeta<DynamicObject>;

/// A built-in kind as a value.
pub(crate) fn resource_of<K: Resource<DynamicType = ()>>() -> ApiResource {
    ApiResource::erase::<K>(&())
}

//! The name of an object in a manifest.

/// The object whose document is wanted, by the names in a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DocumentKey {
    /// Empty for the core group. The version is left out, because it may have changed since the chart was written.
    pub group: String,
    pub kind: String,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    pub name: String,
    /// The namespace of documents without one.
    pub default_namespace: String,
}

//! The name of an object in a manifest.

/// The object whose document is wanted, as a request names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DocumentKey {
    /// Empty for the core group. Without version, which may have changed since the chart was written.
    pub group: String,
    pub kind: String,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    pub name: String,
    /// The namespace of documents without one.
    pub default_namespace: String,
}

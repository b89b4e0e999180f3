//! The names of the resource Freeze, by which a namespace stops its releases. What it stops is decided by the rule `freeze`.

/// The kind, of the group and version of ReleaseOverrides.
pub(crate) const KIND: &str = "Freeze";
/// The resource.
pub(crate) const PLURAL: &str = "freezes";
/// The name of the definition.
pub(crate) const DEFINITION: &str = "freezes.interlock.dev";

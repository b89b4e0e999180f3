//! The names of the resource Freeze, by which a namespace stops its releases. What it stops is decided by the rule `freeze`.

/// The kind, of the group and version of ReleaseOverrides.
pub const KIND: &str = "Freeze";
/// The resource.
pub const PLURAL: &str = "freezes";
/// The name of the definition.
pub const DEFINITION: &str = "freezes.interlock.dev";

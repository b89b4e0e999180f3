//! The names of the Freeze resource, which stops the releases of a namespace. The rule `freeze` decides what a Freeze
//! stops.

/// The kind. Its group and version are those of ReleaseOverrides.
pub const KIND: &str = "Freeze";
/// The resource.
pub const PLURAL: &str = "freezes";
/// The name of the definition.
pub const DEFINITION: &str = "freezes.interlock.dev";

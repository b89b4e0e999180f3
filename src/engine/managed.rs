//! Objects that somebody manages: the owner, the declared fields, and whether a write touches these.

mod declared;
mod delta;
mod document;
mod fields;
mod ownership;
mod semantics;
mod touched;

pub use declared::{Declared, DocumentPart, ItemKey};
pub use delta::{Delta, DifferingItem, delta};
pub use document::{declared_by, is_custom_resource};
pub use fields::ManagedFields;
pub use ownership::{Marks, Origin, Owner, may_be_marked};
pub use touched::touched;

#[cfg(test)]
mod tests;

//! Objects that somebody manages: the owner, the declared fields, and whether a write touches these.

mod declared;
mod delta;
mod document;
mod fields;
mod list_items;
mod ownership;
mod schema;
mod semantics;
mod touched;

pub(crate) use declared::Declared;
pub(crate) use delta::{Delta, delta};
pub(crate) use document::{declared_by, is_custom_resource};
pub(crate) use fields::ManagedFields;
pub(crate) use ownership::{Mark, Marks, Origin, Owner, may_be_marked};
pub(crate) use touched::{drifted, touched};

#[cfg(test)]
mod tests;

//! Managed objects: their owner, their declared fields, and whether a write changes these fields.

mod declared;
mod delta;
mod document;
mod fields;
mod implied;
mod item_key;
mod kept;
mod left_to_others;
mod list_items;
mod ownership;
mod schema;
mod semantics;
mod touched;

pub use declared::Declared;
pub use delta::{ChangedValue, Delta, DifferingItem, Exceptions, delta, delta_except};
pub use document::{declared_by, is_custom_resource};
pub use fields::{ManagedFields, last_change_of_spec, last_writes};
pub use implied::implied_by;
pub use item_key::ItemKey;
pub(crate) use left_to_others::LeftToOthers;
pub use ownership::{MANAGED_BY_LABEL, Mark, Origin, Owner};
pub(crate) use ownership::{MarkKey, OwnerKind};
pub use touched::{Ignored, drifted, touched};

#[cfg(test)]
mod tests;

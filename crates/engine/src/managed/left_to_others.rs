//! Fields that an owner leaves to others.

use jsonptr::PointerBuf;

use crate::json::FieldPath;

/// What an owner leaves to others of an object that it applies.
#[derive(Debug, Default)]
pub(crate) struct LeftToOthers {
    /// The fields, with everything below.
    pub(crate) pointers: Vec<PointerBuf>,
    /// The managers in `managedFields` whose fields it leaves to them.
    pub(crate) managers: Vec<String>,
}

impl LeftToOthers {
    pub(crate) fn extend(&mut self, other: Self) {
        self.pointers.extend(other.pointers);
        self.managers.extend(other.managers);
    }

    /// Whether a field is one of these. `is_held` says whether one of the managers has written it.
    pub(crate) fn contains(&self, field: &FieldPath, is_held: impl Fn(&FieldPath, &[String]) -> bool) -> bool {
        let pointer = field.pointer();
        self.pointers.iter().any(|left| pointer.starts_with(left))
            || (!self.managers.is_empty() && is_held(field, &self.managers))
    }
}

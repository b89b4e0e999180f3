//! JSON that stays text.

use serde_json::value::RawValue;

/// An object of a request, or a part of it, as text. Its quotes and brackets match. Whatever else is wrong with it is found by
/// whoever reads it: most objects are not read, and a check of every byte would be the larger part of an ordinary review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawObject<'a>(&'a str);

impl<'a> RawObject<'a> {
    /// A text whose end was found by its brackets.
    pub fn delimited(text: &'a str) -> Self {
        Self(text)
    }

    /// The text.
    #[must_use]
    pub fn get(self) -> &'a str {
        self.0
    }
}

impl<'a> From<&'a RawValue> for RawObject<'a> {
    fn from(value: &'a RawValue) -> Self {
        Self(value.get())
    }
}

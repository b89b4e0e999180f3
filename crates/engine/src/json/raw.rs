//! JSON that stays text.

use serde_json::value::RawValue;

/// An object of a request, or a part of it, as text. Only its quotes and brackets are checked; readers find any other
/// error. Most objects are never parsed, and a check of every byte would take most of the time of an ordinary review.
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

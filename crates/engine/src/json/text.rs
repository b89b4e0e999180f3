//! A JSON string, borrowed if it needs no unescaping.

use std::borrow::Cow;

use serde::Deserialize;

/// serde borrows a `Cow` only as a field of a struct, neither as a value of its own nor in an `Option`.
#[derive(Deserialize)]
pub(crate) struct Text<'b>(#[serde(borrow)] pub(crate) Cow<'b, str>);

//! A JSON string, borrowed where it needs no unescaping.

use std::borrow::Cow;

use serde::Deserialize;

/// `Cow` alone borrows only as a field of a struct, never as a value or inside an `Option`.
#[derive(Deserialize)]
pub(crate) struct Text<'b>(#[serde(borrow)] pub(crate) Cow<'b, str>);

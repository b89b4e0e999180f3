//! JSON as text: values in a document, paths of fields, patches, and errors without the values.

mod changed;
mod container;
pub(crate) mod cursor;
mod go_struct;
mod null;
mod patch;
mod path;
mod raw;
mod redacted;
mod seek;
mod text;
mod with_text;

pub(crate) use go_struct::GoStruct;
pub use null::null_is_default;
pub use patch::{Patch, PatchOperation};
pub use path::{FieldPath, Segment};
pub use raw::RawObject;
pub use redacted::redacted;
pub use seek::{cursor_at, first_at, unreadable};
pub(crate) use text::Text;
pub(crate) use with_text::WithText;

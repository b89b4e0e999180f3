//! JSON as text: places in it, and what is wrong with it.

pub(crate) mod cursor;
mod null;
mod patch;
mod path;
mod seek;
mod text;
mod unquoted;

pub(crate) use null::null_is_default;
pub use patch::{Patch, PatchOperation};
pub use path::{Path, Segment};
pub(crate) use seek::first_at;
pub(crate) use text::Text;
pub(crate) use unquoted::unquoted;

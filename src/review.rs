//! The AdmissionReview: in as a borrowed view of the body, out as a reply or a patch.

mod metadata;
mod patch;
mod request;
mod response;
mod seek;
mod unquoted;

pub use metadata::Metadata;
pub(crate) use metadata::null_is_default;
pub use patch::{Patch, PatchOperation};
pub use request::{BadReview, Gvk, Gvr, Operation, Request, Review, UserInfo, group_of, uid_of};
pub use response::{allow_with_patch, answer, bad_request, undecided};
pub(crate) use seek::first_at;
pub(crate) use unquoted::unquoted;

//! The AdmissionReview, as a borrowed view of the body.

mod head;
mod parse;
mod request;

pub use head::head_of;
pub use request::{BadReview, Gvk, Gvr, Operation, Request, Review, UserInfo};

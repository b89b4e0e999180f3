//! The AdmissionReview, as a borrowed view of the body.

mod parse;
mod request;

pub use parse::head_of;
pub use request::{BadReview, BoundPod, Gvk, Gvr, Operation, Request, Review, UserInfo};

//! The AdmissionReview, as a borrowed view of the body.

mod request;

pub use request::{BadReview, Gvk, Gvr, Operation, Request, Review, UserInfo, uid_of};

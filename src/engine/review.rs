//! The AdmissionReview: in as a borrowed view of the body, out as a reply or a patch.

mod request;

pub use request::{BadReview, Gvk, Gvr, Operation, Request, Review, UserInfo, uid_of};

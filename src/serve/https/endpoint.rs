//! The two endpoints of the webhook.

/// The endpoint that was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// `POST /validate`
    Validate,
    /// `POST /mutate`
    Mutate,
}

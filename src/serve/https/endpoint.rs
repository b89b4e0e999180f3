//! The two halves of the webhook.

/// Which half of the webhook was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// `POST /validate`
    Validate,
    /// `POST /mutate`
    Mutate,
}

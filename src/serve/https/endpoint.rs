//! The two endpoints of the webhook.

use crate::serve::openmetrics::label;

label! {
    /// The endpoint that was called.
    pub enum Endpoint: "endpoint" {
        /// `POST /validate`
        Validate => "validate",
        /// `POST /mutate`
        Mutate => "mutate",
    }
}

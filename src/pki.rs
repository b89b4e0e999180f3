//! The certificates of the webhook.

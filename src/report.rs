//! What the webhook tells the world about its decisions.

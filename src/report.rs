//! What the webhook tells the world about its decisions.

mod decision;

pub use decision::{Decision, DecisionFinding};

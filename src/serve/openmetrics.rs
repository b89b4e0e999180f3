//! The export of metrics: their prefix, the names of label values, and the text format.
//!
//! Label values come only from closed enums. If a label contained a name or a message, anyone who can send a request could fill the memory
//! of this process and of the monitoring system.

use std::fmt;

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

/// The content type of [`render`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The prefix of all metrics except those of the process, which have the names that all Prometheus clients use.
pub const PREFIX: &str = "interlock";

/// A registry as OpenMetrics text.
///
/// # Errors
/// If a metric cannot be formatted. Writing to a `String` does not fail.
pub fn render(registry: &Registry) -> Result<String, fmt::Error> {
    let mut text = String::new();
    encode(&mut text, registry)?;
    Ok(text)
}

/// The text of the metrics that a test registers.
#[cfg(test)]
pub(crate) fn rendered(register: impl FnOnce(&mut Registry)) -> String {
    let mut registry = Registry::with_prefix(PREFIX);
    register(&mut registry);
    render(&registry).unwrap()
}

/// Label values of enums with an `as_str`.
macro_rules! as_str {
    ($($name:ty),+) => {
        $(impl prometheus_client::encoding::EncodeLabelValue for $name {
            fn encode(
                &self,
                encoder: &mut prometheus_client::encoding::LabelValueEncoder<'_>,
            ) -> Result<(), std::fmt::Error> {
                self.as_str().encode(encoder)
            }
        })+
    };
}

/// Label values of other enums, one for each variant.
macro_rules! named {
    ($name:ty { $($variant:ident => $value:literal),+ $(,)? }) => {
        impl prometheus_client::encoding::EncodeLabelValue for $name {
            fn encode(
                &self,
                encoder: &mut prometheus_client::encoding::LabelValueEncoder<'_>,
            ) -> Result<(), std::fmt::Error> {
                match self { $(Self::$variant => $value),+ }.encode(encoder)
            }
        }
    };
}

pub(super) use {as_str, named};

//! The export of metrics: how a module declares its metrics, and the text format.
//!
//! Label values are `&'static str` or come from closed enums. If a label contained a name or a message, anyone who can send a request
//! could fill the memory of this process and of the monitoring system.

use std::fmt;
use std::hash::Hash;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// The content type of [`render`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The prefix of all metrics except those of the process, which have the names that all Prometheus clients use.
pub const PREFIX: &str = "interlock";

/// A label whose values are the names of an engine type.
pub(crate) type Label = (&'static str, &'static str);

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

/// Counters that exist from the start: an alert on the first failure needs a series that was zero before.
pub(super) fn from_zero<L: Clone + Hash + Eq>(labels: impl IntoIterator<Item = L>) -> Family<L, Counter> {
    let counters = Family::default();
    for labels in labels {
        drop(counters.get_or_create(&labels));
    }
    counters
}

/// Declares the metrics of a module: `/// help` and `name: type`, with `= value` unless the default is meant, and `, unit` if there is one.
macro_rules! metrics {
    ($(#[$about:meta])* pub struct $metrics:ident {
        $($(#[doc = $help:literal])+ $name:ident: $kind:ty $(= $value:expr)? $(, $unit:ident)?;)+
    }) => {
        $(#[$about])*
        #[derive(Debug)]
        pub struct $metrics {
            $($(#[doc = $help])+ pub $name: $kind,)+
        }

        impl Default for $metrics {
            fn default() -> Self {
                Self { $($name: $crate::serve::openmetrics::metrics!(@value $($value)?)),+ }
            }
        }

        impl $metrics {
            /// Adds the metrics to a registry.
            pub fn register(&self, registry: &mut prometheus_client::registry::Registry) {
                $($crate::serve::openmetrics::metrics!(
                    @register registry, stringify!($name), concat!($($help),+).trim_start(), self.$name.clone() $(, $unit)?
                );)+
            }
        }
    };
    (@value) => { Default::default() };
    (@value $value:expr) => { $value };
    (@register $registry:ident, $name:expr, $help:expr, $metric:expr) => { $registry.register($name, $help, $metric) };
    (@register $registry:ident, $name:expr, $help:expr, $metric:expr, $unit:ident) => {
        $registry.register_with_unit($name, $help, prometheus_client::registry::Unit::$unit, $metric)
    };
}

/// Declares a label and its values, or names the label of an enum with an `as_str`.
macro_rules! label {
    ($(#[$about:meta])* pub enum $values:ident: $name:literal {
        $($(#[$doc:meta])+ $variant:ident => $value:literal,)+
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $values {
            $($(#[$doc])+ $variant,)+
        }

        impl $values {
            pub(crate) fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $value,)+
                }
            }
        }

        $crate::serve::openmetrics::label!($values: $name);
    };
    ($values:ident: $name:literal) => {
        impl prometheus_client::encoding::EncodeLabelSet for $values {
            fn encode(&self, encoder: &mut prometheus_client::encoding::LabelSetEncoder<'_>) -> std::fmt::Result {
                [($name, self.as_str())].encode(encoder)
            }
        }
    };
}

pub(super) use {label, metrics};

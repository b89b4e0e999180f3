//! The text of `/metrics`.

use prometheus_client::registry::Registry;
use release_interlock::serve::openmetrics;

/// The text of the metrics that are registered.
pub(crate) fn rendered(register: impl FnOnce(&mut Registry)) -> String {
    let mut registry = Registry::with_prefix(openmetrics::PREFIX);
    register(&mut registry);
    openmetrics::render(&registry).unwrap()
}

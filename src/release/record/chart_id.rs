//! Name and version of a chart, without reading its templates: megabytes that follow behind.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserializer, de};
use serde_json::value::RawValue;

use super::ChartId;

/// Reads a chart up to its `metadata`, which Helm writes first, and stops there.
pub(super) fn read<'b>(chart: &'b RawValue) -> ChartId<'b> {
    let mut found = None;
    let mut json = serde_json::Deserializer::from_str(chart.get());
    // Stopping early is an error to serde; what was found by then is what counts.
    let _stopped = json.deserialize_any(UpToMetadata(&mut found));
    found.unwrap_or_default()
}

struct UpToMetadata<'f, 'b>(&'f mut Option<ChartId<'b>>);

impl<'b> Visitor<'b> for UpToMetadata<'_, 'b> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a chart")
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'b>>(self, mut chart: A) -> Result<(), A::Error> {
        while let Some(key) = chart.next_key::<Cow<'b, str>>()? {
            if key == "metadata" {
                *self.0 = chart.next_value()?;
                return Err(A::Error::custom("found"));
            }
            chart.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

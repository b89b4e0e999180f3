//! `null` in a JSON document.

use serde::{Deserialize, Deserializer};

/// Parses a null as an absent field, as the API server does.
pub fn null_is_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

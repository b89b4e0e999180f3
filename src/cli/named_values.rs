//! The values of an option that has a list of them.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// A parser of values that have these names, with their help.
pub(super) fn named_values<T>(
    values: impl IntoIterator<Item = (&'static str, Option<&'static str>, T)>,
) -> impl TypedValueParser<Value = T>
where
    T: Clone + Send + Sync + 'static,
{
    let values: Vec<_> = values.into_iter().collect();
    let names: Vec<_> = values.iter().map(|(name, help, _)| PossibleValue::new(*name).help(*help)).collect();
    PossibleValuesParser::new(names).try_map(move |name| {
        values.iter().find(|(it, ..)| *it == name).map(|(.., value)| value.clone()).ok_or("not a value")
    })
}

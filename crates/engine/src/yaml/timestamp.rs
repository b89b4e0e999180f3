//! Times that go-yaml accepts after `!!timestamp`.

use std::sync::LazyLock;

use jiff::civil::Date;
use regex::Regex;

/// One of go-yaml's four formats: a date; a date, blanks and a time; a date, `T` or `t`, a time and an offset. Months,
/// days, hours, minutes and seconds have one or two digits.
static TIMESTAMP: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let time = "(?:[01]?[0-9]|2[0-3]):[0-5]?[0-9]:[0-5]?[0-9](?:[.,][0-9]+)?";
    let offset = "(?:Z|[+-](?:[01][0-9]|2[0-4]):(?:[0-5][0-9]|60))";
    Regex::new(&format!("^([0-9]{{4}})-([0-9]{{1,2}})-([0-9]{{1,2}})(?: +{time}|[Tt]{time}{offset})?$")).ok()
});

/// Whether Go parses a text as a time.
pub(super) fn is_timestamp(text: &str) -> bool {
    let date = TIMESTAMP.as_ref().and_then(|format| {
        let (_, [year, month, day]) = format.captures(text)?.extract();
        Date::new(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?).ok()
    });
    date.is_some()
}

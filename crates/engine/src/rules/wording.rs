//! Phrases that several rules use.

use std::borrow::Borrow;

use jiff::{SignedDuration, Timestamp};

use crate::json::FieldPath;
pub(crate) use crate::owners::helm::words::operation;
use crate::release::record::truncated;
use crate::release::{Revision, Status};
pub(crate) use crate::text::capitalized;
pub use crate::text::command::command;
use crate::text::printable_name;

/// The maximum number of names in a message.
pub const MAX_ENUMERATED: usize = 5;

/// `pending-upgrade, revision 6, held by alice for 12 s`. `held` appears only while an operation is in flight.
pub(crate) fn state(
    status: Status,
    revision: Revision,
    holder: Option<&str>,
    started: Option<Timestamp>,
    now: Timestamp,
) -> String {
    let mut text = format!("{status}, revision {revision}");
    if status.is_in_flight() {
        let holder = user(holder);
        let since = started.map(|started| format!(" for {}", span(now.duration_since(started)))).unwrap_or_default();
        text.push_str(&format!(", held by {holder}{since}"));
    }
    text
}

/// A user in a sentence. Long names are shortened, so that the rest of the sentence is not cut off.
pub fn user(name: Option<&str>) -> String {
    name.map_or_else(|| "an unknown user".to_owned(), printable_name)
}

/// A status from a label or a body. Only Helm's own statuses are shown: any other text could be a secret.
pub(crate) fn known_status(text: &str) -> &'static str {
    text.parse().map_or("no known status", Status::as_str)
}

/// `a, b and 3 more`, for fields.
pub fn fields<F: Borrow<FieldPath>>(fields: &[F], most: usize) -> String {
    enumerated(fields.iter().map(|field| truncated(&field.borrow().to_string())), most)
}

/// `a, b and 3 more`.
pub fn enumerated(names: impl ExactSizeIterator<Item = String>, most: usize) -> String {
    let more = names.len().saturating_sub(most);
    let mut shown: Vec<_> = names.take(most).collect();
    if more > 0 {
        shown.push(format!("{more} more"));
    }
    match shown.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => shown.concat(),
    }
}

/// A whole number of seconds (below 100), minutes (below 100), hours (below 48) or days: `12 s`, `14 min`, `3 h`, `5 d`.
pub fn span(duration: SignedDuration) -> String {
    let seconds = duration.as_secs().max(0);
    match seconds {
        0..=99 => format!("{seconds} s"),
        100..=5_999 => format!("{} min", seconds / 60),
        6_000..=172_799 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_fields_are_named() {
        let paths: Vec<_> = ["a", "b", "c", "d", "e", "f", "g"].iter().map(|name| FieldPath::of([*name])).collect();
        assert_eq!(fields(&paths[..1], 5), "a");
        assert_eq!(fields(&paths[..2], 5), "a and b");
        assert_eq!(fields(&paths[..5], 5), "a, b, c, d and e");
        assert_eq!(fields(&paths, 5), "a, b, c, d, e and 2 more");
    }

    #[test]
    fn a_long_user_name_is_shortened() {
        let text = state(Status::PendingUpgrade, Revision(6), Some(&"x".repeat(1 << 20)), None, Timestamp::UNIX_EPOCH);
        assert!(text.len() < 300 && text.starts_with("pending-upgrade, revision 6, held by xxx"), "{text}");
        assert_eq!((user(None), user(Some("a\u{1b}b"))), ("an unknown user".to_owned(), "a\u{fffd}b".to_owned()));
    }

    #[test]
    fn spans_are_short() {
        for (seconds, text) in
            [(-3, "0 s"), (12, "12 s"), (99, "99 s"), (125, "2 min"), (7_300, "2 h"), (200_000, "2 d")]
        {
            assert_eq!(span(SignedDuration::from_secs(seconds)), text);
        }
    }
}

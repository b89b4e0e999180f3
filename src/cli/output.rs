//! The output of commands: formats and printing.
//!
//! Recordings, files and clusters contain names that other users chose, and terminals obey escape sequences in names. So every command prints
//! through this module. Text for people contains no unprintable characters. JSON contains them escaped, so that programs read the exact
//! values.

use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write, stderr, stdout};

use clap::ValueEnum;
use interlock_engine::text::{is_printable, printable, shown_as};
use kube::{Resource, ResourceExt};
use serde::Serialize;

/// The longest line of a text for people, in bytes. A coloured table on the widest terminal is far below this limit.
const MAX_LINE_BYTES: usize = 16 * 1024;

/// The output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Output {
    /// For people.
    Table,
    /// For programs.
    Json,
    /// For programs and people.
    Yaml,
}

impl Output {
    /// Prints one document: the value for programs, or the text for people.
    pub(super) fn print(self, value: &impl Serialize, text: impl FnOnce() -> String) -> anyhow::Result<()> {
        match self {
            Self::Table => Ok(print(&text())?),
            Self::Json => print_json(value),
            Self::Yaml => print_yaml(value),
        }
    }

    /// Prints one document of a stream for programs: JSON on one line, or YAML after a separator.
    pub(super) fn print_next(self, out: &mut impl Write, value: &impl Serialize) -> anyhow::Result<()> {
        match self {
            Self::Table => {}
            Self::Json => writeln!(out, "{}", json(value)?)?,
            Self::Yaml => write!(out, "---\n{}", yaml(value)?)?,
        }
        Ok(())
    }
}

/// The output format of a command that creates or deletes objects of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ObjectOutput {
    /// For people.
    Table,
    /// For programs.
    Json,
    /// For programs and people.
    Yaml,
    /// KIND.GROUP/NAME, one line per object, as kubectl prints it.
    Name,
}

impl ObjectOutput {
    /// Prints the objects: the value for programs, the text for people, or the names.
    pub(super) fn print<K: Resource<DynamicType = ()>>(
        self,
        objects: &[K],
        value: &impl Serialize,
        text: impl FnOnce() -> String,
    ) -> anyhow::Result<()> {
        match self {
            Self::Table => Output::Table.print(value, text),
            Self::Json => Output::Json.print(value, text),
            Self::Yaml => Output::Yaml.print(value, text),
            Self::Name => Ok(print(&objects.iter().map(|object| named(object) + "\n").collect::<String>())?),
        }
    }
}

/// For example `freeze.interlock.dev/stop-x7k2p`.
fn named<K: Resource<DynamicType = ()>>(object: &K) -> String {
    format!("{}.{}/{}", K::kind(&()).to_lowercase(), K::group(&()), object.name_any())
}

/// Prints a text for people to standard output.
pub(super) fn print(text: &str) -> std::io::Result<()> {
    stdout().write_all(screened(text, stdout().is_terminal()).as_bytes())
}

/// Prints a text for people to standard error. Ignores a failed write, because there is nowhere left to report it.
pub(super) fn complain(text: &str) {
    let mut stderr = stderr();
    _ = writeln!(stderr, "{}", screened(text, stderr.is_terminal()));
}

/// Whether a command ended because standard output was closed. A connection that the API server closes is the cause of another error.
pub(super) fn is_unread(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

/// Prints indented JSON to standard output.
pub(super) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    Ok(writeln!(stdout(), "{}", pretty_json(value)?)?)
}

/// Prints YAML to standard output.
pub(super) fn print_yaml(value: &impl Serialize) -> anyhow::Result<()> {
    Ok(stdout().write_all(yaml(value)?.as_bytes())?)
}

/// YAML. Unprintable characters are replaced as in a text for people.
pub(super) fn yaml(value: &impl Serialize) -> Result<String, serde_saphyr::ser::Error> {
    Ok(screened(&serde_saphyr::to_string(value)?, false).into_owned())
}

/// JSON on one line.
pub(super) fn json(value: &impl Serialize) -> serde_json::Result<String> {
    serde_json::to_string(value).map(escaped)
}

/// Indented JSON.
pub(super) fn pretty_json(value: &impl Serialize) -> serde_json::Result<String> {
    serde_json::to_string_pretty(value).map(escaped)
}

/// A text of several lines without unprintable characters. With `coloured`, colours are kept: a smuggled sequence can change only the
/// colour.
pub(super) fn screened(text: &str, coloured: bool) -> Cow<'_, str> {
    if text.len() <= MAX_LINE_BYTES && text.split('\n').all(is_printable) {
        return Cow::Borrowed(text);
    }
    let mut screened = String::with_capacity(text.len());
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            screened.push('\n');
        }
        let mut rest = line;
        while let Some((before, colour, after)) = split_at_colour(rest).filter(|_| coloured) {
            screened.push_str(&printable(before, MAX_LINE_BYTES));
            screened.push_str(colour);
            rest = after;
        }
        screened.push_str(&printable(rest, MAX_LINE_BYTES));
    }
    Cow::Owned(screened)
}

/// The first colour sequence, for example `ESC [ 31 m`, with the text before and after it.
fn split_at_colour(text: &str) -> Option<(&str, &str, &str)> {
    const START: &str = "\x1b[";
    text.match_indices(START).find_map(|(start, _)| {
        let parameters = &text[start + START.len()..];
        let length = parameters.find(|letter: char| !letter.is_ascii_digit() && letter != ';')?;
        let after = parameters[length..].strip_prefix('m')?;
        Some((&text[..start], &text[start..text.len() - after.len()], after))
    })
}

/// JSON with escapes for unprintable characters. Outside of strings, JSON contains only line breaks of these.
pub(super) fn escaped(json: String) -> String {
    if json.split('\n').all(is_printable) {
        return json;
    }
    let mut escaped = String::with_capacity(json.len() + 64);
    for character in json.chars() {
        if character == '\n' || shown_as(character) == character {
            escaped.push(character);
        } else {
            escaped.extend(character.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use interlock_engine::text::hostile::hostile;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::world::kubernetes::freeze_definition::{Freeze, FreezeSpec};

    proptest! {
        #[test]
        fn no_text_reaches_a_terminal_as_a_command(text in hostile(), other in hostile()) {
            let plain = screened(&text, false);
            prop_assert!(plain.split('\n').all(|line| is_printable(line) && line.len() <= MAX_LINE_BYTES));
            let coloured = format!("\x1b[31m{text}\x1b[0m {other}");
            let mut shown = screened(&coloured, true).into_owned();
            while let Some((before, _, after)) = split_at_colour(&shown) {
                shown = format!("{before}{after}");
            }
            prop_assert!(shown.split('\n').all(is_printable), "{shown:?}");
        }

        #[test]
        fn json_is_printable_and_reads_back_as_the_exact_values(key in hostile(), value in hostile()) {
            let (mut object, replaced) = (json!({"list": [1, value, null]}), value.clone());
            object[&key] = replaced.into();
            for text in [json(&object).unwrap(), pretty_json(&object).unwrap()] {
                prop_assert!(text.split('\n').all(is_printable), "{text:?}");
                prop_assert_eq!(&serde_json::from_str::<Value>(&text).unwrap(), &object);
            }
        }
    }

    #[test]
    fn a_name_has_kind_and_group_as_in_kubectl() {
        let spec: FreezeSpec = serde_json::from_value(json!({"reason": "INC-7", "timeZone": "UTC"})).unwrap();
        assert_eq!(named(&Freeze::new("stop-x7k2p", spec)), "freeze.interlock.dev/stop-x7k2p");
    }

    #[test]
    fn only_colours_reach_a_terminal() {
        let text = "\x1b[38;5;9mDENIED\x1b[0m\n\x1b[2Jcleared \x1b]0;title\x07 \x1b[31";
        assert_eq!(
            screened(text, true),
            "\x1b[38;5;9mDENIED\x1b[0m\n\u{fffd}[2Jcleared \u{fffd}]0;title\u{fffd} \u{fffd}[31"
        );
        assert!(!screened(text, false).contains('\x1b'));
        assert!(matches!(screened("a\nb\n", true), Cow::Borrowed("a\nb\n")));
    }
}

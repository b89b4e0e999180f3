//! Changes as CSV (RFC 4180), for spreadsheets. Without a dependency, because this code only writes, and only one dialect.

use std::io::{BufWriter, Write, stdout};

use interlock_engine::release::Status;

use crate::cli::table::printable;
use crate::inspect::changes::Change;

/// The columns. Their names are a public interface and equal the fields in JSON.
const COLUMNS: [&str; 21] = [
    "time",
    "namespace",
    "release",
    "revision",
    "storage",
    "transition",
    "from",
    "to",
    "outcome",
    "user",
    "groups",
    "omittedGroups",
    "holder",
    "chart",
    "seconds",
    "override",
    "ticket",
    "freeze",
    "source",
    "certainty",
    "cluster",
];

/// Spreadsheets treat a cell that starts with one of these as a formula, and run it.
const FORMULA_STARTS: [char; 4] = ['=', '+', '-', '@'];

/// Prints a heading, and a line for each change.
pub(super) fn print(changes: &[Change]) -> std::io::Result<()> {
    let mut out = BufWriter::new(stdout().lock());
    out.write_all(line(&COLUMNS.map(str::to_owned)).as_bytes())?;
    changes.iter().try_for_each(|change| out.write_all(line(&cells(change)).as_bytes()))?;
    out.flush()
}

fn cells(change: &Change) -> [String; COLUMNS.len()] {
    [
        change.time.to_string(),
        change.release.namespace.clone(),
        change.release.release.clone(),
        change.release.revision.map(|revision| revision.to_string()).unwrap_or_default(),
        change.release.storage.to_owned(),
        change.transition.to_string(),
        status(change.from),
        status(change.to),
        change.outcome.as_str().to_owned(),
        text(change.user.as_deref()),
        change.groups.to_json().unwrap_or_default(),
        change.groups.omitted().to_string(),
        text(change.holder.as_deref()),
        text(change.chart.as_deref()),
        change.seconds.map(|seconds| seconds.to_string()).unwrap_or_default(),
        text(change.overridden.as_deref()),
        text(change.ticket.as_deref()),
        text(change.freeze.as_deref()),
        change.source.as_str().to_owned(),
        change.certainty.as_str().to_owned(),
        text(change.cluster.as_deref()),
    ]
}

fn status(status: Option<Status>) -> String {
    text(status.map(Status::as_str))
}

fn text(text: Option<&str>) -> String {
    text.unwrap_or_default().to_owned()
}

/// A line, including the line break.
fn line(cells: &[String]) -> String {
    let cells: Vec<_> = cells.iter().map(|text| cell(text)).collect();
    cells.join(",") + "\r\n"
}

/// A cell on one line, quoted if necessary. An apostrophe prevents a formula.
fn cell(text: &str) -> String {
    let text = printable(text);
    let text = if text.trim_start().starts_with(FORMULA_STARTS) { format!("'{text}") } else { text };
    let is_plain = !text.contains([',', '"', '\'', ';']) && text.trim() == text;
    if is_plain { text } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_quoted_only_if_necessary() {
        for (text, wanted) in [
            ("alice", "alice"),
            ("", ""),
            ("system:serviceaccount:ci:bot", "system:serviceaccount:ci:bot"),
            ("CN=a,OU=b", "\"CN=a,OU=b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            (" a", "\" a\""),
            ("a;b", "\"a;b\""),
        ] {
            assert_eq!(cell(text), wanted);
        }
    }

    #[test]
    fn no_name_becomes_a_formula_or_breaks_a_line() {
        for name in ["=cmd|' /C calc'!A0", "+1", "-2+3", "@SUM(A1)", "  =1", "\t=1", "\r\n=1"] {
            let cell = cell(name);
            assert!(cell.starts_with("\"'"), "{name:?}: {cell}");
            assert!(!cell.contains(['\r', '\n', '\t']), "{cell:?}");
        }
        assert_eq!(line(&["a".to_owned(), "b\nc".to_owned()]), "a,b c\r\n");
    }
}

//! Tables for people: plain columns like kubectl's, at most 100 characters wide, in colour only on a terminal.

use std::io::{IsTerminal, stdout};

use comfy_table::presets::NOTHING;
use comfy_table::{Cell, Color, ColumnConstraint, ContentArrangement, Table, Width};
use interlock_engine::text;

/// The least and the largest width of a table, in characters. A terminal may report a width of zero.
const WIDTHS: (u16, u16) = (40, 100);

/// The space between two columns.
const GAP: u16 = 3;

/// Escape sequences for colours, and for their end.
pub(super) const RED: &str = "\x1b[31m";
pub(super) const YELLOW: &str = "\x1b[33m";
pub(super) const PLAIN: &str = "\x1b[0m";

/// An empty table with a heading.
pub(super) fn table(heading: &[&str]) -> Table {
    let mut table = Table::new();
    let heading = heading.iter().map(|name| name.to_uppercase());
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_header(heading);
    table.column_iter_mut().for_each(|column| _ = column.set_padding((0, GAP)));
    let (least, most) = WIDTHS;
    table.set_width(table.width().map_or(most, |width| width.clamp(least, most)));
    if !colours() {
        table.force_no_tty();
    }
    table
}

/// Makes a column wide enough for each of these words, so that none is broken on a narrow terminal.
pub(super) fn fit_words<'w>(table: &mut Table, column: usize, words: impl Iterator<Item = &'w str>) {
    let longest = words.map(|word| word.chars().count()).max().unwrap_or_default();
    if let (Some(column), Ok(width)) = (table.column_mut(column), u16::try_from(longest)) {
        column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(width.saturating_add(GAP))));
    }
}

/// `allowed` or `DENIED`, in colour on a terminal.
pub(super) fn verdict(allowed: bool) -> Cell {
    if allowed { Cell::new("allowed").fg(Color::Green) } else { Cell::new("DENIED").fg(Color::Red) }
}

/// A printable text on one line. Names come from the cluster, and a terminal would obey their escape sequences.
pub(super) fn printable(text: &str) -> String {
    text::printable(text, text::MAX_MESSAGE_BYTES).into_owned()
}

/// Whether to print colours to standard output.
pub(super) fn colours() -> bool {
    stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

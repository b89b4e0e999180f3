//! Tables for people: at most 100 columns wide, in colour only on a terminal.

use std::io::{IsTerminal, stdout};

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{Cell, Color, ContentArrangement, Table};

use crate::engine::text;

/// The maximum width of a table.
const MAX_WIDTH: u16 = 100;

/// Escape sequences for colours, and for their end.
pub(super) const RED: &str = "\x1b[31m";
pub(super) const YELLOW: &str = "\x1b[33m";
pub(super) const PLAIN: &str = "\x1b[0m";

/// An empty table with a heading.
pub(super) fn table(heading: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic).set_header(heading);
    let narrower = table.width().is_none_or(|width| width > MAX_WIDTH);
    if narrower {
        table.set_width(MAX_WIDTH);
    }
    table
}

/// `allowed` or `DENIED`, in colour on a terminal.
pub(super) fn verdict(allowed: bool) -> Cell {
    if allowed { Cell::new("allowed").fg(Color::Green) } else { Cell::new("DENIED").fg(Color::Red) }
}

/// A text on one line, for a cell or the rest of a line: names come from the cluster, and a terminal would obey their escape
/// sequences.
pub(super) fn printable(text: &str) -> String {
    text::printable(text, text::MAX_MESSAGE_BYTES).into_owned()
}

/// Whether to print colours to standard output.
pub(super) fn colours() -> bool {
    stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

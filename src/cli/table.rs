//! Tables for people: plain columns like kubectl's, at most 100 characters wide, in colour only on a terminal.

use std::io::{IsTerminal, stdout};

use comfy_table::presets::NOTHING;
use comfy_table::{Cell, Color, ColumnConstraint, ContentArrangement, Table, Width};
use interlock_engine::text;

/// The least and the largest width of a table, in characters.
const WIDTHS: (u16, u16) = (40, 100);

/// The space between two columns.
const GAP: u16 = 3;

/// Escape sequences for colours, and for their end.
pub(super) const RED: &str = "\x1b[31m";
pub(super) const YELLOW: &str = "\x1b[33m";
const PLAIN: &str = "\x1b[0m";

/// An empty table with a heading.
pub(super) fn table(heading: &[&str]) -> Table {
    let mut table = Table::new();
    let heading = heading.iter().map(|name| name.to_uppercase());
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_header(heading);
    table.column_iter_mut().for_each(|column| _ = column.set_padding((0, GAP)));
    table.set_width(width(table.width()));
    if !colours() {
        table.force_no_tty();
    }
    table
}

/// The width of a table. A terminal that does not know its width reports zero.
fn width(terminal: Option<u16>) -> u16 {
    let (least, most) = WIDTHS;
    terminal.filter(|width| *width > 0).map_or(most, |width| width.clamp(least, most))
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

/// The text, in a colour if there is one.
pub(super) fn painted(text: &str, colour: Option<&str>) -> String {
    colour.map_or_else(|| text.to_owned(), |colour| format!("{colour}{text}{PLAIN}"))
}

/// A printable text on one line. Names come from the cluster, and a terminal would obey their escape sequences.
pub(super) fn printable(text: &str) -> String {
    text::printable(text, text::MAX_MESSAGE_BYTES).into_owned()
}

/// Whether to print colours to standard output.
pub(super) fn colours() -> bool {
    stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of findings on a terminal of this width.
    fn shown(terminal: u16) -> String {
        let mut table = table(&["severity", "release", "check", "problem and fix"]);
        table.set_width(width(Some(terminal)));
        fit_words(&mut table, 0, ["medium"].into_iter());
        fit_words(&mut table, 1, ["shop/web"].into_iter());
        table.add_row(["medium", "shop/web", "pending", "a sentence that goes on and on, because it has many words"]);
        table.to_string()
    }

    #[test]
    fn a_terminal_without_a_width_has_the_largest_one() {
        for (terminal, wanted) in [(None, 100), (Some(0), 100), (Some(1), 40), (Some(40), 40), (Some(300), 100)] {
            assert_eq!(width(terminal), wanted, "{terminal:?}");
        }
        assert_eq!(shown(0), shown(100));
    }

    #[test]
    fn a_narrow_terminal_has_every_column_and_every_word() {
        let text = shown(40);
        assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
        // The heading and the row share no line, so each column reads downwards.
        let column = |from: usize, to: usize| {
            let pieces = text.lines().map(|line| line.chars().skip(from).take(to - from).collect::<String>());
            pieces.flat_map(|piece| piece.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect::<String>()
        };
        let first = text.lines().next().unwrap();
        let starts: Vec<_> =
            (0..first.len()).filter(|at| first[..*at].ends_with(' ') && !first[*at..].starts_with(' ')).collect();
        assert_eq!(starts.len(), 3, "{text}");
        assert_eq!(column(0, starts[0]), "SEVERITYmedium");
        assert_eq!(column(starts[0], starts[1]), "RELEASEshop/web");
        assert_eq!(column(starts[1], starts[2]), "CHECKpending");
        let last = column(starts[2], 40);
        assert_eq!(last, "PROBLEMANDFIXasentencethatgoesonandon,becauseithasmanywords", "{text}");
        assert!(text.contains("medium") && text.contains("shop/web"), "{text}");
    }
}

//! Prints releases for people, in plain columns that can be searched and cut. With colours on a terminal.

use interlock_engine::rules::wording::span;
use jiff::Timestamp;

use crate::cli::runbook_checks::checks;
use crate::cli::table::{RED, YELLOW, colours, painted, printable};
use crate::inspect::diagnosis::Stuck;
use crate::inspect::status::{
    HelmReleaseOverview, OperationSummary, OverrideInForce, ReleaseDescription, ReleaseSummary, RevisionSummary,
};

/// The space between two columns.
const COLUMN_GAP: &str = "   ";

/// The maximum width of a column whose values may be shortened.
const MAX_CELL_WIDTH: usize = 48;

/// The columns, with the widths of the first output, so that later lines are aligned.
pub(super) struct ReleaseTable {
    wide: bool,
    coloured: bool,
    widths: Vec<usize>,
}

#[derive(Clone)]
struct Cell {
    text: String,
    colour: Option<&'static str>,
}

impl ReleaseTable {
    /// A table for standard output.
    pub(super) fn new(wide: bool) -> Self {
        Self { wide, coloured: colours(), widths: Vec::new() }
    }

    /// The heading and all releases.
    pub(super) fn all(&mut self, rows: &[ReleaseSummary], now: Timestamp) -> String {
        let has_clusters = rows.iter().any(|row| row.cluster.is_some());
        let mut heading: Vec<_> = has_clusters.then_some("CLUSTER").into_iter().collect();
        heading.extend(["RELEASE", "REVISION", "STATUS", "SINCE", "HOLDER", "CHART", "OWNER", "STUCK"]);
        heading.extend(self.wide.then_some(["STORAGE", "RECORD"]).into_iter().flatten());
        heading.push("NEXT");
        let heading = heading.into_iter().map(|text| Cell { text: text.to_owned(), colour: None }).collect();
        self.table([heading].into_iter().chain(rows.iter().map(|row| self.cells(row, now))).collect())
    }

    /// The lines of a table, which starts with its heading.
    fn table(&mut self, table: Vec<Vec<Cell>>) -> String {
        let widths = (0..table[0].len())
            .map(|column| table.iter().map(|cells| cells[column].text.chars().count()).max().unwrap_or(0));
        self.widths = widths.collect();
        table.iter().map(|cells| self.line(cells)).collect()
    }

    /// One more release.
    pub(super) fn one(&self, row: &ReleaseSummary, now: Timestamp) -> String {
        self.line(&self.cells(row, now))
    }

    fn cells(&self, row: &ReleaseSummary, now: Timestamp) -> Vec<Cell> {
        let status = match row.status {
            "failed" => Some(YELLOW),
            _ if row.stuck == Stuck::Yes => Some(RED),
            _ => None,
        };
        let (stuck, colour) = stuck(row.stuck);
        let mut cells: Vec<_> = row.cluster.clone().map(plain).into_iter().collect();
        cells.extend([
            plain(row.release_ref().to_string()),
            plain(row.revision.to_string()),
            Cell { text: row.status.to_owned(), colour: status },
            plain(row.since.map_or("-".to_owned(), |since| span(now.duration_since(since)))),
            shortened_or_dash(holder(row)),
            shortened_or_dash(row.chart.clone()),
            plain(row.owner.display()),
            Cell { text: stuck.to_owned(), colour },
        ]);
        if self.wide {
            cells.extend([plain(row.storage.name().to_owned()), plain(row.record.clone())]);
        }
        cells.push(plain(row.next.clone().unwrap_or_else(|| "-".to_owned())));
        cells
    }

    fn line(&self, cells: &[Cell]) -> String {
        let last = cells.len() - 1;
        let mut line = String::new();
        for (column, Cell { text, colour }) in cells.iter().enumerate() {
            line.push_str(&painted(text, colour.filter(|_| self.coloured)));
            if column < last {
                let width = self.widths.get(column).copied().unwrap_or_default();
                line.extend(std::iter::repeat_n(' ', width.saturating_sub(text.chars().count())));
                line.push_str(COLUMN_GAP);
            }
        }
        line + "\n"
    }
}

/// The heading and the operations of objects that carry these themselves.
pub(super) fn operations(carried: &[OperationSummary], now: Timestamp) -> String {
    let has_clusters = carried.iter().any(|it| it.cluster.is_some());
    let heading = ["OBJECT", "OPERATION", "SINCE", "HOLDER", "STUCK", "NEXT"];
    let heading = has_clusters.then_some("CLUSTER").into_iter().chain(heading);
    let heading = heading.map(|text| plain(text.to_owned())).collect();
    let rows = carried.iter().map(|it| operation(it, now));
    ReleaseTable::new(false).table([heading].into_iter().chain(rows).collect())
}

fn operation(it: &OperationSummary, now: Timestamp) -> Vec<Cell> {
    let (stuck, colour) = stuck(it.stuck);
    let cluster = it.cluster.clone().map(plain);
    cluster
        .into_iter()
        .chain([
            plain(format!("{} {}/{}", it.kind, it.namespace, it.name)),
            plain(it.stage.to_owned()),
            plain(it.since.map_or("-".to_owned(), |since| span(now.duration_since(since)))),
            shortened_or_dash(it.holder.clone()),
            Cell { text: stuck.to_owned(), colour },
            plain(it.next.clone().unwrap_or_else(|| "-".to_owned())),
        ])
        .collect()
}

fn plain(text: String) -> Cell {
    Cell { text: printable(&text), colour: None }
}

fn shortened_or_dash(text: Option<String>) -> Cell {
    plain(text.map_or("-".to_owned(), |text| shortened(&text)))
}

/// The description of one release.
pub(super) fn description(it: &ReleaseDescription, now: Timestamp) -> String {
    let ReleaseDescription { row, history, overrides, helm_releases, not_looked_at, .. } = it;
    let since = |since: Option<Timestamp>| {
        since.map_or("at an unknown time".to_owned(), |at| format!("{at:.0} ({} ago)", span(now.duration_since(at))))
    };
    let (stuck, colour) = stuck(row.stuck);
    let stuck = painted(stuck, colour.filter(|_| colours()));
    let from = row.stuck_from.map(|from| format!(", from {from:.0}")).unwrap_or_default();
    let mut text = format!(
        "{}\n  status       {}, revision {}, since {}\n  holder       {}\n  chart        {}\n  owner        {}\n  record       {} {}\n  stuck        {stuck}{from}\n",
        row.release_ref(),
        row.status,
        row.revision,
        since(row.since),
        printable(&holder(row).unwrap_or_else(|| "unknown".to_owned())),
        printable(row.chart.as_deref().unwrap_or("unknown")),
        row.owner.display(),
        row.storage.name(),
        row.record,
    );
    if let Some(note) = &row.interrupted {
        text.push_str(&format!("  interrupted  {}\n", printable(note)));
    }
    for problem in &row.problems {
        text.push_str(&format!("  wrong        {}\n", printable(&problem.message)));
    }
    text.push_str(&format!("  next         {}\n", printable(row.next.as_deref().unwrap_or("nothing"))));
    if let Some(why) = &row.why {
        text.push_str(&format!("  because      {}\n", printable(why)));
    }
    text.push_str("\nHistory\n");
    for RevisionSummary { revision, status, since: at, chart, holder } in history {
        let [chart, holder] = [chart, holder].map(|text| printable(text.as_deref().unwrap_or("-")));
        text.push_str(&format!("  {revision:>4}  {status:<16}  since {}  {chart}  {holder}\n", since(*at)));
    }
    if !it.checks.is_empty() {
        text.push_str("\nChecks before the record may be deleted\n");
        text.push_str(&checks(&it.checks, colours()));
    }
    text.push_str(&overrides_text(overrides));
    if !helm_releases.is_empty() {
        text.push_str("\nHelmReleases\n");
    }
    for HelmReleaseOverview { name, drives, suspended, longest_timeout_seconds } in helm_releases {
        let drives = if *drives { "manages it" } else { "refers to its records, but has not installed it" };
        let suspended = if *suspended { ", suspended" } else { "" };
        text.push_str(&format!("  {name} {drives}{suspended}; an operation may take {longest_timeout_seconds} s\n"));
    }
    for gap in not_looked_at {
        text.push_str(&format!("\nnot read: {}\n", printable(gap)));
    }
    text
}

/// The overrides in force, if any.
fn overrides_text(overrides: &[OverrideInForce]) -> String {
    let mut text = String::new();
    if !overrides.is_empty() {
        text.push_str("\nOverrides in force\n");
    }
    for OverrideInForce { name, rules, users, until, reason, ticket } in overrides {
        let users = if users.is_empty() { "all users".to_owned() } else { users.join(", ") };
        let until = until.map_or(String::new(), |until| format!(" until {until:.0}"));
        let ticket = ticket.as_ref().map_or(String::new(), |ticket| format!(" (ticket {ticket})"));
        let line = format!("{name} suspends {} for {users}{until}: {reason}{ticket}", rules.join(", "));
        text.push_str(&format!("  {}\n", printable(&line)));
    }
    text
}

/// The holder of a release. A field manager is only a hint and is marked with `?`.
fn holder(row: &ReleaseSummary) -> Option<String> {
    row.holder.clone().or_else(|| row.manager.as_ref().map(|manager| format!("({manager}?)")))
}

fn stuck(stuck: Stuck) -> (&'static str, Option<&'static str>) {
    match stuck {
        Stuck::No => ("no", None),
        Stuck::Yes => ("yes", Some(RED)),
        Stuck::Unknown => ("unknown", Some(YELLOW)),
    }
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= MAX_CELL_WIDTH {
        return text.to_owned();
    }
    text.chars().take(MAX_CELL_WIDTH - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(release: &str, holder: Option<&str>) -> ReleaseSummary {
        ReleaseSummary {
            release: release.to_owned(),
            record: format!("sh.helm.release.v1.{release}.v2"),
            since: Some("2026-11-21T09:00:00Z".parse().unwrap()),
            holder: holder.map(str::to_owned),
            manager: Some("helm".to_owned()),
            chart: Some("demo-1.0.0".to_owned()),
            stuck: Stuck::Yes,
            next: Some(format!("interlock unstick shop/{release}")),
            ..ReleaseSummary::of_web("pending-upgrade")
        }
    }

    #[test]
    fn later_lines_are_aligned_with_the_first_output() {
        let now = "2026-11-21T10:00:00Z".parse().unwrap();
        let mut lines = ReleaseTable { wide: false, coloured: false, widths: Vec::new() };
        let all = lines.all(&[row("web", Some("alice")), row("a-longer-name", None)], now);
        let all: Vec<_> = all.lines().collect();
        assert_eq!(
            all[1],
            "shop/web             2          pending-upgrade   60 min   alice     demo-1.0.0   Helm    yes     \
             interlock unstick shop/web"
        );
        assert!(all[2].contains("(helm?)"), "{}", all[2]);
        let at = |line: &str, text: &str| line.find(text).unwrap();
        assert_eq!(at(all[0], "CHART"), at(all[2], "demo-1.0.0"));
        assert_eq!(at(all[0], "NEXT"), at(&lines.one(&row("web", None), now), "interlock"));
    }

    #[test]
    fn colours_are_for_terminals_and_control_characters_for_none() {
        let now = "2026-11-21T10:00:00Z".parse().unwrap();
        let hostile = row("web", Some("\x1b[2Jalice\n"));
        let mut lines = ReleaseTable { wide: true, coloured: false, widths: Vec::new() };
        let all = lines.all(std::slice::from_ref(&hostile), now);
        assert!(!all.contains('\x1b') && all.lines().count() == 2, "{all:?}");
        lines.coloured = true;
        assert!(lines.one(&hostile, now).contains("\x1b[31mpending-upgrade\x1b[0m"));
    }
}

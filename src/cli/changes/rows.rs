//! Changes as a table for people.

use comfy_table::{Cell, Color, ColumnConstraint};
use interlock_engine::decision::TransitionOutcome;

use crate::cli::table::{self, printable};
use crate::inspect::changes::{Certainty, Change};

/// The table, one row for each change. With a column for the cluster if one is named.
pub(super) fn table(changes: &[Change]) -> String {
    let has_clusters = changes.iter().any(|change| change.cluster.is_some());
    let headings = ["time (UTC)", "release", "rev", "change", "who", "chart", "by", "source"];
    let headings: Vec<_> = headings.into_iter().chain(has_clusters.then_some("cluster")).collect();
    let mut table = table::table(&headings);
    for change in changes {
        let kind = change.release.carrier().map(|carrier| format!("{} ", carrier.kind)).unwrap_or_default();
        let release = format!("{kind}{}/{}", change.release.namespace, change.release.release);
        let revision = change.release.revision.map_or("-".to_owned(), |revision| revision.to_string());
        let who = change.user.as_deref().or(change.holder.as_deref()).unwrap_or("-");
        let cells = [
            change.time.strftime("%Y-%m-%d %H:%M:%S").to_string(),
            printable(&release),
            revision,
            what(change),
            printable(who),
            printable(change.chart.as_deref().unwrap_or("-")),
            override_and_freeze(change),
            source(change),
        ];
        let cluster = has_clusters.then(|| printable(change.cluster.as_deref().unwrap_or("-")));
        let cells = cells.into_iter().chain(cluster).map(|text| {
            let cell = Cell::new(text);
            if change.is_refused() { cell.fg(Color::Red) } else { cell }
        });
        table.add_row(cells);
    }
    // Times must stay on one line, so that users can search for them.
    if let Some(times) = table.column_mut(0) {
        times.set_constraint(ColumnConstraint::ContentWidth);
    }
    format!("{table}\n")
}

/// `deployed (40 s)`, `upgrade (refused)`.
fn what(change: &Change) -> String {
    let outcome = match change.outcome {
        TransitionOutcome::Allowed => None,
        other => Some(other.as_str().to_owned()),
    };
    let took = change.seconds.map(|seconds| format!("{seconds} s"));
    let more: Vec<_> = took.into_iter().chain(outcome).collect();
    if more.is_empty() { change.transition.to_string() } else { format!("{} ({})", change.transition, more.join(", ")) }
}

/// The override that allowed the change, with its ticket, and the freeze that was in force.
fn override_and_freeze(change: &Change) -> String {
    let ticket = change.ticket.as_ref().map(|ticket| format!(" ({})", printable(ticket))).unwrap_or_default();
    let overridden = change.overridden.as_ref().map(|name| format!("override {}{ticket}", printable(name)));
    let frozen = change.freeze.as_ref().map(|name| format!("freeze {}", printable(name)));
    overridden.into_iter().chain(frozen).collect::<Vec<_>>().join(", ")
}

/// `log`, `record, inferred`.
fn source(change: &Change) -> String {
    match change.certainty {
        Certainty::Sure => change.source.as_str().to_owned(),
        unsure => format!("{}, {}", change.source.as_str(), unsure.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use interlock_engine::decision::TransitionKind;
    use jiff::Timestamp;

    use super::*;
    use crate::inspect::changes::{ChangeSource, ChangedRelease};

    #[test]
    fn an_override_is_shown_with_its_ticket_and_the_freeze() {
        let release =
            ChangedRelease { namespace: "shop".into(), release: "web".into(), revision: Some(7), storage: "Secret" };
        let change = Change::new(Timestamp::UNIX_EPOCH, release, TransitionKind::Upgrade, ChangeSource::Log);
        assert_eq!(override_and_freeze(&change), "");
        let opened = Change { overridden: Some("shop/fix".into()), freeze: Some("sale".into()), ..change };
        assert_eq!(override_and_freeze(&opened), "override shop/fix, freeze sale");
        let with_ticket = Change { ticket: Some("OPS-7".into()), ..opened };
        assert_eq!(override_and_freeze(&with_ticket), "override shop/fix (OPS-7), freeze sale");
    }
}

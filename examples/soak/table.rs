//! The printed account of a run.

use std::fmt::Write as _;

use super::ledger::Ledger;
use super::load_account::LoadAccount;
use super::resources::Usage;
use super::site::Site;

pub(crate) fn table(site: &Site<'_>, load: &LoadAccount, before: &[Usage], after: &[Usage], unjudged: u64) -> String {
    let mut text = acts(site.ledger);
    text += &writes(load);
    text += "\nfailed calls of acts, by entry and cause:\n";
    for ((entry, cause), count) in site.ledger.failures() {
        let _ = writeln!(text, "  {count:>6}  {entry}: {cause}");
    }
    let open = site.ledger.open() + load.open();
    let _ = writeln!(
        text,
        "\nforbidden writes that were admitted: {open}; admitted unjudged, by the audit log: {unjudged}"
    );
    text += "\ndisturbances:\n";
    for (what, count) in site.ledger.disturbances() {
        let _ = writeln!(text, "  {count:>6}  {what}");
    }
    text += "\nduties of the leader, done and lost:\n";
    for (what, done, lost) in site.duties() {
        let _ = writeln!(text, "  {done:>6} {:>4}  {what}", lost.len());
    }
    text += "\nreplicas at rest:\n";
    for (when, usages) in [("before", before), ("after", after)] {
        for Usage { pod, memory_mib, files } in usages {
            let _ = writeln!(text, "  {when:<7} {memory_mib:>4} MiB {files:>4} files  {pod}");
        }
    }
    text
}

fn acts(ledger: &Ledger) -> String {
    let mut text = format!(
        "\n{:<32} {:>7} {:>7} {:>7} {:>5} {:>9} {:>7} {:>6}\n",
        "acts of helm and kubectl", "acts", "right", "closed", "open", "undecided", "no API", "wrong"
    );
    for (kind, it) in ledger.tallies() {
        let _ = writeln!(
            text,
            "{kind:<32} {:>7} {:>7} {:>7} {:>5} {:>9} {:>7} {:>6}",
            it.acts, it.right, it.closed, it.open, it.undecided, it.unreachable, it.wrong
        );
    }
    text
}

fn writes(load: &LoadAccount) -> String {
    let mut text = format!(
        "\n{:<40} {:>8} {:>9} {:>7} {:>5} {:>7}\n",
        "writes of the load during", "right", "refusals", "closed", "open", "no API"
    );
    for (during, it) in load.counts() {
        let _ = writeln!(
            text,
            "{during:<40} {:>8} {:>9} {:>7} {:>5} {:>7}",
            it.right, it.refused, it.closed, it.open, it.unreachable
        );
    }
    text
}

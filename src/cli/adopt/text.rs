//! The report as text.

use std::cmp::Reverse;
use std::fmt::{self, Write};

use super::adopted::Adopted;
use super::cluster::ClusterState;
use super::wording::{minute, short};
use crate::cli::table::{self, printable};
use crate::offline::adopt::{AccountReport, AdoptReport, Finding, OwnerReport, counted};

/// The most findings of one kind. The other formats have all.
const MAX_FINDINGS: usize = 30;

/// The most owners. The other formats have all.
const MAX_OWNERS: usize = 20;

/// The names of objects in a finding.
pub(super) const MAX_NAMED: usize = 3;

/// Renders a report. `by` is the policy that judged.
pub(super) fn text(adopted: &Adopted, by: &str) -> String {
    let mut text = String::new();
    // Writing into a String cannot fail.
    _ = write(&mut text, adopted, by);
    text
}

fn write(out: &mut String, adopted: &Adopted, by: &str) -> fmt::Result {
    let Adopted { report, cluster, .. } = adopted;
    writeln!(out, "{}\n", summary(report, by))?;
    let of_cluster = adopted.of_cluster();
    if !of_cluster.is_empty() {
        of_cluster.iter().try_for_each(|sentence| writeln!(out, "{}", printable(sentence)))?;
        writeln!(out)?;
    }
    owners(out, &owners_of(report, cluster.as_ref()))?;
    if report.accounts.is_empty() {
        return writeln!(out, "No account wrote a release, or an object of one.");
    }
    accounts(out, &report.accounts)?;
    rules(out, report)?;
    findings(out, "Would have been stopped", &report.incidents, "Way out: ")?;
    findings(out, "Would have been disturbed, and the line of policy that opens it", &report.disturbed, "Opened by ")?;
    findings(out, "To decide", &report.decisions, "")?;
    if report.not_listed > 0 {
        writeln!(out, "{} more are not listed.\n", counted(report.not_listed, "write"))?;
    }
    conclusion(out, report)
}

/// `211 requests judged by the shipped policy, 2026-11-21 10:00 to 10:02 UTC`.
pub(super) fn summary(report: &AdoptReport, by: &str) -> String {
    let times = report.first.zip(report.last);
    let times = times.map(|(first, last)| format!(", {} to {} UTC", minute(first), minute(last))).unwrap_or_default();
    let stopped: usize = report.incidents.iter().map(|finding| finding.times.count).sum();
    let disturbed: usize =
        report.disturbed.iter().filter(|finding| finding.refused).map(|finding| finding.times.count).sum();
    format!(
        "{} judged by {by}, as if it had no cap{times}: {stopped} would have been stopped as incidents, {disturbed} disturbed, {} to \
         decide.",
        counted(report.reviews, "request"),
        counted(report.decisions.len(), "question")
    )
}

fn accounts(out: &mut String, accounts: &[AccountReport]) -> fmt::Result {
    let mut table = table::table(&["class", "account", "wrote", "last", "why"]);
    for account in accounts {
        table.add_row([
            account.class.as_str(),
            &name(account),
            &wrote(account),
            &minute(account.times.last),
            &account.why,
        ]);
    }
    table::fit_words(&mut table, 0, accounts.iter().map(|account| account.class.as_str()));
    writeln!(out, "{table}\n")
}

/// The owners without a release that the log shows, or else the cluster, the most objects first.
pub(super) fn owners_of<'a>(report: &'a AdoptReport, cluster: Option<&'a ClusterState>) -> Vec<&'a OwnerReport> {
    let of_cluster = cluster.map(|cluster| cluster.owners.as_slice()).unwrap_or_default();
    let is_new = |owner: &&OwnerReport| !report.owners.iter().any(|known| known.is_same(owner));
    let mut owners: Vec<_> = report.owners.iter().chain(of_cluster.iter().filter(is_new)).collect();
    owners.sort_by_key(|owner| (Reverse(owner.objects), &owner.kind, &owner.namespace, &owner.name));
    owners
}

fn owners(out: &mut String, owners: &[&OwnerReport]) -> fmt::Result {
    if owners.is_empty() {
        return Ok(());
    }
    let mut table = table::table(&["owner", "objects", "operations started"]);
    for owner in owners.iter().take(MAX_OWNERS) {
        table.add_row([owner_name(owner), owner.objects.to_string(), owner.operations.to_string()]);
    }
    writeln!(out, "{table}")?;
    if owners.len() > MAX_OWNERS {
        writeln!(out, "... and {} more; -o json lists them.", owners.len() - MAX_OWNERS)?;
    }
    writeln!(out)
}

pub(super) fn owner_name(OwnerReport { kind, namespace, name, .. }: &OwnerReport) -> String {
    printable(&format!("{kind} {namespace}/{name}"))
}

/// The account, with the number of its names if it has several.
pub(super) fn name(account: &AccountReport) -> String {
    let names = if account.names > 1 { format!(" ({})", counted(account.names, "name")) } else { String::new() };
    printable(&format!("{}{names}", short(&account.account)))
}

/// `12 UPDATE secrets, ...; started 3 operations; 2 releases`.
pub(super) fn wrote(account: &AccountReport) -> String {
    let writes = account.writes.iter().take(MAX_NAMED).map(|(write, count)| format!("{count} {write}"));
    let rest = if account.writes.len() > MAX_NAMED { ", ..." } else { "" };
    let operations = match account.operations {
        0 => String::new(),
        count => format!("; started {}; {}", counted(count, "operation"), account.releases.counted("release")),
    };
    printable(&format!("{}{rest}{operations}", writes.collect::<Vec<_>>().join(", ")))
}

fn rules(out: &mut String, report: &AdoptReport) -> fmt::Result {
    let shown = || report.rules.iter().filter(|rule| !rule.is_silent());
    if shown().next().is_none() {
        return writeln!(out, "No rule would have been broken.\n");
    }
    let mut table =
        table::table(&["rule", "stopped", "disturbed", "to decide", "recorded", "unknown", "wrongly until"]);
    for rule in shown() {
        let last = rule.wrongly_refused_last.map_or_else(|| "-".to_owned(), minute);
        let counts =
            [rule.caught, rule.disturbed, rule.to_decide, rule.recorded, rule.unknown].map(|count| count.to_string());
        table.add_row([rule.rule.to_owned()].into_iter().chain(counts).chain([last]));
    }
    table::fit_words(&mut table, 0, report.rules.iter().map(|rule| rule.rule));
    writeln!(out, "{table}\n")
}

fn findings(out: &mut String, title: &str, findings: &[Finding], then: &str) -> fmt::Result {
    if findings.is_empty() {
        return Ok(());
    }
    writeln!(out, "{title}:")?;
    for finding in findings.iter().take(MAX_FINDINGS) {
        writeln!(
            out,
            "  {}\n    {}\n    {then}{}",
            printable(&heading(finding)),
            printable(&story(finding)),
            printable(&finding.then)
        )?;
    }
    if findings.len() > MAX_FINDINGS {
        writeln!(out, "  ... and {} more; -o html and -o json list them.", findings.len() - MAX_FINDINGS)?;
    }
    writeln!(out)
}

/// `2026-11-21 10:00 alice (person), manual-edit, 3 times until 2026-11-21 10:04`.
pub(super) fn heading(finding: &Finding) -> String {
    let Finding { class, rules, times, refused, .. } = finding;
    let account = short(&finding.account);
    let again = match times.count {
        1 => String::new(),
        count => format!(", {count} times until {}", minute(times.last)),
    };
    let recorded = if *refused { "" } else { ", recorded and not refused" };
    format!("{} {account} ({}), {}{again}{recorded}", minute(times.first), class.as_str(), rules.join(" and "))
}

/// The first refusal, and the objects if there are several.
pub(super) fn story(finding: &Finding) -> String {
    let others = match finding.objects.len() {
        0 | 1 => String::new(),
        _ => format!(" Objects: {}.", finding.objects.shown(MAX_NAMED)),
    };
    format!("{}{others}", finding.story)
}

fn conclusion(out: &mut String, report: &AdoptReport) -> fmt::Result {
    match (&report.next, &report.policy) {
        (Some(next), _) => {
            writeln!(out, "Next: {}", next.what)?;
            if !next.diff.is_empty() {
                writeln!(out, "\n{}", next.diff)?;
            }
            Ok(())
        }
        (None, Some(policy)) => writeln!(out, "The policy that follows (--write DIR writes it):\n\n{policy}"),
        (None, None) => Ok(()),
    }
}

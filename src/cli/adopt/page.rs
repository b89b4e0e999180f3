//! The report as one self-contained HTML page, to send around: no other file, no network, no script.
//!
//! Names and messages come from requests that anybody could send. So all text is escaped, printable and bounded, and the
//! Content-Security-Policy allows only the page's own style sheet.

use std::fmt::{self, Write};

use super::adopted::Adopted;
use super::text::{heading, name, owner_name, owners_of, story, summary, wrote};
use super::wording::{minute, short};
use crate::inspect::html::{Escaped, PageHead, grouped};
use crate::offline::adopt::{AccountReport, AdoptReport, Finding, OwnerReport, RuleReport};

const STYLE: &str = concat!(include_str!("../../inspect/html/base.css"), include_str!("page.css"));

/// The most findings and accounts on the page. People read it, and a broken client can use any number of names.
const MAX_ROWS: usize = 200;

/// How many findings of one account and rule are shown without a click.
const UNFOLDED: usize = 3;

/// Renders a report. `by` is the policy that judged, `notes` are the lines about input that could not be judged.
pub(super) fn page(adopted: &Adopted, by: &str, notes: &str) -> String {
    let mut html = String::with_capacity(64 * 1024);
    // Writing into a String cannot fail.
    _ = write(&mut html, adopted, by, notes);
    html
}

fn write(out: &mut String, adopted: &Adopted, by: &str, notes: &str) -> fmt::Result {
    let Adopted { report, cluster, .. } = adopted;
    let head = PageHead {
        style: STYLE,
        title: "Whom would Interlock refuse?",
        brand: "Interlock adopt",
        heading: "Whom would Interlock refuse?",
    };
    write!(out, "{head}")?;
    writeln!(out, "<p class=\"facts\">{}</p>", Escaped(&summary(report, by)))?;
    totals(out, report)?;
    out.push_str("</header>\n<main>\n");
    findings(
        out,
        (
            "What Interlock would have stopped",
            "Acts that break, jump over or undo a release. They stay refused.",
            "high",
        ),
        &report.incidents,
        "Way out: ",
    )?;
    findings(
        out,
        ("What it would have disturbed", "Honest work, each with the line of the policy that opens it.", "low"),
        &report.disturbed,
        "Opened by ",
    )?;
    findings(
        out,
        (
            "What to decide",
            "The log does not show whether this is work or an accident. Nothing opens it yet.",
            "medium",
        ),
        &report.decisions,
        "",
    )?;
    rules(out, &report.rules)?;
    accounts(out, &report.accounts)?;
    owners(out, &owners_of(report, cluster.as_ref()))?;
    list(out, "The cluster", &adopted.of_cluster())?;
    conclusion(out, report)?;
    out.push_str("</main>\n");
    footer(out, notes, report.not_listed)?;
    out.push_str("</body>\n</html>\n");
    Ok(())
}

fn totals(out: &mut String, report: &AdoptReport) -> fmt::Result {
    let count = |findings: &[Finding]| findings.iter().map(|finding| finding.times.count).sum::<usize>();
    out.push_str("<ul class=\"counts\" aria-label=\"Acts\">\n");
    for (tone, count, what) in [
        ("high", count(&report.incidents), "stopped"),
        ("low", count(&report.disturbed), "honest, to open"),
        ("medium", count(&report.decisions), "to decide"),
        ("info", report.accounts.len(), "accounts"),
    ] {
        let none = if count == 0 { " none" } else { "" };
        writeln!(out, "<li class=\"{tone}{none}\"><b>{}</b> <span>{what}</span></li>", grouped(count))?;
    }
    out.push_str("</ul>\n");
    Ok(())
}

fn findings(
    out: &mut String,
    (title, lead, tone): (&str, &str, &str),
    findings: &[Finding],
    then: &str,
) -> fmt::Result {
    if findings.is_empty() {
        return Ok(());
    }
    writeln!(out, "<section>\n<h2>{title}</h2>\n<p class=\"lead\">{lead}</p>")?;
    for alike in groups(&findings[..findings.len().min(MAX_ROWS)]) {
        let (shown, folded) = alike.split_at(alike.len().min(UNFOLDED));
        shown.iter().try_for_each(|finding| article(out, finding, tone, then))?;
        if let Some(first) = folded.first() {
            let rules = first.rules.join(" and ");
            let what = format!("{} more of {}, {rules}", grouped(folded.len()), short(&first.account));
            writeln!(out, "<details><summary>{}</summary>", Escaped(&what))?;
            folded.iter().try_for_each(|finding| article(out, finding, tone, then))?;
            out.push_str("</details>\n");
        }
    }
    more(out, findings.len())?;
    out.push_str("</section>\n");
    Ok(())
}

/// The findings of one account and rule together, in the order of the first of each.
fn groups(findings: &[Finding]) -> Vec<Vec<&Finding>> {
    let mut groups: Vec<Vec<&Finding>> = Vec::new();
    for finding in findings {
        match groups.iter_mut().find(|group| is_alike(group[0], finding)) {
            Some(group) => group.push(finding),
            None => groups.push(vec![finding]),
        }
    }
    groups
}

fn is_alike(one: &Finding, other: &Finding) -> bool {
    one.account == other.account && one.rules == other.rules
}

fn article(out: &mut String, finding: &Finding, tone: &str, then: &str) -> fmt::Result {
    writeln!(
        out,
        "<article class=\"finding {tone}\"><p><b>{}</b></p><p>{}</p><p class=\"soft\">{then}{}</p></article>",
        Escaped(&heading(finding)),
        Escaped(&story(finding)),
        Escaped(&finding.then),
    )
}

fn more(out: &mut String, all: usize) -> fmt::Result {
    if all > MAX_ROWS {
        writeln!(out, "<p class=\"more\">{} more are in -o json.</p>", grouped(all - MAX_ROWS))?;
    }
    Ok(())
}

fn rules(out: &mut String, rules: &[RuleReport]) -> fmt::Result {
    out.push_str("<section>\n<h2>By rule</h2>\n<div class=\"wide\">\n<table>\n<thead><tr><th scope=\"col\">Rule</th>");
    for heading in ["stopped", "disturbed", "to decide", "recorded", "unknown"] {
        write!(out, "<th scope=\"col\" class=\"count\">{heading}</th>")?;
    }
    out.push_str("<th scope=\"col\">Wrongly refused until</th></tr></thead>\n<tbody>\n");
    for rule in rules.iter().filter(|rule| !rule.is_silent()) {
        write!(out, "<tr><th scope=\"row\">{}<p class=\"soft\">{}</p></th>", rule.rule, Escaped(rule.why))?;
        for count in [rule.caught, rule.disturbed, rule.to_decide, rule.recorded, rule.unknown] {
            let none = if count == 0 { " none" } else { "" };
            write!(out, "<td class=\"count{none}\">{}</td>", grouped(count))?;
        }
        let until = rule.wrongly_refused_last.map_or_else(|| "-".to_owned(), minute);
        writeln!(out, "<td><time>{until}</time></td></tr>")?;
    }
    let silent: Vec<_> = rules.iter().filter(|rule| rule.is_silent()).map(|rule| rule.rule).collect();
    writeln!(
        out,
        "</tbody>\n</table>\n</div>\n<p class=\"more\">No request broke {}.</p>\n</section>",
        silent.join(", ")
    )
}

fn accounts(out: &mut String, accounts: &[AccountReport]) -> fmt::Result {
    out.push_str("<section>\n<h2>Who writes</h2>\n<div class=\"wide\">\n<table>\n<thead><tr>");
    for heading in ["Class", "Account", "Wrote", "Last", "Why"] {
        write!(out, "<th scope=\"col\">{heading}</th>")?;
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for account in accounts.iter().take(MAX_ROWS) {
        writeln!(
            out,
            "<tr><td class=\"class\">{}</td><th scope=\"row\">{}</th><td>{}</td><td><time>{}</time></td><td>{}</td></tr>",
            account.class.as_str(),
            Escaped(&name(account)),
            Escaped(&wrote(account)),
            minute(account.times.last),
            Escaped(&account.why),
        )?;
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
    more(out, accounts.len())?;
    out.push_str("</section>\n");
    Ok(())
}

fn owners(out: &mut String, owners: &[&OwnerReport]) -> fmt::Result {
    if owners.is_empty() {
        return Ok(());
    }
    out.push_str(
        "<section>\n<h2>Owners without releases</h2>\n<div class=\"wide\">\n<table>\n<thead><tr><th scope=\"col\">Owner</th>\
         <th scope=\"col\" class=\"count\">Objects</th><th scope=\"col\" class=\"count\">Operations started</th></tr></thead>\n<tbody>\n",
    );
    for owner in owners.iter().take(MAX_ROWS) {
        writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td class=\"count\">{}</td><td class=\"count\">{}</td></tr>",
            Escaped(&owner_name(owner)),
            grouped(owner.objects),
            grouped(owner.operations),
        )?;
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
    more(out, owners.len())?;
    out.push_str("</section>\n");
    Ok(())
}

fn list(out: &mut String, title: &str, sentences: &[String]) -> fmt::Result {
    if sentences.is_empty() {
        return Ok(());
    }
    writeln!(out, "<section>\n<h2>{title}</h2>\n<ul>")?;
    sentences.iter().try_for_each(|sentence| writeln!(out, "<li>{}</li>", Escaped(sentence)))?;
    out.push_str("</ul>\n</section>\n");
    Ok(())
}

fn conclusion(out: &mut String, report: &AdoptReport) -> fmt::Result {
    if let Some(next) = &report.next {
        writeln!(out, "<section>\n<h2>The next step</h2>\n<p>{}</p>", Escaped(&next.what))?;
        if !next.diff.is_empty() {
            code(out, &next.diff)?;
        }
        out.push_str("</section>\n");
    } else if let Some(policy) = &report.policy {
        out.push_str("<section>\n<h2>The policy that follows</h2>\n");
        code(out, policy)?;
        out.push_str("</section>\n");
    }
    Ok(())
}

/// Lines of a policy. Each is escaped by itself, because escaped text has no line breaks.
fn code(out: &mut String, text: &str) -> fmt::Result {
    out.push_str("<pre>");
    text.lines().try_for_each(|line| writeln!(out, "{}", Escaped(line)))?;
    out.push_str("</pre>\n");
    Ok(())
}

fn footer(out: &mut String, notes: &str, not_listed: usize) -> fmt::Result {
    if notes.is_empty() && not_listed == 0 {
        return Ok(());
    }
    out.push_str("<footer>\n<section>\n<h2>About the whole input</h2>\n<ul>\n");
    if not_listed > 0 {
        writeln!(out, "<li>{} writes of further accounts or acts are not listed.</li>", grouped(not_listed))?;
    }
    for note in notes.lines() {
        writeln!(out, "<li>{}</li>", Escaped(note))?;
    }
    out.push_str("</ul>\n</section>\n</footer>\n");
    Ok(())
}

//! A report as one self-contained HTML page: no other file, no network, no server.
//!
//! Every user who may create a Secret chooses names and messages. So all text is escaped, printable and bounded, and the page's
//! Content-Security-Policy allows only its own script and style sheet.

use std::fmt::{self, Write};

use interlock_engine::severity::Severity;

use super::{Finding, Gap, ScanReport};
use crate::inspect::html::{Escaped, digest, grouped};

const STYLE: &str = concat!(include_str!("../html/base.css"), include_str!("page/page.css"));
const SCRIPT: &str = include_str!("page/page.js");

/// Renders a report.
#[must_use]
pub(crate) fn page(report: &ScanReport) -> String {
    let mut html = String::with_capacity(16 * 1024 + 1024 * report.findings.len());
    // Writing into a String cannot fail.
    let _ = write(&mut html, report);
    html
}

fn write(out: &mut String, report: &ScanReport) -> fmt::Result {
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        digest(STYLE),
        digest(SCRIPT)
    );
    let where_ = report.namespace.as_deref().map_or("all namespaces".to_owned(), |name| format!("namespace {name}"));
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>Releases of {cluster}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<header>\n\
         <p class=\"brand\">Interlock scan</p>\n<h1>{cluster}</h1>\n\
         <p class=\"facts\"><time>{time}</time> · {where_} · {releases} releases · {records} records</p>\n",
        cluster = Escaped(&report.cluster),
        time = report.time.strftime("%Y-%m-%d %H:%M UTC"),
        where_ = Escaped(&where_),
        releases = grouped(report.releases),
        records = grouped(report.records),
    )?;
    counts(out, report)?;
    out.push_str("</header>\n<main>\n");
    if report.findings.is_empty() {
        out.push_str("<p class=\"clean\">No problems found in what was scanned.</p>\n");
    } else {
        controls(out, report)?;
        table(out, report)?;
    }
    out.push_str("</main>\n");
    scope(out, report)?;
    write!(out, "<script>{SCRIPT}</script>\n</body>\n</html>\n")
}

fn counts(out: &mut String, report: &ScanReport) -> fmt::Result {
    out.push_str("<ul class=\"counts\" aria-label=\"Findings by severity\">\n");
    for severity in Severity::ALL {
        let count = report.count(severity);
        let none = if count == 0 { " none" } else { "" };
        let count = grouped(count);
        writeln!(out, "<li class=\"{severity}{none}\"><b>{count}</b> <span>{severity}</span></li>")?;
    }
    out.push_str("</ul>\n");
    Ok(())
}

fn controls(out: &mut String, report: &ScanReport) -> fmt::Result {
    out.push_str(
        "<form class=\"controls\" hidden>\n<label>Severity <select id=\"severity\"><option value=\"\">all</option>",
    );
    for severity in Severity::ALL.into_iter().filter(|severity| report.count(*severity) > 0) {
        write!(out, "<option>{severity}</option>")?;
    }
    out.push_str("</select></label>\n<label>Namespace <select id=\"namespace\"><option value=\"\">all</option>");
    let mut namespaces: Vec<_> = report.findings.iter().map(Finding::namespace).collect();
    namespaces.sort_unstable();
    namespaces.dedup();
    for namespace in namespaces {
        write!(out, "<option>{}</option>", Escaped(namespace))?;
    }
    out.push_str(
        "</select></label>\n<label class=\"narrow\">Sort by <select id=\"sort\"><option value=\"0\">severity</option>\
         <option value=\"1\">namespace</option><option value=\"2\">release</option><option value=\"3\">check</option></select></label>\n\
         <label class=\"text\">Text <input id=\"text\" type=\"search\" autocomplete=\"off\" placeholder=\"name, revision, field …\"></label>\n\
         <output id=\"shown\"></output>\n</form>\n",
    );
    Ok(())
}

fn table(out: &mut String, report: &ScanReport) -> fmt::Result {
    out.push_str("<table id=\"findings\">\n<thead><tr>");
    for (place, heading) in
        ["Severity", "Namespace", "Release", "Check", "What, and what to do"].into_iter().enumerate()
    {
        let order = if place == 0 { "ascending" } else { "none" };
        write!(out, "<th scope=\"col\" aria-sort=\"{order}\"><button type=\"button\">{heading}</button></th>")?;
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for finding in &report.findings {
        row(out, finding)?;
    }
    out.push_str("</tbody>\n</table>\n");
    if report.left_out > 0 {
        writeln!(out, "<p class=\"more\">{} more findings are not shown.</p>", report.left_out)?;
    }
    Ok(())
}

fn row(out: &mut String, finding: &Finding) -> fmt::Result {
    let severity = finding.severity();
    let rank = Severity::ALL.iter().position(|known| *known == severity).unwrap_or_default();
    let (namespace, name) = (Escaped(finding.namespace()), Escaped(finding.name()));
    write!(
        out,
        "<tr class=\"{severity}\"><td data-key=\"{rank}\"><span class=\"severity\">{severity}</span></td>\
         <td>{namespace}</td><td>{name}</td><td title=\"{}\">{}</td><td><p>{}</p><p class=\"way-out\">",
        Escaped(finding.kind.sentence()),
        finding.kind,
        Escaped(&finding.message),
    )?;
    // Text between backquotes is a command.
    for (place, part) in finding.way_out.split('`').enumerate() {
        let part = Escaped(part);
        if place % 2 == 1 { write!(out, "<code>{part}</code>")? } else { write!(out, "{part}")? }
    }
    out.push_str("</p></td></tr>\n");
    Ok(())
}

fn scope(out: &mut String, report: &ScanReport) -> fmt::Result {
    out.push_str("<footer>\n<section>\n<h2>Looked at</h2>\n<ul>\n");
    for part in &report.looked_at {
        writeln!(out, "<li>{}</li>", Escaped(part))?;
    }
    out.push_str("</ul>\n</section>\n");
    if !report.not_looked_at.is_empty() {
        out.push_str("<section class=\"gaps\">\n<h2>Not looked at</h2>\n<ul>\n");
        for Gap { what, times, why } in &report.not_looked_at {
            let times = if *times > 1 { format!(" ({times} times)") } else { String::new() };
            writeln!(out, "<li><b>{}</b>{times}: {}</li>", Escaped(what), Escaped(why))?;
        }
        out.push_str("</ul>\n</section>\n");
    }
    writeln!(
        out,
        "<p class=\"facts\">{} API server calls, {} bodies and {} objects read, in {:.1} s.</p>\n</footer>",
        grouped(report.calls),
        grouped(report.bodies),
        grouped(report.objects),
        report.took_seconds
    )
}

#[cfg(test)]
mod tests;

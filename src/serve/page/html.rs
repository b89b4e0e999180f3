//! The page as HTML. Users choose names and reasons, so every text is escaped, made printable and shortened.

use std::fmt::{self, Write};
use std::sync::LazyLock;

use interlock_engine::owners::CARRIERS;
use interlock_engine::release_override::Override;
use interlock_engine::rule::RuleId;
use interlock_engine::rules::wording::span;
use jiff::Timestamp;

use super::carried::CarriedOperations;
use super::snapshot::{ShownFreeze, Snapshot};
use crate::inspect::diagnosis::Stuck;
use crate::inspect::html::{Escaped, digest, grouped};
use crate::inspect::scan::Gap;
use crate::inspect::status::ReleaseSummary;
use crate::serve::report::refusals::Refusal;

const STYLE: &str = concat!(include_str!("../../inspect/html/base.css"), include_str!("page.css"));
const SCRIPT: &str = include_str!("page.js");

/// The longest list of a section, in bytes. An entry usually takes half a KiB, but users may choose long names and reasons.
const MAX_SECTION_BYTES: usize = 512 << 10;

/// The Content-Security-Policy. Allows the page's own style and script, and requests to the page itself.
pub(super) fn policy() -> &'static str {
    static POLICY: LazyLock<String> = LazyLock::new(|| {
        format!(
            "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; connect-src 'self'; base-uri 'none'; \
             form-action 'none'; frame-ancestors 'none'",
            digest(STYLE),
            digest(SCRIPT)
        )
    });
    &POLICY
}

pub(super) fn page(shown: &Snapshot) -> String {
    let mut html = String::with_capacity(16 * 1024);
    // Writing into a String cannot fail.
    let _ = write(&mut html, shown);
    html
}

fn write(out: &mut String, shown: &Snapshot) -> fmt::Result {
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <noscript><meta http-equiv=\"refresh\" content=\"15\"></noscript>\n\
         <title>Interlock: releases in flight</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<header>\n\
         <p class=\"brand\">Interlock</p>\n<h1>Releases in flight</h1>\n\
         <p class=\"facts\">As of <time id=\"time\">{}</time>, as this replica knows it</p>\n\
         <p id=\"lost\" role=\"status\"></p>\n</header>\n<main>\n",
        shown.time.strftime("%Y-%m-%d %H:%M:%S UTC")
    )?;
    operations(out, shown)?;
    carried(out, shown)?;
    freezes(out, shown)?;
    overrides(out, shown)?;
    refusals(out, &shown.refusals)?;
    write!(out, "</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n")
}

/// Begins a section. [`cards`] ends the section.
fn heading(out: &mut String, id: &str, title: &str, count: &str) -> fmt::Result {
    writeln!(
        out,
        "<section aria-labelledby=\"{id}\">\n<h2 id=\"{id}\">{title} <span class=\"count\">{count}</span></h2>"
    )
}

/// Writes the entries of a section, which has `total` entries, and ends the section.
fn cards<T>(
    out: &mut String,
    (entries, total): (&[T], usize),
    none: &str,
    card: impl Fn(&mut String, &T) -> fmt::Result,
) -> fmt::Result {
    if total == 0 {
        return writeln!(out, "<p class=\"none\">{none}</p>\n</section>");
    }
    out.push_str("<ul class=\"cards\">\n");
    let end = out.len() + MAX_SECTION_BYTES;
    let mut shown = 0;
    for entry in entries {
        if out.len() > end {
            break;
        }
        card(out, entry)?;
        shown += 1;
    }
    out.push_str("</ul>\n");
    if total > shown {
        writeln!(out, "<p class=\"none\">{} more are not shown.</p>", grouped(total - shown))?;
    }
    out.push_str("</section>\n");
    Ok(())
}

fn operations(out: &mut String, shown: &Snapshot) -> fmt::Result {
    heading(out, "operations", "Operations in flight", &grouped(shown.in_flight))?;
    if !shown.in_sync {
        out.push_str("<p class=\"gap\">The watch of the records is interrupted: operations may be missing.</p>\n");
    }
    let (entries, none) = ((&*shown.operations, shown.in_flight), "No operation is in flight.");
    cards(out, entries, none, |out, row| operation(out, row, shown.time))
}

fn operation(out: &mut String, row: &ReleaseSummary, now: Timestamp) -> fmt::Result {
    let chart = row.chart.as_deref().map_or(String::new(), |chart| format!(" · {chart}"));
    let state = format!("{}, revision {}", row.status, row.revision);
    held(out, row.stuck, &row.release_ref().to_string(), &state, (row.holder.as_deref(), row.since, now))?;
    write!(out, "<p class=\"way-out\">{}{}</p>", Escaped(&row.owner.display()), Escaped(&chart))?;
    match (&row.next, row.wait_until) {
        (Some(next), None) if row.stuck == Stuck::Yes => {
            let why = row.why.as_deref().map_or(String::new(), |why| format!(" ({why})"));
            write!(out, "<p>Next: <code>{}</code>{}</p>", Escaped(next), Escaped(&why))?;
        }
        (Some(next), _) => write!(out, "<p>Next: {}</p>", Escaped(next))?,
        (None, _) => {}
    }
    out.push_str("</li>\n");
    Ok(())
}

/// Begins the entry of an operation: what it belongs to, its state, and who has held it since when.
fn held(
    out: &mut String,
    stuck: Stuck,
    what: &str,
    state: &str,
    (holder, since, now): (Option<&str>, Option<Timestamp>, Timestamp),
) -> fmt::Result {
    let (tone, stuck) = match stuck {
        Stuck::Yes => ("high", "stuck"),
        Stuck::Unknown => ("medium", "may be stuck"),
        Stuck::No => ("low", "running"),
    };
    let age = since.map_or("an unknown time".to_owned(), |since| span(now.duration_since(since)));
    write!(
        out,
        "<li class=\"{tone}\"><p class=\"what\"><b>{}</b> <span class=\"severity\">{stuck}</span></p>\
         <p>{state}, held by <b>{}</b> for {age}</p>",
        Escaped(what),
        Escaped(holder.unwrap_or("an unknown user")),
    )
}

/// The operations that objects carry themselves, if there are any.
fn carried(out: &mut String, shown: &Snapshot) -> fmt::Result {
    let CarriedOperations { rows, total, gaps } = &shown.carried;
    if rows.is_empty() && gaps.is_empty() {
        return Ok(());
    }
    let kinds: Vec<_> = CARRIERS.iter().map(|carrier| format!("{}s", carrier.kind)).collect();
    heading(out, "carried", &format!("Operations of {}", kinds.join(", ")), &grouped(*total))?;
    for Gap { what, why, .. } in gaps {
        writeln!(out, "<p class=\"gap\">Not read: {}: {}</p>", Escaped(what), Escaped(why))?;
    }
    cards(out, (rows, *total), "No operation is known.", |out, row| {
        let what = format!("{} {}/{}", row.kind, row.namespace, row.name);
        held(out, row.stuck, &what, row.stage, (row.holder.as_deref(), row.since, shown.time))?;
        if let Some(next) = &row.next {
            write!(out, "<p>Next: <code>{}</code></p>", Escaped(next))?;
        }
        out.push_str("</li>\n");
        Ok(())
    })
}

fn freezes(out: &mut String, shown: &Snapshot) -> fmt::Result {
    let (in_force, to_come) = (shown.freezes_in_force, shown.freezes_to_come);
    let count = format!("{} in force, {} to come", grouped(in_force), grouped(to_come));
    heading(out, "freezes", "Freezes", &count)?;
    cards(out, (&shown.freezes, in_force + to_come), "Nothing is frozen, and no freeze is to come.", freeze)
}

fn freeze(out: &mut String, ShownFreeze { name, reason, scope, creator, in_force, when }: &ShownFreeze) -> fmt::Result {
    let creator = creator.as_ref().map_or(String::new(), |user| format!(" (created by {user})"));
    let (tone, state) = if *in_force { ("medium", "in force") } else { ("low", "to come") };
    writeln!(
        out,
        "<li class=\"{tone}\"><p class=\"what\"><b>{}</b> <span class=\"severity\">{state}</span></p>\
         <p>Frozen {}: {}</p><p class=\"way-out\">{}{}</p></li>",
        Escaped(name),
        Escaped(when),
        Escaped(reason),
        Escaped(scope),
        Escaped(&creator),
    )
}

fn overrides(out: &mut String, shown: &Snapshot) -> fmt::Result {
    let Some(overrides) = &shown.overrides else {
        heading(out, "overrides", "Overrides in force", "unknown")?;
        out.push_str("<p class=\"gap\">The watch of the ReleaseOverrides is interrupted.</p>\n</section>\n");
        return Ok(());
    };
    heading(out, "overrides", "Overrides in force", &grouped(shown.overrides_in_force))?;
    cards(out, (overrides, shown.overrides_in_force), "No override is in force.", release_override)
}

fn release_override(out: &mut String, (shown, until): &(Override, Option<Timestamp>)) -> fmt::Result {
    let Override { namespace, name, created_by, spec, .. } = shown;
    let rules: Vec<_> = spec.rules.iter().copied().map(RuleId::as_str).collect();
    let users = spec.users.as_ref().map_or("all users".to_owned(), |users| users.join(", "));
    let until = until.map_or(String::new(), |until| format!(" until {}", until.strftime("%Y-%m-%d %H:%M UTC")));
    let ticket = spec.ticket.as_ref().map_or(String::new(), |ticket| format!("ticket {ticket}, "));
    writeln!(
        out,
        "<li class=\"medium\"><p class=\"what\"><b>{}</b></p><p>{} suspends {} for {}{until}</p>\
         <p class=\"way-out\">{} ({}created by {})</p></li>",
        Escaped(&format!("{namespace}/{}", spec.release)),
        Escaped(name),
        rules.join(", "),
        Escaped(&users),
        Escaped(&spec.reason),
        Escaped(&ticket),
        Escaped(created_by.as_deref().unwrap_or("an unknown user")),
    )
}

fn refusals(out: &mut String, refusals: &[Refusal]) -> fmt::Result {
    heading(out, "refusals", "Last refusals of this replica", &grouped(refusals.len()))?;
    cards(out, (refusals, refusals.len()), "This replica has refused nothing since it started.", refusal)
}

fn refusal(
    out: &mut String,
    Refusal { at, user, operation, object, rules, sentences, commands }: &Refusal,
) -> fmt::Result {
    write!(
        out,
        "<li class=\"info\"><p class=\"what\"><b>{operation} {}</b> <span class=\"severity\">{}</span></p>\
         <p class=\"way-out\"><time>{}</time> · {}</p>",
        Escaped(object),
        rules.join(", "),
        at.strftime("%Y-%m-%d %H:%M:%S UTC"),
        Escaped(user),
    )?;
    for sentence in sentences {
        write!(out, "<p>{}</p>", Escaped(sentence))?;
    }
    for command in commands {
        write!(out, "<p>Next: <code>{}</code></p>", Escaped(command))?;
    }
    out.push_str("</li>\n");
    Ok(())
}

#[cfg(test)]
mod tests;

//! The operations in flight, those of releases and those that objects carry themselves.

use std::fmt::{self, Write};

use interlock_engine::owners::CARRIERS;
use interlock_engine::rules::wording::span;
use jiff::Timestamp;

use super::parts::{cards, command, heading, history_link, not_read, of_namespace};
use crate::inspect::diagnosis::Stuck;
use crate::inspect::html::{Escaped, grouped};
use crate::inspect::scan::Gap;
use crate::inspect::status::ReleaseSummary;
use crate::serve::page::carried::CarriedOperations;
use crate::serve::page::snapshot::Snapshot;

pub(super) fn operations(out: &mut String, shown: &Snapshot) -> fmt::Result {
    heading(out, "operations", "Operations in flight", &grouped(shown.in_flight))?;
    if !shown.in_sync {
        out.push_str("<p class=\"gap\">The watch of the records is interrupted: operations may be missing.</p>\n");
    }
    let (entries, none) = ((&*shown.operations, shown.in_flight), "No operation is in flight.");
    cards(out, entries, none, |out, row| operation(out, row, shown))
}

fn operation(out: &mut String, row: &ReleaseSummary, shown: &Snapshot) -> fmt::Result {
    let chart = row.chart.as_deref().map_or(String::new(), |chart| format!(" · {chart}"));
    let state = format!("{}, revision {}", row.status, row.revision);
    let when = (row.holder.as_deref(), row.since, shown.time);
    held(out, (row.stuck, &row.namespace), &row.release_ref().to_string(), &state, when)?;
    write!(out, "<p class=\"way-out\">{}{}", Escaped(&row.owner.display()), Escaped(&chart))?;
    history_link(out, shown, &row.namespace, None, &row.release)?;
    out.push_str("</p>");
    match (&row.next, row.wait_until) {
        (Some(next), None) if row.stuck == Stuck::Yes => {
            let why = row.why.as_deref().map_or(String::new(), |why| format!(" ({why})"));
            out.push_str("<p>Next: ");
            command(out, next)?;
            write!(out, "{}</p>", Escaped(&why))?;
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
    (stuck, namespace): (Stuck, &str),
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
        "<li class=\"{tone}\"{}><p class=\"what\"><b>{}</b> <span class=\"severity\">{stuck}</span></p>\
         <p>{state}, held by <b>{}</b> for {age}</p>",
        of_namespace(namespace),
        Escaped(what),
        Escaped(holder.unwrap_or("an unknown user")),
    )
}

/// The operations that objects carry themselves, if there are any.
pub(super) fn carried(out: &mut String, shown: &Snapshot) -> fmt::Result {
    let CarriedOperations { rows, total, gaps } = &shown.carried;
    if rows.is_empty() && gaps.is_empty() {
        return Ok(());
    }
    let kinds: Vec<_> = CARRIERS.iter().map(|carrier| format!("{}s", carrier.kind)).collect();
    heading(out, "carried", &format!("Operations of {}", kinds.join(", ")), &grouped(*total))?;
    for Gap { what, why, .. } in gaps {
        not_read(out, &format!("{what}: {why}"))?;
    }
    cards(out, (rows, *total), "No operation is known.", |out, row| {
        let what = format!("{} {}/{}", row.kind, row.namespace, row.name);
        let when = (row.holder.as_deref(), row.since, shown.time);
        held(out, (row.stuck, &row.namespace), &what, row.stage, when)?;
        let kind = CARRIERS.iter().find(|carrier| carrier.kind == row.kind).map(|carrier| carrier.plural);
        out.push_str("<p class=\"way-out\">");
        history_link(out, shown, &row.namespace, kind, &row.name)?;
        out.push_str("</p>");
        if let Some(next) = &row.next {
            out.push_str("<p>Next: ");
            command(out, next)?;
            out.push_str("</p>");
        }
        out.push_str("</li>\n");
        Ok(())
    })
}

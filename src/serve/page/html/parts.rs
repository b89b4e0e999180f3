//! What the sections of the page, and the pages, have in common.

use std::fmt::{self, Write};

use crate::cluster_name::ClusterName;
use crate::inspect::html::{Escaped, grouped};
use crate::serve::page::snapshot::Snapshot;

pub(super) const STYLE: &str = concat!(include_str!("../../../inspect/html/base.css"), include_str!("../page.css"));
pub(super) const SCRIPT: &str = include_str!("../page.js");

/// The longest list of a section, in bytes. An entry usually takes half a KiB, but users may choose long names and reasons.
const MAX_SECTION_BYTES: usize = 512 << 10;

/// The start of a page, up to its heading. `more` is markup for the head.
pub(super) fn head(out: &mut String, cluster: Option<&ClusterName>, title: &str, more: &str) -> fmt::Result {
    let of_cluster = cluster.map(|name| format!("{name}: ")).unwrap_or_default();
    let brand = cluster.map_or_else(|| "Interlock".to_owned(), |name| format!("Interlock · {name}"));
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         {more}<title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<header>\n\
         <p class=\"brand\">{}</p>\n<h1>{}</h1>\n",
        Escaped(&format!("{of_cluster}{title}")),
        Escaped(&brand),
        Escaped(title),
    )
}

/// Begins a section. [`cards`] ends the section.
pub(super) fn heading(out: &mut String, id: &str, title: &str, count: &str) -> fmt::Result {
    writeln!(
        out,
        "<section aria-labelledby=\"{id}\">\n<h2 id=\"{id}\">{title} <span class=\"count\">{count}</span></h2>"
    )
}

/// Writes the entries of a section, which has `total` entries, and ends the section.
pub(super) fn cards<T>(
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

/// What could not be read, and why.
pub(super) fn not_read(out: &mut String, what: &str) -> fmt::Result {
    writeln!(out, "<p class=\"gap\">Not read: {}</p>", Escaped(what))
}

/// The attribute by which the script filters an entry.
pub(super) fn of_namespace(namespace: &str) -> String {
    if namespace.is_empty() { String::new() } else { format!(" data-namespace=\"{}\"", Escaped(namespace)) }
}

/// A command to copy.
pub(super) fn command(out: &mut String, line: &str) -> fmt::Result {
    write!(out, "<code class=\"command\">{}</code>", Escaped(line))
}

/// The link to the history of a release, or of an object of a kind that carries its operation itself, if the page has one.
pub(super) fn history_link(
    out: &mut String,
    shown: &Snapshot,
    namespace: &str,
    kind: Option<&str>,
    name: &str,
) -> fmt::Result {
    let kind = kind.map(|kind| format!("{kind}/")).unwrap_or_default();
    // Such names need no escaping in a path.
    if shown.has_history() && is_plain(namespace) && is_plain(name) {
        write!(out, " <a href=\"/changes/{namespace}/{kind}{name}\">history</a>")?;
    }
    Ok(())
}

fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('.')
        && name.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_.".contains(&it))
}

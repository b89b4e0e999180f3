//! The last refusals.

use std::fmt::{self, Write};

use super::parts::{cards, command, heading, history_link, not_read, of_namespace};
use crate::inspect::html::{Escaped, grouped};
use crate::serve::page::snapshot::Snapshot;
use crate::serve::report::refusals::Refusal;

pub(super) fn refusals(out: &mut String, shown: &Snapshot) -> fmt::Result {
    let title = if shown.unreported.is_some() { "Last refusals of this replica" } else { "Last refusals" };
    heading(out, "refusals", title, &grouped(shown.refusals.len()))?;
    if let Some(why) = &shown.unreported {
        not_read(out, &format!("the refusals of the other replicas: {why}"))?;
    }
    let none = "Nothing was refused, as far as is known.";
    cards(out, (&shown.refusals, shown.refusals.len()), none, |out, it| refusal(out, it, shown))
}

fn refusal(out: &mut String, refusal: &Refusal, shown: &Snapshot) -> fmt::Result {
    let Refusal { at, user, operation, namespace, release, object, rules, sentences, commands, times } = refusal;
    let times = if *times > 1 { format!(" · {} times", grouped(*times)) } else { String::new() };
    write!(
        out,
        "<li class=\"info\"{}><p class=\"what\"><b>{} {}</b> <span class=\"severity\">{}</span></p>\
         <p class=\"way-out\"><time>{}</time>{times} · {}",
        of_namespace(namespace),
        Escaped(operation),
        Escaped(object),
        Escaped(&rules.join(", ")),
        at.strftime("%Y-%m-%d %H:%M:%S UTC"),
        Escaped(user),
    )?;
    if let Some(release) = release {
        history_link(out, shown, &release.namespace, None, &release.name)?;
    }
    out.push_str("</p>");
    for sentence in sentences {
        out.push_str("<p>");
        // Text between backquotes is a command. It is to be copied where the ways out are not known apart.
        for (place, part) in sentence.split('`').enumerate() {
            match (place % 2, commands.is_empty()) {
                (0, _) => write!(out, "{}", Escaped(part))?,
                (_, true) => command(out, part)?,
                (_, false) => write!(out, "<code>{}</code>", Escaped(part))?,
            }
        }
        out.push_str("</p>");
    }
    for line in commands {
        out.push_str("<p>Next: ");
        command(out, line)?;
        out.push_str("</p>");
    }
    out.push_str("</li>\n");
    Ok(())
}

//! The freezes, and the overrides in force.

use std::fmt::{self, Write};

use interlock_engine::release_override::Override;
use interlock_engine::rule::RuleId;
use jiff::Timestamp;

use super::parts::{cards, heading, of_namespace};
use crate::inspect::html::{Escaped, grouped};
use crate::serve::page::snapshot::{ShownFreeze, Snapshot};

pub(super) fn freezes(out: &mut String, shown: &Snapshot) -> fmt::Result {
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

pub(super) fn overrides(out: &mut String, shown: &Snapshot) -> fmt::Result {
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
        "<li class=\"medium\"{}><p class=\"what\"><b>{}</b></p><p>{} suspends {} for {}{until}</p>\
         <p class=\"way-out\">{} ({}created by {})</p></li>",
        of_namespace(namespace),
        Escaped(&format!("{namespace}/{}", spec.release)),
        Escaped(name),
        rules.join(", "),
        Escaped(&users),
        Escaped(&spec.reason),
        Escaped(&ticket),
        Escaped(created_by.as_deref().unwrap_or("an unknown user")),
    )
}

//! An overview as one self-contained HTML page: no other file, no network, no script.
//!
//! Names and messages come from requests that anybody could send. So all text is escaped, printable and bounded, and the
//! Content-Security-Policy allows only the page's own style sheet.

use std::fmt::{self, Write};

use super::effect::Effect;
use super::overview::{Counts, Example, Groups, Overview};
use crate::inspect::html::{Escaped, PageHead, grouped};

const STYLE: &str = concat!(include_str!("../../inspect/html/base.css"), include_str!("page/page.css"));

/// Renders an overview. `notes` are the lines about input that could not be judged.
pub(super) fn page(overview: &Overview, notes: &str) -> String {
    let mut html = String::with_capacity(64 * 1024);
    // Writing into a String cannot fail.
    _ = write(&mut html, overview, notes);
    html
}

fn write(out: &mut String, overview: &Overview, notes: &str) -> fmt::Result {
    let head = PageHead {
        style: STYLE,
        title: "What Interlock would have done",
        brand: "Interlock replay",
        heading: "What would Interlock have done?",
    };
    write!(out, "{head}")?;
    out.push_str("<p class=\"facts\">");
    if let Some((first, last)) = overview.times {
        let [first, last] = [first, last].map(|time| time.strftime("%Y-%m-%d %H:%M"));
        write!(out, "<time>{first}</time> to <time>{last}</time> UTC · ")?;
    }
    writeln!(out, "{} requests judged</p>", grouped(overview.reviews))?;
    totals(out, overview.counts)?;
    out.push_str("</header>\n<main>\n");
    if overview.counts == Counts::default() {
        out.push_str("<p class=\"clean\">No rule would have been broken.</p>\n");
    } else {
        section(out, "By rule", "Rule", &overview.rules)?;
        section(out, "By namespace", "Namespace", &overview.namespaces)?;
        section(out, "By account", "Account", &overview.accounts)?;
    }
    out.push_str("</main>\n");
    footer(out, notes)?;
    out.push_str("</body>\n</html>\n");
    Ok(())
}

/// The severity whose colour an effect has.
fn tone(effect: Effect) -> &'static str {
    match effect {
        Effect::Denied => "high",
        Effect::Warned => "medium",
        Effect::Audited => "low",
        Effect::Undecided => "info",
    }
}

fn totals(out: &mut String, counts: Counts) -> fmt::Result {
    out.push_str("<ul class=\"counts\" aria-label=\"Requests by verdict\">\n");
    for (count, effect) in counts.0.into_iter().zip(Effect::ALL) {
        let none = if count == 0 { " none" } else { "" };
        let (tone, count, effect) = (tone(effect), grouped(count), effect.as_str());
        writeln!(out, "<li class=\"{tone}{none}\"><b>{count}</b> <span>{effect}</span></li>")?;
    }
    out.push_str("</ul>\n");
    Ok(())
}

fn section(out: &mut String, title: &str, heading: &str, groups: &Groups) -> fmt::Result {
    write!(out, "<section>\n<h2>{title}</h2>\n<table>\n<thead><tr><th scope=\"col\">{heading}</th>")?;
    for effect in Effect::ALL {
        write!(out, "<th scope=\"col\" class=\"count\">{}</th>", effect.as_str())?;
    }
    out.push_str("<th scope=\"col\">Examples</th></tr></thead>\n<tbody>\n");
    for (name, group) in groups.sorted() {
        let name = if name.is_empty() { "(none)" } else { name };
        write!(out, "<tr><th scope=\"row\">{}</th>", Escaped(name))?;
        for count in group.counts.0 {
            let none = if count == 0 { " none" } else { "" };
            write!(out, "<td class=\"count{none}\">{}</td>", grouped(count))?;
        }
        out.push_str("<td>");
        for example in &group.examples {
            self::example(out, example)?;
        }
        out.push_str("</td></tr>\n");
    }
    out.push_str("</tbody>\n</table>\n");
    if groups.further > 0 {
        writeln!(out, "<p class=\"more\">{} more findings are not shown.</p>", grouped(groups.further))?;
    }
    out.push_str("</section>\n");
    Ok(())
}

fn example(out: &mut String, example: &Example) -> fmt::Result {
    let Example { effect, rule, at, line, operation, object, user, reason } = example;
    write!(
        out,
        "<p class=\"example {}\"><b>{}</b> <time>{}</time> {} {} by {} ({rule}, line {line})</p><p class=\"reason\">{}</p>",
        tone(*effect),
        effect.as_str(),
        at.strftime("%Y-%m-%d %H:%M:%S"),
        Escaped(operation),
        Escaped(object),
        Escaped(if user.is_empty() { "(unknown)" } else { user }),
        Escaped(reason),
    )
}

fn footer(out: &mut String, notes: &str) -> fmt::Result {
    if notes.is_empty() {
        return Ok(());
    }
    out.push_str("<footer>\n<section>\n<h2>About the whole input</h2>\n<ul>\n");
    for note in notes.lines() {
        writeln!(out, "<li>{}</li>", Escaped(note))?;
    }
    out.push_str("</ul>\n</section>\n</footer>\n");
    Ok(())
}

#[cfg(test)]
mod tests;

//! The history of one release, or of one object that carries its operation itself.

use std::fmt::{self, Write};

use interlock_engine::decision::TransitionOutcome;

use super::parts::{SCRIPT, head, not_read};
use crate::cluster_name::ClusterName;
use crate::inspect::changes::Change;
use crate::inspect::html::Escaped;
use crate::serve::page::history::FoundHistory;

/// The page of a history, newest first.
pub(in crate::serve::page) fn history(cluster: Option<&ClusterName>, what: &str, found: &FoundHistory) -> String {
    let mut html = String::with_capacity(8 * 1024);
    // Writing into a String cannot fail.
    let _ = write(&mut html, cluster, what, found);
    html
}

fn write(
    out: &mut String,
    cluster: Option<&ClusterName>,
    what: &str,
    FoundHistory { changes, gaps }: &FoundHistory,
) -> fmt::Result {
    head(out, cluster, &format!("History of {what}"), "")?;
    out.push_str(
        "<p class=\"facts\"><a href=\"/\">Releases in flight</a> · from what the cluster keeps: the log of Interlock and the audit log \
         of the API server know more (interlock changes)</p>\n</header>\n<main>\n",
    );
    for gap in gaps {
        not_read(out, gap)?;
    }
    if changes.is_empty() {
        out.push_str("<p class=\"none\">The cluster keeps no change of it.</p>\n");
    } else {
        out.push_str("<table>\n<thead><tr>");
        for heading in ["Time (UTC)", "Revision", "Change", "Who", "Chart"] {
            write!(out, "<th scope=\"col\">{heading}</th>")?;
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        changes.iter().try_for_each(|change| row(out, change))?;
        out.push_str("</tbody>\n</table>\n");
    }
    write!(out, "</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n")
}

fn row(out: &mut String, change: &Change) -> fmt::Result {
    let outcome = match change.outcome {
        TransitionOutcome::Allowed => String::new(),
        other => format!(" ({})", other.as_str()),
    };
    let who = change.user.as_deref().or(change.holder.as_deref()).unwrap_or("-");
    writeln!(
        out,
        "<tr><td><time>{}</time></td><td>{}</td><td>{}{outcome}</td><td>{}</td><td>{}</td></tr>",
        change.time.strftime("%Y-%m-%d %H:%M:%S"),
        change.release.revision.map_or_else(|| "-".to_owned(), |revision| revision.to_string()),
        change.transition,
        Escaped(who),
        Escaped(change.chart.as_deref().unwrap_or("-")),
    )
}

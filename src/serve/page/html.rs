//! The page as HTML. Users choose names and reasons, so every text is escaped, made printable and shortened.

mod guards;
mod history;
mod operations;
mod parts;
mod refusals;
mod replicas;

use std::fmt::{self, Write};
use std::sync::LazyLock;

use super::snapshot::Snapshot;
use crate::inspect::html::digest;
pub(super) use history::history;
use parts::{SCRIPT, STYLE, head};

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
    head(
        out,
        shown.cluster.as_ref(),
        "Releases in flight",
        "<noscript><meta http-equiv=\"refresh\" content=\"15\"></noscript>\n",
    )?;
    write!(
        out,
        "<p class=\"facts\">As of <time id=\"time\">{}</time></p>\n\
         <form id=\"filter\" hidden><label>Namespace <select id=\"namespace\"><option value=\"\">all</option></select></label></form>\n\
         <p id=\"lost\" role=\"status\"></p>\n</header>\n<main>\n",
        shown.time.strftime("%Y-%m-%d %H:%M:%S UTC")
    )?;
    operations::operations(out, shown)?;
    operations::carried(out, shown)?;
    guards::freezes(out, shown)?;
    guards::overrides(out, shown)?;
    refusals::refusals(out, shown)?;
    replicas::replicas(out, shown)?;
    write!(out, "</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n")
}

#[cfg(test)]
mod tests;

//! Problems of a policy file, with an excerpt of its text.

use std::io::{IsTerminal, stderr};

use annotate_snippets::Level;
use interlock_engine::policy_files::{self, ExcerptStyle, PolicyError, Problem};

/// Every problem with an excerpt, in colour on a terminal. Print it with [`complain`](super::output::complain), because a policy may contain
/// escape sequences.
pub(super) fn excerpts(error: &PolicyError) -> String {
    policy_files::excerpts(&error.problems, &Level::ERROR, style())
}

/// Like [`excerpts`], for warnings.
pub(super) fn warning_excerpts(warnings: &[Problem]) -> String {
    policy_files::excerpts(warnings, &Level::WARNING, style())
}

fn style() -> ExcerptStyle {
    if stderr().is_terminal() { ExcerptStyle::Coloured } else { ExcerptStyle::Plain }
}

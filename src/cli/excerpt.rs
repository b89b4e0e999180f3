//! Problems of a policy file, with an excerpt of its text.

use std::io::{IsTerminal, stderr};

use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};

use crate::engine::policy_files::{PolicyError, Problem};

/// Every problem with an excerpt, in colour on a terminal. To be printed by [`complain`](super::output::complain): a policy may come
/// from anybody.
pub(super) fn excerpts(error: &PolicyError) -> String {
    excerpts_of(&error.problems, Level::ERROR)
}

/// Every warning, likewise.
pub(super) fn warning_excerpts(warnings: &[Problem]) -> String {
    excerpts_of(warnings, Level::WARNING)
}

fn excerpts_of(problems: &[Problem], level: Level<'static>) -> String {
    let renderer = if stderr().is_terminal() { Renderer::styled() } else { Renderer::plain() };
    problems.iter().map(|problem| excerpt(problem, level.clone(), &renderer)).collect::<Vec<_>>().join("\n\n")
}

fn excerpt(problem: &Problem, level: Level<'_>, renderer: &Renderer) -> String {
    let (title, file) = (level.primary_title(&problem.message), problem.file.display().to_string());
    let group = match &problem.location {
        Some(location) if location.text.is_empty() => {
            title.element(Origin::path(file).line(location.line).char_column(location.column))
        }
        Some(location) => title.element(
            Snippet::source(&location.text)
                .path(file)
                .line_start(location.line)
                .annotation(AnnotationKind::Primary.span(location.range.clone())),
        ),
        None => title.element(Origin::path(file)),
    };
    renderer.render(&[group])
}

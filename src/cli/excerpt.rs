//! Problems of a policy file, with an excerpt of its text.

use std::io::{IsTerminal, stderr};

use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};

use crate::engine::policy::{PolicyError, Problem};

/// Every problem with an excerpt, in colour on a terminal.
pub(super) fn excerpts(error: &PolicyError) -> String {
    let renderer = if stderr().is_terminal() { Renderer::styled() } else { Renderer::plain() };
    error.problems.iter().map(|problem| excerpt(problem, &renderer)).collect::<Vec<_>>().join("\n\n")
}

fn excerpt(problem: &Problem, renderer: &Renderer) -> String {
    let (title, file) = (Level::ERROR.primary_title(&problem.message), problem.file.display().to_string());
    let group = match &problem.place {
        Some(place) if place.text.is_empty() => {
            title.element(Origin::path(file).line(place.line).char_column(place.column))
        }
        Some(place) => title.element(
            Snippet::source(&place.text)
                .path(file)
                .line_start(place.line)
                .annotation(AnnotationKind::Primary.span(place.range.clone())),
        ),
        None => title.element(Origin::path(file)),
    };
    renderer.render(&[group])
}

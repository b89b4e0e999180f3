//! Problems with excerpts of the policy.

use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};

use super::Problem;

/// How excerpts look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExcerptStyle {
    Plain,
    Coloured,
}

/// Every problem with an excerpt. Anybody may have written the policy, so its text may not be printable.
#[must_use]
pub fn excerpts(problems: &[Problem], level: &Level<'static>, style: ExcerptStyle) -> String {
    let renderer = match style {
        ExcerptStyle::Plain => Renderer::plain(),
        ExcerptStyle::Coloured => Renderer::styled(),
    };
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

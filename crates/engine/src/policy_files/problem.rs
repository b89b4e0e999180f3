//! Problems in policy files: all at once, each with its location.

use std::fmt;
use std::path::PathBuf;

use crate::text::{into_printable, look_alike};

/// Why policies cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct PolicyError {
    /// File by file, in the order of the text.
    pub problems: Vec<Problem>,
}

/// One problem in a policy file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub file: PathBuf,
    /// `None` if the file could not be read.
    pub location: Option<Location>,
    /// What is wrong, and how to fix it.
    pub message: String,
}

/// A location in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// The text of that line, cut if it is very long; empty if the location is in the part that is cut.
    pub text: String,
    /// The part of the text that is wrong, in bytes.
    pub range: std::ops::Range<usize>,
}

/// `FILE:LINE:COLUMN: MESSAGE`, on one line.
impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:", self.file.display())?;
        if let Some(Location { line, column, .. }) = self.location {
            write!(out, "{line}:{column}:")?;
        }
        write!(out, " {}", self.message)
    }
}

/// A range of bytes in the text of a layer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) layer: Layer,
}

/// The text that contains a setting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Layer {
    /// The file.
    #[default]
    File,
    /// The shipped policy, under the file.
    Shipped,
}

/// The text of a policy file, and the name that problems give it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SourceFile {
    pub(super) path: PathBuf,
    pub(super) text: String,
}

impl SourceFile {
    /// The line of a span, from 1.
    pub(super) fn line(&self, span: Span) -> usize {
        self.text.as_bytes()[..span.start.min(self.text.len())].iter().filter(|byte| **byte == b'\n').count() + 1
    }

    /// The part of the text at a span that looks like something else.
    fn look_alike(&self, span: Span) -> Option<String> {
        if span.layer == Layer::Shipped {
            return None;
        }
        let text = self.text.get(span.start..span.end.min(self.text.len()))?.trim_end();
        let found = look_alike(text).filter(|_| !text.contains('\n'))?;
        Some(format!("`{text}` {found}"))
    }

    fn location(&self, span: Span) -> Location {
        let start = self.text.floor_char_boundary(span.start);
        let before = self.text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line = self.text[before..].lines().next().unwrap_or_default();
        let from = start - before;
        let end = self.text.floor_char_boundary(span.end).saturating_sub(before);
        let text = if from > MAX_SHOWN_BYTES { "" } else { &line[..line.floor_char_boundary(from + MAX_SHOWN_BYTES)] };
        let from = from.min(text.len());
        Location {
            line: self.line(span),
            column: self.text[before..start].chars().count() + 1,
            text: text.to_owned(),
            range: from..end.clamp(from, text.len()),
        }
    }
}

/// The largest number of problems collected in one file. Nobody reads more.
const MAX_PROBLEMS: usize = 1000;

/// The longest part of a line that is shown before the problem, and from the problem on, in bytes.
const MAX_SHOWN_BYTES: usize = 300;

/// Collects the problems of one file: errors, and warnings about valid settings that are probably not intended.
pub(super) struct Problems<'s> {
    source: &'s SourceFile,
    found: Vec<(Span, String)>,
    warnings: Vec<(Span, String)>,
}

impl<'s> Problems<'s> {
    pub(super) fn of(source: &'s SourceFile) -> Self {
        Self { source, found: Vec::new(), warnings: Vec::new() }
    }

    /// Reports a problem. A problem that an alias repeats is reported once. Problems over the limit are not reported.
    /// The shipped policy has no problems: a file may make its settings pointless.
    pub(super) fn at(&mut self, span: Span, message: impl Into<String>) {
        add(&mut self.found, self.source, span, message.into());
    }

    /// Reports a warning, in the same way.
    pub(super) fn warn(&mut self, span: Span, message: impl Into<String>) {
        add(&mut self.warnings, self.source, span, message.into());
    }

    /// The line of a span, from 1.
    pub(super) fn line(&self, span: Span) -> usize {
        self.source.line(span)
    }

    /// The case at a span, in words.
    pub(super) fn case_at(&self, span: Span) -> String {
        match span.layer {
            Layer::File => format!("the case on line {}", self.line(span)),
            Layer::Shipped => "the shipped case".to_owned(),
        }
    }

    /// The part of the text at a span that looks like something else.
    pub(super) fn look_alike(&self, span: Span) -> Option<String> {
        self.source.look_alike(span)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Every error and every warning, in the order of the text.
    pub(super) fn into_lists(self) -> (Vec<Problem>, Vec<Problem>) {
        (listed(self.source, self.found), listed(self.source, self.warnings))
    }
}

/// Adds a problem, with the look-alike that may have caused it.
fn add(found: &mut Vec<(Span, String)>, source: &SourceFile, span: Span, message: String) {
    if found.len() >= MAX_PROBLEMS || span.layer == Layer::Shipped {
        return;
    }
    let problem = match source.look_alike(span) {
        // The message is about the look-alike itself.
        Some(look_alike) if message.contains(&look_alike) => (span, message),
        Some(look_alike) => {
            let end = if message.ends_with('?') { "" } else { ";" };
            (span, format!("{message}{end} {look_alike}"))
        }
        None => (span, message),
    };
    if !found.contains(&problem) {
        found.push(problem);
    }
}

fn listed(source: &SourceFile, mut found: Vec<(Span, String)>) -> Vec<Problem> {
    found.sort_by_key(|(span, _)| span.start);
    let problems = found.into_iter().map(|(span, message)| Problem {
        file: source.path.clone(),
        location: Some(source.location(span)),
        // It may quote the text, which a tenant has written.
        message: into_printable(message, usize::MAX),
    });
    problems.collect()
}

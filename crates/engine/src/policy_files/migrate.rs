//! Rewrites a cluster policy of an earlier version: lists with another meaning than before get the key `only`. The rest
//! of the text stays.

use std::ops::Range;
use std::path::Path;

use super::changed::changed;
use super::file::{Content, KeyValue, Node, ONLY, given, over_shipped, without_lists};
use super::files::PolicyFiles;
use super::problem::{PolicyError, Problems, SourceFile};

/// Why a cluster policy cannot be rewritten.
#[derive(Debug, thiserror::Error)]
pub enum MigrationError {
    #[error("there is no cluster policy")]
    Missing,
    #[error(transparent)]
    Wrong(#[from] PolicyError),
    #[error("{} cannot be rewritten without changing what it means; write {{only: [...]}} at {}", .0.display(), .1.join(", "))]
    Unusual(std::path::PathBuf, Vec<String>),
}

impl PolicyFiles {
    /// The path of the cluster policy, and the text that has the former meaning of its text; `None` if the text need not
    /// change.
    ///
    /// # Errors
    /// The text is not YAML, or its notation cannot be rewritten.
    pub fn migrated(&self) -> Result<(&Path, Option<String>), MigrationError> {
        let source = self.cluster.as_ref().ok_or_else(|| {
            let problems = self.unread.iter().chain(&self.wrong).cloned().collect::<Vec<_>>();
            if problems.is_empty() { MigrationError::Missing } else { PolicyError { problems }.into() }
        })?;
        let mut problems = Problems::of(source);
        let Some(before) = given(source, &mut problems) else {
            return Err(PolicyError { problems: problems.into_lists().0 }.into());
        };
        let now = over_shipped(&before, &mut problems);
        let paths: Vec<_> = changed(&before, &now).collect();
        if paths.is_empty() {
            return Ok((&source.path, None));
        }
        let mut edits = Edits { text: &source.text, made: Vec::new() };
        edits.state(&before, None, &Wanted::of(&paths));
        let rewritten = SourceFile { path: source.path.clone(), text: edits.applied() };
        if !means_before(&before, &rewritten) {
            let paths = paths.iter().map(|path| path.join(".")).collect();
            return Err(MigrationError::Unusual(source.path.clone(), paths));
        }
        Ok((&source.path, Some(rewritten.text)))
    }
}

/// Whether a text now has the former meaning of a policy.
fn means_before(before: &Node, source: &SourceFile) -> bool {
    let mut problems = Problems::of(source);
    let Some(after) = given(source, &mut problems) else { return false };
    let after = over_shipped(&after, &mut problems);
    let rest = over_shipped(before, &mut Problems::of(source));
    problems.is_empty() && changed(before, &after).next().is_none() && without_lists(&after).says(&without_lists(&rest))
}

/// The keys of lists to write, grouped by the keys of their mappings.
#[derive(Debug, Clone, Default)]
struct Wanted<'k>(Vec<(&'k str, Wanted<'k>)>);

impl<'k> Wanted<'k> {
    fn of(paths: &[Vec<&'k str>]) -> Self {
        let mut wanted = Self::default();
        for path in paths {
            path.iter().fold(&mut wanted, |wanted, key| wanted.below(key));
        }
        wanted
    }

    fn below(&mut self, key: &'k str) -> &mut Self {
        let place = self.0.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
            self.0.push((key, Self::default()));
            self.0.len() - 1
        });
        &mut self.0[place].1
    }

    /// YAML on one line for a policy without any of the keys: the lists were empty.
    fn stated(&self) -> String {
        if self.0.is_empty() {
            return format!("{{{ONLY}: []}}");
        }
        format!("{{{}}}", self.entries(", "))
    }

    fn entries(&self, between: &str) -> String {
        let entries: Vec<_> = self.0.iter().map(|(key, below)| format!("{key}: {}", below.stated())).collect();
        entries.join(between)
    }
}

/// Changes to a text, each with its position.
struct Edits<'t> {
    text: &'t str,
    made: Vec<(Range<usize>, String)>,
}

impl Edits<'_> {
    /// Writes lists into a mapping; `key` is the key of the mapping, if any.
    fn state(&mut self, mapping: &Node, key: Option<&KeyValue>, wanted: &Wanted<'_>) {
        if let Some(key) = key.filter(|key| is_alias(&key.value)) {
            // The node that the alias repeats stays as it is.
            self.replace(key.value.written.clone(), flow(mapping, wanted));
            return;
        }
        let mut missing = Wanted::default();
        for (name, below) in &wanted.0 {
            match mapping.entry(name) {
                Some(entry) if below.0.is_empty() => self.wrap(entry, self.is_flow(mapping)),
                Some(entry) => self.state(&entry.value, Some(entry), below),
                None => *missing.below(name) = below.clone(),
            }
        }
        if !missing.0.is_empty() {
            self.insert(mapping, key, &missing);
        }
    }

    /// Adds keys to a mapping.
    fn insert(&mut self, mapping: &Node, key: Option<&KeyValue>, missing: &Wanted<'_>) {
        match (&mapping.content, key) {
            (Content::Mapping(entries), _) if self.is_flow(mapping) => {
                let end = if entries.is_empty() { "" } else { ", " };
                let start = mapping.written.start + 1;
                self.replace(start..start, missing.entries(", ") + end);
            }
            (Content::Mapping(entries), Some(_)) => {
                let start = entries.first().map_or(mapping.written.start, |first| first.at.start);
                let indent = self.indent(start);
                self.replace(start..start, format!("{}\n{indent}", missing.entries(&format!("\n{indent}"))));
            }
            (_, Some(key)) => {
                let start = self.after_colon(key);
                self.replace(start..start, format!(" {}", missing.stated()));
            }
            (_, None) => {
                let end = self.text.len();
                let start = if self.text.ends_with('\n') { "" } else { "\n" };
                self.replace(end..end, format!("{start}{}\n", missing.entries("\n")));
            }
        }
    }

    /// Marks the list of a key with `only`.
    fn wrap(&mut self, entry: &KeyValue, is_flow: bool) {
        let colon = self.after_colon(entry);
        let list = &entry.value;
        if matches!(list.content, Content::Null) {
            return self.replace(colon..colon, format!(" {{{ONLY}: []}}"));
        }
        if is_flow || is_alias(list) || self.is_flow(list) {
            // If an anchor stands before the list, its aliases are marked too.
            let start = colon + self.text[colon..].len() - self.text[colon..].trim_start().len();
            let start = start.min(list.written.start);
            self.replace(start..start, format!("{{{ONLY}: "));
            return self.replace(list.written.end..list.written.end, "}".to_owned());
        }
        let indent = self.indent(entry.at.start);
        self.replace(colon..colon, format!("\n{indent}  {ONLY}:"));
        let end = self.end_of(list);
        let newlines: Vec<_> = self.text[colon..end].match_indices('\n').map(|(at, _)| colon + at + 1).collect();
        for line in newlines.into_iter().filter(|line| !self.text[*line..].starts_with(['\n', '\r'])) {
            self.replace(line..line, "  ".to_owned());
        }
    }

    fn replace(&mut self, range: Range<usize>, text: String) {
        self.made.push((range, text));
    }

    /// The text with the changes. Changes at the same position stay in the order of their creation.
    fn applied(mut self) -> String {
        self.made.sort_by_key(|(range, _)| range.start);
        let mut text = self.text.to_owned();
        for (range, with) in self.made.into_iter().rev() {
            text.replace_range(range, &with);
        }
        text
    }

    /// The position after the colon of a key.
    fn after_colon(&self, entry: &KeyValue) -> usize {
        let key = entry.at.end.min(self.text.len());
        self.text[key..].find(':').map_or(key, |colon| key + colon + 1)
    }

    /// The spaces before a position in its line.
    fn indent(&self, place: usize) -> String {
        let start = self.text[..place].rfind('\n').map_or(0, |newline| newline + 1);
        self.text[start..place].chars().map(|_| ' ').collect()
    }

    fn is_flow(&self, node: &Node) -> bool {
        self.text[node.written.start..].starts_with(['{', '['])
    }

    /// The end of the last text in a node. The end of a block would be that of the following text.
    fn end_of(&self, node: &Node) -> usize {
        if is_alias(node) || self.is_flow(node) {
            return node.written.end;
        }
        let last = node.items().last().or_else(|| node.entries().last().map(|entry| &entry.value));
        last.map_or(node.written.end, |last| self.end_of(last))
    }
}

fn is_alias(node: &Node) -> bool {
    node.written.start != node.span.start
}

/// A mapping on one line, with `only` in the wanted lists.
fn flow(mapping: &Node, wanted: &Wanted<'_>) -> String {
    let known = mapping.entries().iter().map(|KeyValue { key, value, .. }| {
        let below = wanted.0.iter().find(|(name, _)| name == key).map(|(_, below)| below);
        match below {
            Some(below) if below.0.is_empty() => format!("{key}: {{{ONLY}: {value}}}"),
            Some(below) => format!("{key}: {}", flow(value, below)),
            None => format!("{key}: {value}"),
        }
    });
    let missing = wanted.0.iter().filter(|(name, _)| mapping.entry(name).is_none());
    let missing = missing.map(|(name, below)| format!("{name}: {}", below.stated()));
    format!("{{{}}}", known.chain(missing).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests;

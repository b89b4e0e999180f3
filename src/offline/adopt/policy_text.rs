//! Changes to the text of a cluster policy, line by line, so that its comments stay and the change can be shown as a diff.
//!
//! Only the usual notation is changed: keys on lines of their own, lists with one item per line. Whoever calls checks the result by
//! parsing it.

/// The lines around a change that a diff shows.
const CONTEXT: usize = 2;

/// A part of the text that has another notation than this module changes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not written with one entry per line")]
pub(super) struct Unusual(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Kept,
    Added,
    Removed,
}

impl Mark {
    fn sign(self) -> char {
        match self {
            Self::Kept => ' ',
            Self::Added => '+',
            Self::Removed => '-',
        }
    }
}

/// A text with its changes.
#[derive(Debug, Clone)]
pub(super) struct PolicyText(Vec<(Mark, String)>);

/// A key.
struct Block {
    /// The line of the key.
    head: usize,
    /// The value on the line of the key.
    value: String,
}

impl PolicyText {
    pub(super) fn of(text: &str) -> Self {
        Self(text.lines().map(|line| (Mark::Kept, line.to_owned())).collect())
    }

    /// Removes a key with its value on one line, and the comment directly above it.
    pub(super) fn remove(&mut self, key: &str) {
        let Some(Block { head, .. }) = self.block(0..self.0.len(), 0, key) else { return };
        let is_comment = |(_, line): &&(Mark, String)| line.starts_with('#');
        let comments = self.0[..head].iter().rev().take_while(is_comment).count();
        (head - comments..=head).rev().for_each(|at| self.strike(at));
    }

    /// Adds an item to a list, as its first one, with comments above it.
    pub(super) fn add_to_list(&mut self, key: &str, comments: &[String], item: &str) -> Result<(), Unusual> {
        let head = self.opened(0..self.0.len(), 0, key)?;
        self.insert_item(head, comments, item)
    }

    /// Adds a case to a rule, as its first one, with comments above it.
    pub(super) fn add_case(&mut self, rule: &str, comments: &[String], item: &str) -> Result<(), Unusual> {
        let rule_head = self.opened_rule(rule)?;
        let indent = self.indent(rule_head) + 2;
        let within = self.below(rule_head);
        let head = self.opened(within, indent, "cases")?;
        self.insert_item(head, comments, item)
    }

    /// Sets the mode of a rule, or removes it, so that it is the shipped one.
    pub(super) fn set_mode(&mut self, rule: &str, mode: Option<&str>) -> Result<(), Unusual> {
        let head = self.opened_rule(rule)?;
        let indent = self.indent(head) + 2;
        let within = self.below(head);
        if let Some(stated) = self.block(within, indent, "mode") {
            self.strike(stated.head);
        }
        match mode {
            Some(mode) => self.insert(head + 1, format!("{}mode: {mode}", " ".repeat(indent))),
            None if self.below(head).is_empty() => {
                let rules = self.block(0..self.0.len(), 0, "rules").map(|rules| rules.head);
                self.strike(head);
                // A key without a value would be an error.
                if let Some(rules) = rules.filter(|rules| self.below(*rules).is_empty()) {
                    self.strike(rules);
                }
            }
            None => {}
        }
        Ok(())
    }

    /// The text with the changes.
    pub(super) fn text(&self) -> String {
        self.0.iter().filter(|(mark, _)| *mark != Mark::Removed).map(|(_, line)| format!("{line}\n")).collect()
    }

    /// The changes as a unified diff, without the numbers of lines; empty if nothing changes.
    pub(super) fn diff(&self) -> String {
        let changed: Vec<_> = (0..self.0.len()).filter(|at| self.0[*at].0 != Mark::Kept).collect();
        let is_near = |at: usize| changed.iter().any(|change| change.abs_diff(at) <= CONTEXT);
        let (mut diff, mut last) = (String::new(), None);
        for (at, (mark, line)) in self.0.iter().enumerate().filter(|(at, _)| is_near(*at)) {
            if last.is_some_and(|last| last + 1 != at) {
                diff.push_str("@@\n");
            }
            diff.push_str(format!("{}{line}", mark.sign()).trim_end());
            diff.push('\n');
            last = Some(at);
        }
        diff
    }

    /// The head of a rule as a block, which is created if it is missing.
    fn opened_rule(&mut self, rule: &str) -> Result<usize, Unusual> {
        let rules = self.opened(0..self.0.len(), 0, "rules")?;
        let within = self.below(rules);
        self.opened(within, 2, rule)
    }

    /// The head of a block, which is created at the end of the range if it is missing.
    fn opened(&mut self, within: std::ops::Range<usize>, indent: usize, key: &str) -> Result<usize, Unusual> {
        let end = within.end;
        let spaces = " ".repeat(indent);
        let Some(block) = self.block(within, indent, key) else {
            let is_apart = indent > 0 || end == 0 || self.0[end - 1].1.is_empty();
            if !is_apart {
                self.insert(end, String::new());
            }
            let head = end + usize::from(!is_apart);
            self.insert(head, format!("{spaces}{key}:"));
            return Ok(head);
        };
        if block.value.is_empty() {
            return Ok(block.head);
        }
        // `{mode: audit}` on one line becomes two lines.
        let stated = block.value.strip_prefix('{').and_then(|value| value.strip_suffix('}')).map(str::trim);
        let stated = stated.filter(|stated| stated.starts_with("mode:") && !stated.contains([',', '{', '[']));
        let Some(stated) = stated.map(str::to_owned) else { return Err(Unusual(key.to_owned())) };
        self.strike(block.head);
        self.insert(block.head + 1, format!("{spaces}{key}:"));
        self.insert(block.head + 2, format!("{spaces}  {stated}"));
        Ok(block.head + 1)
    }

    fn insert_item(&mut self, head: usize, comments: &[String], item: &str) -> Result<(), Unusual> {
        let below = self.below(head);
        let first = below.clone().find(|at| self.is_content(*at)).map(|at| self.0[at].1.as_str());
        let indent = match first {
            Some(line) if line.trim_start().starts_with("- ") => line.len() - line.trim_start().len(),
            Some(_) => return Err(Unusual(self.0[head].1.trim().trim_end_matches(':').to_owned())),
            None => self.indent(head) + 2,
        };
        let spaces = " ".repeat(indent);
        let lines = comments.iter().map(|comment| format!("{spaces}# {comment}"));
        let lines: Vec<_> = lines.chain([format!("{spaces}- {item}")]).collect();
        for (offset, line) in lines.into_iter().enumerate() {
            self.insert(head + 1 + offset, line);
        }
        Ok(())
    }

    /// The lines below a head, up to the last one with content.
    fn below(&self, head: usize) -> std::ops::Range<usize> {
        let indent = self.indent(head);
        let mut end = head + 1;
        for at in head + 1..self.0.len() {
            if !self.is_content(at) {
                continue;
            }
            let is_item = self.indent(at) == indent && self.0[at].1.trim_start().starts_with("- ");
            if self.indent(at) <= indent && !is_item {
                break;
            }
            end = at + 1;
        }
        head + 1..end
    }

    fn block(&self, within: std::ops::Range<usize>, indent: usize, key: &str) -> Option<Block> {
        let start = format!("{}{key}:", " ".repeat(indent));
        let mut heads = within.filter(|at| self.is_content(*at) && self.0[*at].1.starts_with(&start));
        let head = heads.find(|at| matches!(self.0[*at].1.as_bytes().get(start.len()), None | Some(b' ')))?;
        let value = self.0[head].1[start.len()..].trim();
        let value = value.split(" #").next().unwrap_or_default().trim();
        let value = if value.starts_with('#') { String::new() } else { value.to_owned() };
        Some(Block { head, value })
    }

    fn is_content(&self, at: usize) -> bool {
        let (mark, line) = &self.0[at];
        *mark != Mark::Removed && !line.trim().is_empty() && !line.trim_start().starts_with('#')
    }

    fn indent(&self, at: usize) -> usize {
        let line = &self.0[at].1;
        line.len() - line.trim_start().len()
    }

    fn insert(&mut self, at: usize, line: String) {
        self.0.insert(at, (Mark::Added, line));
    }

    /// Removes a line. An added line leaves no trace.
    fn strike(&mut self, at: usize) {
        if self.0[at].0 == Mark::Added { drop(self.0.remove(at)) } else { self.0[at].0 = Mark::Removed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = "apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\n\n# At first.\ncap: audit\n\nplatform:\n  # why\n  \
                          - 'eks:a'\n\nrules:\n  manual-edit: {mode: audit}\n  manual-scale:\n    staleAfter: 1h\n";

    #[test]
    fn items_cases_and_modes_are_added_and_comments_stay() {
        let mut text = PolicyText::of(POLICY);
        text.add_to_list("platform", &["seen".to_owned()], "'eks:b'").unwrap();
        text.add_to_list("tools", &[], "'t'").unwrap();
        text.add_case("manual-edit", &["why".to_owned()], "{when: {}, mode: \"off\"}").unwrap();
        text.set_mode("manual-scale", Some("audit")).unwrap();
        text.remove("cap");
        let wanted = "apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\n\n\nplatform:\n  # seen\n  - 'eks:b'\n  # why\n  \
                      - 'eks:a'\n\nrules:\n  manual-edit:\n    mode: audit\n    cases:\n      # why\n      - {when: {}, mode: \"off\"}\n  \
                      manual-scale:\n    mode: audit\n    staleAfter: 1h\n\ntools:\n  - 't'\n";
        assert_eq!(text.text(), wanted);
        let diff = text.diff();
        assert!(
            diff.contains("-cap: audit\n") && diff.contains("+  - 'eks:b'\n") && diff.contains("   # why\n"),
            "{diff}"
        );
    }

    #[test]
    fn a_mode_that_goes_takes_its_rule_and_the_key_with_it() {
        let mut text = PolicyText::of(
            "kind: ClusterPolicy\nrules:\n  manual-edit: {mode: audit}\n  manual-scale:\n    mode: audit\n",
        );
        text.set_mode("manual-scale", None).unwrap();
        assert_eq!(text.text(), "kind: ClusterPolicy\nrules:\n  manual-edit: {mode: audit}\n");
        text.set_mode("manual-edit", None).unwrap();
        assert_eq!(text.text(), "kind: ClusterPolicy\n");
        assert_eq!(
            text.diff(),
            " kind: ClusterPolicy\n-rules:\n-  manual-edit: {mode: audit}\n-  manual-scale:\n-    mode: audit\n"
        );
    }

    #[test]
    fn another_notation_is_not_changed() {
        let mut text = PolicyText::of(
            "platform: ['a']\nrules: {manual-edit: {mode: audit}}\ntools: {only: []}\nmanagers:\n  only:\n    - a\n",
        );
        let before = text.text();
        for key in ["platform", "tools", "managers"] {
            assert!(text.add_to_list(key, &[], "'b'").is_err(), "{key}");
        }
        assert!(text.set_mode("manual-edit", None).is_err() && text.add_case("manual-edit", &[], "x").is_err());
        assert_eq!(text.text(), before);
    }
}

//! Whether the globs and names of a policy can match anything.

use std::collections::HashMap;
use std::iter;

use globset::Glob;

use super::domain::Domain;
use super::language::Language;
use crate::object::SERVICE_ACCOUNT_PREFIX;
use crate::policy_files::file::{GlobList, Key, Spanned};
use crate::policy_files::problem::{Problems, Span};

/// The group of every user that the API server knows.
pub(super) const EVERYBODY: &str = "system:authenticated";

/// What a wildcard may stand for in a possible value.
const FILLINGS: [&str; 4] = ["x", "X", "x:x", ""];

/// The most globs with wildcards that are compared with the values of their fields. A policy has a few dozen.
const MAX_COMPARED_GLOBS: usize = 500;

/// Checks names, and reports their problems.
pub(super) struct Names<'p, 's> {
    pub(super) problems: &'p mut Problems<'s>,
    /// Whether a glob can match, by its domain. YAML aliases repeat globs.
    compared: HashMap<(&'static str, String), bool>,
}

impl<'p, 's> Names<'p, 's> {
    pub(super) fn new(problems: &'p mut Problems<'s>) -> Self {
        Self { problems, compared: HashMap::new() }
    }

    /// Checks every glob of a list. Returns whether a value can match the list.
    pub(super) fn key(&mut self, list: &Key<GlobList>, domain: Domain, otherwise: &str) -> bool {
        let Some(list) = list.value() else { return true };
        let can_match: Vec<_> = list.texts().map(|glob| self.can_match(glob, domain)).collect();
        let is_dead = !can_match.is_empty() && can_match.iter().all(|can| !can);
        for ((span, glob), can_match) in list.iter().zip(can_match) {
            if can_match {
                self.doubt(span, glob, domain);
                continue;
            }
            let (message, meant) = (never(glob, domain), did_you_mean(self.meant(glob, domain)));
            if is_dead {
                self.problems.at(span, format!("{message}, {otherwise}{meant}"));
            } else {
                self.problems.warn(span, format!("{message}{meant}"));
            }
        }
        !is_dead
    }

    /// Checks a name.
    pub(super) fn name(&mut self, name: &Spanned<String>, domain: Domain, otherwise: &str) {
        let text = &name.value;
        if domain.language().is_some_and(|values| !values.contains(text)) {
            let (message, meant) = (never(text, domain), did_you_mean(self.meant(text, domain)));
            self.problems.at(name.span, format!("{message}, {otherwise}{meant}"));
        }
    }

    fn can_match(&mut self, glob: &str, domain: Domain) -> bool {
        let Some(values) = domain.language() else { return true };
        if is_literal(glob) {
            return values.contains(glob);
        }
        let key = (domain.shape(), glob.to_owned());
        if let Some(known) = self.compared.get(&key) {
            return *known;
        }
        let can_match = self.compared.len() >= MAX_COMPARED_GLOBS || can_match(glob, values);
        self.compared.insert(key, can_match);
        can_match
    }

    /// The probable meaning of a glob that cannot match: a known word, or the glob in another spelling.
    fn meant(&mut self, glob: &str, domain: Domain) -> Option<String> {
        if let Some(word) = domain.nearest(glob) {
            return Some(word.to_owned());
        }
        let lower = glob.to_lowercase();
        let parts = lower.replace('/', ":");
        let other = match domain {
            Domain::User | Domain::Session | Domain::Group => Some(parts.as_str()),
            Domain::ServiceAccount => parts.strip_prefix(SERVICE_ACCOUNT_PREFIX).or(Some(parts.as_str())),
            _ => lower.rsplit_once('/').map(|(_, name)| name),
        };
        let mut likely = [other, Some(lower.as_str())].into_iter().flatten();
        let found =
            likely.find(|text| text.bytes().any(|byte| byte.is_ascii_alphanumeric()) && self.can_match(text, domain));
        found.map(str::to_owned)
    }

    /// Warns of a name that is possible, but probably not meant.
    fn doubt(&mut self, span: Span, glob: &str, domain: Domain) {
        if let Some(meant) = domain.doubted(glob) {
            self.problems.warn(span, format!("`{glob}` is unusual; did you mean `{meant}`?"));
        } else if let Some(look_alike) = self.problems.look_alike(span) {
            self.problems.warn(span, look_alike);
        }
    }
}

/// The texts that a list of globs matches; `None` if they cannot be computed within bounds.
pub(super) fn language<'g>(globs: impl Iterator<Item = &'g str>) -> Option<Language> {
    let expressions: Option<Vec<_>> = globs.map(|glob| Some(Glob::new(glob).ok()?.regex().to_owned())).collect();
    Language::of(&expressions?)
}

/// Whether a glob matches one of these values. True if that cannot be decided within bounds.
pub(super) fn can_match(glob: &str, values: &Language) -> bool {
    if is_literal(glob) {
        return values.contains(glob);
    }
    // Nearly every glob of a policy can, and a value that it matches costs less than its automaton.
    is_filled_in(glob, values) || language(iter::once(glob)).is_none_or(|texts| texts.meets(values))
}

/// Whether one of these values is the glob with its wildcards filled in.
fn is_filled_in(glob: &str, values: &Language) -> bool {
    !glob.contains(['[', ']', '{', '}', '\\'])
        && FILLINGS.iter().any(|filling| values.contains(&glob.replace('*', filling).replace('?', "x")))
}

/// Whether the globs of a list match every value of a field. Few lists match the sample, so few need an automaton for this.
pub(super) fn match_all(list: &GlobList, domain: Domain) -> bool {
    list.globs.contains(domain.sample()) && cover(list.texts(), domain)
}

/// Whether the globs of a list match every user that is not a controller of the cluster.
pub(super) fn match_everybody(list: &GlobList) -> bool {
    match_all(list, Domain::Session)
}

/// Whether one glob of a list does.
pub(super) fn alone_matches_everybody(glob: &str, list: &GlobList) -> bool {
    list.globs.contains(Domain::Session.sample()) && cover(iter::once(glob), Domain::Session)
}

fn cover<'g>(globs: impl Iterator<Item = &'g str>, domain: Domain) -> bool {
    language(globs).zip(domain.language()).is_some_and(|(globs, values)| globs.covers(values))
}

pub(super) fn is_literal(glob: &str) -> bool {
    !glob.contains(['*', '?', '[', ']', '{', '}', '\\'])
}

fn never(glob: &str, domain: Domain) -> String {
    format!("`{glob}` never matches: {}", domain.shape())
}

fn did_you_mean(meant: Option<String>) -> String {
    meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default()
}

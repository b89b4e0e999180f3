//! The grammar of one alternative of a range: comparators, separated by spaces or commas.

use semver::{BuildMetadata, Prerelease, Version};

use super::comparator::{Comparator, Open, Operator};

/// The comparators of one alternative; `None` if there is none, or if one cannot be parsed.
pub(super) fn comparators(text: &str) -> Option<Vec<Comparator>> {
    let mut rest = text.trim_start();
    let mut found = Vec::new();
    loop {
        let (operator, after) = split_at(rest, |letter| !"=!<>~^".contains(letter));
        let (word, after) = split_at(after.trim_start(), |letter| letter.is_ascii_whitespace() || letter == ',');
        if let Some((upper, after)) = upper_bound(after) {
            // A hyphen needs two versions without operators.
            let bounds = [(Operator::GreaterOrEqual, word), (Operator::LessOrEqual, upper)];
            let bounds =
                bounds.into_iter().map(|(operator, word)| comparator(operator, word)).collect::<Option<Vec<_>>>();
            found.extend(bounds.filter(|_| operator.is_empty())?);
            rest = after;
        } else {
            found.push(comparator(Operator::parse(operator)?, word)?);
            rest = after;
        }
        match separated(rest) {
            Some("") => return Some(found),
            Some(next) => rest = next,
            None => return None,
        }
    }
}

/// The second version of `1.2 - 1.4`, and what follows it. There are spaces around the hyphen.
fn upper_bound(after: &str) -> Option<(&str, &str)> {
    let rest = after.trim_start();
    let after_hyphen = rest.strip_prefix('-').filter(|_| rest.len() < after.len())?;
    let upper = after_hyphen.trim_start();
    (upper.len() < after_hyphen.len()).then(|| split_at(upper, |letter| letter.is_ascii_whitespace() || letter == ','))
}

/// The text after the separator that follows a comparator: empty at the end, `None` if the separator is missing.
fn separated(rest: &str) -> Option<&str> {
    let next = rest.trim_start();
    match next.strip_prefix(',') {
        Some(next) => Some(next.trim_start()).filter(|next| !next.is_empty()),
        None => (next.is_empty() || next.len() < rest.len()).then_some(next),
    }
}

fn split_at(text: &str, ends: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(ends).unwrap_or(text.len()))
}

/// Parses a comparator. Parts of the version that are missing, or are `x`, `X` or `*`, are open.
fn comparator(operator: Operator, word: &str) -> Option<Comparator> {
    let word = word.strip_prefix('v').unwrap_or(word);
    let (word, build) = word.split_once('+').map_or((word, None), |(word, build)| (word, Some(build)));
    let (core, pre) = word.split_once('-').map_or((word, None), |(core, pre)| (core, Some(pre)));
    let pre = pre.map_or(Some(Prerelease::EMPTY), |pre| Prerelease::new(pre).ok().filter(|pre| !pre.is_empty()))?;
    let build = build
        .map_or(Some(BuildMetadata::EMPTY), |build| BuildMetadata::new(build).ok().filter(|build| !build.is_empty()))?;
    let mut numbers = Vec::new();
    for part in core.split('.') {
        numbers.push(number(part)?);
    }
    let [major, minor, patch] = match *numbers.as_slice() {
        [major] => [major, None, None],
        [major, minor] => [major, minor, None],
        [major, minor, patch] => [major, minor, patch],
        _ => return None,
    };
    let (open, [major, minor, patch]) = match (major, minor, patch) {
        (None, ..) => (Open::Everything, [0; 3]),
        (Some(major), None, _) => (Open::Minor, [major, 0, 0]),
        (Some(major), Some(minor), None) => (Open::Patch, [major, minor, 0]),
        (Some(major), Some(minor), Some(patch)) => (Open::Nothing, [major, minor, patch]),
    };
    // Masterminds ignores the build metadata of a version with open parts.
    let build = if open == Open::Nothing { build } else { BuildMetadata::EMPTY };
    Some(Comparator::new(operator, Version { major, minor, patch, pre, build }, open))
}

/// A part of a version: `Some(None)` if it is open.
fn number(part: &str) -> Option<Option<u64>> {
    match part {
        "x" | "X" | "*" => Some(None),
        digits if digits.bytes().all(|digit| digit.is_ascii_digit()) => digits.parse().ok().map(Some),
        _ => None,
    }
}

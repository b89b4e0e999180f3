//! Suggestions for unknown words.

/// `; did you mean ...?`, or all known words if none is similar.
pub(super) fn did_you_mean<'k>(word: &str, known: impl Iterator<Item = &'k str> + Clone) -> String {
    match nearest_to(word, known.clone()) {
        Some(nearest) => format!("; did you mean `{nearest}`?"),
        None => format!("; use one of {}", known.collect::<Vec<_>>().join(", ")),
    }
}

/// The known word that is most similar to this one; `None` if no word is similar.
pub fn nearest_to<'k>(word: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let distances =
        known.map(|known| (strsim::damerau_levenshtein(&word.to_lowercase(), &known.to_lowercase()), known));
    let nearest = distances.min_by_key(|(distance, _)| *distance);
    nearest.filter(|(distance, _)| *distance <= (word.chars().count() / 3).max(1)).map(|(_, nearest)| nearest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestions_are_the_nearest_word_or_all_words() {
        let said = |word| did_you_mean(word, ["mode", "cases", "staleAfter"].into_iter());
        assert_eq!(said("Mode"), "; did you mean `mode`?");
        assert_eq!(said("stale-after"), "; did you mean `staleAfter`?");
        assert_eq!(said("x"), "; use one of mode, cases, staleAfter");
    }
}

//! What somebody may have meant by a word that is not known.

/// `; did you mean ...?`, or all that is known where nothing is near.
pub(super) fn did_you_mean<'k>(word: &str, known: impl Iterator<Item = &'k str> + Clone) -> String {
    let distance = |known: &str| strsim::damerau_levenshtein(&word.to_lowercase(), &known.to_lowercase());
    let nearest = known.clone().map(|known| (distance(known), known)).min_by_key(|(distance, _)| *distance);
    match nearest {
        Some((distance, nearest)) if distance <= (word.chars().count() / 3).max(1) => {
            format!("; did you mean `{nearest}`?")
        }
        _ => format!("; known are {}", known.collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_is_answered_with_the_nearest_word_and_nonsense_with_all() {
        let said = |word| did_you_mean(word, ["mode", "cases", "staleAfter"].into_iter());
        assert_eq!(said("Mode"), "; did you mean `mode`?");
        assert_eq!(said("stale-after"), "; did you mean `staleAfter`?");
        assert_eq!(said("x"), "; known are mode, cases, staleAfter");
    }
}

//! Label selectors in the syntax of Kubernetes: `app=web,tier in (a, b),!legacy`.

use std::collections::BTreeMap;
use std::iter::Peekable;

/// The symbols that separate words. Longer ones come first.
const SYMBOLS: [&str; 9] = ["==", "!=", "=", "!", "<", ">", "(", ")", ","];

/// Whether labels, or annotations, match a selector; `None` if the selector cannot be parsed.
pub(super) fn matches(selector: &str, labels: &BTreeMap<&str, &str>) -> Option<bool> {
    let mut tokens = tokens(selector).peekable();
    let mut matches = true;
    loop {
        matches &= requirement(&mut tokens, labels)?;
        match tokens.next() {
            None => return Some(matches),
            Some(",") => {}
            Some(_) => return None,
        }
    }
}

/// Words and symbols, without the spaces around them.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let symbol = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)).map(|symbol| symbol.len());
        let word = || rest.find(|c: char| c.is_whitespace() || "=!<>(),".contains(c)).unwrap_or(rest.len());
        let (token, left) = rest.split_at(symbol.unwrap_or_else(word));
        rest = left;
        (!token.is_empty()).then_some(token)
    })
}

fn requirement<'s>(
    tokens: &mut Peekable<impl Iterator<Item = &'s str>>,
    labels: &BTreeMap<&str, &str>,
) -> Option<bool> {
    match tokens.next()? {
        "!" => Some(!labels.contains_key(word(tokens)?)),
        symbol if is_symbol(symbol) => None,
        key => {
            let found = labels.get(key).copied();
            let Some(operator) = tokens.next_if(|token| *token != ",") else {
                return Some(found.is_some());
            };
            match operator {
                "=" | "==" => {
                    let wanted = word(tokens).unwrap_or_default();
                    Some(found == Some(wanted))
                }
                "!=" => {
                    let wanted = word(tokens).unwrap_or_default();
                    Some(found != Some(wanted))
                }
                "in" => Some(is_among(found, tokens)?),
                "notin" => Some(!is_among(found, tokens)?),
                "<" => compares(found, word(tokens)?, |found, limit| found < limit),
                ">" => compares(found, word(tokens)?, |found, limit| found > limit),
                _ => None,
            }
        }
    }
}

fn is_symbol(token: &str) -> bool {
    SYMBOLS.contains(&token)
}

fn word<'s>(tokens: &mut Peekable<impl Iterator<Item = &'s str>>) -> Option<&'s str> {
    tokens.next_if(|token| !is_symbol(token))
}

/// Whether a value is in the list that follows: `(a, b)`. Consumes the list.
fn is_among<'s>(found: Option<&str>, tokens: &mut Peekable<impl Iterator<Item = &'s str>>) -> Option<bool> {
    tokens.next_if_eq(&"(")?;
    let mut is_among = false;
    loop {
        let value = word(tokens).unwrap_or_default();
        is_among |= found == Some(value);
        match tokens.next()? {
            "," => {}
            ")" => return Some(is_among),
            _ => return None,
        }
    }
}

fn compares(found: Option<&str>, limit: &str, holds: fn(i64, i64) -> bool) -> Option<bool> {
    let limit = limit.parse().ok()?;
    Some(found.and_then(|found| found.parse().ok()).is_some_and(|found| holds(found, limit)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn selectors_match_as_in_kubernetes() {
        let labels = BTreeMap::from([("app", "web"), ("tier", ""), ("size", "7"), ("example.com/team", "blue")]);
        for (selector, wanted) in [
            ("app", Some(true)),
            ("gone", Some(false)),
            ("!gone", Some(true)),
            ("!app", Some(false)),
            ("app=web", Some(true)),
            (" app == web , example.com/team=blue ", Some(true)),
            ("app=web,example.com/team=red", Some(false)),
            ("app!=web", Some(false)),
            ("gone!=web", Some(true)),
            ("tier=", Some(true)),
            ("tier=,app", Some(true)),
            ("app in (api, web)", Some(true)),
            ("app in (api)", Some(false)),
            ("app notin (api)", Some(true)),
            ("gone notin (api)", Some(true)),
            ("gone in (api,)", Some(false)),
            ("tier in (,x)", Some(true)),
            ("size>6,size<8", Some(true)),
            ("size>7", Some(false)),
            ("app>1", Some(false)),
            ("gone<1", Some(false)),
            ("", None),
            (",", None),
            ("app,", None),
            ("app web", None),
            ("=web", None),
            ("app in api", None),
            ("app in (api", None),
            ("app=(web)", None),
            ("size>x", None),
        ] {
            assert_eq!(matches(selector, &labels), wanted, "{selector}");
        }
    }

    proptest! {
        #[test]
        fn no_text_causes_a_panic(text in ".*", dense in "[a!=<>(), ]{0,40}") {
            matches(&text, &BTreeMap::new());
            matches(&dense, &BTreeMap::from([("a", "a")]));
        }
    }
}

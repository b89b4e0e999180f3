//! What Interlock knows of an owner stands in its folder: nobody else names one, in an identifier, a path or a text.

use std::collections::BTreeSet;
use std::fs;
use std::sync::LazyLock;

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, LitStr, Macro};

use super::imports::is_test;
use crate::harness::binary::repository;

/// The owners that only their folders name: each has one. Helm is the format of records too.
static OWNERS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let entries = fs::read_dir(repository("crates/engine/src/owners")).unwrap().map(|entry| entry.unwrap());
    let folders = entries.filter(|entry| entry.path().is_dir());
    let owners: Vec<_> = folders.map(|folder| folder.file_name().into_string().unwrap()).collect();
    assert!(owners.len() > 3, "{owners:?}");
    owners.into_iter().filter(|owner| owner != "helm").collect()
});

/// What may name them: the owners themselves, the tables of owners and of their rules, and the format of records.
const MAY_NAME: [&str; 5] = [
    "crates/engine/src/owners",
    "crates/engine/src/owners.rs",
    "crates/engine/src/rules/declarations.rs",
    "crates/engine/src/rules/objects.rs",
    "crates/engine/src/release",
];

/// The names in a file that stand for an owner, tests, comments and documentation left out. `None` where a file may name them.
pub(super) fn named(path: &str, text: &str) -> BTreeSet<String> {
    let is_free = MAY_NAME.iter().any(|free| path == *free || path.starts_with(&format!("{free}/")));
    if is_free || path.split(['/', '.']).any(|part| part == "tests") {
        return BTreeSet::new();
    }
    let mut found = Names::default();
    found.visit_file(&syn::parse_file(text).unwrap());
    found.0
}

#[derive(Default)]
struct Names(BTreeSet<String>);

impl Names {
    fn note(&mut self, text: &str) {
        if words(text).iter().any(|word| OWNERS.iter().any(|owner| is_of(owner, word))) {
            self.0.insert(text.to_owned());
        }
    }

    fn tokens(&mut self, tokens: TokenStream) {
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            match token {
                // An attribute. Documentation is one.
                TokenTree::Punct(it) if it.as_char() == '#' => drop(tokens.next_if(is_bracketed)),
                TokenTree::Ident(ident) => self.note(&ident.to_string()),
                TokenTree::Literal(literal) => self.note(&literal.to_string()),
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Punct(_) => {}
            }
        }
    }
}

fn is_bracketed(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket)
}

/// Whether a word names an owner: `fluxcd` and `projectsveltos` do. `helm` does not name OLM, nor `cargo` Argo CD.
fn is_of(owner: &str, word: &str) -> bool {
    match owner.len() {
        0..=3 => word == owner,
        4 => word.starts_with(owner),
        _ => word.contains(owner),
    }
}

/// The words of an identifier or a text, in lower case.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for letter in text.chars() {
        let starts = letter.is_uppercase() && was_lower;
        if !letter.is_alphanumeric() || starts {
            words.push(String::new());
        }
        if letter.is_alphanumeric() {
            words.last_mut().unwrap().extend(letter.to_lowercase());
        }
        was_lower = letter.is_lowercase();
    }
    words
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Const(it) => &it.attrs,
            Item::Fn(it) => &it.attrs,
            Item::Impl(it) => &it.attrs,
            Item::Mod(it) => &it.attrs,
            Item::Use(it) => &it.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !is_test(attributes) {
            visit::visit_item(self, item);
        }
    }

    /// Documentation is an attribute.
    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    fn visit_ident(&mut self, ident: &'ast Ident) {
        self.note(&ident.to_string());
    }

    fn visit_lit_str(&mut self, literal: &'ast LitStr) {
        self.note(&literal.value());
    }

    fn visit_macro(&mut self, invocation: &'ast Macro) {
        self.tokens(invocation.tokens.clone());
        visit::visit_macro(self, invocation);
    }
}

//! What one file imports, and which of its public items lack documentation.

use proc_macro2::{TokenStream, TokenTree};
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItemFn, Item, ItemUse, Path, PathSegment, Token, UseTree, Visibility};

/// A path that a file names.
pub(super) struct Import {
    pub(super) line: usize,
    pub(super) path: Vec<String>,
    /// The name by which the file knows it.
    pub(super) name: String,
    /// A `pub use`, which hands a name on.
    pub(super) is_handed_on: bool,
    /// A `use`, not a path in a body.
    pub(super) is_use: bool,
}

/// What a file says of itself, tests left out.
#[derive(Default)]
pub(super) struct Contents {
    pub(super) imports: Vec<Import>,
    /// Lines of public items without documentation.
    pub(super) undocumented: Vec<usize>,
}

impl Contents {
    pub(super) fn of(text: &str) -> Self {
        let mut contents = Self::default();
        contents.visit_file(&syn::parse_file(text).unwrap());
        contents
    }

    fn tree(&mut self, tree: &UseTree, before: &[String], is_handed_on: bool) {
        let with = |name: &syn::Ident| before.iter().cloned().chain([name.to_string()]).collect::<Vec<_>>();
        match tree {
            UseTree::Path(path) => self.tree(&path.tree, &with(&path.ident), is_handed_on),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.tree(tree, before, is_handed_on)),
            UseTree::Name(name) if name.ident == "self" => {
                self.used(before.to_vec(), before.last().unwrap(), name.ident.span(), is_handed_on);
            }
            UseTree::Name(name) => {
                self.used(with(&name.ident), &name.ident.to_string(), name.ident.span(), is_handed_on);
            }
            UseTree::Rename(renamed) => {
                self.used(with(&renamed.ident), &renamed.rename.to_string(), renamed.ident.span(), is_handed_on);
            }
            UseTree::Glob(glob) => self.used(before.to_vec(), "*", glob.star_token.spans[0], is_handed_on),
        }
    }

    fn used(&mut self, path: Vec<String>, name: &str, span: proc_macro2::Span, is_handed_on: bool) {
        let line = span.start().line;
        self.imports.push(Import { line, path, name: name.to_owned(), is_handed_on, is_use: true });
    }

    fn named(&mut self, line: usize, path: Vec<String>) {
        if path.len() > 1 {
            self.imports.push(Import { line, path, name: String::new(), is_handed_on: false, is_use: false });
        }
    }

    /// Paths in the tokens of a macro, which are no syntax yet.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let (mut line, mut colons) = (0, 0);
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.named(line, std::mem::take(&mut path));
                        line = ident.span().start().line;
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    // `pub(in crate::world)` names no dependency.
                    let is_visibility = path == ["pub"];
                    self.named(line, std::mem::take(&mut path));
                    colons = 0;
                    if !is_visibility {
                        self.tokens(group.stream());
                    }
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {
                    self.named(line, std::mem::take(&mut path));
                    colons = 0;
                }
            }
        }
        self.named(line, path);
    }

    fn public(&mut self, visibility: &Visibility, attributes: &[Attribute], line: usize) {
        let is_public = matches!(visibility, Visibility::Public(_));
        if is_public && !attributes.iter().any(|attribute| attribute.path().is_ident("doc")) {
            self.undocumented.push(line);
        }
    }
}

impl<'ast> Visit<'ast> for Contents {
    fn visit_item(&mut self, item: &'ast Item) {
        let (visibility, attributes, line) = match item {
            Item::Const(it) => (Some(&it.vis), &it.attrs, it.ident.span()),
            Item::Enum(it) => (Some(&it.vis), &it.attrs, it.ident.span()),
            Item::Fn(it) => (Some(&it.vis), &it.attrs, it.sig.ident.span()),
            Item::Static(it) => (Some(&it.vis), &it.attrs, it.ident.span()),
            Item::Struct(it) => (Some(&it.vis), &it.attrs, it.ident.span()),
            Item::Trait(it) => (Some(&it.vis), &it.attrs, it.ident.span()),
            Item::Type(it) => (Some(&it.vis), &it.attrs, it.ident.span()),
            Item::Mod(it) => (None, &it.attrs, it.ident.span()),
            Item::Use(it) => (None, &it.attrs, it.use_token.span),
            Item::Impl(it) => (None, &it.attrs, it.impl_token.span),
            _ => return visit::visit_item(self, item),
        };
        if is_test(attributes) {
            return;
        }
        if let Some(visibility) = visibility {
            self.public(visibility, attributes, line.start().line);
        }
        visit::visit_item(self, item);
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let is_handed_on = !matches!(item.vis, Visibility::Inherited);
        self.tree(&item.tree, &[], is_handed_on);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.public(&item.vis, &item.attrs, item.sig.ident.span().start().line);
        visit::visit_impl_item_fn(self, item);
    }

    /// `pub(in crate::world)` names no dependency.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_path(&mut self, path: &'ast Path) {
        let line = path.segments.first().map_or(0, |first| first.ident.span().start().line);
        self.named(line, segments(&path.segments));
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, invocation: &'ast syn::Macro) {
        self.tokens(invocation.tokens.clone());
        visit::visit_macro(self, invocation);
    }
}

fn segments(path: &Punctuated<PathSegment, Token![::]>) -> Vec<String> {
    path.iter().map(|segment| segment.ident.to_string()).collect()
}

/// Whether this is left out of the program: `cfg(test)`, or `cfg(any(test, ...))`.
pub(super) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let condition = attribute.parse_args::<TokenStream>().unwrap_or_default().to_string();
        attribute.path().is_ident("cfg") && (condition == "test" || condition.starts_with("any (test ,"))
    })
}

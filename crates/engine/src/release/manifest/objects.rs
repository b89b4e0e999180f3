//! The objects of a manifest, found by their headings as kubectl's resource builder finds them. Only the wanted objects
//! are converted to values.

use std::ops::ControlFlow;

use serde_json::Value;

use super::documents::{Document, Manifest};
use super::heading::Heading;
use super::key::DocumentKey;
use super::source::Source;
use crate::effort::Effort;
use crate::object::group_of;
use crate::yaml;

/// The steps to search a YAML document for names, for each byte.
const SEARCH_STEPS: u64 = 4;

/// The steps to find the headings in JSON, for each byte: it is scanned once for its end, and once for its heading.
const JSON_SCAN_STEPS: u64 = 4;

/// The deepest nesting of lists of objects.
const MAX_LIST_DEPTH: usize = 8;

/// An object of a manifest.
pub(super) struct FoundObject<'m> {
    pub(super) heading: Heading<'m>,
    source: Source<'m>,
}

impl FoundObject<'_> {
    /// Parses the object.
    ///
    /// # Errors
    /// The position of the problem, or it is more work than the review has left.
    pub(super) fn parse(self) -> Result<Value, String> {
        let mut value = self.source.parse()?;
        // An item may have these fields only from its list.
        if let Value::Object(members) = &mut value {
            let Heading { api_version, kind, .. } = self.heading;
            for (name, text) in [("apiVersion", api_version), ("kind", kind)] {
                if !text.is_empty() && !members.get(name).is_some_and(Value::is_string) {
                    members.insert(name.to_owned(), text.into());
                }
            }
        }
        Ok(value)
    }
}

/// Receives the objects of a manifest, and can end the visit early.
type Visit<'v> = &'v mut dyn FnMut(FoundObject<'_>) -> Result<ControlFlow<()>, String>;

/// Visits the objects of a manifest in order. The items of a list count one by one, in place of the list. Of the YAML
/// documents, only those whose text `is_wanted` accepts are parsed.
///
/// # Errors
/// The manifest is longer than 8 MiB, a document cannot be parsed, or it is more work than the review has left.
pub(super) fn each_object(
    manifest: &str,
    effort: &Effort,
    is_wanted: impl Fn(&str) -> bool,
    visit: Visit<'_>,
) -> Result<(), String> {
    let manifest = Manifest::of(manifest, effort)?;
    if manifest.is_json() {
        effort.take(manifest.len() as u64 * JSON_SCAN_STEPS)?;
    }
    for document in manifest.documents() {
        let seen = match document? {
            Document::Json(text) => visit_objects(Source::Json(text, effort), None, 0, visit)?,
            Document::Yaml(text) => {
                effort.take_text(text, SEARCH_STEPS)?;
                if !is_wanted(text) {
                    continue;
                }
                let document = yaml::Document::parse(text, effort)?;
                match document.root() {
                    Some(root) => visit_objects(Source::Yaml(&document, root), None, 0, visit)?,
                    None => continue,
                }
            }
        };
        if seen.is_break() {
            break;
        }
    }
    Ok(())
}

/// All objects of a manifest. A document without kind and name is not an object.
///
/// # Errors
/// A document cannot be parsed, the manifest is longer than 8 MiB, or it is more work than the review has left.
pub fn objects(manifest: &str, effort: &Effort) -> Result<Vec<Value>, String> {
    let mut found = Vec::new();
    each_object(manifest, effort, |_| true, &mut |object| {
        if object.heading.names_object() {
            found.push(object.parse()?);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

/// The names of all objects of a manifest.
///
/// # Errors
/// As [`objects`].
pub fn object_keys(manifest: &str, default_namespace: &str, effort: &Effort) -> Result<Vec<DocumentKey>, String> {
    let mut found = Vec::new();
    each_object(manifest, effort, |_| true, &mut |object| {
        let heading = &object.heading;
        if let Some(name) = heading.name.as_deref().filter(|_| heading.names_object()) {
            found.push(DocumentKey {
                group: group_of(&heading.api_version).to_owned(),
                kind: heading.kind.clone().into_owned(),
                namespace: heading.namespace_or(default_namespace).to_owned(),
                name: name.to_owned(),
                default_namespace: default_namespace.to_owned(),
            });
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

/// Visits an object, or the items of a list.
fn visit_objects(
    source: Source<'_>,
    list: Option<&Heading<'_>>,
    depth: usize,
    visit: Visit<'_>,
) -> Result<ControlFlow<()>, String> {
    if !source.is_object() {
        return Ok(ControlFlow::Continue(()));
    }
    let (mut heading, items) = source.heading()?;
    if let Some(list) = list {
        heading.complete_from(list);
    }
    let Some(items) = items.and_then(|items| items.items(depth == 0)) else {
        return visit(FoundObject { heading, source });
    };
    if depth == MAX_LIST_DEPTH {
        return Err(format!("lists are nested deeper than {MAX_LIST_DEPTH} levels"));
    }
    let list = Some(&heading).filter(|_| depth == 0);
    for item in items {
        if visit_objects(item, list, depth + 1, visit)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(manifest: &str) -> Vec<String> {
        let name = |value: &Value| format!("{} {}", value["kind"], value["metadata"]["name"]).replace('"', "");
        objects(manifest, &Effort::of_review()).unwrap().iter().map(name).collect()
    }

    #[test]
    fn objects_are_found_in_documents_and_in_lists() {
        let yaml = "---\n# Source: a\nkind: A\nmetadata: {name: one}\n---\n# nothing\n---\nkind: List\nitems:\n\
                    - {kind: B, metadata: {name: two}}\n- {kind: C, metadata: {name: three}, items: {a: 1}}\n---\nkind: D\n";
        assert_eq!(names(yaml), ["A one", "B two", "C three"]);
        let json =
            r#"{"kind":"A","metadata":{"name":"one"}} {"kind":"BList","items":[{"kind":"B","metadata":{"name":"b"}}]}"#;
        assert_eq!(names(json), ["A one", "B b"]);
        assert_eq!(names(""), [""; 0]);
    }

    #[test]
    fn items_of_a_list_in_any_notation_are_parsed_alone() {
        let yaml = "kind: ConfigMapList\nitems:\n  -   kind: ConfigMap\n      metadata:\n        name: a\n      data:\n        x: |\n          - kind: B\n          two\n  - kind: ConfigMap\n    metadata: {name: b}\n    data: {x: z}\n\
                    apiVersion: v1\n";
        let found = objects(yaml, &Effort::of_review()).unwrap();
        assert_eq!(found[0]["data"]["x"], "- kind: B\ntwo\n");
        assert_eq!((&found[1]["metadata"]["name"], &found[1]["data"]["x"]), (&"b".into(), &"z".into()));
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn items_without_kind_have_that_of_their_list() {
        let yaml = "apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: a}\n- kind: Secret\n  metadata: {name: b}\n";
        let late = "items:\n- metadata: {name: a}\n- kind: Secret\n  metadata: {name: b}\nkind: ConfigMapList\napiVersion: v1\n";
        let merged = "x: &x {metadata: {name: a}}\nkind: ConfigMapList\napiVersion: v1\nitems:\n- {<<: *x}\n- {kind: Secret, metadata: {name: b}}\n";
        let json = r#"{"apiVersion":"v1","kind":"ConfigMapList","items":[{"metadata":{"name":"a"}},{"kind":"Secret","metadata":{"name":"b"}}]}"#;
        for list in [yaml, late, merged, json] {
            assert_eq!(names(list), ["ConfigMap a", "Secret b"], "{list}");
            let found = objects(list, &Effort::of_review()).unwrap();
            assert_eq!(found[0]["apiVersion"], "v1", "{list}");
        }
        assert_eq!(names("kind: List\nitems:\n- metadata: {name: a}\n"), [""; 0]);
    }

    #[test]
    fn anchors_name_objects_and_merge_keys_do_too() {
        let aliased = "x: &n web\ny: &m {name: api, namespace: db}\n---\n";
        assert_eq!(names(&format!("{aliased}kind: A\nmetadata: {{name: a}}\n")), ["A a"]);
        assert_eq!(names("---\n{x: &n web, kind: A, metadata: {name: *n}}"), ["A web"]);
        assert_eq!(names("---\n{x: &m {name: api}, kind: A, metadata: *m}"), ["A api"]);
        assert_eq!(names("---\n{x: &b {kind: A}, <<: *b, metadata: {name: a}}"), ["A a"]);
        assert_eq!(names("---\n{kind: A, x: &b {name: a}, metadata: {<<: *b}}"), ["A a"]);
        let object = "x: &o {kind: A, metadata: {name: a}}\nkind: List\n";
        assert_eq!(names(&format!("{object}items: [*o]\n")), ["A a"]);
        assert_eq!(names(&format!("{object}y: &l [*o]\nitems: *l\n")), ["A a"]);
    }

    #[test]
    fn the_last_of_several_lists_counts() {
        let item = |name: &str| format!("items:\n- {{kind: A, metadata: {{name: {name}}}}}\n");
        assert_eq!(names(&format!("kind: List\n{}{}", item("a"), item("b"))), ["A b"]);
    }

    #[test]
    fn an_error_contains_only_the_position() {
        let error = objects("kind: A\nmetadata: [hunter2\n", &Effort::of_review()).unwrap_err();
        assert!(error.contains("line") && !error.contains("hunter2"), "{error}");
    }

    #[test]
    fn an_item_may_refer_to_an_anchor_outside() {
        let list = "kind: List\nx: &d {a: b}\nitems:\n- {kind: A, metadata: {name: a}, data: *d}\n- {kind: B, metadata: {name: b}}\n";
        assert_eq!(objects(list, &Effort::of_review()).unwrap()[0]["data"]["a"], "b");
    }

    #[test]
    fn aliases_cost_only_their_text_until_parsed() {
        let level = |level: usize| format!("x{level}: &x{level} [{}]\n", vec![format!("*x{}", level - 1); 9].join(","));
        let levels: String = (1..9).map(level).collect();
        let bomb = format!("x0: &x0 [1]\n{levels}kind: &k A\nmetadata: {{name: bomb}}\n---\n");
        let manifest = bomb.repeat(64);
        let (effort, mut found) = (Effort::of_review(), 0);
        each_object(&manifest, &effort, |_| true, &mut |_| {
            found += 1;
            Ok(ControlFlow::Continue(()))
        })
        .unwrap();
        assert!(found == 64 && effort.used() < 150 * manifest.len() as u64, "{found} {}", effort.used());
        assert!(objects(&manifest, &effort).is_err());
    }
}

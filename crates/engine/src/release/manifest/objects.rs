//! The objects of a manifest, found by their headings as kubectl's resource builder finds them. No document is parsed
//! to find another.

use std::borrow::Cow;
use std::ops::ControlFlow;

use serde_json::Value;

use super::documents::{Document, Manifest, parse_json};
use super::heading::{Heading, Names};
use super::lines::heading_from_lines;
use super::outline::{ItemPlace, NoOutline, OutlinedObject, outline};
use crate::effort::Effort;
use crate::json::cursor::{Cursor, unquoted};
use crate::yaml;

/// The steps to find the heading in the lines of a YAML document, for each byte.
const LINE_STEPS: u64 = 4;

/// The steps to find the headings in JSON, for each byte: it is scanned once for its end, and once for its heading.
const JSON_SCAN_STEPS: u64 = 4;

/// The steps to read the heading of an object in JSON, however short it is.
const JSON_OBJECT_STEPS: u64 = 400;

/// The deepest nesting of lists of objects.
pub(super) const MAX_LIST_DEPTH: usize = 8;

/// An object of a manifest.
pub(super) struct FoundObject<'m> {
    pub(super) heading: Heading<'m>,
    text: ObjectText<'m>,
}

enum ObjectText<'m> {
    Yaml(&'m str),
    YamlItem {
        document: &'m str,
        place: ItemPlace,
    },
    Json(&'m str),
    /// An object that was parsed to find it.
    Parsed(Value),
}

impl FoundObject<'_> {
    /// Parses the object.
    ///
    /// # Errors
    /// The position of the problem, or it is more work than the review has left.
    pub(super) fn parse(self, effort: &Effort) -> Result<Value, String> {
        let mut value = match self.text {
            ObjectText::Yaml(text) => yaml::parse(text, effort)?,
            ObjectText::YamlItem { document, place } => parse_item(document, place, effort)?,
            ObjectText::Json(text) => parse_json(text, effort)?,
            ObjectText::Parsed(value) => value,
        };
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

/// Parses an item of a list alone. The list is parsed with it only if the text before the item may matter: an anchor, a
/// directive, or the start of go-yaml's buffer if there is a byte order mark.
fn parse_item(document: &str, place: ItemPlace, effort: &Effort) -> Result<Value, String> {
    let text = document.get(place.text).unwrap_or_default();
    let has_directive = document.starts_with('%') || document.contains("\n%");
    if !text.contains('*') && !has_directive && !document.contains('\u{feff}') {
        return yaml::parse(&format!("{}{text}", " ".repeat(place.indent)), effort);
    }
    let mut value = yaml::parse(document, effort)?;
    for index in place.path {
        value = value.get_mut("items").and_then(|items| items.get_mut(index)).map(Value::take).unwrap_or_default();
    }
    Ok(value)
}

/// Receives the objects of a manifest, and can end the visit early.
type Visit<'v> = &'v mut dyn FnMut(FoundObject<'_>) -> Result<ControlFlow<()>, String>;

/// Visits the objects of a manifest in order. The items of a list count one by one, in place of the list. Of the YAML
/// documents, only those whose text `is_wanted` accepts are visited.
///
/// # Errors
/// The manifest is longer than 8 MiB, the heading of a document cannot be parsed, or it is more work than the review
/// has left.
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
            Document::Json(document) => json_object(document, None, effort, visit, 0)?,
            Document::Yaml(document) => {
                effort.take_text(document, LINE_STEPS)?;
                if !is_wanted(document) {
                    continue;
                }
                yaml_object(document, effort, visit)?
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
            found.push(object.parse(effort)?);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

/// The heading of a JSON object, and its `items`. If a member repeats, the last one counts.
fn json_heading(document: &str) -> Result<(Heading<'_>, Option<&str>), String> {
    let (mut heading, mut items) = (Heading::default(), None);
    each_member(document, |key, value| {
        match key {
            "apiVersion" => heading.api_version = json_text(value)?.unwrap_or_default(),
            "kind" => heading.kind = json_text(value)?.unwrap_or_default(),
            "metadata" => heading.names = json_names(value)?,
            "items" => items = Some(value),
            _ => {}
        }
        Ok(())
    })?;
    Ok((heading, items))
}

fn json_names(metadata: &str) -> Result<Names<'_>, String> {
    let mut names = Names::default();
    each_member(metadata, |key, value| {
        match key {
            "name" => names.name = json_text(value)?,
            "namespace" => names.namespace = json_text(value)?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(names)
}

/// Visits the members of an object. Other values have none.
fn each_member<'m>(text: &'m str, mut visit: impl FnMut(&str, &'m str) -> Result<(), String>) -> Result<(), String> {
    let mut cursor = Cursor::new(text);
    if cursor.expect_byte(b'{').is_none() {
        return Ok(());
    }
    while let Some((key, value)) = cursor.next_member().ok_or("a key cannot be read")? {
        visit(&key, value)?;
    }
    Ok(())
}

/// The text of a value; `None` for a value of another type.
fn json_text(value: &str) -> Result<Option<Cow<'_, str>>, String> {
    if !value.starts_with('"') {
        return Ok(None);
    }
    unquoted(value).map(Some).ok_or_else(|| "a name cannot be read".to_owned())
}

fn json_object(
    document: &str,
    list: Option<&Heading<'_>>,
    effort: &Effort,
    visit: Visit<'_>,
    depth: usize,
) -> Result<ControlFlow<()>, String> {
    effort.take(JSON_OBJECT_STEPS)?;
    let (mut heading, items) = json_heading(document)?;
    if let Some(list) = list {
        heading.complete_from(list);
    }
    let Some(items) = items.filter(|items| items.starts_with('[') || depth == 0 && *items == "null") else {
        return visit(FoundObject { heading, text: ObjectText::Json(document) });
    };
    check_depth(depth)?;
    let mut items = Cursor::new(items);
    if items.expect_byte(b'[').is_none() {
        return Ok(ControlFlow::Continue(()));
    }
    // A hostile list has millions of items, so they are not collected.
    while items.has_next(b']') == Some(true) {
        let Some(item) = items.skip_value() else { break };
        let list = Some(&heading).filter(|_| depth == 0);
        if item.starts_with('{') && json_object(item, list, effort, visit, depth + 1)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

fn check_depth(depth: usize) -> Result<(), String> {
    if depth < MAX_LIST_DEPTH {
        return Ok(());
    }
    Err(format!("lists are nested deeper than {MAX_LIST_DEPTH} levels"))
}

fn yaml_object(document: &str, effort: &Effort, visit: Visit<'_>) -> Result<ControlFlow<()>, String> {
    if let Some(heading) = heading_from_lines(document) {
        return visit(FoundObject { heading, text: ObjectText::Yaml(document) });
    }
    let outlined = match outline(document, effort) {
        Ok(outlined) => outlined,
        Err(NoOutline::Aliased) => return parsed_object(yaml::parse(document, effort)?, None, visit, 0),
        Err(NoOutline::Unreadable(why)) => return Err(why),
    };
    for OutlinedObject { heading, item } in outlined {
        let text = match item {
            None => ObjectText::Yaml(document),
            Some(place) => ObjectText::YamlItem { document, place },
        };
        if visit(FoundObject { heading, text })?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Visits the objects of a document that had to be parsed.
fn parsed_object(
    mut value: Value,
    list: Option<&Heading<'_>>,
    visit: Visit<'_>,
    depth: usize,
) -> Result<ControlFlow<()>, String> {
    let metadata = &value["metadata"];
    let names = Names { name: name_of(&metadata["name"]), namespace: name_of(&metadata["namespace"]) };
    let (api_version, kind) = (name_of(&value["apiVersion"]), name_of(&value["kind"]));
    let mut heading = Heading { api_version: api_version.unwrap_or_default(), kind: kind.unwrap_or_default(), names };
    if let Some(list) = list {
        heading.complete_from(list);
    }
    let items = match value.get_mut("items") {
        Some(Value::Array(items)) => std::mem::take(items),
        Some(Value::Null) if depth == 0 => Vec::new(),
        _ => return visit(FoundObject { heading, text: ObjectText::Parsed(value) }),
    };
    check_depth(depth)?;
    for item in items.into_iter().filter(Value::is_object) {
        let list = Some(&heading).filter(|_| depth == 0);
        if parsed_object(item, list, visit, depth + 1)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

fn name_of(value: &Value) -> Option<Cow<'static, str>> {
    value.as_str().map(|name| Cow::Owned(name.to_owned()))
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

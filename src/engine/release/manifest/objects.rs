//! The objects of a manifest, found by their headings. No document is parsed to find another one.

use std::borrow::Cow;
use std::ops::ControlFlow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::documents::{check_length, is_json, parse_json, parse_yaml, position, yaml_documents};
use super::heading::{Heading, Names};
use super::outline::{ItemPlace, NoOutline, OutlinedObject, outline};
use crate::engine::effort::{Effort, OverBudget};
use crate::engine::json::cursor::Cursor;

/// The steps to find the heading in the lines of a YAML document, for each byte.
const LINE_STEPS: u64 = 2;

/// The steps to find the headings in JSON, for each byte: it is scanned once for its end, and once for its heading.
const JSON_SCAN_STEPS: u64 = 4;

/// The steps to read the heading of an object in JSON, however short it is.
const JSON_OBJECT_STEPS: u64 = 400;

/// The deepest nesting of lists of objects.
const MAX_LIST_DEPTH: usize = 8;

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
    /// It had to be parsed to find it.
    Parsed(Value),
}

impl FoundObject<'_> {
    /// Parses the object.
    ///
    /// # Errors
    /// The position of the problem, or it is more work than the review has left.
    pub(super) fn parse(self, effort: &Effort) -> Result<Value, String> {
        let mut value = match self.text {
            ObjectText::Yaml(text) => parse_yaml(text, effort)?,
            ObjectText::YamlItem { document, place } => parse_item(document, place, effort)?,
            ObjectText::Json(text) => parse_json(text, effort)?,
            ObjectText::Parsed(value) => value,
        };
        // An item may have them from its list.
        if let Value::Object(members) = &mut value {
            let Heading { api_version, kind, .. } = self.heading;
            for (name, text) in [("apiVersion", api_version), ("kind", kind)] {
                if !text.is_empty() {
                    members.entry(name).or_insert_with(|| text.into());
                }
            }
        }
        Ok(value)
    }
}

/// Parses an item of a list alone. Together with the list only if it may refer to an anchor outside.
fn parse_item(document: &str, place: ItemPlace, effort: &Effort) -> Result<Value, String> {
    let text = document.get(place.text).unwrap_or_default();
    let alone = parse_yaml(&format!("{}{text}", " ".repeat(place.indent)), effort);
    if alone.is_ok() || !text.contains('*') {
        return alone;
    }
    let mut list = parse_yaml(document, effort)?;
    Ok(list.get_mut("items").and_then(|items| items.get_mut(place.index)).map(Value::take).unwrap_or_default())
}

/// Receives the objects of a manifest, until it has seen enough.
type Visit<'v, 'm> = &'v mut dyn FnMut(FoundObject<'m>) -> Result<ControlFlow<()>, String>;

/// Visits the objects of a manifest in order. The items of a list count one by one, in place of the list. Of a YAML manifest
/// only the documents whose text `is_wanted` accepts.
///
/// # Errors
/// The manifest is longer than 8 MiB, the heading of a document cannot be read, or it is more work than the review has left.
pub(super) fn each_object<'m>(
    manifest: &'m str,
    effort: &Effort,
    is_wanted: impl Fn(&str) -> bool,
    visit: Visit<'_, 'm>,
) -> Result<(), String> {
    check_length(manifest, effort)?;
    if is_json(manifest) {
        effort.take_text(manifest, JSON_SCAN_STEPS)?;
        for document in serde_json::Deserializer::from_str(manifest).into_iter::<&RawValue>() {
            let document = document.map_err(|error| position(&error))?.get();
            if json_object(document, None, effort, visit, 0)?.is_break() {
                break;
            }
        }
        return Ok(());
    }
    for document in yaml_documents(manifest) {
        effort.take_text(document, LINE_STEPS)?;
        if is_wanted(document) && yaml_object(document, effort, visit)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// All objects of a manifest. A document without kind and name is no object.
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

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct JsonHeading<'m> {
    #[serde(borrow)]
    api_version: Cow<'m, str>,
    #[serde(borrow)]
    kind: Cow<'m, str>,
    #[serde(borrow)]
    metadata: Option<JsonNames<'m>>,
    #[serde(borrow)]
    items: Option<&'m RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct JsonNames<'m> {
    #[serde(borrow)]
    name: Option<Cow<'m, str>>,
    #[serde(borrow)]
    namespace: Option<Cow<'m, str>>,
}

fn json_object<'m>(
    document: &'m str,
    list: Option<&Heading<'m>>,
    effort: &Effort,
    visit: Visit<'_, 'm>,
    depth: usize,
) -> Result<ControlFlow<()>, String> {
    effort.take(JSON_OBJECT_STEPS)?;
    let JsonHeading { api_version, kind, metadata, items } =
        serde_json::from_str(document).map_err(|error| position(&error))?;
    let JsonNames { name, namespace } = metadata.unwrap_or_default();
    let mut heading = Heading { api_version, kind, names: Names { name, namespace } };
    if let Some(list) = list {
        heading.complete_from(list);
    }
    let mut items = Cursor::new(items.map_or("", RawValue::get));
    if !heading.is_list() || depth == MAX_LIST_DEPTH || items.expect_byte(b'[').is_none() {
        return visit(FoundObject { heading, text: ObjectText::Json(document) });
    }
    // A hostile list has millions of items: they are not gathered.
    while items.has_next(b']') == Some(true) {
        let Some(item) = items.skip_value() else { break };
        if item.starts_with('{') && json_object(item, Some(&heading), effort, visit, depth + 1)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

fn yaml_object<'m>(document: &'m str, effort: &Effort, visit: Visit<'_, 'm>) -> Result<ControlFlow<()>, String> {
    if let Some(heading) = Heading::from_lines(document).filter(|heading| !heading.is_list()) {
        return visit(FoundObject { heading, text: ObjectText::Yaml(document) });
    }
    let outlined = match outline(document, effort) {
        Ok(outlined) => outlined,
        Err(NoOutline::Merged) => return parsed_object(parse_yaml(document, effort)?, None, visit, 0),
        Err(NoOutline::OverBudget) => return Err(OverBudget.into()),
        Err(NoOutline::Malformed { line, column }) => {
            return Err(format!("line {line}, column {column} of a document"));
        }
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
fn parsed_object<'m>(
    mut value: Value,
    list: Option<&Heading<'m>>,
    visit: Visit<'_, 'm>,
    depth: usize,
) -> Result<ControlFlow<()>, String> {
    let text = |value: &Value| Cow::Owned(value.as_str().unwrap_or_default().to_owned());
    let name = |value: &Value| value.as_str().map(|name| Cow::Owned(name.to_owned()));
    let names = Names { name: name(&value["metadata"]["name"]), namespace: name(&value["metadata"]["namespace"]) };
    let mut heading = Heading { api_version: text(&value["apiVersion"]), kind: text(&value["kind"]), names };
    if let Some(list) = list {
        heading.complete_from(list);
    }
    let items = value.get_mut("items").filter(|_| heading.is_list() && depth < MAX_LIST_DEPTH).map(Value::take);
    let Some(Value::Array(items)) = items else {
        return visit(FoundObject { heading, text: ObjectText::Parsed(value) });
    };
    for item in items {
        if parsed_object(item, Some(&heading), visit, depth + 1)?.is_break() {
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
                    - {kind: B, metadata: {name: two}}\n- {kind: C, metadata: {name: three}, items: [1]}\n---\nkind: D\n";
        assert_eq!(names(yaml), ["A one", "B two", "C three"]);
        let json =
            r#"{"kind":"A","metadata":{"name":"one"}} {"kind":"BList","items":[{"kind":"B","metadata":{"name":"b"}}]}"#;
        assert_eq!(names(json), ["A one", "B b"]);
        assert_eq!(names(""), [""; 0]);
    }

    #[test]
    fn items_of_a_list_are_parsed_alone_however_they_are_written() {
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
    fn an_error_contains_the_position_alone() {
        let error = objects("kind: A\nmetadata: [hunter2\n", &Effort::of_review()).unwrap_err();
        assert!(error.contains("line") && !error.contains("hunter2"), "{error}");
    }

    #[test]
    fn an_item_may_refer_to_an_anchor_outside() {
        let list = "kind: List\nx: &d {a: b}\nitems:\n- {kind: A, metadata: {name: a}, data: *d}\n- {kind: B, metadata: {name: b}}\n";
        assert_eq!(objects(list, &Effort::of_review()).unwrap()[0]["data"]["a"], "b");
    }

    #[test]
    fn aliases_cost_their_text_and_no_more_until_the_object_is_parsed() {
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

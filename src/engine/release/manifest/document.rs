//! The document of one object in a manifest.

use memchr::memmem;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::documents::{check_length, is_json, json_documents, parse, plain_scalar, position, yaml_documents};
use crate::engine::object::group_of;

/// The object whose document is wanted, as a request names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DocumentKey {
    /// Empty for the core group. Without version, which may have changed since the chart was written.
    pub group: String,
    pub kind: String,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    pub name: String,
    /// The namespace of documents without one.
    pub default_namespace: String,
}

/// The fields that name the object of a document.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Heading {
    api_version: String,
    kind: String,
    metadata: Option<HeadingMetadata>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct HeadingMetadata {
    name: Option<String>,
    namespace: Option<String>,
}

/// The document of an object; `None` if the manifest has none. Only this document is parsed.
///
/// # Errors
/// The document cannot be parsed, or the manifest is longer than 16 MiB.
pub(crate) fn document(manifest: &str, wanted: &DocumentKey) -> Result<Option<Value>, String> {
    check_length(manifest)?;
    if is_json(manifest) {
        return json_document(manifest, wanted);
    }
    let (name, kind) = (memmem::Finder::new(&wanted.name), memmem::Finder::new(&wanted.kind));
    let mentions =
        |document: &&str| name.find(document.as_bytes()).is_some() && kind.find(document.as_bytes()).is_some();
    for document in yaml_documents(manifest).filter(mentions) {
        let found = match heading_from_lines(document) {
            Some(heading) if heading.names(wanted) => parse(document)?,
            Some(heading) if heading.kind != "List" => None,
            _ => parse::<Value>(document)?.and_then(|value| in_list(value, wanted)),
        };
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

fn json_document(manifest: &str, wanted: &DocumentKey) -> Result<Option<Value>, String> {
    for document in json_documents::<&RawValue>(manifest) {
        let document = document?.get();
        let heading: Heading = serde_json::from_str(document).map_err(|error| position(&error))?;
        if heading.names(wanted) {
            return serde_json::from_str(document).map(Some).map_err(|error| position(&error));
        }
    }
    Ok(None)
}

/// The object itself, or the matching item of a list.
fn in_list(value: Value, wanted: &DocumentKey) -> Option<Value> {
    let heading = Heading::deserialize(&value).ok()?;
    if heading.names(wanted) {
        return Some(value);
    }
    let Value::Object(mut list) = value else {
        return None;
    };
    match list.remove("items")? {
        Value::Array(items) => items.into_iter().find_map(|item| in_list(item, wanted)),
        _ => None,
    }
}

/// Reads the heading from the lines of a document, without parsing the document. `None` if the document is not written
/// like those of charts: keys at the margin, the members of `metadata` indented.
fn heading_from_lines(document: &str) -> Option<Heading> {
    let mut heading = Heading::default();
    let mut names = HeadingMetadata::default();
    // The indentation of the members of `metadata`.
    let mut indent = None;
    let mut in_metadata = false;
    for line in document.lines() {
        let depth = line.len() - line.trim_start().len();
        let text = line.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        if depth == 0 {
            in_metadata = text == "metadata:";
            if let Some(version) = line.strip_prefix("apiVersion:") {
                heading.api_version = scalar(version)?;
            } else if let Some(kind) = line.strip_prefix("kind:") {
                heading.kind = scalar(kind)?;
            } else if line.starts_with("metadata:") && !in_metadata {
                return None;
            }
        } else if in_metadata && depth == *indent.get_or_insert(depth) {
            if let Some(name) = text.strip_prefix("name:") {
                names.name = Some(scalar(name)?);
            } else if let Some(namespace) = text.strip_prefix("namespace:") {
                names.namespace = Some(scalar(namespace)?);
            }
        }
    }
    heading.metadata = Some(names);
    (!heading.kind.is_empty()).then_some(heading)
}

/// A scalar on one line; `None` if only a parser can read it.
fn scalar(text: &str) -> Option<String> {
    let text = plain_scalar(text);
    (!text.starts_with(['&', '*', '!', '|', '>', '{', '[']) && !text.contains('\\')).then(|| text.to_owned())
}

impl Heading {
    fn names(&self, wanted: &DocumentKey) -> bool {
        let Some(names) = &self.metadata else {
            return false;
        };
        let namespace = names.namespace.as_deref().filter(|namespace| !namespace.is_empty());
        group_of(&self.api_version) == wanted.group
            && self.kind == wanted.kind
            && names.name.as_deref() == Some(wanted.name.as_str())
            // Cluster-scoped objects have no namespace, even if their document says so.
            && (wanted.namespace.is_empty() || namespace.unwrap_or(&wanted.default_namespace) == wanted.namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(name: &str) -> DocumentKey {
        let [group, kind, namespace, default_namespace] = ["apps", "Deployment", "shop", "shop"].map(str::to_owned);
        DocumentKey { group, kind, namespace, name: name.to_owned(), default_namespace }
    }

    fn replicas(manifest: &str, wanted: &DocumentKey) -> Option<i64> {
        document(manifest, wanted).unwrap()?["spec"]["replicas"].as_i64()
    }

    #[test]
    fn the_document_is_found_among_others() {
        let manifest = "---\n# Source: a\napiVersion: v1\nkind: Service\nmetadata:\n  name: web\nspec: {replicas: 1}\n---\n\
            # Source: b\napiVersion: apps/v1 # c\nkind: \"Deployment\"\nmetadata:\n    labels:\n      name: other\n    \
            name: 'web'\n    namespace: db\nspec: {replicas: 2}\n---\napiVersion: apps/v1beta1\nkind: Deployment\n\
            metadata:\n  name: web\n  namespace:\nspec: {replicas: 3}\n---\n{apiVersion: apps/v1, kind: Deployment, \
            metadata: {name: api}, spec: {replicas: 4}}\n---\nkind: List\nitems:\n- kind: Deployment\n  \
            apiVersion: apps/v1\n  metadata: {name: item}\n  spec: {replicas: 5}\n";
        assert_eq!(replicas(manifest, &wanted("web")), Some(3));
        assert_eq!(replicas(manifest, &DocumentKey { namespace: "db".into(), ..wanted("web") }), Some(2));
        assert_eq!(replicas(manifest, &DocumentKey { namespace: String::new(), ..wanted("web") }), Some(2));
        assert_eq!(
            replicas(manifest, &DocumentKey { group: String::new(), kind: "Service".into(), ..wanted("web") }),
            Some(1)
        );
        assert_eq!(replicas(manifest, &wanted("api")), Some(4));
        assert_eq!(replicas(manifest, &wanted("item")), Some(5));
        assert_eq!(replicas(manifest, &wanted("we")), None);
        assert_eq!(replicas(manifest, &wanted("other")), None);
    }

    #[test]
    fn json_documents_without_separator() {
        let manifest = "{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"a\"}}\n\
                        {\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"b\"},\"spec\":{\"replicas\":7}}";
        assert_eq!(replicas(manifest, &wanted("b")), Some(7));
        assert_eq!(replicas(manifest, &wanted("c")), None);
    }

    #[test]
    fn text_that_yaml_takes_for_infinity_stays_text() {
        let manifest =
            "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: 263e7411\n  labels:\n    sha: 263e7411\n";
        let found = document(manifest, &wanted("263e7411")).unwrap().unwrap();
        assert!(found["metadata"]["labels"]["sha"].is_string());
    }

    #[test]
    fn only_the_document_of_the_object_must_be_valid() {
        let manifest = "kind: Other\nmetadata: {name: web}\nspec: [Deployment\n---\napiVersion: apps/v1\nkind: Deployment\n\
                        metadata:\n  name: web\nspec: {replicas: 1}\n";
        assert!(document(manifest, &wanted("api")).unwrap().is_none());
        let error =
            document("apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec: [hunter2\n", &wanted("web"));
        assert!(error.is_err_and(|error| error.contains("line") && !error.contains("hunter2")));
    }
}

//! The document of one object in a manifest.

use std::ops::ControlFlow;

use memchr::memmem;
use serde_json::Value;

use super::key::DocumentKey;
use super::mentions::may_mention;
use super::objects::each_object;
use crate::effort::Effort;

/// The document of an object; `None` if the manifest has none. Only this document is parsed. If an object has several
/// documents, Helm applies one after the other: their members are merged, and a later value replaces an earlier one.
///
/// # Errors
/// The document cannot be parsed, the manifest is longer than 8 MiB, or it is more work than the review has left.
pub fn document(manifest: &str, wanted: &DocumentKey, effort: &Effort) -> Result<Option<Value>, String> {
    let (kind, name) = (memmem::Finder::new(&wanted.kind), memmem::Finder::new(&wanted.name));
    let mut found = None;
    each_object(manifest, effort, |document| may_name(document, &kind, &name), &mut |object| {
        if object.heading.is_of(wanted) {
            let document = object.parse()?;
            found = Some(match found.take() {
                None => document,
                Some(earlier) => merged(earlier, document),
            });
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

/// The kind of a typed list, `DeploymentList`, names that of its items too.
fn may_name(document: &str, kind: &memmem::Finder<'_>, name: &memmem::Finder<'_>) -> bool {
    may_mention(document, |text| kind.find(text).is_some() && has_word(text, name))
}

/// Whether a text contains a word that is not part of a longer word. A document about `web-2` does not name `web`, and is not
/// parsed.
fn has_word(text: &[u8], word: &memmem::Finder<'_>) -> bool {
    word.find_iter(text).any(|at| {
        let (before, behind) = (&text[..at], &text[at + word.needle().len()..]);
        !before.last().is_some_and(is_of_name) && !behind.first().is_some_and(is_of_name)
    })
}

fn is_of_name(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._".contains(byte)
}

/// The later value, with the members of the earlier one that it lacks.
fn merged(earlier: Value, later: Value) -> Value {
    match (earlier, later) {
        (Value::Object(mut members), Value::Object(later)) => {
            for (name, value) in later {
                let value = match members.remove(&name) {
                    Some(earlier) => merged(earlier, value),
                    None => value,
                };
                members.insert(name, value);
            }
            Value::Object(members)
        }
        (_, later) => later,
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
        document(manifest, wanted, &Effort::of_review()).unwrap()?["spec"]["replicas"].as_i64()
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
        assert_eq!(replicas(manifest, &DocumentKey { namespace: String::new(), ..wanted("web") }), Some(3));
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
    fn a_moved_kind_is_found_under_each_of_its_groups() {
        let manifest = |version: &str, kind: &str| {
            format!("apiVersion: {version}\nkind: {kind}\nmetadata: {{name: web}}\nspec: {{replicas: 1}}\n")
        };
        for (version, kind, group, is_found) in [
            ("extensions/v1beta1", "Deployment", "apps", true),
            ("apps/v1", "Deployment", "extensions", true),
            ("extensions/v1beta1", "Ingress", "networking.k8s.io", true),
            ("extensions/v1beta1", "NetworkPolicy", "networking.k8s.io", true),
            ("v1", "Event", "events.k8s.io", true),
            ("extensions/v1beta1", "Ingress", "apps", false),
            ("example.com/v1", "Deployment", "apps", false),
            ("v1", "Service", "serving.knative.dev", false),
        ] {
            let wanted = DocumentKey { group: group.into(), kind: kind.into(), ..wanted("web") };
            let found = replicas(&manifest(version, kind), &wanted);
            assert_eq!(found.is_some(), is_found, "{version} {kind} as {group}");
        }
    }

    #[test]
    fn a_heading_that_only_a_parser_can_read_is_found() {
        let spelled = |metadata: &str| {
            format!(
                "base: &b {{name: web, namespace: shop}}\napiVersion: apps/v1\nkind: Deployment\n{metadata}\nspec: {{replicas: 1}}\n"
            )
        };
        for metadata in [
            "metadata:\n  <<: *b",
            "metadata:\n  name: web\n  <<: *b",
            "metadata:\n  \"name\": web\n  'namespace': shop",
            "metadata:\n  ? name\n  : web\n  namespace : shop",
            "metadata:\n  !!str name: web\n  &n namespace: shop",
        ] {
            let default_namespace = "elsewhere".to_owned();
            let wanted = DocumentKey { default_namespace, ..wanted("web") };
            assert_eq!(replicas(&spelled(metadata), &wanted), Some(1), "{metadata}");
            assert_eq!(
                replicas(&spelled(metadata), &DocumentKey { name: "we".to_owned(), ..wanted }),
                None,
                "{metadata}"
            );
        }
        let escaped = "metadata:\n  name: \"w\\x65b\"\n  namespace: shop";
        assert_eq!(replicas(&spelled(escaped), &wanted("web")), Some(1));
        let versions = ["\"apiVersion\": apps/v1", "apiVersion : apps/v1", "<<: {apiVersion: apps/v1}"];
        for version in versions {
            let manifest = format!("{version}\nkind: Deployment\nmetadata:\n  name: web\nspec: {{replicas: 1}}\n");
            assert_eq!(replicas(&manifest, &wanted("web")), Some(1), "{version}");
        }
    }

    /// The content as the lines suggest, and the content as a parser reads it.
    #[test]
    fn a_value_of_several_lines_names_another_object() {
        for (metadata, name) in [
            ("metadata:\n  name: web\n    x", "web x"),
            ("metadata:\n  name: 'web\n    x'", "web x"),
            ("metadata:\n  name: web\n\n   x", "web\nx"),
            ("metadata:\n  name: web\n  \r  name: api", "api"),
            ("metadata:\n  name: web\nmetadata:\n  labels: {}\n  name: api", "api"),
            ("metadata:\n  name: w\"eb\"", "w\"eb\""),
            ("metadata:\n  name: web#1", "web#1"),
            ("metadata:\n  name: 'web' # ''", "web"),
        ] {
            let manifest = format!("apiVersion: apps/v1\nkind: Deployment\n{metadata}\nspec: {{replicas: 1}}\n");
            let all = super::super::objects(&manifest, &Effort::of_review()).unwrap();
            assert_eq!(all[0]["metadata"]["name"], name, "{metadata}");
            assert_eq!(replicas(&manifest, &wanted("web")).is_some(), name == "web", "{metadata}");
            assert_eq!(replicas(&manifest, &wanted("api")).is_some(), name == "api", "{metadata}");
        }
    }

    #[test]
    fn json_documents_need_no_separator() {
        let manifest = "{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"a\"}}\n\
                        {\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"b\"},\"spec\":{\"replicas\":7}}";
        assert_eq!(replicas(manifest, &wanted("b")), Some(7));
        assert_eq!(replicas(manifest, &wanted("c")), None);
    }

    /// Objects that Go finds despite unusual line ends, quotes and odd keys.
    #[test]
    fn an_object_is_found_where_go_finds_it() {
        let web = |end: &str| {
            format!(
                "apiVersion: apps/v1{end}kind: Deployment{end}metadata:{end}  name: web{end}spec: {{replicas: 1}}\n"
            )
        };
        for (document, found) in [
            (web("\u{85}"), true),
            (web("\u{2028}"), true),
            (web("\r\n"), true),
            (format!("# x\u{85}{}", web("\n")), true),
            (format!("x: \"\nkind: Secret\n\"\n{}", web("\n")), true),
            (format!("{}x: \"\nkind: Secret\nmetadata: {{name: api}}\n\"\n", web("\n")), true),
            (web("\n").replace("  name", "  namespace: null\n  name"), true),
            (web("\n").replace("name: web", "name: !!binary d2Vi"), true),
            (web("\n").replace("kind: Deployment", "kind: !!binary RGVwbG95bWVudA=="), true),
            (web("\n").replace("kind", "!!binary a2luZA=="), true),
            (web("\n") + "on: {0x10: y}\n", true),
            (web("\n") + "when: !!timestamp 2001-01-01\n", true),
            (web("\n") + "text: a\u{feff}b\n", true),
            (web("\n") + &format!("deep: {}{}\n", "[".repeat(200), "]".repeat(200)), true),
            (
                format!(
                    "kind: List\nitems:\n- kind: List\n  items:\n  - {{{}}}\n",
                    web(", ").trim_end().replace("metadata:,   name: web", "metadata: {name: web}")
                ),
                true,
            ),
            // Go does not find the object in these.
            (format!("x: \"\n{}\"\nkind: A\nmetadata: {{name: a}}\n", web("\n")), false),
            (web("\n") + "items: null\n", false),
            (web("\n") + "---\n...\n" + &web("\n").replace("web", "a"), true),
            ("kind: A\nmetadata: {name: a}\n...\n".to_owned() + &web("\n"), false),
        ] {
            assert_eq!(replicas(&document, &wanted("web")).is_some(), found, "{document}");
        }
    }

    #[test]
    fn a_manifest_may_begin_with_json_and_continue_with_yaml() {
        let json = |name: &str| {
            format!(
                r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"{name}"}},"spec":{{"replicas":1}}}}"#
            )
        };
        let yaml = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec: {replicas: 2}\n";
        assert_eq!(replicas(&format!("{}\n---\n{yaml}", json("a")), &wanted("web")), Some(2));
        assert_eq!(replicas(&format!("{}\n---\n{}", json("a"), json("web")), &wanted("web")), Some(1));
        assert_eq!(
            replicas(
                &format!(
                    "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web}}, spec: {{replicas: 3}}}}\n---\n{yaml}"
                ),
                &wanted("web")
            ),
            Some(2)
        );
        let two = format!("{}{}\n---\n{yaml}", json("a"), json("b"));
        assert!(
            document(&two, &wanted("web"), &Effort::of_review()).is_err(),
            "Go reads no YAML after two JSON documents"
        );
        assert!(document(&format!("a: b\n---x\n{yaml}"), &wanted("web"), &Effort::of_review()).is_err());
    }

    #[test]
    fn several_documents_of_an_object_are_merged() {
        let document =
            |spec: &str| format!("apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec: {spec}\n---\n");
        let manifest = document("{replicas: 1, paused: true, list: [a, b]}") + &document("{replicas: 2, list: [c]}");
        let found = super::document(&manifest, &wanted("web"), &Effort::of_review()).unwrap().unwrap();
        assert_eq!(found["spec"], serde_json::json!({"replicas": 2, "paused": true, "list": ["c"]}));
    }

    #[test]
    fn a_document_with_a_longer_name_is_not_parsed() {
        for (name, is_parsed) in [("web-2", false), ("a.web", false), ("'web'", true), ("{web: x}", true)] {
            let text = format!("apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\nspec: [\n");
            assert_eq!(document(&text, &wanted("web"), &Effort::of_review()).is_err(), is_parsed, "{name}");
        }
    }

    #[test]
    fn a_neighbour_costs_its_text_at_any_depth() {
        let deep = format!(
            "kind: A\nmetadata: {{name: a}}\n# web Deployment\nx: {}{}\n---\n",
            "[".repeat(9_000),
            "]".repeat(9_000)
        );
        let yaml = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec: {replicas: 2}\n";
        assert_eq!(replicas(&format!("{deep}{yaml}"), &wanted("web")), Some(2));
        let json = format!(r#"{{"kind":"A","x":{}{}}}"#, "[".repeat(9_000), "]".repeat(9_000));
        assert_eq!(replicas(&format!("{json}\n---\n{yaml}"), &wanted("web")), Some(2));
    }

    #[test]
    fn the_last_of_equal_keys_in_json_counts() {
        let manifest = r#"{"kind":"A","apiVersion":"apps/v1","metadata":{"name":"a","name":"b"},"metadata":{"name":"web"},
            "kind":"Deployment","Kind":"B","spec":{"replicas":3}}"#;
        assert_eq!(replicas(manifest, &wanted("web")), Some(3));
    }

    #[test]
    fn only_the_document_of_the_object_must_be_valid() {
        let manifest = "kind: Other\nmetadata: {name: web}\nspec: [Deployment\n---\napiVersion: apps/v1\nkind: Deployment\n\
                        metadata:\n  name: web\nspec: {replicas: 1}\n";
        assert!(document(manifest, &wanted("api"), &Effort::of_review()).unwrap().is_none());
        let broken = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec: [hunter2\n";
        let error = document(broken, &wanted("web"), &Effort::of_review());
        assert!(error.is_err_and(|error| error.contains("line") && !error.contains("hunter2")));
    }
}

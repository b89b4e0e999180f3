//! The CustomResourceDefinitions that a chart brings in its directory `crds/`. Helm creates them before an install, without marks, and
//! neither upgrades nor deletes them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use std::borrow::Cow;

use super::Record;
use crate::effort::Effort;
use crate::json::first_at;
use crate::release::manifest::object_keys;

/// The directory of a chart with its definitions.
const DIRECTORY: &str = "crds/";

/// Steps to parse and decode one byte of the files.
const FILE_STEPS: u64 = 4;

/// A file of a chart that is not a template.
#[derive(Deserialize)]
struct File<'b> {
    #[serde(borrow, default)]
    name: Cow<'b, str>,
    /// In base64.
    #[serde(borrow, default)]
    data: Cow<'b, str>,
}

impl Record<'_> {
    /// The names of the definitions; none of subcharts, which the record does not contain, and none if the files cannot be read.
    #[must_use]
    pub fn definitions(&self, effort: &Effort) -> Vec<String> {
        let Some(chart) = self.chart else { return Vec::new() };
        if effort.take_text(chart.get(), FILE_STEPS).is_err() {
            return Vec::new();
        }
        let files: Option<Option<Vec<File<'_>>>> = first_at(chart.get(), &["files"]).ok().flatten();
        let files = files.flatten().unwrap_or_default().into_iter().filter(|file| file.name.starts_with(DIRECTORY));
        let texts = files.filter_map(|file| String::from_utf8(STANDARD.decode(file.data.as_bytes()).ok()?).ok());
        let objects = texts.flat_map(|text| object_keys(&text, "", effort).unwrap_or_default());
        objects.filter(|object| object.kind == "CustomResourceDefinition").map(|object| object.name).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn definitions_are_in_the_directory_crds() {
        let file = |name: &str, text: &str| json!({"name": name, "data": STANDARD.encode(text)});
        let definition = "kind: CustomResourceDefinition\nmetadata: {name: carts.example.com}\n";
        let two = format!("{definition}---\nkind: ConfigMap\nmetadata: {{name: other}}\n");
        let files = [file("crds/carts.yaml", &two), file("README.md", definition), json!({"name": "crds/broken"})];
        let chart = json!({"metadata": {"name": "shop"}, "templates": [], "files": files});
        let body = json!({"name": "a", "version": 1, "info": {"status": "deployed"}, "chart": chart}).to_string();
        let effort = Effort::of_review();
        assert_eq!(Record::read(body.as_bytes(), &effort).unwrap().definitions(&effort), ["carts.example.com"]);
        let body =
            json!({"name": "a", "version": 1, "info": {"status": "deployed"}, "chart": {"files": null}}).to_string();
        assert!(Record::read(body.as_bytes(), &effort).unwrap().definitions(&effort).is_empty());
    }
}

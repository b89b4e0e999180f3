//! The readers of what Go writes and reads, compared with Go's own: `sigs.k8s.io/yaml`, kubectl's resource builder, `encoding/json` and
//! `regexp`. Where the two differ, Interlock refuses what Go reads, for one of the reasons here; it never reads something else.

mod go;
mod inputs;

use std::collections::BTreeMap;
use std::slice::from_ref;

use interlock_engine::effort::Effort;
use interlock_engine::owners::flux::pattern::{PatternMatch, matches};
use interlock_engine::release::Record;
use interlock_engine::release::manifest::{DocumentKey, document, objects};
use interlock_engine::yaml;
use serde_json::{Value, json};

use go::{answers, error};
use inputs::{DOCUMENTS, MANIFESTS, PATTERNS, Seeded, TEXTS, mutated, ordinary_record, record};

/// How many inputs are generated for each reader.
const GENERATED: usize = 4_000;

/// The namespace of objects without one.
const NAMESPACE: &str = "default";

/// Why Interlock refuses a text that Go reads: a part of its own error, and the reason.
const REFUSED: [(&str, &str); 6] = [
    ("nested deeper than 255", "a deeper value needs more stack than a thread has"),
    ("lists are nested deeper than 8", "no chart nests lists of objects"),
    ("two keys with the same text", "Go takes one of them at random"),
    ("it takes more work", "a review has a budget"),
    ("line ", "a character that YAML does not allow, behind the end of the document, where Go does not look"),
    ("recursion limit exceeded", "JSON nested deeper than 128 levels"),
];

/// What the comparison of a reader came to.
#[derive(Default)]
struct Tally {
    inputs: usize,
    read: usize,
    refused_by_both: usize,
    /// Reason, how often.
    disagreements: BTreeMap<String, usize>,
    unexplained: Vec<String>,
}

impl Tally {
    fn disagree(&mut self, reason: &str) {
        *self.disagreements.entry(reason.to_owned()).or_default() += 1;
    }

    /// Interlock refuses what Go reads.
    fn refuse(&mut self, error: &str, input: &str) {
        let known = REFUSED.iter().find(|(part, _)| error.contains(part));
        match known.filter(|(part, _)| *part != "line " || has_forbidden_character(input)) {
            Some((_, reason)) => self.disagree(&format!("only Go reads it: {reason}")),
            None => self.unexplained.push(format!("Go reads it, Interlock says {error:?}: {input:?}")),
        }
    }

    fn finish(self, reader: &str) {
        let Self { inputs, read, refused_by_both, disagreements, unexplained } = self;
        let differ: usize = disagreements.values().sum();
        println!(
            "{reader}: {inputs} inputs, {read} read alike, {refused_by_both} refused by both, {differ} disagreements"
        );
        disagreements.iter().for_each(|(reason, count)| println!("  {count}: {reason}"));
        assert!(
            unexplained.is_empty(),
            "{} of {inputs}:\n{}",
            unexplained.len(),
            unexplained[..unexplained.len().min(12)].join("\n")
        );
        assert!(read > inputs / 20, "hardly any input is read: {read} of {inputs}");
    }
}

fn has_forbidden_character(text: &str) -> bool {
    let is_allowed = |character: char| matches!(character, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..);
    !text.chars().all(is_allowed)
}

/// Whether two values are the same to Go, to which numbers are integers of 64 bits or floating-point numbers.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => match (one.as_i64(), other.as_i64()) {
            (Some(one), Some(other)) => one == other,
            _ => one.as_f64() == other.as_f64(),
        },
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, one)| other.get(key).is_some_and(|other| same(one, other)))
        }
        _ => one == other,
    }
}

fn generated(fixed: &[&str], seed: u64) -> Vec<String> {
    let mut seeded = Seeded::new(seed);
    let fixed = fixed.iter().map(|text| (*text).to_owned());
    fixed.chain((0..GENERATED).map(|_| mutated(&mut seeded))).collect()
}

#[test]
fn yaml_means_what_it_means_to_go() {
    let mut inputs = generated(&DOCUMENTS, 0x1e7);
    // A byte order mark at the start of go-yaml's buffer, wherever that is.
    let padded = |bytes: usize| format!("# {}\u{feff}x\nkind: A\nname: b\nXname: c\n", "x".repeat(bytes));
    inputs.extend((500..520).chain(1_010..1_040).map(padded));
    inputs.extend([70, 120, 300, 9_000].map(|depth| format!("a: {}1{}\n", "[".repeat(depth), "]".repeat(depth))));
    let mut tally = Tally { inputs: inputs.len(), ..Tally::default() };
    let answers = answers(inputs.iter().map(|input| json!({"yaml": input})).collect());
    for (input, answer) in inputs.iter().zip(&answers) {
        match (error(answer), yaml::parse(input, &Effort::of_review())) {
            (None, Ok(ours)) if same(&ours, &answer["json"]) => tally.read += 1,
            (Some(_), Err(_)) => tally.refused_by_both += 1,
            (None, Err(error)) => tally.refuse(&error, input),
            (theirs, ours) => tally.unexplained.push(format!("{input:?}: {ours:?}, Go: {theirs:?} {}", answer["json"])),
        }
    }
    tally.finish("YAML documents");
}

/// The object of Go as a request names it; `None` if no object of an API has such a name or kind.
fn key(object: &Value) -> Option<DocumentKey> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let name = |value: &Value| text(value).filter(|name| !name.contains(char::is_whitespace));
    let namespace = text(&object["metadata"]["namespace"]).filter(|namespace| !namespace.is_empty());
    Some(DocumentKey {
        group: text(&object["apiVersion"])
            .and_then(|version| version.rsplit_once('/').map(|(group, _)| group.to_owned()))
            .unwrap_or_default(),
        kind: name(&object["kind"]).filter(|kind| !kind.is_empty())?,
        namespace: namespace.unwrap_or_else(|| NAMESPACE.to_owned()),
        name: name(&object["metadata"]["name"])?,
        default_namespace: NAMESPACE.to_owned(),
    })
}

/// The objects that have a name. Go drops a namespace that is none.
fn named(objects: &[Value]) -> Vec<Value> {
    let named = objects.iter().filter(|object| key(object).is_some()).cloned();
    let without_empty_namespace = |mut object: Value| {
        if let Some(metadata) = object["metadata"].as_object_mut()
            && metadata.get("namespace").is_some_and(|namespace| namespace.is_null() || namespace == "")
        {
            metadata.remove("namespace");
        }
        object
    };
    named.map(without_empty_namespace).collect()
}

/// The objects in an answer that have a name.
fn answered(answer: &Value, list: &str) -> Vec<Value> {
    named(answer[list].as_array().map(Vec::as_slice).unwrap_or_default())
}

/// Whether both have the same objects, in any order.
fn same_objects(one: &[Value], other: &[Value]) -> bool {
    let mut left: Vec<_> = other.iter().collect();
    one.len() == other.len()
        && one.iter().all(|object| {
            let at = left.iter().position(|other| same(object, other));
            at.map(|at| left.swap_remove(at)).is_some()
        })
}

/// What is wrong with the documents that are found for the objects of Go, each alone.
fn lost(manifest: &str, applied: &[Value]) -> Option<String> {
    applied.iter().find_map(|object| {
        let key = key(object)?;
        let is_it =
            |other: &&Value| self::key(other).is_some_and(|other| other.name == key.name && other.kind == key.kind);
        let is_single = applied.iter().filter(is_it).count() == 1;
        match document(manifest, &key, &Effort::of_review()) {
            Ok(Some(found)) if !is_single || same_objects(&named(from_ref(&found)), from_ref(object)) => None,
            other => Some(format!("{other:?} for {object}")),
        }
    })
}

#[test]
fn manifests_have_the_objects_that_helm_applies() {
    let inputs = generated(&MANIFESTS, 0xbee);
    let mut tally = Tally { inputs: inputs.len(), ..Tally::default() };
    let answers = answers(inputs.iter().map(|input| json!({"manifest": input})).collect());
    for (input, answer) in inputs.iter().zip(&answers) {
        let applied = answered(answer, "objects");
        let is_applied = |object: &Value| applied.iter().any(|applied| same(applied, object));
        match (error(answer), objects(input, &Effort::of_review())) {
            (None, Ok(ours)) if same_objects(&named(&ours), &applied) => match lost(input, &applied) {
                Some(lost) => tally.unexplained.push(format!("{input:?}: {lost}")),
                None if answered(answer, "uninstalled").iter().all(is_applied) => tally.read += 1,
                None => tally.disagree(
                    "only `helm uninstall` reads it: it drops the white space before a document, and Helm never applied that",
                ),
            },
            (None, Err(error)) => tally.refuse(&error, input),
            (Some(_), Err(_)) => tally.refused_by_both += 1,
            // Helm builds all objects of a manifest or none. Interlock parses a document only to judge its object.
            (Some(_), Ok(_)) => tally.disagree("only Interlock reads it: Helm applies no object of a manifest with an error"),
            (None, Ok(ours)) => tally.unexplained.push(format!("{input:?}: {ours:?}, Go: {applied:?}")),
        }
    }
    tally.finish("manifests");
}

/// What counts in a record, and the names of its chart, by the reader of Interlock.
fn content(record: &Record<'_>) -> Option<(Value, Value)> {
    let effort = Effort::of_review();
    let hooks = record.hooks(&effort)?.digest();
    let chart = record.chart_id();
    let counts = json!([
        record.name,
        record.version.0,
        record.namespace,
        record.info.status,
        record.info.description,
        record.manifest(),
        hooks
    ]);
    Some((counts, json!([chart.name, chart.version])))
}

/// Whether Go takes several keys of the chart for `metadata`, in whatever spelling.
fn has_several_metadata(record: &str) -> bool {
    let unescaped = "metadata".chars().fold(record.to_owned(), |text, letter| {
        text.replace(&format!("\\u{:04x}", u32::from(letter)), &letter.to_string())
    });
    unescaped.to_lowercase().matches("\"metadata\":").count() > 1
}

#[test]
fn records_say_what_they_say_to_helm() {
    let mut seeded = Seeded::new(0xace);
    let inputs: Vec<_> =
        [ordinary_record().to_string()].into_iter().chain((0..GENERATED).map(|_| record(&mut seeded))).collect();
    let mut tally = Tally { inputs: inputs.len(), ..Tally::default() };
    let answers = answers(inputs.iter().map(|input| json!({"release": input})).collect());
    for (input, answer) in inputs.iter().zip(&answers) {
        let effort = Effort::of_review();
        let ours = Record::read(input.as_bytes(), &effort);
        let ours = ours.ok().as_ref().and_then(content);
        if error(answer).is_some() {
            match ours {
                None => tally.refused_by_both += 1,
                Some(_) => tally.disagree("only Interlock reads it: Helm cannot use a record with such a value"),
            }
            continue;
        }
        // Written by Go, it has only keys that both know.
        let theirs = answer["release"].to_string();
        let theirs = Record::read(theirs.as_bytes(), &effort).ok().as_ref().and_then(content);
        let counts_alike = matches!((&ours, &theirs), (Some((ours, _)), Some((theirs, _))) if ours == theirs);
        match ours {
            None => tally.disagree("only Go reads it: a key of another case, or two of a name"),
            ours if ours == theirs => tally.read += 1,
            // Without the identity of its chart nothing is judged by it.
            Some((_, names)) if counts_alike && names == json!(["", ""]) => {
                tally.disagree("only Go reads the name of the chart");
            }
            Some(_) if counts_alike && has_several_metadata(input) => {
                tally.disagree("of several metadata of a chart Interlock takes the first, and Go the last");
            }
            ours => tally.unexplained.push(format!("{input}: {ours:?}, Go: {theirs:?}")),
        }
    }
    tally.finish("records");
}

#[test]
fn patterns_match_what_they_match_in_go() {
    let pairs: Vec<_> = PATTERNS.iter().flat_map(|pattern| TEXTS.iter().map(move |text| (*pattern, *text))).collect();
    let mut tally = Tally { inputs: pairs.len(), ..Tally::default() };
    let answers = answers(pairs.iter().map(|(pattern, text)| json!({"pattern": pattern, "text": text})).collect());
    for ((pattern, text), answer) in pairs.iter().zip(&answers) {
        let theirs = error(answer).is_none().then(|| answer.get("matches").is_some());
        match (matches(pattern, text, &Effort::of_review()).unwrap(), theirs) {
            (PatternMatch::Matches, Some(true)) | (PatternMatch::Differs, Some(false)) => tally.read += 1,
            (PatternMatch::Unusable, None) => tally.refused_by_both += 1,
            (PatternMatch::Unusable, Some(_)) => {
                tally.disagree(
                    "only Go reads it: it needs Unicode, or Rust's syntax has another meaning for it, or none",
                );
            }
            (PatternMatch::Differs, Some(true)) if !pattern.is_ascii() => {
                tally.disagree("only Go matches it: a letter beyond ASCII that is the other case of an ASCII one");
            }
            (ours, theirs) => tally.unexplained.push(format!("{pattern:?} {text:?}: {ours:?}, Go: {theirs:?}")),
        }
    }
    tally.finish("patterns");
}

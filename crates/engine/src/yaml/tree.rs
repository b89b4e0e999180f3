//! Converts nodes to a JSON value: go-yaml's `decode.go`, and the conversion of `sigs.k8s.io/yaml`.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};

use super::nodes::{Node, NodeId};
use super::scalar::{Resolved, Scalar};
use super::{number, parser};
use crate::effort::{Effort, MAP_BYTES, MEMBER_BYTES, NODE_BYTES};

/// The deepest nesting. Go reads 10,000 levels, but code that walks through a deeper value needs more stack than a
/// thread has.
const MAX_DEPTH: usize = 255;

/// The steps to convert a node, charged again wherever an alias repeats the node.
const NODE_STEPS: u64 = 300;

/// The most nodes that the aliases of a document may repeat. Charts use aliases rarely, and for a few dozen.
const MAX_REPEATED: usize = 50_000;

/// Parses the first document of a text, as `sigs.k8s.io/yaml` converts it to JSON. An empty document is null.
///
/// # Errors
/// The text is not YAML; the error is then the position. Or Go's JSON has no such value, for example an infinite
/// number. Or two keys of a mapping have the same text, so that Go takes any of them. Or the document is nested deeper
/// than 255 levels, its aliases repeat more than 50,000 nodes, or it is more work than the review has left.
pub fn parse(document: &str, effort: &Effort) -> Result<Value, String> {
    let document = Document::parse(document, effort)?;
    document.root().map_or(Ok(Value::Null), |root| document.value(root))
}

/// A parsed document. Only the parts that are asked for are converted.
pub(crate) struct Document<'t, 'e> {
    nodes: Vec<Node<'t>>,
    effort: &'e Effort,
}

impl<'t, 'e> Document<'t, 'e> {
    /// # Errors
    /// The text is not YAML, or it is more work than the review has left.
    pub(crate) fn parse(text: &'t str, effort: &'e Effort) -> Result<Self, String> {
        Ok(Self { nodes: parser::parse(text, effort)?, effort })
    }

    /// The outermost node; `None` if the document is empty.
    pub(crate) fn root(&self) -> Option<NodeId> {
        (!self.nodes.is_empty()).then_some(0)
    }

    /// The value of a node.
    ///
    /// # Errors
    /// As those of [`parse`].
    pub(crate) fn value(&self, id: NodeId) -> Result<Value, String> {
        self.decoder().value(id, 0)
    }

    pub(crate) fn is_mapping(&self, id: NodeId) -> bool {
        matches!(self.target(id), Node::Mapping(_))
    }

    /// The items of a list; `None` for another node.
    pub(crate) fn items(&self, id: NodeId) -> Option<&[NodeId]> {
        match self.target(id) {
            Node::Sequence(items) => Some(items),
            _ => None,
        }
    }

    /// The value of a scalar; `None` for another node.
    ///
    /// # Errors
    /// The text does not match the tag.
    pub(crate) fn scalar(&self, id: NodeId) -> Result<Option<Resolved<'t>>, String> {
        match self.target(id) {
            Node::Scalar(scalar) => resolved(scalar).map(Some),
            _ => Ok(None),
        }
    }

    /// The members of a mapping with these names, merged or not. Other nodes have no members.
    ///
    /// # Errors
    /// A key does not match its tag, something is merged that is no mapping, or it is more work than the review has
    /// left.
    pub(crate) fn members<const N: usize>(&self, id: NodeId, names: [&str; N]) -> Result<[Option<NodeId>; N], String> {
        let mut found = [None; N];
        let Node::Mapping(members) = self.target(id) else {
            return Ok(found);
        };
        self.decoder().each_member(members, 0, &mut |decoder, key, value, depth| {
            decoder.enter(depth)?;
            if let Some(Resolved::Text(key)) = self.scalar(key)?
                && let Some(at) = names.iter().position(|name| *name == key)
            {
                found[at] = Some(value);
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// The node, or that of an alias.
    fn target(&self, id: NodeId) -> &Node<'t> {
        match &self.nodes[id] {
            Node::Alias(target) => &self.nodes[*target],
            node => node,
        }
    }

    fn decoder(&self) -> Decoder<'_, 't, 'e> {
        Decoder { nodes: &self.nodes, effort: self.effort, aliases: Vec::new(), repeated: 0 }
    }
}

/// The type of a key in go-yaml. Two keys with the same text may differ in their types.
#[derive(PartialEq)]
enum Key {
    Text,
    Int,
    Float(f64),
    Bool,
}

struct Decoder<'n, 't, 'e> {
    nodes: &'n [Node<'t>],
    effort: &'e Effort,
    /// The aliases that are being expanded.
    aliases: Vec<NodeId>,
    /// The nodes that aliases have repeated.
    repeated: usize,
}

/// Receives the key and the value of a member, and the depth of its mapping.
type Visit<'v, 'n, 't, 'e> = &'v mut dyn FnMut(&mut Decoder<'n, 't, 'e>, NodeId, NodeId, usize) -> Result<(), String>;

impl<'n, 't, 'e> Decoder<'n, 't, 'e> {
    /// Charges for a node that may be repeated.
    fn enter(&mut self, depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        if !self.aliases.is_empty() {
            self.repeated += 1;
            if self.repeated > MAX_REPEATED {
                return Err(self.effort.exceed().into());
            }
        }
        Ok(self.effort.take(NODE_STEPS)?)
    }

    fn node(&self, id: NodeId) -> &'n Node<'t> {
        &self.nodes[id]
    }

    fn value(&mut self, id: NodeId, depth: usize) -> Result<Value, String> {
        self.enter(depth)?;
        match self.node(id) {
            Node::Sequence(_) | Node::Mapping(_) if depth == MAX_DEPTH => Err(too_deep()),
            Node::Scalar(scalar) => {
                self.effort.take_tree(NODE_BYTES + 2 * scalar.len() as u64)?;
                json(resolved(scalar)?)
            }
            Node::Sequence(items) => {
                self.effort.take_tree(NODE_BYTES)?;
                items.iter().map(|item| self.value(*item, depth + 1)).collect()
            }
            Node::Mapping(members) => self.object(members, depth),
            Node::Alias(target) => self.expanded(id, |decoder| decoder.value(*target, depth)),
        }
    }

    /// Expands an alias, which must not contain itself.
    fn expanded<T>(&mut self, alias: NodeId, read: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        if self.aliases.contains(&alias) {
            return Err("a document has an alias that contains itself".to_owned());
        }
        self.aliases.push(alias);
        let read = read(self);
        self.aliases.pop();
        read
    }

    fn object(&mut self, members: &'n [NodeId], depth: usize) -> Result<Value, String> {
        self.effort.take_tree(NODE_BYTES + if members.is_empty() { 0 } else { MAP_BYTES })?;
        let mut found: BTreeMap<String, (Key, Value)> = BTreeMap::new();
        self.each_member(members, depth, &mut |decoder, key, value, depth| {
            let (key, text) = decoder.key(key, depth + 1)?;
            decoder.effort.take_tree(MEMBER_BYTES + text.len() as u64)?;
            let value = decoder.value(value, depth + 1)?;
            match found.get(&text) {
                // Go's order of such keys is random.
                Some((other, _)) if *other != key => return Err("a mapping has two keys with the same text".to_owned()),
                _ => found.insert(text, (key, value)),
            };
            Ok(())
        })?;
        Ok(Value::Object(found.into_iter().map(|(key, (_, value))| (key, value)).collect::<Map<_, _>>()))
    }

    /// Visits the members of a mapping in order. A later member replaces an earlier one, merged or not.
    fn each_member(&mut self, members: &'n [NodeId], depth: usize, visit: Visit<'_, 'n, 't, 'e>) -> Result<(), String> {
        for member in members.chunks_exact(2) {
            let [key, value] = *member else { continue };
            if matches!(self.node(key), Node::Scalar(key) if key.is_merge_key()) {
                self.merge(value, depth, visit)?;
            } else {
                visit(self, key, value, depth)?;
            }
        }
        Ok(())
    }

    /// Merges a mapping, an alias of one, or a list of these. The first ones in a list win.
    fn merge(&mut self, id: NodeId, depth: usize, visit: Visit<'_, 'n, 't, 'e>) -> Result<(), String> {
        match self.node(id) {
            Node::Sequence(items) => items.iter().rev().try_for_each(|item| self.merge_one(*item, depth, visit)),
            _ => self.merge_one(id, depth, visit),
        }
    }

    fn merge_one(&mut self, id: NodeId, depth: usize, visit: Visit<'_, 'n, 't, 'e>) -> Result<(), String> {
        self.enter(depth)?;
        match self.node(id) {
            Node::Mapping(members) => self.each_member(members, depth + 1, visit),
            Node::Alias(target) => match self.node(*target) {
                Node::Mapping(members) => self.expanded(id, |decoder| {
                    decoder.enter(depth)?;
                    decoder.each_member(members, depth + 1, visit)
                }),
                _ => Err(not_merged()),
            },
            _ => Err(not_merged()),
        }
    }

    fn key(&mut self, id: NodeId, depth: usize) -> Result<(Key, String), String> {
        self.enter(depth)?;
        match self.node(id) {
            Node::Scalar(scalar) => match resolved(scalar)? {
                Resolved::Text(text) => Ok((Key::Text, text.into_owned())),
                Resolved::Int(value) => Ok((Key::Int, value.to_string())),
                // A NaN differs from every other key.
                Resolved::Float(value) => Ok((Key::Float(value), number::float_key(value))),
                Resolved::Bool(value) => Ok((Key::Bool, value.to_string())),
                Resolved::Null | Resolved::Uint(_) => Err(not_a_key()),
            },
            Node::Alias(target) => self.expanded(id, |decoder| decoder.key(*target, depth)),
            Node::Sequence(_) | Node::Mapping(_) => Err(not_a_key()),
        }
    }
}

fn too_deep() -> String {
    format!("a document is nested deeper than {MAX_DEPTH} levels")
}

fn not_merged() -> String {
    "a document merges what is no mapping".to_owned()
}

fn not_a_key() -> String {
    "a mapping has a key that JSON has no text for".to_owned()
}

fn resolved<'t>(scalar: &Scalar<'t>) -> Result<Resolved<'t>, String> {
    scalar.clone().resolve().ok_or_else(|| "a value is not what its tag says".to_owned())
}

/// A value as in Go's JSON. Numbers without a fraction are written as integers.
fn json(value: Resolved<'_>) -> Result<Value, String> {
    Ok(match value {
        Resolved::Null => Value::Null,
        Resolved::Bool(value) => value.into(),
        Resolved::Int(value) => value.into(),
        Resolved::Uint(value) => value.into(),
        Resolved::Float(value) => integer(value)
            .map(Value::from)
            .or_else(|| Number::from_f64(value).map(Value::Number))
            .ok_or("a number is infinite, or none")?,
        Resolved::Text(text) => text.into_owned().into(),
    })
}

/// A number without a fraction, if it is an integer of 64 bits.
fn integer(value: f64) -> Option<i64> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    ((-LIMIT..LIMIT).contains(&value) && value.fract() == 0.0).then_some(value as i64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::effort::OverBudget;

    fn read(document: &str) -> Result<Value, String> {
        parse(document, &Effort::of_review())
    }

    #[test]
    fn scalars_have_the_same_meaning_as_for_helm() {
        // The results of sigs.k8s.io/yaml 1.6.
        for (text, wanted) in [
            ("0644", json!(420)),
            ("-0644", json!(-420)),
            ("0o644", json!(420)),
            ("\"0644\"", json!("0644")),
            ("0", json!(0)),
            ("00", json!(0)),
            ("0.5", json!(0.5)),
            ("089", json!(89)),
            ("0x1F", json!(31)),
            ("0b101", json!(5)),
            ("0b-101", json!(-5)),
            ("1_000", json!(1000)),
            ("1e3", json!(1000)),
            ("1.10", json!(1.1)),
            ("18446744073709551615", json!(18_446_744_073_709_551_615_u64)),
            ("yes", json!(true)),
            ("off", json!(false)),
            ("\"yes\"", json!("yes")),
            ("~", json!(null)),
            ("2026-11-21", json!("2026-11-21")),
            ("!!timestamp 2026-11-21", json!("2026-11-21")),
            ("12:30:45", json!("12:30:45")),
            ("1.2.3", json!("1.2.3")),
            ("263e7411", json!("263e7411")),
            ("!!str 5", json!("5")),
            ("! 5", json!("5")),
            ("!!float 5", json!(5)),
            ("!!binary d2Vi", json!("web")),
            ("!mine 5", json!("5")),
        ] {
            assert_eq!(read(&format!("a: {text}\n")), Ok(json!({"a": wanted})), "{text}");
        }
        for text in [".inf", ".nan", "!!int x", "!!null x", "!!timestamp x", "!!binary x", "!x!y z", "*a"] {
            assert!(read(&format!("a: {text}\n")).is_err(), "{text}");
        }
    }

    #[test]
    fn keys_have_the_same_text_as_in_go() {
        for (key, wanted) in [
            ("on", "true"),
            ("n", "false"),
            ("0x10", "16"),
            ("1.5", "1.5"),
            ("1e6", "1e+06"),
            ("1234567.5", "1.2345675e+06"),
            (".inf", ".inf"),
            ("!!binary d2Vi", "web"),
        ] {
            assert_eq!(read(&format!("{key}: 1\n")), Ok(json!({wanted: 1})), "{key}");
        }
        for odd in ["~: 1\n", "[a]: 1\n", "18446744073709551615: 1\n", "1: a\n\"1\": b\n", ".nan: 1\n.nan: 2\n"] {
            assert!(read(odd).is_err(), "{odd}");
        }
        assert_eq!(read("on: 1\nyes: 2\n"), Ok(json!({"true": 2})));
    }

    #[test]
    fn lines_end_where_go_ends_them() {
        for end in ["\n", "\r", "\r\n", "\u{85}", "\u{2028}", "\u{2029}"] {
            let document = format!("# a comment{end}kind: A{end}data:{end}  x: z{end}");
            assert_eq!(read(&document), Ok(json!({"kind": "A", "data": {"x": "z"}})), "{end:?}");
        }
        assert_eq!(read("a: |\n  x\u{2028}  y\u{85}  z\n"), Ok(json!({"a": "x\u{2028}y\nz\n"})));
        // A text in quotes may continue at the margin.
        assert_eq!(read("a: \"x\nkind: B\n\"\nkind: A\n"), Ok(json!({"a": "x kind: B ", "kind": "A"})));
    }

    #[test]
    fn merge_keys_override_earlier_members() {
        let base = "x: &b {a: 1, c: 3}\n";
        let merged = |rest: &str| read(&format!("{base}{rest}")).map(|mut found| found["z"].take());
        assert_eq!(merged("z: {a: 2, <<: *b}\n"), Ok(json!({"a": 1, "c": 3})));
        assert_eq!(merged("z: {<<: *b, a: 2}\n"), Ok(json!({"a": 2, "c": 3})));
        assert_eq!(merged("z: {<<: [{a: 5}, *b]}\n"), Ok(json!({"a": 5, "c": 3})));
        assert_eq!(merged("z: {\"<<\": 1}\n"), Ok(json!({"<<": 1})));
        for odd in ["z: {<<: 1}\n", "z: {<<: [[]]}\n", "z: &z {<<: *z}\n", "z: &z [*z]\n"] {
            assert!(merged(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn a_byte_order_mark_drops_characters_where_go_drops_them() {
        assert_eq!(read("\u{feff}kind: A\n"), Ok(json!({"kind": "A"})));
        assert_eq!(read("a: x\u{feff}y\nkind: A\n"), Ok(json!({"a": "x\u{feff}y", "kind": "A"})));
        // The second mark is at the start of go-yaml's buffer, which makes it one of every line.
        assert_eq!(read("\u{feff}\u{feff}kind: A\nXname: b\n"), Ok(json!({"kind": "A", "name": "b"})));
    }

    #[test]
    fn only_the_first_document_counts() {
        assert_eq!(read("a: 1\n...\nb: 2\n"), Ok(json!({"a": 1})));
        assert_eq!(read("a: 1\u{85}---\u{85}b: ["), Ok(json!({"a": 1})));
        assert_eq!(read("# nothing\n"), Ok(json!(null)));
        assert_eq!(read(""), Ok(json!(null)));
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        assert!(read(&nested(MAX_DEPTH)).is_ok());
        for depth in [MAX_DEPTH + 1, 9_999, 20_000] {
            assert!(read(&nested(depth)).is_err(), "{depth}");
        }
        let blocks: String = (0..300).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
        assert!(read(&blocks).is_err_and(|error| error.contains("255")));
    }

    #[test]
    fn aliases_are_bounded() {
        let level = |level: usize| format!("x{level}: &x{level} [{}]\n", vec![format!("*x{}", level - 1); 9].join(","));
        let bomb = format!("x0: &x0 [1]\n{}", (1..9).map(level).collect::<String>());
        let effort = Effort::of_review();
        assert_eq!(parse(&bomb, &effort), Err(OverBudget.to_string()));
        assert!(effort.was_exceeded() && effort.used() < 100_000_000, "{}", effort.used());
    }

    #[test]
    fn tiny_maps_exceed_the_memory_and_a_large_definition_fits() {
        let effort = Effort::of_review();
        let field = "  replicas:\n    type: integer\n    description: how many there are, at https://example.com:8080 or aa:bb:cc\n";
        assert!(parse(&format!("a:\n{}", field.repeat(9_000)), &effort).is_ok());
        for tiny in ["- a: 1\n", "- {a: 1}\n", "- {a}\n", "- ? a\n", "- \"a\":\n"] {
            assert_eq!(parse(&tiny.repeat(200_000), &effort), Err(OverBudget.to_string()), "{tiny}");
        }
    }

    #[test]
    fn an_error_contains_no_text() {
        for broken in ["a: [hunter2\n", "hunter2: !!int hunter2\n", "a: *hunter2\n", "\"hunter2\\q\": 1\n"] {
            assert!(read(broken).is_err_and(|error| !error.contains("hunter2")), "{broken}");
        }
    }
}

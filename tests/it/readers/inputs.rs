//! Inputs for the readers: the cases that are known to be tricky, and mutations of ordinary ones from a seed.

use serde_json::{Value, json};

/// A sequence of numbers that is the same in every run (xorshift).
pub(super) struct Seeded(u64);

impl Seeded {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap_or_default() % limit.max(1)
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

/// YAML documents whose meaning differs between parsers.
pub(super) const DOCUMENTS: [&str; 74] = [
    "kind: A\u{85}metadata: {name: a}\n",
    "# x\u{2028}kind: A\u{2029}metadata: {name: a}\n",
    "a: b\u{2028}c\u{85}d\n",
    "a: |\n  b\u{2028}  c\u{85}  d\n",
    "a: >\n  b\u{2028}  c\n\n  d\n",
    "a: 'b\u{2029}c\u{85}\u{85}d'\n",
    "\u{feff}a: b\n",
    "\u{feff}\u{feff}kind: A\nXname: b\n",
    "a: \u{feff}b\nc: d\n",
    "a: x\u{feff}\nc: d\n",
    "a: \"x\nkind: B\n\"\nkind: A\n",
    "a: {b: c,\nkind: D}\n",
    "a: [b,\n- c]\n",
    "a: 'x\n--- y'\n",
    "on: 1\nyes: 2\nn: 3\n",
    "0x10: a\n0o7: b\n0b1: c\n010: d\n1_0: e\n",
    "1.5: a\n1e3: b\n1e21: c\n.5: d\n-0.0: e\n1234567.5: f\n123456789: g\n0.00001: h\n",
    ".inf: a\n-.inf: b\n.nan: c\n",
    "~: a\n",
    "null: a\n",
    "[a]: b\n",
    "{a: b}: c\n",
    "? a\n: b\n? c\n",
    "18446744073709551615: a\n",
    "9223372036854775807: a\n",
    "a: 18446744073709551615\nb: 18446744073709551616\nc: -9223372036854775809\n",
    "1: a\n'1': b\n",
    "1: a\n1.0: b\n",
    "true: a\non: b\n",
    "a: .inf\n",
    "a: 1e400\nb: 263e7411\nc: 1.\nd: +.5\ne: -.5e3\nf: 1e\ng: .\nh: ..5\n",
    "a: 0644\nb: 089\nc: 0x\nd: 0b2\ne: 0b-101\nf: -0b101\ng: 0o8\nh: 1__0\ni: _1\nj: 1_\n",
    "a: 2001-01-01\nb: 2001-1-1T1:2:3Z\nc: !!timestamp 2001-01-01\n",
    "a: !!timestamp 2001-1-1t1:2:3.5+07:00\nb: !!timestamp 2001-01-01  1:2:3\n",
    "a: !!timestamp x\n",
    "a: !!timestamp 2001-02-30\n",
    "a: !!str 1\nb: !!int 1\nc: !!float 1\nd: !!null ~\ne: !!bool on\nf: ! 1\ng: !x 1\nh: !!x 1\n",
    "a: !!int 1.5\n",
    "a: !!float x\n",
    "a: !!null x\n",
    "a: !!binary d2Vi\nb: !!binary /w==\n",
    "a: !!binary =\n",
    "!!binary a2luZA==: A\n",
    "a: !<tag:yaml.org,2002:int> '5'\nb: !<tag:yaml.org,2002:%69nt> 5\n",
    "%TAG !e! tag:yaml.org,2002:\n---\na: !e!str 5\n",
    "%TAG !! tag:x,2000:\n---\na: !!int x\n",
    "%YAML 1.1\n---\na: b\n",
    "%YAML 1.2\n---\na: b\n",
    "%X 1\n---\na: b\n",
    "x: &b {a: 1}\ny: {a: 2, <<: *b}\nz: {<<: *b, a: 2}\n",
    "x: &b {a: 1}\ny: {<<: [*b, {a: 2, c: 3}]}\nz: {\"<<\": *b, !!merge <<: {d: e}}\n",
    "a: {<<: b}\n",
    "a: {<<: ~}\n",
    "a: &a [*a]\n",
    "a: &a b\nc: *a\n*a : d\n",
    "a: &x 1\nb: &x 2\nc: *x\n",
    "*a : b\n",
    "a: &a\nb: *a\n",
    "a: b\n...\nc: [\n",
    "a: b\n--- x\nc: d\n",
    "a: b\n---\nc: d\n",
    "---\n",
    "a:\n- b\n-c\n",
    "a: b: c\n",
    "a: - b\n",
    "a:\tb\n\tc: d\n",
    "a: b\tc\n",
    "a: |1\n  x\n y\n",
    "a: |\n    x\n  kind: y\n",
    "a: |+\n\n x\n\n\nb: >-\n x\n  y\n z\n",
    "a: \"\\x41\\u0042\\U00000043\\N\\L\\P\\_\\e\\\n  b\"\n",
    "a: \"\\/\"\n",
    "[a: b, ? c, {d}, e: , : f]\n",
    "{a, b: , ? c, ? d : e, :f, g:h, \"i\":j}\n",
];

/// Manifests that begin, go on or end otherwise than charts do.
pub(super) const MANIFESTS: [&str; 26] = [
    "{\"kind\":\"A\",\"metadata\":{\"name\":\"a\"}}\n---\nkind: B\nmetadata: {name: b}\n",
    "{\"kind\":\"A\",\"metadata\":{\"name\":\"a\"}}{\"kind\":\"B\",\"metadata\":{\"name\":\"b\"}}\n---\nkind: C\nmetadata: {name: c}\n",
    "{\"kind\":\"A\",\"metadata\":{\"name\":\"a\"}}\nkind: B\nmetadata: {name: b}\n",
    "{kind: A, metadata: {name: a}}\n---\nkind: B\nmetadata: {name: b}\n",
    " \u{a0}{\"kind\":\"A\",\"metadata\":{\"name\":\"a\"}}\n",
    "{\"kind\":\"A\",\"kind\":\"B\",\"Kind\":\"C\",\"metadata\":{\"name\":\"a\",\"Name\":\"c\"},\"metadata\":{\"name\":\"b\"}}",
    "{\"kind\":\"A\",\"metadata\":{\"name\":\"\\u0061\"},\"items\":null}",
    "kind: A\nmetadata: {name: a}\nitems: null\n---\nkind: B\nmetadata: {name: b}\n",
    "kind: A\nmetadata: {name: a}\nitems: []\n",
    "kind: A\napiVersion: v1\nmetadata: {name: a}\nitems:\n- metadata: {name: i}\n- kind: C\n  metadata: {name: j}\n",
    "kind: List\nitems:\n- kind: BList\n  items:\n  - kind: B\n    metadata: {name: b}\n  - kind: C\n    metadata: {name: c}\n    items: {}\n",
    "kind: List\nitems:\n- kind: B\n  metadata: {name: b}\n  items: null\n",
    "kind: List\nx: &i {kind: B, metadata: {name: b}}\nitems: [*i]\n",
    "kind: List\nitems: &l\n- kind: B\n  metadata: {name: b}\n",
    "kind: A\nmetadata: {name: a}\nspec: 1\n---\nkind: A\nmetadata: {name: a}\nspec: 2\n",
    "---\n--- # x\nkind: A\nmetadata: {name: a}\n---\n\n---\n",
    "kind: A\nmetadata: {name: a}\n---x\nkind: B\nmetadata: {name: b}\n",
    "kind: A\r\nmetadata:\r\n  name: a\r\n---\r\nkind: B\r\nmetadata: {name: b}\r\n",
    "kind: A\nmetadata: {name: a}\ndata:\n  x: |\n    y",
    "kind: A\nmetadata: {name: a}\r---\rkind: B\r",
    "kind: A\nmetadata:\n  name: a\n  namespace: null\n---\nkind: A\nmetadata: {name: b, namespace: ''}\n",
    "kind: A\nmetadata: ~\nmetadata: {name: a}\n",
    "kind: A\nmetadata: {name: a}\nmetadata: {labels: {}}\n",
    "base: &b {name: a}\nkind: A\nmetadata: *b\n---\nbase: &b {name: b}\nkind: A\nmetadata: {<<: *b}\n",
    "!!map\nkind: A\n!!str metadata: !!map {name: !!binary d2Vi}\n",
    "# \u{85}kind: A\u{85}metadata: {name: a}\n---\nx: \"\nkind: C\n\"\nkind: B\nmetadata:\n  name: b\n",
];

/// What mutations begin with.
const ORDINARY: [&str; 7] = [
    "---\n# Source: shop/templates/web.yaml\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  labels:\n    app: web\nspec:\n  \
     replicas: 2\n  template:\n    spec:\n      containers:\n      - name: web\n        image: \"nginx:1\"\n        args: [\"-a\", '--b', c]\n",
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\n  namespace: db\ndata:\n  script: |\n    #!/bin/sh\n    echo \"x: y\"\n  \
     folded: >-\n    a\n    b\n---\napiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80}]}\n",
    "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata:\n    name: a\n- kind: ConfigMap\n  metadata: {name: b}\n",
    "apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata:\n    name: a\n- metadata: {name: b}\n",
    "x: &a {name: web, n: 1}\nkind: A\nmetadata:\n  <<: *a\n  labels: {app: 'web'}\nlist: [*a, b]\n",
    "kind: A\nmetadata:\n    name: 'a'\nspec:\n    text: one\n      two\n    quoted: \"a\n      b\"\n    empty:\n    list:\n    - a\n    -  b: c\n       d: e\n",
    "{\"kind\":\"A\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"}}\n{\"kind\":\"B\",\"metadata\":{\"name\":\"b\",\"namespace\":\"x\"}}\n",
];

/// What mutations put in.
#[rustfmt::skip]
const PIECES: [&str; 104] = [
    "\u{85}", "\u{2028}", "\u{2029}", "\u{feff}", "\r", "\r\n", "\t", "\n", "\n\n", " ", "  ", "\u{a0}", "é", "---", "---\n", "--- \n", "...",
    "...\n", "\n---\n", "\n...\n", "%YAML 1.1\n---\n", "%TAG !e! tag:yaml.org,2002:\n---\n", "&a ", "*a", "*a ", "&b", "<<: *a\n", "<<: ",
    "<<: {kind: B}\n", "<<: [{name: m}, {name: n}]\n", "!!binary d2Vi", "!!timestamp 2001-01-01", "!!str ", "!!int ", "!!float 1", "!!null ",
    "!!map ", "!!seq ", "! ", "!x ", "!<tag:yaml.org,2002:str> ", "!e!int ", "on: x\n", "on", "0x10: y\n", "010", "0o7", "0b1", "1_0", ".inf",
    "1e3", "1e400", "~", "null", "true", "? a\n: b\n", "? ", "?", "- - x\n", "- ", "-", "|\n", "|", "|2-\n", "|+", ">", ">+\n ", "\"", "'",
    "''", "\\", "\"a\\u0062\"", "\"\nkind: C\n\"", "'\nmetadata: {name: z}\n'", "{", "}", "[", "]", "{}", "[]", ",", ", ", ": ", ":", "#",
    " #", "# c\n", "items:\n- kind: I\n  metadata: {name: i}\n", "items: null\n", "items: ", "kind: B\n", "kind: ", "name: x\n", "  name: y\n",
    "metadata: {name: y}\n", "metadata:\n", "namespace: ~\n", "  namespace: n\n", "a: b\n", "{\"kind\":\"A\",\"metadata\":{\"name\":\"j\"}}",
    "\"kind\": D\n", "kind : E\n", "!!binary a2luZA==: F\n", "x: [a,\nkind: G]\n",
];

/// Ordinary text with a few changes.
pub(super) fn mutated(seeded: &mut Seeded) -> String {
    let mut text = seeded.pick(&ORDINARY).to_owned();
    for _ in 0..=seeded.below(4) {
        mutate(&mut text, seeded);
    }
    text
}

fn mutate(text: &mut String, seeded: &mut Seeded) {
    let at = text.floor_char_boundary(seeded.below(text.len() + 1));
    let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let end = text[at..].find('\n').map_or(text.len(), |end| at + end + 1);
    match seeded.below(8) {
        0 | 1 => text.insert_str(at, seeded.pick(&PIECES)),
        2 | 3 => text.insert_str(line, seeded.pick(&PIECES)),
        4 => {
            let value = text[line..].find(": ").map_or(at, |colon| line + colon + 2);
            text.insert_str(value, seeded.pick(&PIECES));
        }
        5 => {
            let until = text.floor_char_boundary((at + seeded.below(8)).min(text.len()));
            text.replace_range(at..until.max(at), "");
        }
        6 => {
            let copy = text[line..end].to_owned();
            text.insert_str(line, &copy);
        }
        _ => {
            let spaces = " ".repeat(seeded.below(4));
            text.insert_str(line, &spaces);
        }
    }
}

/// The members of a record that Helm and Interlock know, with values of their types.
const MEMBERS: [(&str, &str, &str); 16] = [
    ("", "name", "\"other\""),
    ("", "manifest", "\"kind: Evil\""),
    ("", "namespace", "\"other\""),
    ("", "version", "9"),
    ("", "info", "{\"status\":\"failed\"}"),
    ("", "hooks", "[]"),
    ("", "chart", "{\"metadata\":{\"name\":\"evil\"}}"),
    ("", "config", "{\"a\":1}"),
    ("/info", "status", "\"failed\""),
    ("/info", "description", "\"other\""),
    ("/chart", "metadata", "{\"name\":\"evil\"}"),
    ("/chart/metadata", "version", "\"9.9.9\""),
    ("/hooks/0", "manifest", "\"kind: Evil\""),
    ("/hooks/0", "kind", "\"Evil\""),
    ("/hooks/0", "events", "[\"pre-delete\"]"),
    ("/hooks/0", "weight", "7"),
];

/// The JSON of a record with one more member, whose key Go may take for a known one.
pub(super) fn record(seeded: &mut Seeded) -> String {
    let mark = "@";
    let mut record = ordinary_record();
    let (place, key, value) = seeded.pick(&MEMBERS);
    record.pointer_mut(place).unwrap()[mark] = json!(0);
    let text = record.to_string();
    let member = format!("\"{}\":{value}", spelled(key, seeded));
    let text = match seeded.below(2) {
        0 => text.replacen("\"@\":0", &member, 1),
        // Go takes the last one: behind the others.
        _ => moved_to_the_end(&text.replacen("\"@\":0,", "", 1).replacen(",\"@\":0", "", 1), place, &member),
    };
    text.replacen("\"@\":0", "\"later\":0", 1)
}

/// Appends a member to the object at a place. It is found by its last member, which is unique.
fn moved_to_the_end(text: &str, place: &str, member: &str) -> String {
    let last = match place {
        "" => return format!("{},{member}}}", text.strip_suffix('}').unwrap()),
        "/info" => "\"status\":\"deployed\"",
        "/chart" => "\"metadata\":{\"name\":\"shop\",\"version\":\"1.2.3\"}",
        "/chart/metadata" => "\"version\":\"1.2.3\"",
        _ => "\"weight\":1",
    };
    text.replacen(last, &format!("{last},{member}"), 1)
}

/// A key in one of the spellings that Go takes for it, or in one that it does not.
fn spelled(key: &str, seeded: &mut Seeded) -> String {
    let at = seeded.below(key.len());
    let letter = &key[at..=at];
    match seeded.below(9) {
        0 => key.to_owned(),
        1 => key.to_uppercase(),
        2 => format!("{}{}", key[..1].to_uppercase(), &key[1..]),
        3 => format!("{}{}{}", &key[..at], letter.to_uppercase(), &key[at + 1..]),
        4 => key.replace('s', "\u{17f}"),
        5 => key.replace('k', "\u{212a}"),
        6 => format!("{}\\u{:04x}{}", &key[..at], letter.as_bytes()[0], &key[at + 1..]),
        7 => key.replacen('i', "\u{131}", 1),
        _ => format!("{key}_"),
    }
}

pub(super) fn ordinary_record() -> Value {
    json!({
        "name": "web", "version": 3, "namespace": "shop", "manifest": "kind: A\n", "config": {},
        "info": {"description": "x", "last_deployed": "2026-11-21T09:23:20.5Z", "status": "deployed"},
        "chart": {"metadata": {"name": "shop", "version": "1.2.3"}},
        "hooks": [{"name": "a", "kind": "Job", "path": "t", "manifest": "kind: Job", "events": ["test"], "last_run": {"phase": ""}, "weight": 1}],
    })
}

/// Patterns over names, and what Go's syntax has besides.
#[rustfmt::skip]
pub(super) const PATTERNS: [&str; 92] = [
    "web-.*", "web", "we", "[^a]+", "(?i)WEB", "(?i:w)eb", "(?i)\\pL+", "\\pL+", "\\p{Greek}", "(?u)\\pL", "(?u)web", "(?x)web", "(?R)web", "(?U)w+",
    "(?s)w.b", "(?m)^web$", "(?-i)web", "(?i-s)web", "(?)web", "(?i)\u{212a}", "(?i)\u{17f}", "[[:alpha:]]+", "[[:word:]]+", "[[:^digit:]]+",
    "[[:ascii:]]+", "[[:foo:]]", "\\w+", "\\W+", "\\d+", "\\D+", "\\s*", "\\S+", "[\\w-]+", "[^\\d]+", "[\\pL]", "[a-z&&[^b]]+", "[a--b]+", "[a~~b]+", "[[a]]",
    "[]a]+", "[^]a]+", "[a-]+", "[z-a]", "[\\b]", "a{2}", "a{2,}", "a{,2}", "a{1000}", "a{1001}", "a{", "a{x}", "(a{100}){10}", "(a{100}){11}",
    "(\\w{10}){10}", "a**", "a+*", "a*?", "a*??", "a{2}{3}", "(a*)*", "*a", "a|", "|a", "a||b", "()", "(web", "web)", "web)|(api", "(?P<n>w)eb",
    "(?<n>w)eb", "(?P<a.b>w)eb", "(?P<1>w)eb", "\\bweb\\b", "\\Bweb", "\\<web\\>", "\\b{start}web", "\\Aweb\\z", "\\Aweb\\Z", "^web$", "\\x77eb", "\\x{77}eb",
    "\\u0077eb", "\\u{77}eb", "\\167eb", "\\1", "\\0", "\\Qweb\\E", "\\Ceb", "\\_", "w\\-eb", "ü*web", ".?eb",
];

pub(super) const TEXTS: [&str; 12] = ["web", "WEB", "web-1", "api", "aa", "aaa", "", "a", "k", "s", "web_1.x", "<web>"];

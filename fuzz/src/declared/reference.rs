//! What an edit does to a document, by the rules over declared fields, written down once more and slowly.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

/// An object before and after.
pub struct Edit<'v> {
    pub old: &'v Value,
    pub new: &'v Value,
}

/// Whether an edit changes what is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Changes,
    Free,
    /// The rules do not say: several items of a list have the same key.
    Unsaid,
}

impl Answer {
    fn of(changes: bool) -> Self {
        if changes { Self::Changes } else { Self::Free }
    }

    fn or(self, other: impl FnOnce() -> Self) -> Self {
        match self {
            Self::Free => other(),
            Self::Unsaid if other() == Self::Changes => Self::Changes,
            said => said,
        }
    }
}

/// What is known about the place of a value.
#[derive(Debug, Clone)]
struct Place {
    /// Whether the names of Kubernetes' own fields mean something here.
    is_built_in: bool,
    parent: String,
    name: String,
    /// Whether it is inside of a map that is one value.
    is_inside: bool,
}

impl Edit<'_> {
    /// Whether the edit changes what a document declares.
    pub fn of(&self, document: &Value) -> Answer {
        let Value::Object(declared) = document else { return Answer::Free };
        let group =
            document["apiVersion"].as_str().and_then(|version| version.rsplit_once('/')).map_or("", |(group, _)| group);
        let is_built_in = !group.contains('.') || group.ends_with(".k8s.io");
        let root = Place { is_built_in, parent: String::new(), name: String::new(), is_inside: false };
        let mut fields = declared.clone();
        for name in ["apiVersion", "kind", "status", "metadata"] {
            fields.remove(name);
        }
        let kind = document["kind"].as_str().filter(|_| group.is_empty());
        if kind == Some("Secret") {
            fields.remove("stringData");
        }
        if matches!(kind, Some("Secret" | "ConfigMap")) && fields.get("immutable").is_none_or(Value::is_null) {
            fields.insert("immutable".to_owned(), json!(false));
        }
        let mut answer = Answer::Free;
        let mut texts = Map::new();
        let has_data = document["data"].as_object().is_some_and(|data| !data.is_empty());
        if kind == Some("Secret") && (has_data || document["stringData"].is_object()) {
            let data = fields.remove("data").and_then(|data| data.as_object().cloned()).unwrap_or_default();
            texts.extend(data.into_iter().map(|(name, value)| (name, unwrapped(value))));
            let given = document.get("stringData").and_then(Value::as_object).cloned().unwrap_or_default();
            if given.values().any(|text| !text.is_string()) {
                // No API server takes it.
                answer = Answer::Unsaid;
            }
            texts.extend(
                given
                    .into_iter()
                    .map(|(name, text)| (name, text.as_str().map_or(Value::Null, |text| STANDARD.encode(text).into()))),
            );
        }
        let [old, new] = [self.old, self.new];
        for (name, value) in &fields {
            answer = answer.or(|| root.member(value, name, old.get(name), new.get(name)));
        }
        if !texts.is_empty() {
            let data = Place { name: "data".to_owned(), ..root.clone() };
            answer = answer.or(|| data.inner(&texts.into(), old.get("data"), new.get("data")));
        }
        answer.or(|| self.of_metadata(document.get("metadata")))
    }

    fn of_metadata(&self, declared: Option<&Value>) -> Answer {
        let Some(Value::Object(declared)) = declared else { return Answer::Free };
        let place = Place { is_built_in: true, parent: String::new(), name: "metadata".to_owned(), is_inside: false };
        let mut fields =
            Map::from_iter([("finalizers".to_owned(), json!([])), ("ownerReferences".to_owned(), json!([]))]);
        let known = ["annotations", "finalizers", "labels", "ownerReferences"];
        fields.extend(
            declared.clone().into_iter().filter(|(name, value)| known.contains(&name.as_str()) && !value.is_null()),
        );
        place.inner(&fields.into(), self.old.get("metadata"), self.new.get("metadata"))
    }
}

impl Place {
    /// A declared member before and after.
    fn member(&self, declared: &Value, name: &str, old: Option<&Value>, new: Option<&Value>) -> Answer {
        if declared.is_null() && !self.is_complete() {
            return Answer::Free;
        }
        let place = Self {
            parent: self.name.clone(),
            name: name.to_owned(),
            is_inside: self.is_complete(),
            is_built_in: self.is_built_in,
        };
        place.inner(declared, old, new)
    }

    fn inner(&self, declared: &Value, old: Option<&Value>, new: Option<&Value>) -> Answer {
        if old == new {
            return Answer::Free;
        }
        let are_maps = old.is_some_and(Value::is_object) && new.is_some_and(Value::is_object);
        match declared {
            Value::Object(members) if are_maps => self.of_maps(members, old, new),
            Value::Object(members) if !self.is_complete() => {
                let value = |side: Option<&Value>, name: &str| side.and_then(|side| side.get(name)).cloned();
                let removed = Answer::of(members.is_empty() && new.is_none() && !self.may_be_omitted(declared, old));
                members.iter().fold(removed, |answer, (name, declared)| {
                    answer.or(|| self.member(declared, name, value(old, name).as_ref(), value(new, name).as_ref()))
                })
            }
            Value::Array(items) if self.keys(items).is_some() => {
                if are_maps {
                    Answer::Changes
                } else {
                    self.of_items(items, old, new)
                }
            }
            _ if are_maps => Answer::Changes,
            _ => Answer::of(!self.is_kept(declared, old, new)),
        }
    }

    /// The members of two live maps. In a map that is one value, nothing may be added either.
    fn of_maps(&self, declared: &Map<String, Value>, old: Option<&Value>, new: Option<&Value>) -> Answer {
        let of = |name: &String| {
            let (old, new) = (old.and_then(|old| old.get(name)), new.and_then(|new| new.get(name)));
            match declared.get(name) {
                Some(value) => self.member(value, name, old, new),
                // Its absence is declared.
                None if self.is_complete() => Answer::of(old != new && new.is_some_and(|new| !new.is_null())),
                None => Answer::Free,
            }
        };
        let live = [old, new].into_iter().flatten().filter_map(Value::as_object).flat_map(Map::keys);
        live.fold(Answer::Free, |answer, name| answer.or(|| of(name)))
    }

    /// The items of a list with keys, wherever they are.
    fn of_items(&self, declared: &[Value], old: Option<&Value>, new: Option<&Value>) -> Answer {
        let items = |side: Option<&Value>| side.and_then(Value::as_array).cloned().unwrap_or_default();
        let (old, new) = (items(old), items(new));
        let Some(keys) = self.keys(declared) else { return Answer::Unsaid };
        if keys
            .iter()
            .any(|key| [declared, &old, &new].iter().any(|list| list.iter().filter(|item| key.is_of(item)).count() > 1))
        {
            return Answer::Unsaid;
        }
        if self.is_closed() && (has_twice(&old) || has_twice(&new)) {
            return Answer::Unsaid;
        }
        let mut answer = Answer::Free;
        let mut order = Vec::new();
        for (key, declared) in keys.iter().zip(declared) {
            let at = |list: &[Value]| list.iter().position(|item| key.is_of(item));
            let (was, is) = (at(&old), at(&new));
            match (was, is) {
                (Some(_), None) => answer = Answer::Changes,
                (was, Some(is)) => {
                    order.push((was, is));
                    let before = was.map(|was| &old[was]);
                    answer = answer.or(|| self.of_item(declared, before, &new[is]));
                }
                (None, None) => {}
            }
        }
        if self.name == "initContainers" {
            answer = answer.or(|| order_of(&order));
        }
        if self.is_closed() {
            let is_added = |item: &Value| !old.contains(item) && !keys.iter().any(|key| key.is_of(item));
            answer = answer.or(|| Answer::of(new.iter().any(is_added)));
        }
        answer
    }

    fn of_item(&self, declared: &Value, old: Option<&Value>, new: &Value) -> Answer {
        // An item of a set is its own key.
        let place = if declared.is_object() { self.clone() } else { Self { is_built_in: false, ..self.clone() } };
        place.inner(declared, old, Some(new))
    }

    fn is_closed(&self) -> bool {
        self.parent == "metadata" && matches!(self.name.as_str(), "finalizers" | "ownerReferences")
    }

    /// Whether a map here is one value.
    fn is_complete(&self) -> bool {
        let names = ["env", "ownerReferences", "port", "selector", "volumes"];
        self.is_inside || (self.is_built_in && names.contains(&self.name.as_str()))
    }

    /// The keys of the declared items of a list; `None` if the list is one value.
    fn keys(&self, items: &[Value]) -> Option<Vec<Key>> {
        if self.is_inside {
            return None;
        }
        let names: &[&str] = match (self.parent.as_str(), self.name.as_str()) {
            ("metadata", "finalizers") => &[],
            _ if !self.is_built_in => return None,
            (_, "containers" | "initContainers" | "env" | "volumes") => &["name"],
            ("metadata", "ownerReferences") => &["uid"],
            ("containers" | "initContainers", "ports") => &["containerPort", "protocol"],
            ("spec", "ports") => &["port", "protocol"],
            _ => return None,
        };
        if !names.is_empty() && !items.iter().all(|item| item.get(names[0]).is_some()) {
            return None;
        }
        items.iter().map(|item| Key::of(item, names)).collect()
    }

    /// Whether an edit leaves a declared value as it is declared, or as it was.
    fn is_kept(&self, declared: &Value, old: Option<&Value>, new: Option<&Value>) -> bool {
        match new {
            None => self.may_be_omitted(declared, old),
            Some(new) => self.has(declared, Some(new), old) && !self.adds(declared, old, new),
        }
    }

    /// Whether a live value has all that is declared.
    fn has(&self, declared: &Value, live: Option<&Value>, before: Option<&Value>) -> bool {
        match (declared, live) {
            (Value::Object(declared), Some(Value::Object(live))) => declared.iter().all(|(name, value)| {
                let before = before.and_then(|before| before.get(name));
                self.field(name).has(value, live.get(name), before)
            }),
            (Value::Array(declared), Some(Value::Array(live))) => {
                declared.len() == live.len()
                    && declared.iter().enumerate().all(|(at, value)| {
                        let before = before.and_then(Value::as_array).and_then(|before| before.get(at));
                        self.has(value, live.get(at), before)
                    })
            }
            (declared, None) => self.may_be_omitted(declared, before),
            (declared, Some(live)) => self.means(declared, live),
        }
    }

    /// Whether an edit adds a member to a map that was as declared.
    fn adds(&self, declared: &Value, old: Option<&Value>, new: &Value) -> bool {
        match (declared, new) {
            (Value::Object(declared), Value::Object(new)) => {
                let was = |name: &str| old.and_then(|old| old.get(name));
                let is_new =
                    |(name, value): (&String, &Value)| !declared.contains_key(name) && was(name) != Some(value);
                let was_declared =
                    self.was_declared(&Value::Object(declared.clone()), old, Some(&Value::Object(new.clone())));
                (was_declared && new.iter().any(is_new))
                    || declared.iter().any(|(name, value)| {
                        new.get(name).is_some_and(|new| self.field(name).adds(value, was(name), new))
                    })
            }
            (Value::Array(declared), Value::Array(new)) => {
                declared.iter().zip(new).enumerate().any(|(at, (value, new))| {
                    let was = old.and_then(Value::as_array).and_then(|old| old.get(at));
                    self.adds(value, was, new)
                })
            }
            _ => false,
        }
    }

    /// Whether the old value was as declared: then a new member beside it is an addition, and no default.
    fn was_declared(&self, declared: &Value, old: Option<&Value>, new: Option<&Value>) -> bool {
        match (declared, new) {
            (Value::Object(members), Some(Value::Object(new))) => {
                let old = old.and_then(Value::as_object);
                (old.is_some() || members.is_empty())
                    && members.iter().all(|(name, value)| {
                        self.field(name).was_declared(value, old.and_then(|old| old.get(name)), new.get(name))
                    })
            }
            (Value::Array(items), Some(Value::Array(new))) => {
                let old = old.and_then(Value::as_array);
                old.map_or(items.is_empty(), |old| old.len() == items.len())
                    && items
                        .iter()
                        .enumerate()
                        .all(|(at, value)| self.was_declared(value, old.and_then(|old| old.get(at)), new.get(at)))
            }
            (declared, _) => old.map_or(is_zero(declared), |old| self.means(declared, old)),
        }
    }

    fn field(&self, name: &str) -> Self {
        Self { parent: self.name.clone(), name: name.to_owned(), ..self.clone() }
    }

    /// Whether the absence of a declared value is no removal: the API server omits zero values, unless it kept one here.
    fn may_be_omitted(&self, declared: &Value, old: Option<&Value>) -> bool {
        declared.is_null() || (is_zero(declared) && !old.is_some_and(is_zero))
    }

    /// Whether two scalars mean the same.
    fn means(&self, declared: &Value, live: &Value) -> bool {
        let is_quantity = self.is_built_in && matches!(self.parent.as_str(), "limits" | "requests");
        let text = |value: &Value| match value {
            Value::Number(number) => Some(number.to_string()),
            Value::String(text) => Some(text.clone()),
            _ => None,
        };
        let is_number = declared.is_number() || live.is_number();
        declared == live
            || (is_number && text(declared).is_some() && text(declared) == text(live))
            || (is_quantity && amount(declared).is_some() && amount(declared) == amount(live))
    }
}

/// Base64 as the API server stores it: without line breaks.
fn unwrapped(value: Value) -> Value {
    value.as_str().map_or_else(|| value.clone(), |text| text.replace(['\n', '\r'], "").into())
}

/// The key of an item.
struct Key {
    /// Empty if the item is its own key.
    names: Vec<&'static str>,
    values: Vec<String>,
}

impl Key {
    fn of(item: &Value, names: &[&'static str]) -> Option<Self> {
        if names.is_empty() {
            return Some(Self { names: Vec::new(), values: vec![identity(item)] });
        }
        let known = names.iter().filter_map(|name| Some((*name, value_of(item, name, true)?)));
        let (names, values): (Vec<_>, Vec<_>) = known.unzip();
        (!names.is_empty()).then_some(Self { names, values })
    }

    /// Whether it is the key of a live item.
    fn is_of(&self, item: &Value) -> bool {
        if self.names.is_empty() {
            return identity(item) == self.values[0];
        }
        self.names.iter().zip(&self.values).all(|(name, value)| value_of(item, name, false).as_ref() == Some(value))
    }
}

fn value_of(item: &Value, name: &str, is_null_absent: bool) -> Option<String> {
    let value = item.get(name).filter(|value| !(is_null_absent && value.is_null()));
    value.map(identity).or_else(|| (name == "protocol").then(|| "TCP".to_owned()))
}

/// A number and its text are one key.
fn identity(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        other => format!("\0{other}"),
    }
}

/// Whether each pair of items is in the declared order or in the old one. `order` has the old and new indices in the declared order.
fn order_of(order: &[(Option<usize>, usize)]) -> Answer {
    let sorted = order.is_sorted_by_key(|(_, new)| *new);
    let mut by_new = order.to_vec();
    by_new.sort_unstable_by_key(|(_, new)| *new);
    if sorted || by_new.is_sorted_by_key(|(old, _)| *old) {
        return Answer::Free;
    }
    let is_turned = |(at, (old, new)): (usize, &(Option<usize>, usize))| {
        order[at + 1..].iter().any(|(later_old, later_new)| later_new < new && later_old.is_some() && later_old > old)
    };
    // A part of the items is in one order, and a part in the other.
    if order.iter().enumerate().any(is_turned) { Answer::Changes } else { Answer::Unsaid }
}

fn has_twice(items: &[Value]) -> bool {
    items.iter().enumerate().any(|(at, item)| items[at + 1..].contains(item))
}

fn is_zero(value: &Value) -> bool {
    [json!(null), json!(false), json!(0), json!(""), json!([]), json!({})].contains(value)
}

/// Whether a text is no number, or one that [`amount`] knows.
pub fn is_plain(text: &str) -> bool {
    let begins = text.trim().starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first));
    !begins || (text == text.trim() && !text.starts_with('+') && amount(&text.into()).is_some())
}

/// An amount in thousandths, of the spellings that occur in charts.
fn amount(value: &Value) -> Option<i128> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: i128 = digits.parse().ok()?;
    let thousandths = match &text[digits.len()..] {
        "" => 1_000,
        "m" => 1,
        "k" => 1_000_000,
        "M" => 1_000_000_000,
        "G" => 1_000_000_000_000,
        "Ki" => 1_000 << 10,
        "Mi" => 1_000 << 20,
        "Gi" => 1_000 << 30,
        _ => return None,
    };
    number.checked_mul(thousandths)
}

//! Random edits of an object, the same on every machine.

use serde_json::{Value, json};

/// The new value at a place; `None` removes it.
pub(super) struct Edit {
    pointer: String,
    value: Option<Value>,
}

/// A generator of numbers that is the same on every machine.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits") % end.max(1)
    }

    /// A change of a random part of an object.
    pub(super) fn edit(&mut self, object: &Value) -> Option<Edit> {
        let mut places = Vec::new();
        for (name, value) in object.as_object()? {
            if !matches!(name.as_str(), "apiVersion" | "kind" | "metadata" | "status" | "type" | "immutable") {
                collect_places(&format!("/{name}"), value, &mut places);
            }
        }
        for map in ["labels", "annotations"] {
            if let Some(value) = object["metadata"].get(map) {
                collect_places(&format!("/metadata/{map}"), value, &mut places);
            }
        }
        // The controller of Deployments writes it again.
        places.retain(|(pointer, _)| !pointer.contains("deployment.kubernetes.io"));
        // Most places are declared scalars, and most of what is left open is in maps.
        if self.below(3) > 0 {
            places.retain(|(_, value)| value.is_object());
        }
        if places.is_empty() {
            return None;
        }
        let (pointer, value) = places.swap_remove(self.below(places.len()));
        // The marks of the release are in these maps.
        let has_marks = ["/metadata/labels", "/metadata/annotations"].contains(&pointer.as_str());
        let value = match value {
            _ if !has_marks && self.below(8) == 0 => None,
            Value::Object(_) if !has_marks && self.below(10) == 0 => Some(json!({})),
            // The rest of the map may differ between the namespaces.
            Value::Object(_) => {
                let mut words = vocabulary();
                let (name, value) = words.swap_remove(self.below(words.len()));
                return Some(Edit { pointer: format!("{pointer}/{name}"), value: Some(value) });
            }
            Value::Array(items) => Some(self.edited_list(items)),
            Value::String(text) => Some(self.edited_text(&text)),
            Value::Number(number) => Some(json!(number.as_i64()? + 1)),
            Value::Bool(value) => Some(json!(!value)),
            Value::Null => None,
        };
        Some(Edit { pointer, value })
    }

    fn edited_list(&mut self, mut items: Vec<Value>) -> Value {
        match self.below(5) {
            0 => items.clear(),
            1 => items.reverse(),
            2 => drop(items.pop()),
            3 => items.push(json!({})),
            _ => {
                let mut copy = items.first().cloned().unwrap_or_else(|| json!("extra"));
                for name in ["name", "key"] {
                    if let Some(name) = copy.get_mut(name) {
                        *name = json!("extra");
                    }
                }
                items.push(copy);
            }
        }
        items.into()
    }

    fn edited_text(&mut self, text: &str) -> Value {
        match self.below(4) {
            0 => json!(""),
            // Another spelling of a number, which is the same quantity.
            1 if text.contains('.') => json!(text.trim_end_matches('0')),
            2 if text.ends_with("Gi") => json!(text.replace("Gi", "000Mi")),
            3 => json!("other"),
            _ => json!(format!("{text}x")),
        }
    }
}

impl Edit {
    /// The object with the edit; `None` if it has no such place.
    pub(super) fn of(&self, object: &Value) -> Option<Value> {
        let mut object = object.clone();
        let (parent, name) = self.pointer.rsplit_once('/')?;
        match (object.pointer_mut(parent)?, &self.value) {
            (Value::Object(members), Some(value)) => drop(members.insert(unescaped(name), value.clone())),
            (Value::Object(members), None) => drop(members.remove(&unescaped(name))?),
            (Value::Array(items), Some(value)) => *items.get_mut(name.parse::<usize>().ok()?)? = value.clone(),
            (Value::Array(items), None) => drop(items.remove(name.parse().ok()?)),
            _ => return None,
        }
        Some(object)
    }
}

fn unescaped(name: &str) -> String {
    name.replace("~1", "/").replace("~0", "~")
}

impl std::fmt::Display for Edit {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.value {
            Some(value) => write!(out, "{} = {value}", self.pointer),
            None => write!(out, "{} removed", self.pointer),
        }
    }
}

/// Every part of a value, with its place.
fn collect_places(pointer: &str, value: &Value, places: &mut Vec<(String, Value)>) {
    places.push((pointer.to_owned(), value.clone()));
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                collect_places(&format!("{pointer}/{name}"), value, places);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                collect_places(&format!("{pointer}/{index}"), value, places);
            }
        }
        _ => {}
    }
}

/// Members that edits add, wherever they are.
fn vocabulary() -> Vec<(&'static str, Value)> {
    let labels = || json!({"extra": "x"});
    vec![
        ("extra", json!("eA==")),
        ("matchLabels", labels()),
        ("matchExpressions", json!([{"key": "extra", "operator": "Exists"}])),
        ("namespaceSelector", json!({})),
        ("podSelector", json!({})),
        ("nodeSelector", labels()),
        ("selector", labels()),
        ("medium", json!("Memory")),
        ("sizeLimit", json!("1Gi")),
        ("hostPath", json!({"path": "/tmp"})),
        ("emptyDir", json!({})),
        ("optional", json!(true)),
        ("defaultMode", json!(256)),
        ("args", json!(["-x"])),
        ("command", json!(["sh"])),
        ("value", json!("other")),
        ("env", json!([{"name": "EXTRA", "value": "1"}])),
        ("limits", json!({"cpu": "3"})),
        ("runAsUser", json!(7)),
        ("tolerations", json!([{"operator": "Exists"}])),
        ("minReadySeconds", json!(3)),
        ("paused", json!(true)),
        ("suspend", json!(true)),
        ("ports", json!([{"port": 99, "protocol": "TCP"}])),
        ("ingress", json!([{}])),
        ("from", json!([{"podSelector": {}}])),
        ("rules", json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}])),
        ("resourceNames", json!(["x"])),
        ("externalTrafficPolicy", json!("Local")),
        ("periodSeconds", json!(77)),
        ("behavior", json!({"scaleDown": {"stabilizationWindowSeconds": 60}})),
        ("tls", json!([{"secretName": "x"}])),
    ]
}

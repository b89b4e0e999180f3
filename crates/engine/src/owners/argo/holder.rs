//! Who holds the operation of an Application: the user of the write that made it appear. `initiatedBy` proves nothing, and annotations are
//! put back by the controller of ApplicationSets. So the holder stands in `.operation.info`, which Argo CD only shows, and copies into
//! the state of the operation.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::json::{Patch, PatchOperation};
use crate::release::stamps::HOLDER;

/// An operation that names no holder.
pub(super) fn unheld(operation: &RawValue) -> serde_json::Result<Value> {
    serde_json::from_str(operation.get()).map(without_holder)
}

/// The list of what is shown with an operation.
const INFO: &str = "info";

/// The holder that an operation names.
pub(super) fn holder_of(operation: &RawValue) -> Option<String> {
    named_in(&serde_json::from_str(operation.get()).ok()?).map(str::to_owned)
}

/// The holder that the operation must name after a write, if it has one: the user of a new operation, and the one before otherwise.
pub(super) fn expected_holder(before: Option<&RawValue>, after: &RawValue, user: Option<&str>) -> Option<String> {
    let new: Value = serde_json::from_str(after.get()).ok()?;
    let old: Option<Value> = before.and_then(|before| serde_json::from_str(before.get()).ok());
    match old {
        Some(old) if essence(old.clone()) == essence(new) => named_in(&old).map(str::to_owned),
        _ => user.map(str::to_owned),
    }
}

/// The patch of the object with which its operation names this holder; `None` if it does.
pub(super) fn patch(operation: &RawValue, holder: Option<&str>) -> Option<Patch> {
    let operation: Value = serde_json::from_str(operation.get()).ok()?;
    if named_in(&operation) == holder || !operation.is_object() {
        return None;
    }
    let mut info = others(&operation);
    info.extend(holder.map(|holder| json!({"name": HOLDER, "value": holder})));
    Some(Patch(vec![PatchOperation::Add { path: format!("/operation/{INFO}"), value: info.into() }]))
}

/// Whether two operations ask for the same, whoever holds them.
pub(super) fn is_same(one: &RawValue, other: &RawValue) -> bool {
    let [one, other] = [one, other].map(|operation| serde_json::from_str(operation.get()).map(essence));
    one.ok().zip(other.ok()).is_some_and(|(one, other)| one == other)
}

/// What an operation asks for. Argo CD's server writes empty fields that were absent, such as `retry`.
fn essence(operation: Value) -> Value {
    without_empty(without_holder(operation))
}

fn without_empty(value: Value) -> Value {
    let Value::Object(fields) = value else { return value };
    let fields = fields.into_iter().map(|(name, field)| (name, without_empty(field)));
    Value::Object(fields.filter(|(_, field)| !is_empty(field)).collect())
}

fn is_empty(field: &Value) -> bool {
    field.is_null() || field.as_object().is_some_and(Map::is_empty)
}

fn entries(operation: &Value) -> impl Iterator<Item = &Value> {
    operation.get(INFO).and_then(Value::as_array).into_iter().flatten()
}

fn is_holder(entry: &Value) -> bool {
    entry.get("name").and_then(Value::as_str) == Some(HOLDER)
}

/// What the first entry says, as long as there is one.
fn named_in(operation: &Value) -> Option<&str> {
    entries(operation).find(|entry| is_holder(entry))?.get("value")?.as_str()
}

fn others(operation: &Value) -> Vec<Value> {
    entries(operation).filter(|entry| !is_holder(entry)).cloned().collect()
}

fn without_holder(mut operation: Value) -> Value {
    let others = others(&operation);
    if let Value::Object(fields) = &mut operation {
        fields.remove(INFO);
        if !others.is_empty() {
            fields.insert(INFO.to_owned(), others.into());
        }
    }
    operation
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(operation: &Value) -> Box<RawValue> {
        serde_json::value::to_raw_value(operation).unwrap()
    }

    #[test]
    fn empty_fields_make_no_other_operation() {
        let is_same = |one: Value, other: Value| is_same(&raw(&one), &raw(&other));
        let sync = json!({"sync": {"revision": "main", "syncStrategy": {"hook": {}}}});
        assert!(is_same(sync.clone(), json!({"sync": {"revision": "main"}, "retry": {}, "info": null})));
        assert!(!is_same(sync.clone(), json!({"sync": {"revision": "main"}, "retry": {"limit": 2}})));
        assert!(!is_same(sync, json!({"sync": {"revision": "next"}})));
    }

    /// The list in the operation after a write.
    fn stamped(before: Option<&Value>, after: &Value, user: &str) -> Value {
        let holder = expected_holder(before.map(raw).as_deref(), &raw(after), Some(user));
        let mut stamped = after.clone();
        for operation in patch(&raw(after), holder.as_deref()).map(|patch| patch.0).unwrap_or_default() {
            let PatchOperation::Add { path, value } = operation else { panic!("{operation:?}") };
            assert_eq!(path, "/operation/info");
            stamped[INFO] = value;
        }
        stamped[INFO].take()
    }

    #[test]
    fn a_new_operation_names_its_user_and_keeps_the_holder_afterwards() {
        let held = |user: &str| json!([{"name": HOLDER, "value": user}]);
        let sync = |info: Value| json!({"sync": {"revision": "main"}, "info": info});
        let of_alice = sync(held("alice"));
        assert_eq!(stamped(None, &json!({"sync": {}}), "alice"), held("alice"));
        assert_eq!(stamped(None, &sync(held("bob")), "alice"), held("alice"), "what the client sends does not count");
        assert_eq!(stamped(Some(&of_alice), &sync(Value::Null), "bob"), held("alice"), "a lost stamp is put back");
        assert_eq!(stamped(Some(&of_alice), &sync(held("bob")), "bob"), held("alice"));
        assert_eq!(stamped(Some(&sync(Value::Null)), &sync(held("bob")), "bob"), json!([]), "nobody is known");
        let other = json!({"sync": {"revision": "next"}, "info": held("alice")});
        assert_eq!(stamped(Some(&of_alice), &other, "bob"), held("bob"), "another operation");
        let rewritten = json!({"sync": {"revision": "main"}, "retry": {}});
        assert_eq!(stamped(Some(&of_alice), &rewritten, "argocd-server"), held("alice"), "as argocd-server ends it");
        let reason = json!({"name": "Reason", "value": "release"});
        let both = json!([reason, {"name": HOLDER, "value": "alice"}]);
        assert_eq!(stamped(None, &sync(json!([reason])), "alice"), both);
        assert_eq!(unheld(&raw(&sync(both))).unwrap(), sync(json!([reason])));
        let nothing_to_do = [sync(held("alice")), Value::Null, json!("sync")];
        assert!(nothing_to_do.iter().all(|operation| patch(&raw(operation), Some("alice")).is_none()));
    }
}

//! `metadata.managedFields`: the fields that each manager wrote last, as the API server tracks them.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;

use jiff::Timestamp;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::Value;
use serde_json::value::RawValue;

use super::declared::Declared;
use super::delta::Delta;
use super::item_key::ItemKey;
use super::kept::loses_kept;
use crate::effort::Effort;
use crate::json::RawObject;

/// The steps to parse a byte of `managedFields` and to merge its part.
const FIELD_STEPS: u64 = 20;

/// The `managedFields` of an object.
#[derive(Debug, Default)]
pub struct ManagedFields<'a>(Vec<ManagedFieldsEntry<'a>>);

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ManagedFieldsEntry<'a> {
    #[serde(borrow, default)]
    manager: Cow<'a, str>,
    #[serde(borrow, default)]
    api_version: Cow<'a, str>,
    #[serde(borrow, default)]
    subresource: Option<Cow<'a, str>>,
    /// The API server writes all times in one format, in which they sort as texts.
    #[serde(borrow, default)]
    time: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "fieldsV1")]
    fields: Option<&'a RawValue>,
}

impl<'a> ManagedFields<'a> {
    /// Parses `managedFields`. If they cannot be parsed, or the review has no steps left, they count as absent and
    /// ownership is unknown.
    #[must_use]
    pub fn read(managed_fields: Option<RawObject<'a>>, effort: &Effort) -> Self {
        let affordable = managed_fields.filter(|fields| effort.take_text(fields.get(), FIELD_STEPS).is_ok());
        affordable.and_then(|fields| serde_json::from_str(fields.get()).ok()).map(Self).unwrap_or_default()
    }

    /// Whether one of these managers has an entry.
    #[must_use]
    pub fn names(&self, manager: impl Fn(&str) -> bool) -> bool {
        self.0.iter().any(|entry| manager(&entry.manager))
    }

    /// The fields of some managers. Entries of another API version or of a subresource are left out: their fields may
    /// differ from those of the object.
    #[must_use]
    pub fn of(&self, api_version: &str, manager: impl Fn(&str) -> bool) -> Declared<'static> {
        united(self.entries_of(Some(api_version), &manager))
    }

    /// Like [`Self::of`]. If these managers have written in other API versions alone, their fields there count.
    #[must_use]
    pub fn of_any_version(&self, api_version: &str, manager: impl Fn(&str) -> bool) -> Declared<'static> {
        united(self.entries_of(self.version_of(api_version, &manager), &manager))
    }

    /// The API version whose fields count for some managers; `None` for any, because they have written in others alone.
    fn version_of<'v>(&self, api_version: &'v str, manager: &impl Fn(&str) -> bool) -> Option<&'v str> {
        let mut of_manager = self.0.iter().filter(|entry| manager(&entry.manager));
        of_manager.any(|entry| entry.api_version == api_version).then_some(api_version)
    }

    /// The entries of some managers for the object itself, in one API version or in any.
    fn entries_of(
        &self,
        api_version: Option<&str>,
        manager: &impl Fn(&str) -> bool,
    ) -> impl Iterator<Item = &ManagedFieldsEntry<'a>> {
        self.of_object(api_version).filter(move |entry| manager(&entry.manager))
    }

    /// The fields that others have written since some managers last wrote any. None if these never wrote.
    #[must_use]
    pub fn since(&self, api_version: &str, manager: impl Fn(&str) -> bool) -> Declared<'static> {
        let of_manager = self.entries_of(Some(api_version), &manager);
        let Some(last) = of_manager.filter_map(|entry| entry.time.as_deref()).max() else { return Declared::nothing() };
        let is_later = |entry: &&ManagedFieldsEntry<'_>| entry.time.as_deref().is_some_and(|time| time > last);
        united(self.of_object(Some(api_version)).filter(is_later).filter(|entry| !manager(&entry.manager)))
    }

    /// Whether some managers lose a field in other `managedFields` although an edit keeps its value.
    #[must_use]
    pub fn lose_kept_in(
        &self,
        after: &Self,
        (api_version, manager): (&str, impl Fn(&str) -> bool),
        delta: Option<&Delta<'_>>,
        effort: &Effort,
    ) -> bool {
        let version = self.version_of(api_version, &manager);
        let is_kept = |entry: &ManagedFieldsEntry<'_>| {
            let text = entry.fields.map(RawValue::get);
            after.entries_of(version, &manager).any(|it| it.fields.map(RawValue::get) == text)
        };
        if self.entries_of(version, &manager).all(is_kept) {
            return false;
        }
        let [before, after] = [self, after].map(|fields| united(fields.entries_of(version, &manager)));
        loses_kept(before, &after, delta, effort)
    }

    /// The entries for the object itself, and for no subresource, in one API version or in any.
    fn of_object(&self, api_version: Option<&str>) -> impl Iterator<Item = &ManagedFieldsEntry<'a>> {
        self.0.iter().filter(move |entry| {
            entry.subresource.as_deref().is_none_or(str::is_empty)
                && api_version.is_none_or(|version| entry.api_version == version)
        })
    }
}

fn united<'f, 'a: 'f>(entries: impl Iterator<Item = &'f ManagedFieldsEntry<'a>>) -> Declared<'static> {
    let sets = entries.filter_map(|entry| serde_json::from_str::<FieldSet>(entry.fields?.get()).ok());
    union(sets.map(|set| set.0).collect())
}

/// When each of these managers last wrote an object, by the clock of the API server; `None` if they never did, or that is unknown.
#[must_use]
pub fn last_writes<const N: usize>(
    managed_fields: Option<RawObject<'_>>,
    managers: [&dyn Fn(&str) -> bool; N],
) -> [Option<Timestamp>; N] {
    #[derive(Deserialize)]
    struct Entry<'a> {
        #[serde(borrow, default)]
        manager: Cow<'a, str>,
        time: Option<Timestamp>,
    }
    let entries = managed_fields.and_then(|fields| serde_json::from_str::<Vec<Entry<'_>>>(fields.get()).ok());
    let entries = entries.unwrap_or_default();
    managers.map(|is_one| entries.iter().filter(|entry| is_one(&entry.manager)).filter_map(|entry| entry.time).max())
}

/// When somebody last changed the spec of an object, by the clock of the API server; `None` if that is unknown.
#[must_use]
pub fn last_change_of_spec(managed_fields: Option<RawObject<'_>>, effort: &Effort) -> Option<Timestamp> {
    #[derive(Deserialize)]
    struct Entry<'a> {
        time: Option<Timestamp>,
        #[serde(borrow, default)]
        subresource: Option<Cow<'a, str>>,
        #[serde(rename = "fieldsV1")]
        fields: Option<TopFields>,
    }
    #[derive(Deserialize)]
    struct TopFields {
        #[serde(rename = "f:spec")]
        spec: Option<IgnoredAny>,
    }
    let fields = managed_fields.filter(|fields| effort.take_text(fields.get(), FIELD_STEPS).is_ok())?;
    let entries: Vec<Entry<'_>> = serde_json::from_str(fields.get()).ok()?;
    let of_spec = entries.into_iter().filter(|entry| entry.fields.as_ref().is_some_and(|fields| fields.spec.is_some()));
    of_spec.filter(|entry| entry.subresource.is_none()).filter_map(|entry| entry.time).max()
}

/// The union of sets, built at once: pair by pair, each set would be searched for the items of every other.
fn union(mut sets: Vec<Declared<'static>>) -> Declared<'static> {
    // An empty set adds nothing.
    sets.retain(|set| !matches!(set, Declared::Fields(fields) if fields.is_empty()));
    if sets.len() == 1 {
        return sets.swap_remove(0);
    }
    // If one manager owns a value and another a part of it, the value counts.
    if let Some(leaf) = sets.iter().position(|set| matches!(set, Declared::Leaf(_))) {
        return sets.swap_remove(leaf);
    }
    match sets.first() {
        None => Declared::nothing(),
        Some(Declared::Items(_)) => {
            let mut places = HashMap::new();
            let mut gathered: Vec<(ItemKey, Vec<_>)> = Vec::new();
            let items =
                sets.into_iter().filter_map(|set| if let Declared::Items(items) = set { Some(items) } else { None });
            for (key, item) in items.flatten() {
                match places.get(&key) {
                    Some(at) => {
                        let (_, parts): &mut (_, Vec<_>) = &mut gathered[*at];
                        parts.push(item);
                    }
                    None => {
                        places.insert(key.clone(), gathered.len());
                        gathered.push((key, vec![item]));
                    }
                }
            }
            Declared::Items(gathered.into_iter().map(|(key, parts)| (key, union(parts))).collect())
        }
        Some(_) => {
            let mut gathered: BTreeMap<_, Vec<_>> = BTreeMap::new();
            let fields =
                sets.into_iter().filter_map(|set| if let Declared::Fields(fields) = set { Some(fields) } else { None });
            for (name, field) in fields.flatten() {
                gathered.entry(name).or_default().push(field);
            }
            Declared::Fields(gathered.into_iter().map(|(name, parts)| (name, union(parts))).collect())
        }
    }
}

/// A set of fields in the notation of the API: `f:NAME` is a member, `k:{...}` an item by its keys, `v:...` an item by
/// its value, `i:N` an item by its index, `.` the container itself. Unknown prefixes are skipped.
struct FieldSet(Declared<'static>);

impl<'de> Deserialize<'de> for FieldSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Set;
        impl<'de> Visitor<'de> for Set {
            type Value = FieldSet;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a set of fields")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<FieldSet, A::Error> {
                let (mut fields, mut items, mut presence) = (BTreeMap::new(), Vec::new(), false);
                while let Some(step) = map.next_key::<Cow<'de, str>>()? {
                    match step.split_once(':') {
                        Some(("f", name)) => {
                            fields.insert(Cow::Owned(name.to_owned()), map.next_value::<FieldSet>()?.0);
                        }
                        Some((kind @ ("k" | "v" | "i"), text)) => {
                            let key = key(kind, text).map_err(de::Error::custom)?;
                            items.push((key, map.next_value::<FieldSet>()?.0));
                        }
                        _ => {
                            presence |= step == ".";
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(FieldSet(match (fields.is_empty(), items.is_empty()) {
                    // `{}` is the value itself, and `{".": {}}` the container without its content.
                    (true, true) if !presence => Declared::Leaf(None),
                    (_, true) => Declared::Fields(fields),
                    (_, false) => Declared::Items(items),
                }))
            }
        }
        deserializer.deserialize_map(Set)
    }
}

fn key(kind: &str, text: &str) -> Result<ItemKey, serde_json::Error> {
    Ok(match kind {
        "k" => ItemKey::Members(serde_json::from_str::<BTreeMap<String, Value>>(text)?.into_iter().collect()),
        "v" => ItemKey::Value(serde_json::from_str(text)?),
        _ => ItemKey::Index(serde_json::from_str(text)?),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn raw(value: &Value) -> Box<RawValue> {
        serde_json::value::to_raw_value(value).unwrap()
    }

    #[test]
    fn a_container_without_content_is_not_a_leaf() {
        let read = |fields: Value| serde_json::from_value::<FieldSet>(fields).unwrap().0;
        let member = |inner| Declared::Fields(BTreeMap::from([("a".into(), inner)]));
        assert_eq!(read(json!({"f:a": {}})), member(Declared::Leaf(None)));
        assert_eq!(read(json!({"f:a": {".": {}}})), member(Declared::nothing()));
        assert_eq!(read(json!({"f:a": {"?": {}}})), member(Declared::Leaf(None)));
        assert_eq!(read(json!({"f:a": {".": {}, "?": {}}})), member(Declared::nothing()));
    }

    #[test]
    fn the_entries_of_a_release_are_joined() {
        let fields = raw(&json!([
            {"manager": "helm", "operation": "Update", "apiVersion": "apps/v1", "fieldsV1": {"f:spec": {"f:a": {}}}},
            {"manager": "helm", "operation": "Apply", "apiVersion": "apps/v1", "fieldsV1": {"f:spec": {"f:b": {
                "k:{\"name\":\"web\"}": {".": {}, "f:image": {}}, "v:\"x\"": {}, "i:0": {}}}}},
            {"manager": "helm", "apiVersion": "apps/v1", "subresource": "scale", "fieldsV1": {"f:spec": {"f:c": {}}}},
            {"manager": "helm", "apiVersion": "apps/v2", "fieldsV1": {"f:spec": {"f:d": {}}}},
            {"manager": "bob", "apiVersion": "apps/v1", "fieldsV1": {"f:spec": {"f:e": {}}}},
            {"manager": "helm", "apiVersion": "apps/v1", "fieldsV1": {"f:x": 7}},
        ]));
        let fields = ManagedFields::read(Some((&*fields).into()), &Effort::of_review());
        let declared = fields.of("apps/v1", |manager| manager == "helm");
        let web = ItemKey::Members(vec![("name".to_owned(), json!("web"))]);
        let image = Declared::Fields(BTreeMap::from([("image".into(), Declared::Leaf(None))]));
        let leaf = || Declared::Leaf(None);
        let items = vec![(ItemKey::Index(0), leaf()), (web, image), (ItemKey::Value(json!("x")), leaf())];
        let spec = BTreeMap::from([("a".into(), leaf()), ("b".into(), Declared::Items(items))]);
        assert_eq!(declared, Declared::Fields(BTreeMap::from([("spec".into(), Declared::Fields(spec))])));
    }
}

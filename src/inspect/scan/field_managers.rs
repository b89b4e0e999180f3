//! Which programs wrote fields of the objects of releases, by what the API server notes in managedFields.

use std::collections::BTreeMap;

use interlock_engine::text::{MAX_NAME_BYTES, into_printable};
use jiff::Timestamp;
use kube::{Client, Error};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::listing::Listing;
use crate::world::kubernetes::kinds::Kinds;

/// The kinds that people edit by hand.
const KINDS: [(&str, &str); 6] = [
    ("apps", "Deployment"),
    ("apps", "StatefulSet"),
    ("apps", "DaemonSet"),
    ("", "ConfigMap"),
    ("", "Service"),
    ("networking.k8s.io", "Ingress"),
];

/// Helm's label on what it applies.
const OF_RELEASES: &str = "app.kubernetes.io/managed-by=Helm";

/// The field manager that Helm itself is.
const HELM: &str = "helm";

/// Names that are kept. Each client chooses its name, and some choose one for each run.
const MAX_NAMES: usize = 1_000;

/// The writes of one program. The client chooses the name: a hint, and no proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct FieldManager {
    pub(crate) name: String,
    /// The objects with fields of it.
    pub(crate) objects: usize,
    pub(crate) last: Option<Timestamp>,
}

#[derive(Deserialize)]
struct Object {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    managed_fields: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    manager: String,
    #[serde(default)]
    subresource: String,
    time: Option<Timestamp>,
}

/// The programs beside Helm, those with the most objects first. Writes of a status or a scale are left out. Lists metadata.
///
/// # Errors
/// When the API server does not answer, or its answer cannot be parsed.
pub(crate) async fn field_managers(client: &Client) -> Result<Vec<FieldManager>, Error> {
    let mut found = Found::new();
    for (group, kind) in KINDS {
        let Some(resource) = Kinds::default().resolve(client, group, kind).await? else { continue };
        let listed = Listing::of(&resource, [None]).labels(OF_RELEASES).fold(client, Found::new, note).await?;
        listed.into_iter().for_each(|(name, (objects, last))| add(&mut found, name, objects, last));
    }
    let mut found: Vec<_> =
        found.into_iter().map(|(name, (objects, last))| FieldManager { name, objects, last }).collect();
    found.sort_by(|a, b| b.objects.cmp(&a.objects).then_with(|| a.name.cmp(&b.name)));
    Ok(found)
}

/// Objects and last write by name.
type Found = BTreeMap<String, (usize, Option<Timestamp>)>;

fn note(found: &mut Found, item: &RawValue) {
    let Ok(object) = serde_json::from_str::<Object>(item.get()) else { return };
    let mut of_object = Found::new();
    for Entry { manager, subresource, time } in object.metadata.managed_fields {
        if subresource.is_empty() && !manager.eq_ignore_ascii_case(HELM) {
            let name = into_printable(manager, MAX_NAME_BYTES);
            let known = of_object.entry(name).or_insert((1, None));
            known.1 = known.1.max(time);
        }
    }
    of_object.into_iter().for_each(|(name, (objects, last))| add(found, name, objects, last));
}

fn add(found: &mut Found, name: String, objects: usize, last: Option<Timestamp>) {
    if found.len() == MAX_NAMES && !found.contains_key(&name) {
        return;
    }
    let known = found.entry(name).or_default();
    *known = (known.0 + objects, known.1.max(last));
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;

    #[test]
    fn an_object_counts_once_for_each_program_and_statuses_count_for_none() {
        let mut found = Found::new();
        for (day, second) in [("20", "kubectl-edit"), ("21", "kubectl-set")] {
            let entry = |manager: &str, subresource: &str| json!({"manager": manager, "subresource": subresource, "time": format!("2026-11-{day}T10:00:00Z")});
            let entries = [entry("Helm", ""), entry("kubectl-edit", ""), entry(second, ""), entry("kubelet", "status")];
            note(&mut found, &to_raw_value(&json!({"metadata": {"managedFields": entries}})).unwrap());
        }
        let at = |day: &str| Some(format!("2026-11-{day}T10:00:00Z").parse().unwrap());
        let wanted = [("kubectl-edit".to_owned(), (2, at("21"))), ("kubectl-set".to_owned(), (1, at("21")))];
        assert_eq!(found, wanted.into());
    }
}

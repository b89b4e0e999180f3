//! The CustomResourceDefinitions from the directory `crds/` of charts. They have no marks, so only the records tell where they come
//! from.

use interlock_engine::effort::Effort;
use interlock_engine::release::{Record, Status, Storage, Stored};
use interlock_engine::rules::wording::{MAX_ENUMERATED, enumerated};

use super::finding::Finding;
use super::finding_kind::FindingKind;
use super::integrity;

/// The finding for a deployed record whose chart brings definitions.
pub(super) fn of_record(
    storage: Storage,
    namespace: &str,
    stored: &Stored<'_>,
    record: &Record<'_>,
) -> Option<Finding> {
    if stored.metadata.label("status") != Some(Status::Deployed.as_str()) {
        return None;
    }
    let definitions = record.definitions(&Effort::of_review());
    if definitions.is_empty() {
        return None;
    }
    let release = integrity::release(namespace, stored);
    let message = format!(
        "The chart of {} installed these CustomResourceDefinitions from its directory crds/, without a mark: {}.",
        stored.metadata.name,
        enumerated(definitions.into_iter(), MAX_ENUMERATED)
    );
    let way_out = "Deleting a definition deletes all its objects. Helm does not delete definitions in crds/, not even on uninstall.";
    let record = &stored.metadata.name;
    Some(Finding::of_record(FindingKind::UnmarkedDefinition, (&release, storage), record, message, way_out.to_owned()))
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_deployed_record_names_its_definitions() {
        let file = STANDARD.encode("kind: CustomResourceDefinition\nmetadata: {name: carts.example.com}\n");
        let chart = json!({"metadata": {"name": "shop"}, "files": [{"name": "crds/carts.yaml", "data": file}]});
        let body = json!({"name": "web", "version": 1, "info": {"status": "deployed"}, "chart": chart}).to_string();
        let found = |status: &str| {
            let labels = json!({"owner": "helm", "name": "web", "version": "1", "status": status});
            let object = json!({"metadata": {"name": "sh.helm.release.v1.web.v1", "labels": labels}}).to_string();
            let stored: Stored<'_> = serde_json::from_str(&object).unwrap();
            let record = Record::read(body.as_bytes(), &Effort::of_review()).unwrap();
            of_record(Storage::Secret, "shop", &stored, &record).map(|finding| finding.message)
        };
        assert!(found("deployed").is_some_and(|message| message.ends_with("without a mark: carts.example.com.")));
        assert_eq!(found("superseded"), None);
    }
}

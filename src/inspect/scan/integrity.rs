//! Whether the parts of a record agree, as the rule `record-integrity` defines it.

use interlock_engine::facts::{RecordBody, RecordVersion};
use interlock_engine::owners::OwnerWords;
use interlock_engine::release::{DecodeError, Record, RecordName, ReleaseRef, Storage, Stored};
use interlock_engine::rules::records::record_integrity::disagreements;
use interlock_engine::rules::records::recovery::unstick_command;

use super::finding::Finding;
use super::finding_kind::FindingKind;

/// The release of a record: from its label, as Helm does, otherwise from the object's name.
pub(super) fn release(namespace: &str, stored: &Stored<'_>) -> ReleaseRef {
    let name = &stored.metadata.name;
    let label = stored.metadata.label("name").map(str::to_owned);
    let release = label.or_else(|| name.parse::<RecordName>().map(|name| name.release.to_string()).ok());
    ReleaseRef::new(namespace, release.unwrap_or_else(|| name.to_string()))
}

/// The finding for a record from its metadata only.
pub(super) fn of_metadata(storage: Storage, namespace: &str, stored: &Stored<'_>) -> Option<Finding> {
    inconsistent(storage, namespace, &RecordVersion::of(stored, RecordBody::Unread))
}

/// The finding for a record with its body.
pub(super) fn of_body(
    storage: Storage,
    namespace: &str,
    stored: &Stored<'_>,
    read: Result<Record<'_>, DecodeError>,
) -> Option<Finding> {
    match read {
        Ok(record) => inconsistent(storage, namespace, &RecordVersion::of(stored, RecordBody::Read(record))),
        Err(error) => {
            let release = release(namespace, stored);
            let words = OwnerWords { storage, namespace, release: &release.name };
            let name = &release.name;
            let way_out = if words.has_commands() {
                let unstick = unstick_command(words);
                format!(
                    "Restore it from a backup. Without one, run `{unstick}`, which keeps a copy of it and deletes it."
                )
            } else {
                let delete = words.delete_command(&[&stored.metadata.name]);
                format!(
                    "It blocks ClusterExtension {name}. Restore it with a tool that the policy lists, or run `{delete}`."
                )
            };
            let message =
                format!("{} cannot be decoded: {}.", stored.metadata.name, error.to_string().trim_end_matches('.'));
            let record = &stored.metadata.name;
            Some(Finding::of_record(FindingKind::UnreadableRecord, (&release, storage), record, message, way_out))
        }
    }
}

fn inconsistent(storage: Storage, namespace: &str, side: &RecordVersion<'_>) -> Option<Finding> {
    let found = disagreements(storage, &side.stored.metadata.name, side);
    if found.is_empty() {
        return None;
    }
    let sentences: Vec<_> = found.iter().map(|disagreement| disagreement.sentence.as_str()).collect();
    let release = release(namespace, side.stored);
    let message = format!("{} is inconsistent: {}.", side.stored.metadata.name, sentences.join("; "));
    let client = OwnerWords { storage, namespace, release: &release.name }.client();
    let way_out = format!(
        "Correct its labels with `kubectl label --overwrite` to match its name and body; {client} uses all three."
    );
    let record = &side.stored.metadata.name;
    Some(Finding::of_record(FindingKind::InconsistentRecord, (&release, storage), record, message, way_out))
}

#[cfg(test)]
mod tests {
    use interlock_engine::effort::Effort;
    use serde_json::{Value, json};

    use super::*;

    fn stored(name: &str, labels: Value) -> String {
        let metadata = json!({"name": name, "namespace": "shop", "labels": labels});
        json!({"metadata": metadata, "type": "helm.sh/release.v1"}).to_string()
    }

    fn labels(status: &str) -> Value {
        json!({"owner": "helm", "name": "web", "version": "2", "status": status})
    }

    const V2: &str = "sh.helm.release.v1.web.v2";

    fn body(name: &str, version: u64, status: &str) -> Vec<u8> {
        json!({"name": name, "version": version, "info": {"status": status}}).to_string().into_bytes()
    }

    #[test]
    fn consistent_metadata_is_no_finding_and_edited_labels_are() {
        let found = |name: &str, labels: Value| {
            let text = stored(name, labels);
            let finding = of_metadata(Storage::Secret, "shop", &serde_json::from_str(&text).unwrap());
            finding.map(|finding| (finding.release.unwrap().to_string(), finding.message))
        };
        assert_eq!(found(V2, labels("deployed")), None);
        let (release, message) =
            found(V2, json!({"owner": "helm", "name": "web", "version": "3", "status": "x"})).unwrap();
        assert_eq!(release, "shop/web");
        assert!(message.contains("its label version is not 2; its label status is unknown"), "{message}");
        let (release, message) = found(V2, json!({})).unwrap();
        assert_eq!(release, "shop/web");
        assert!(message.contains("its label owner is not helm"), "{message}");
    }

    #[test]
    fn a_body_is_compared_with_the_labels() {
        let text = stored(V2, labels("deployed"));
        let stored: Stored<'_> = serde_json::from_str(&text).unwrap();
        let found = |body: Result<&[u8], DecodeError>| {
            let read = body.and_then(|body| Record::read(body, &Effort::of_review()));
            of_body(Storage::Secret, "shop", &stored, read).map(|finding| (finding.kind, finding.message))
        };
        assert_eq!(found(Ok(&body("web", 2, "deployed"))), None);
        for (wrong, part) in [
            (body("api", 2, "deployed"), "its body belongs to release \"api\""),
            (body("web", 3, "deployed"), "its body belongs to revision 3"),
            (body("web", 2, "failed"), "its label status is deployed, but its body says failed"),
        ] {
            let (check, message) = found(Ok(&wrong)).unwrap();
            assert_eq!(check, FindingKind::InconsistentRecord);
            assert!(message.contains(part), "{message}");
        }
        for error in
            [Err(DecodeError::Missing), Ok(&b"{"[..]), Err(DecodeError::MissingChunks(vec!["web-1".to_owned()]))]
        {
            assert_eq!(found(error).unwrap().0, FindingKind::UnreadableRecord);
        }
    }
}

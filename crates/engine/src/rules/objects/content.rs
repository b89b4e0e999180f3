//! The content of an object, as owners compare it.

use crate::json::FieldPath;
use crate::owners::Marks;

/// Whether a field is content that owners compare: labels, annotations, and everything outside of the metadata. Marks, what the owner
/// applied last and `immutable` are not content.
pub(super) fn is_content(field: &FieldPath, marks: &Marks) -> bool {
    let is_mark = || {
        marks.each().chain(marks.applied_mark()).any(|mark| *field == FieldPath::of(["metadata", mark.map, mark.key]))
    };
    match field.fields().collect::<Vec<_>>()[..] {
        [] | ["immutable"] => false,
        ["metadata", "labels" | "annotations", _, ..] => !is_mark(),
        ["metadata", ..] => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_finalizers_and_immutable_are_not_content() {
        let label = |key: &str| (key == "app.kubernetes.io/managed-by").then_some("Helm");
        let annotation = |key: &str| key.starts_with("meta.helm.sh/").then_some("web");
        let marks = Marks::of(label, annotation).unwrap();
        let content = |fields: &[&str]| is_content(&FieldPath::of(fields.iter().copied()), &marks);
        assert!(content(&["spec", "replicas"]) && content(&["data", "immutable"]));
        assert!(content(&["metadata", "labels", "team"]) && content(&["metadata", "annotations", "note"]));
        for bound in [
            &[][..],
            &["immutable"],
            &["metadata", "finalizers"],
            &["metadata", "labels"],
            &["metadata", "labels", "app.kubernetes.io/managed-by"],
            &["metadata", "annotations", "meta.helm.sh/release-name"],
        ] {
            assert!(!content(bound), "{bound:?}");
        }
    }
}

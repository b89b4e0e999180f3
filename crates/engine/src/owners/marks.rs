//! The owner of an object, from the marks of every owner. A new kind of owner is a new row, not a branch.

use std::cmp::Reverse;
use std::iter::successors;

use memchr::memmem;
use serde_json::Value;

use super::{argo, helm, kustomize, sveltos};
use crate::json::RawObject;
use crate::managed::{Declared, Mark, MarkKey, Owner, OwnerKind, last_writes};

/// The marks of each kind of owner.
const OWNER_KINDS: [&OwnerKind; 5] =
    [&helm::MARKS, &sveltos::MARKS, &kustomize::MARKS, &argo::MARKS, &argo::MARKS_BY_LABEL];

/// The owner named by the labels and annotations of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marks {
    pub owner: Owner,
    /// The mark that is missing or contradicts the others. The other marks are then unreliable.
    pub contradiction: Option<&'static str>,
    /// The annotations on the object that make the owner treat it in another way, and their values.
    pub switches: Vec<(&'static str, String)>,
    /// The JSON text of the document that the owner applied last, if the object has it.
    pub applied: Option<Box<str>>,
    /// The complete marks of another owner on the same object, with those of a third.
    pub other: Option<Box<Marks>>,
    /// The values of the marks with the owner's name and scope.
    values: Box<[String; 2]>,
    row: usize,
}

/// Whether an object can have marks. A search for the text of the marks is much faster than parsing, and the API server never
/// escapes these characters.
#[must_use]
pub fn may_be_marked(object: &str) -> bool {
    let scopes = OWNER_KINDS.iter().map(|row| row.scope.key);
    let names = OWNER_KINDS.iter().filter(|row| row.name.key != row.scope.key).map(|row| row.name.key);
    let mut marks = scopes.chain(names);
    marks.any(|mark| memmem::find(object.as_bytes(), mark.as_bytes()).is_some())
}

/// The marks by which the API server can tell the objects of each kind of owner from others: the label, if there is one, its value if
/// only one counts, and the mark with the name.
pub fn selecting_marks() -> impl Iterator<Item = (Option<Mark<'static>>, Mark<'static>)> {
    OWNER_KINDS.into_iter().map(|row| (row.label_mark(), row.name.mark(None)))
}

impl Marks {
    /// Reads the marks of an object; `None` if it has none.
    pub fn of<'m>(
        label: impl Fn(&str) -> Option<&'m str>,
        annotation: impl Fn(&str) -> Option<&'m str>,
    ) -> Option<Self> {
        let all = OWNER_KINDS.iter().enumerate().filter_map(|(index, row)| {
            let [name, scope] = [row.name, row.scope].map(|MarkKey { map, key }| match map {
                "labels" => label(key),
                _ => annotation(key),
            });
            if name.is_none() && scope.is_none() {
                return None;
            }
            let unlabelled = row
                .label_mark()
                .filter(|mark| label(mark.key).is_none_or(|value| mark.value.is_some_and(|wanted| wanted != value)));
            let contradiction = match () {
                () if is_empty(name) => Some(row.name.key),
                () if is_empty(scope) => Some(row.scope.key),
                () => unlabelled.map(|mark| mark.key),
            };
            let owner =
                (row.owner)(name.unwrap_or_default(), scope.unwrap_or_default(), &|key| label(key).map(str::to_owned));
            let switches = row.switches.iter().filter_map(|key| Some((*key, annotation(key)?.to_owned()))).collect();
            let applied = row.applied.and_then(&annotation).map(Into::into);
            let values = Box::new([name, scope].map(|value| value.unwrap_or_default().to_owned()));
            Some(Self { owner, contradiction, switches, applied, other: None, values, row: index })
        });
        // An object may have the marks of two owners. Complete marks take precedence.
        let mut all: Vec<_> = all.collect();
        all.sort_by_key(|marks| marks.contradiction.is_some());
        Self::chained(all.into_iter())
    }

    /// The first of some marks, with all complete ones among the others.
    fn chained(mut all: impl DoubleEndedIterator<Item = Self>) -> Option<Self> {
        let first = all.next()?;
        let complete = all.filter(|marks| marks.contradiction.is_none());
        let other = complete.rfold(None, |other, marks| Some(Box::new(Self { other, ..marks })));
        Some(Self { other, ..first })
    }

    /// These marks, and those of the other owners.
    pub fn all(&self) -> impl Iterator<Item = &Self> {
        successors(Some(self), |marks| marks.other.as_deref())
    }

    /// The marks in the order in which their owners wrote the object: that of the last one first. If that is unknown, they stay as they
    /// are.
    #[must_use]
    pub fn newest_first(self, managed_fields: Option<RawObject<'_>>) -> Self {
        if self.other.is_none() {
            return self;
        }
        let mut all: Vec<_> = self.all().cloned().collect();
        all.sort_by_cached_key(|marks| Reverse(last_writes(managed_fields, [&|it| marks.is_manager(it)])));
        Self::chained(all.into_iter()).unwrap_or(self)
    }

    /// The managers in `managedFields` that write for this owner.
    #[must_use]
    pub fn managers(&self) -> &'static [&'static str] {
        OWNER_KINDS[self.row].managers
    }

    /// Whether a manager in `managedFields` writes for this owner.
    #[must_use]
    pub fn is_manager(&self, manager: &str) -> bool {
        self.managers().contains(&manager)
    }

    /// The options that keep the object from being deleted once its source no longer declares it, with their annotations.
    pub fn keeping(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let options =
            self.switches.iter().flat_map(|(key, value)| value.split(',').map(|option| (*key, option.trim())));
        options.filter(|(key, option)| (OWNER_KINDS[self.row].keeps)(key, option))
    }

    /// The marks as declared fields, with the document that the owner applied last. Without them, the object loses its owner, or what
    /// it declares.
    #[must_use]
    pub fn declared(&self) -> Vec<Declared<'static>> {
        let marks = self.each().map(|Mark { map, key, value }| (map, key, value.map(Value::from)));
        let applied = OWNER_KINDS[self.row].applied.map(|key| ("annotations", key, None));
        let declared = marks.chain(applied);
        declared.map(|(map, key, value)| Declared::only(["metadata", map, key].into_iter(), value)).collect()
    }

    /// The annotation with the document that the owner applied last, as a mark.
    pub fn applied_mark(&self) -> Option<Mark<'static>> {
        OWNER_KINDS[self.row].applied.map(|key| Mark { map: "annotations", key, value: None })
    }

    /// Whether an object with other marks still names this owner, and itself, in the same way.
    #[must_use]
    pub fn stay_in(&self, after: Option<&Self>) -> bool {
        let mut all = after.into_iter().flat_map(Self::all);
        all.any(|it| it.row == self.row && it.values == self.values && it.contradiction.is_none())
    }

    /// The individual marks.
    pub fn each(&self) -> impl Iterator<Item = Mark<'_>> {
        let row = OWNER_KINDS[self.row];
        let [name, scope] = &*self.values;
        row.label_mark().into_iter().chain([row.name.mark(Some(name)), row.scope.mark(Some(scope))])
    }
}

fn is_empty(mark: Option<&str>) -> bool {
    mark.is_none_or(str::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABEL: (&str, &str) = ("app.kubernetes.io/managed-by", "Helm");
    const NAME: (&str, &str) = ("meta.helm.sh/release-name", "web");
    const SCOPE: (&str, &str) = ("meta.helm.sh/release-namespace", "shop");

    /// The mark that contradicts the others; `None` without an owner.
    fn contradiction(marks: &[(&str, &str)]) -> Option<Option<&'static str>> {
        let find = |key: &str| marks.iter().find(|(known, _)| *known == key).map(|(_, value)| *value);
        Marks::of(find, find).map(|marks| marks.contradiction)
    }

    #[test]
    fn an_owner_whose_marks_are_incomplete_is_a_contradiction() {
        assert_eq!(contradiction(&[LABEL, NAME, SCOPE]), Some(None));
        assert_eq!(contradiction(&[LABEL, SCOPE]), Some(Some(NAME.0)));
        assert_eq!(contradiction(&[LABEL, (NAME.0, ""), SCOPE]), Some(Some(NAME.0)));
        assert_eq!(contradiction(&[LABEL, NAME]), Some(Some(SCOPE.0)));
        assert_eq!(contradiction(&[LABEL, NAME, (SCOPE.0, "")]), Some(Some(SCOPE.0)));
        assert_eq!(contradiction(&[NAME, SCOPE]), Some(Some(LABEL.0)));
        assert_eq!(contradiction(&[(LABEL.0, "Kustomize"), NAME, SCOPE]), Some(Some(LABEL.0)));
        // Argo CD and many charts set only the label.
        assert_eq!(contradiction(&[LABEL]), None);
    }

    #[test]
    fn only_text_with_an_annotation_of_an_owner_is_parsed() {
        assert!(may_be_marked(r#"{"annotations": {"meta.helm.sh/release-name": "web"}}"#));
        assert!(may_be_marked(r#"{"annotations": {"projectsveltos.io/owner-kind": "Profile"}}"#));
        assert!(!may_be_marked(r#"{"labels": {"app.kubernetes.io/managed-by": "Helm"}}"#));
    }
}

//! Admitted writes. They take effect as soon as they are added, and are applied a little later.
//!
//! A client that has its reply may send the next write at once, over any connection. So a write is added before its reply is
//! sent, and every access to the objects first applies the waiting writes. That is enough for correctness. Applying writes in
//! parallel with the replies only saves the next access this work.

use std::mem::take;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

use super::apply::Change;
use super::store::ObjectStore;
use crate::evidence::can_be_asked_for;
use crate::json::RawObject;
use crate::object::ObjectKey;
use crate::owners::may_be_marked;
use crate::review::{Operation, Request, Review};

/// An admitted write that waits to be applied. It shares the body of its review.
#[derive(Debug)]
pub struct AdmittedWrite {
    content: Content,
    /// The length of the body.
    bytes: usize,
}

#[derive(Debug)]
enum Content {
    Parsed { operation: Operation, key: ObjectKey, object: Bytes },
    Unparsed(Bytes),
}

impl AdmittedWrite {
    /// The write of a request that was parsed from this body; `None` if it changes no object.
    #[must_use]
    pub fn of(request: &Request<'_>, body: &Bytes) -> Option<Self> {
        let Change { operation, key, object } = Change::of(request)?;
        let object = body.slice_ref(object.get().as_bytes());
        Some(Self { content: Content::Parsed { operation, key, object }, bytes: body.len() })
    }

    /// The write of a review that was admitted without being parsed.
    #[must_use]
    pub fn unparsed(body: Bytes) -> Self {
        Self { bytes: body.len(), content: Content::Unparsed(body) }
    }

    /// The length of the body, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    fn apply_to(self, objects: &mut ObjectStore) {
        match self.content {
            Content::Parsed { operation, key, object } => {
                // The object is a part of a body that was parsed as text.
                if let Ok(object) = str::from_utf8(&object) {
                    apply(Change { operation, key, object: RawObject::delimited(object) }, objects);
                }
            }
            Content::Unparsed(body) => {
                if let Ok(review) = Review::parse(&body)
                    && let Some(change) = Change::of(&review.request)
                {
                    apply(change, objects);
                }
            }
        }
    }
}

/// A cluster has more pods than anything else, and only those of Jobs can be the hook of an operation.
fn is_pod(key: &ObjectKey) -> bool {
    key.group.is_empty() && key.kind == "Pod"
}

fn names_job(object: &str) -> bool {
    object.contains(r#""Job""#)
}

/// Keeps only objects that a rule can query. In a busy cluster, the other objects would displace them.
fn apply(change: Change<'_>, objects: &mut ObjectStore) {
    let Change { operation, key, object } = &change;
    let asked_for = can_be_asked_for(&key.group, &key.kind) && (!is_pod(key) || names_job(object.get()));
    if asked_for || may_be_marked(object.get()) {
        objects.apply(change);
    } else if *operation == Operation::Update {
        // The object may have lost its marks.
        objects.discard(key);
    }
}

/// The writes that are not applied yet, in the order of their replies.
#[derive(Debug, Default)]
pub(super) struct NotedWrites {
    writes: Mutex<Vec<AdmittedWrite>>,
    /// The bytes of these writes, including those being applied.
    bytes: AtomicUsize,
}

impl NotedWrites {
    /// Adds a write, and returns whether it is the only one.
    pub(super) fn add(&self, write: AdmittedWrite) -> bool {
        self.bytes.fetch_add(write.bytes, Relaxed);
        let mut writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        writes.push(write);
        writes.len() == 1
    }

    /// The length of the waiting bodies, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Applies all writes. The caller has the objects locked, and so sees every write that was added before.
    pub(super) fn apply_to(&self, objects: &mut ObjectStore) {
        let writes = take(&mut *self.writes.lock().unwrap_or_else(PoisonError::into_inner));
        for write in writes {
            let bytes = write.bytes;
            write.apply_to(objects);
            self.bytes.fetch_sub(bytes, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::memory::{MAX_NOTED_BYTES, Objects};

    const MARKED: &str = r#"{"meta.helm.sh/release-name":"web","meta.helm.sh/release-namespace":"shop"}"#;

    fn object(annotations: &str) -> Value {
        let annotations: Value = serde_json::from_str(annotations).unwrap();
        json!({"metadata": {"name": "web", "namespace": "shop", "annotations": annotations}})
    }

    fn body(operation: &str, [group, kind, name]: [&str; 3], old: Option<Value>, new: Option<Value>) -> Bytes {
        let request = json!({
            "uid": "u", "operation": operation, "name": name, "namespace": "shop", "object": new, "oldObject": old,
            "kind": {"group": group, "version": "v1", "kind": kind}, "userInfo": {},
            "resource": {"group": group, "version": "v1", "resource": "things"},
        });
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
        review.to_string().into()
    }

    fn created(kind: [&str; 3], annotations: &str) -> Bytes {
        body("CREATE", kind, None, Some(object(annotations)))
    }

    fn write(body: &Bytes) -> Option<AdmittedWrite> {
        AdmittedWrite::of(&Review::parse(body).unwrap().request, body)
    }

    fn keeps(memory: &Objects, [group, kind, name]: [&str; 3]) -> bool {
        memory.get(&ObjectKey::new(group, kind, "shop", name)).is_some()
    }

    #[test]
    fn only_objects_that_a_rule_can_query_are_kept() {
        let memory = Objects::new(1 << 20);
        let (pod, marked) = (["", "Pod", "pod"], ["", "Pod", "marked"]);
        for (kind, annotations, kept) in [
            (pod, "{}", false),
            (["apps", "ReplicaSet", "web"], "{}", false),
            (marked, MARKED, true),
            (["", "ConfigMap", "web"], "{}", true),
            (["apps", "Deployment", "web"], "{}", true),
            (["batch", "Job", "web"], "{}", true),
            (["argoproj.io", "Rollout", "web"], "{}", false),
            (["argoproj.io", "Rollout", "marked"], MARKED, true),
            (["argoproj.io", "Application", "web"], "{}", true),
        ] {
            memory.admit(write(&created(kind, annotations)).unwrap());
            assert_eq!(keeps(&memory, kind), kept, "{kind:?} {annotations}");
        }
        // An edit can add the marks, and remove them.
        for (kind, before, after) in [(pod, "{}", MARKED), (marked, MARKED, "{}")] {
            let edit = body("UPDATE", kind, Some(object(before)), Some(object(after)));
            memory.admit(write(&edit).unwrap());
            assert_eq!(keeps(&memory, kind), after == MARKED);
        }
    }

    #[test]
    fn a_noted_write_counts_before_it_is_applied() {
        let memory = Objects::new(1 << 20);
        let web = ["", "ConfigMap", "web"];
        let create = created(web, "{}");
        assert!(memory.admit(write(&create).unwrap()));
        assert!(!memory.admit(AdmittedWrite::unparsed(created(["", "ConfigMap", "other"], "{}"))));
        assert!(memory.noted.bytes() > create.len());
        assert!(keeps(&memory, web) && keeps(&memory, ["", "ConfigMap", "other"]));
        assert_eq!(memory.noted.bytes(), 0);
        // Writes are applied in their order.
        assert!(memory.admit(write(&body("DELETE", web, Some(object("{}")), None)).unwrap()));
        memory.admit(write(&created(web, MARKED)).unwrap());
        memory.settle();
        assert_eq!(memory.noted.bytes(), 0);
        assert!(memory.get(&ObjectKey::new("", "ConfigMap", "shop", "web")).unwrap().contains("release-name"));
    }

    #[test]
    fn requests_without_effect_write_nothing() {
        let long = "n".repeat(254);
        assert!(write(&created(["", "ConfigMap", &long], "{}")).is_none());
        assert!(write(&body("CONNECT", ["", "Pod", "web"], None, Some(object("{}")))).is_none());
        let create = created(["", "ConfigMap", "web"], "{}");
        let text = str::from_utf8(&create).unwrap();
        for (member, value) in [("dryRun", json!(true)), ("subResource", json!("scale"))] {
            let mut review: Value = serde_json::from_str(text).unwrap();
            review["request"][member] = value;
            assert!(write(&review.to_string().into()).is_none(), "{member}");
        }
    }

    #[test]
    fn a_write_over_the_limit_applies_all_writes() {
        let memory = Objects::new(64 << 20);
        for (number, due) in [(0, true), (1, false), (2, false)] {
            let name = format!("large-{number}");
            let padding = format!(r#"{{"a":"{}"}}"#, "x".repeat(MAX_NOTED_BYTES / 5 * 2));
            assert_eq!(memory.admit(write(&created(["", "ConfigMap", &name], &padding)).unwrap()), due, "{name}");
        }
        assert_eq!(memory.noted.bytes(), 0);
    }
}

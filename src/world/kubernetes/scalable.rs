//! The marks of scalable objects, kept by a watch, because a Scale has no marks.

use std::collections::HashMap;

use interlock_engine::answers::read;
use interlock_engine::owners::Marks;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::namespaced_name::NamespacedName;
use super::watch::Feed;

/// The marks of objects of one kind. Objects without marks are left out.
#[derive(Debug, Default)]
pub(super) struct ScalableMarks(HashMap<NamespacedName, Marks>);

impl ScalableMarks {
    pub(super) fn marks(&self, namespace: &str, name: &str) -> Option<Marks> {
        self.0.get(&NamespacedName::new(namespace, name)).cloned()
    }
}

impl Feed for ScalableMarks {
    fn fresh(&self) -> Self {
        Self::default()
    }

    fn apply(&mut self, metadata: &ObjectMeta) {
        match read::marks(metadata) {
            Some(marks) => self.0.insert(NamespacedName::of(metadata), marks),
            None => self.0.remove(&NamespacedName::of(metadata)),
        };
    }

    fn delete(&mut self, metadata: &ObjectMeta) {
        self.0.remove(&NamespacedName::of(metadata));
    }
}

#[cfg(test)]
mod tests {
    use interlock_engine::managed::Owner;
    use serde_json::json;

    use super::*;

    fn object(annotations: serde_json::Value) -> ObjectMeta {
        let labels = json!({"app.kubernetes.io/managed-by": "Helm"});
        let metadata = json!({"name": "web", "namespace": "shop", "labels": labels, "annotations": annotations});
        serde_json::from_value(metadata).unwrap()
    }

    #[test]
    fn marks_come_change_and_go_with_their_object() {
        let mut scalable = ScalableMarks::default();
        let marked = |release: &str| {
            object(json!({"meta.helm.sh/release-name": release, "meta.helm.sh/release-namespace": "shop"}))
        };
        let owner = |scalable: &ScalableMarks| match scalable.marks("shop", "web")?.owner {
            Owner::Release { name, .. } => Some(name),
            Owner::Profile { .. } | Owner::Applied { .. } => None,
        };
        scalable.apply(&marked("one"));
        assert_eq!(owner(&scalable).as_deref(), Some("one"));
        scalable.apply(&marked("two"));
        assert_eq!(owner(&scalable).as_deref(), Some("two"));
        assert_eq!(scalable.marks("other", "web"), None);
        scalable.apply(&object(json!({})));
        assert_eq!(owner(&scalable), None);
        scalable.apply(&marked("one"));
        scalable.delete(&marked("one"));
        assert_eq!(owner(&scalable), None);
    }
}

//! What is read before a namespace is deleted: objects elsewhere that would lose something with it.

use interlock_engine::evidence::question;
use interlock_engine::object::{ObjectKey, PROTECTED, protects};
use interlock_engine::owners::{APPLYING, EXTENSIONS, is_extension_in, loses_with_namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::reader::{Unavailable, side_by_side};
use super::{CONCURRENT_READS, Cluster};
use crate::world::QueryBudget;

/// How many objects are read. A cluster has some tens of ClusterExtensions, and mostly some hundreds of the others.
const MOST: usize = 500;

impl Cluster {
    /// The ClusterExtensions with objects in a namespace.
    pub(super) async fn extensions_in(
        &self,
        namespace: &str,
        budget: QueryBudget<'_>,
    ) -> Result<Vec<String>, Unavailable> {
        let listed = self.api.list_all_custom(EXTENSIONS.0, EXTENSIONS.1).await?;
        let read = self.read_all(EXTENSIONS, listed, budget).await?;
        Ok(read.into_iter().map(|(_, text)| text).filter(|text| is_extension_in(text, namespace)).collect())
    }

    /// The objects that apply others, and would lose some of these or go with them.
    pub(super) async fn appliers_in(
        &self,
        question::AppliersIn { namespace, only_annotated }: &question::AppliersIn,
        budget: QueryBudget<'_>,
    ) -> Result<Vec<(ObjectKey, String)>, Unavailable> {
        let mut found = Vec::new();
        for kind in APPLYING {
            let mut listed = self.api.list_all_custom(kind.0, kind.1).await?;
            listed.retain(|metadata| !only_annotated || is_protected(metadata));
            found.extend(self.read_all(kind, listed, budget).await?);
        }
        found.retain(|(key, text)| loses_with_namespace(key, text, namespace));
        Ok(found)
    }

    async fn read_all(
        &self,
        (group, kind): (&str, &str),
        listed: Vec<ObjectMeta>,
        budget: QueryBudget<'_>,
    ) -> Result<Vec<(ObjectKey, String)>, Unavailable> {
        if listed.len() > MOST {
            return Err(format!("there are {} {kind}s, which are too many to read", listed.len()));
        }
        let keys: Vec<_> = listed
            .into_iter()
            .filter_map(|metadata| {
                Some(ObjectKey::new(group, kind, &metadata.namespace.unwrap_or_default(), &metadata.name?))
            })
            .collect();
        let read = side_by_side(CONCURRENT_READS, keys.iter().map(|key| self.object(key, budget))).await?;
        Ok(keys.into_iter().zip(read).filter_map(|(key, text)| Some((key, text?))).collect())
    }
}

fn is_protected(metadata: &ObjectMeta) -> bool {
    protects(metadata.annotations.as_ref().and_then(|all| all.get(PROTECTED)).map(String::as_str))
}

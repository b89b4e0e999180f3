//! Objects of Interlock's own kinds, read from the API server: ReleaseOverrides and Freezes.

use interlock_engine::release_override::{GROUP, VERSION};
use kube::Client;
use kube::api::{Api, ApiResource, GroupVersionKind, ListParams, ObjectMeta, Preconditions};

use super::custom::PAGE_SIZE;
use super::intake::Projected;

/// One of Interlock's own kinds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnKind {
    pub(crate) kind: &'static str,
    pub(crate) plural: &'static str,
}

impl OwnKind {
    /// The objects of a namespace.
    pub(crate) fn api(self, client: &Client, namespace: &str) -> Api<Projected> {
        let kind = GroupVersionKind::gvk(GROUP, VERSION, self.kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, self.plural);
        Api::namespaced_with(client.clone(), namespace, &resource)
    }

    /// A stored object, with the preconditions that limit a request to this version. `None` if the object is being deleted.
    ///
    /// # Errors
    /// When the API server does not answer, or does not answer with an object.
    pub(crate) async fn get(
        self,
        client: &Client,
        namespace: &str,
        name: &str,
    ) -> kube::Result<Option<(Projected, Preconditions)>> {
        let found = self.api(client, namespace).get_opt(name).await?;
        Ok(found.filter(|object| object.metadata().deletion_timestamp.is_none()).map(|object| {
            let ObjectMeta { uid, resource_version, .. } = object.metadata().clone();
            (object, Preconditions { uid, resource_version })
        }))
    }

    /// The matching objects of a namespace, page by page.
    ///
    /// # Errors
    /// When the API server does not answer, or does not answer with a list; 404 if the definition is not installed.
    pub(crate) async fn list(
        self,
        client: &Client,
        namespace: &str,
        parameters: ListParams,
    ) -> kube::Result<Vec<Projected>> {
        let api = self.api(client, namespace);
        let mut page = parameters.limit(PAGE_SIZE);
        let mut found = Vec::new();
        loop {
            let list = api.list(&page).await?;
            found.extend(list.items);
            match list.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = page.continue_token(&token),
                None => return Ok(found),
            }
        }
    }
}

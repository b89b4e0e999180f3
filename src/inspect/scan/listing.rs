//! Lists of objects, one page in memory at a time.

use kube::Client;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::core::Request;
use kube::{Error, Resource};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::engine::json::null_is_default;

/// Objects per page of metadata, about 1 MiB.
const METADATA_PAGE_SIZE: u32 = 500;

/// Objects per page of whole objects; a HelmRelease may have megabytes of values.
const OBJECT_PAGE_SIZE: u32 = 50;

/// Attempts per list. A list expires after five minutes, when the API server compacts its state.
const LIST_ATTEMPTS: u32 = 3;

/// The objects of a kind to list, by namespaces and selectors.
#[derive(Debug, Clone)]
pub(super) struct Listing {
    paths: Vec<String>,
    labels: Option<String>,
    fields: Option<String>,
    whole: bool,
}

#[derive(Deserialize)]
struct Page<'p> {
    #[serde(default)]
    metadata: ListMeta,
    /// The API server writes null for an empty list of metadata.
    #[serde(borrow, default, deserialize_with = "null_is_default")]
    items: Vec<&'p RawValue>,
}

#[derive(Default, Deserialize)]
struct ListMeta {
    #[serde(default, rename = "continue")]
    more: Option<String>,
}

impl Listing {
    /// The metadata of a kind's objects in namespaces; `None` stands for all namespaces.
    pub(super) fn of<'p>(resource: &ApiResource, places: impl IntoIterator<Item = Option<&'p str>>) -> Self {
        let paths = places.into_iter().map(|place| DynamicObject::url_path(resource, place)).collect();
        Self { paths, labels: None, fields: None, whole: false }
    }

    /// With a label selector.
    pub(super) fn labels(self, selector: &str) -> Self {
        Self { labels: Some(selector.to_owned()), ..self }
    }

    /// With a field selector.
    pub(super) fn fields(self, selector: &str) -> Self {
        Self { fields: Some(selector.to_owned()), ..self }
    }

    /// Whole objects instead of metadata.
    pub(super) fn whole(self) -> Self {
        Self { whole: true, ..self }
    }

    /// Folds all objects; starts again with a new `start` if the list expires.
    ///
    /// # Errors
    /// When the API server does not answer, or its answer cannot be parsed.
    pub(super) async fn fold<A>(
        &self,
        client: &Client,
        start: impl Fn() -> A,
        mut add: impl FnMut(&mut A, &RawValue),
    ) -> Result<A, Error> {
        let mut attempt = 1;
        loop {
            match self.attempt(client, start(), &mut add).await {
                Err(Error::Api(status)) if status.code == 410 && attempt < LIST_ATTEMPTS => attempt += 1,
                done => return done,
            }
        }
    }

    async fn attempt<A>(
        &self,
        client: &Client,
        mut all: A,
        add: &mut impl FnMut(&mut A, &RawValue),
    ) -> Result<A, Error> {
        let mut params = ListParams::default().limit(if self.whole { OBJECT_PAGE_SIZE } else { METADATA_PAGE_SIZE });
        params.label_selector.clone_from(&self.labels);
        params.field_selector.clone_from(&self.fields);
        for path in &self.paths {
            loop {
                let request = Request::new(path);
                let request = if self.whole { request.list(&params) } else { request.list_metadata(&params) };
                let text = client.request_text(request.map_err(Error::BuildRequest)?).await?;
                let page: Page<'_> = serde_json::from_str(&text).map_err(Error::SerdeError)?;
                page.items.into_iter().for_each(|item| add(&mut all, item));
                params.continue_token = page.metadata.more.filter(|more| !more.is_empty());
                if params.continue_token.is_none() {
                    break;
                }
            }
        }
        Ok(all)
    }
}

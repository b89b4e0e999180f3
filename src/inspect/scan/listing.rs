//! Lists of objects, page by page: a page is in memory at a time, and of each object what is kept of it.

use kube::Client;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::core::Request;
use kube::{Error, Resource};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::engine::object::null_is_default;
pub(crate) use crate::world::kubernetes::api_error::reason as why;

/// Objects of a page. Of metadata a page has about 1 MiB.
const METADATA: u32 = 500;

/// Objects of a page with all that is in them; a HelmRelease may have megabytes of values.
const WHOLE: u32 = 50;

/// How often a listing starts again because the state that it lists was compacted away: that happens after five minutes.
const ATTEMPTS: u32 = 3;

/// A collection, in one place or several, and which of its objects.
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
    /// Of an empty list of metadata the API server writes null.
    #[serde(borrow, default, deserialize_with = "null_is_default")]
    items: Vec<&'p RawValue>,
}

#[derive(Default, Deserialize)]
struct ListMeta {
    #[serde(default, rename = "continue")]
    more: Option<String>,
}

impl Listing {
    /// The objects of a kind, in namespaces or, for `None`, in all, their metadata alone.
    pub(super) fn of<'p>(resource: &ApiResource, places: impl IntoIterator<Item = Option<&'p str>>) -> Self {
        let paths = places.into_iter().map(|place| DynamicObject::url_path(resource, place)).collect();
        Self { paths, labels: None, fields: None, whole: false }
    }

    /// Only those with these labels.
    pub(super) fn labels(self, selector: &str) -> Self {
        Self { labels: Some(selector.to_owned()), ..self }
    }

    /// Only those with these fields.
    pub(super) fn fields(self, selector: &str) -> Self {
        Self { fields: Some(selector.to_owned()), ..self }
    }

    /// With all that is in them.
    pub(super) fn whole(self) -> Self {
        Self { whole: true, ..self }
    }

    /// Goes through all the objects, and starts again with a new `start` where the list expired in the middle.
    ///
    /// # Errors
    /// When the API server does not answer, or in another shape.
    pub(super) async fn fold<A>(
        &self,
        client: &Client,
        start: impl Fn() -> A,
        mut add: impl FnMut(&mut A, &RawValue),
    ) -> Result<A, Error> {
        let mut attempt = 1;
        loop {
            match self.attempt(client, start(), &mut add).await {
                Err(Error::Api(status)) if status.code == 410 && attempt < ATTEMPTS => attempt += 1,
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
        let mut params = ListParams::default().limit(if self.whole { WHOLE } else { METADATA });
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

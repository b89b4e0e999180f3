//! Lists of objects, one page in memory at a time.

use http_body_util::BodyExt;
use interlock_engine::json::null_is_default;
use kube::api::{ApiResource, DynamicObject, ListParams, ObjectList, ObjectMeta, PartialObjectMeta};
use kube::client::Body;
use kube::core::{Request, Status};
use kube::{Client, Error, Resource};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

/// Objects per page of metadata, about 1 MiB.
const METADATA_PAGE_SIZE: u32 = 500;

/// Objects per page of complete objects. A HelmRelease may have megabytes of values.
const OBJECT_PAGE_SIZE: u32 = 50;

/// The maximum size of a page in memory, in bytes. A larger page is requested again with fewer objects.
const MAX_PAGE_BYTES: usize = 16 << 20;

/// Attempts per list. A list expires after five minutes, when the API server compacts its state.
pub(super) const LIST_ATTEMPTS: u32 = 3;

/// The objects of a kind to list, by namespaces and selectors.
#[derive(Debug, Clone)]
pub(super) struct Listing {
    paths: Vec<String>,
    labels: Option<String>,
    fields: Option<String>,
    is_complete: bool,
}

#[derive(Deserialize)]
struct Page<'p> {
    #[serde(default)]
    metadata: ListMeta,
    /// The API server writes null for an empty list of metadata.
    #[serde(borrow, default, deserialize_with = "null_is_default")]
    items: Vec<&'p RawValue>,
}

/// The page of one object that is too large to be read, without this object.
async fn skipped(client: &Client, path: &str, params: &ListParams) -> Result<String, Error> {
    let request = Request::new(path).list_metadata(params).map_err(Error::BuildRequest)?;
    let page: ObjectList<PartialObjectMeta<DynamicObject>> = client.request(request).await?;
    for object in &page.items {
        let ObjectMeta { namespace, name, .. } = &object.metadata;
        tracing::warn!(?namespace, ?name, path, "an object is too large to be read, and is left out");
    }
    let rest = json!({"metadata": {"continue": page.metadata.continue_}, "items": []});
    Ok(rest.to_string())
}

/// The text of an answer; `None` if it exceeds the limit of a page.
async fn limited_text(client: &Client, request: http::Request<Vec<u8>>) -> Result<Option<String>, Error> {
    let response = client.send(request.map(Body::from)).await?;
    let code = response.status();
    let mut body = response.into_body();
    let mut read = Vec::new();
    while let Some(frame) = body.frame().await.transpose()? {
        read.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
        if read.len() > MAX_PAGE_BYTES {
            return Ok(None);
        }
    }
    if !code.is_success() {
        let status: Status = serde_json::from_slice(&read).unwrap_or_default();
        return Err(Error::Api(Box::new(Status { code: code.as_u16(), ..status })));
    }
    String::from_utf8(read).map(Some).map_err(Error::FromUtf8)
}

#[derive(Default, Deserialize)]
struct ListMeta {
    #[serde(default, rename = "continue")]
    more: Option<String>,
}

impl Listing {
    /// A list of the metadata of a kind's objects in namespaces. `None` stands for all namespaces.
    pub(super) fn of<'p>(resource: &ApiResource, places: impl IntoIterator<Item = Option<&'p str>>) -> Self {
        let paths = places.into_iter().map(|place| DynamicObject::url_path(resource, place)).collect();
        Self { paths, labels: None, fields: None, is_complete: false }
    }

    /// With a label selector.
    pub(super) fn labels(self, selector: &str) -> Self {
        Self { labels: Some(selector.to_owned()), ..self }
    }

    /// With a field selector.
    pub(super) fn fields(self, selector: &str) -> Self {
        Self { fields: Some(selector.to_owned()), ..self }
    }

    /// Lists complete objects instead of metadata.
    pub(super) fn complete(self) -> Self {
        Self { is_complete: true, ..self }
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
            let (mut all, mut pages) = (start(), self.pages(client));
            let failed = loop {
                match pages.next(|item| add(&mut all, item)).await {
                    Ok(true) => {}
                    Ok(false) => return Ok(all),
                    Err(error) => break error,
                }
            };
            if !has_expired(&failed) || attempt == LIST_ATTEMPTS {
                return Err(failed);
            }
            attempt += 1;
        }
    }

    /// Its pages, one after the other.
    pub(super) fn pages<'l>(&'l self, client: &'l Client) -> Pages<'l> {
        let page_size = if self.is_complete { OBJECT_PAGE_SIZE } else { METADATA_PAGE_SIZE };
        let mut params = ListParams::default().limit(page_size);
        params.label_selector.clone_from(&self.labels);
        params.field_selector.clone_from(&self.fields);
        Pages { client, is_complete: self.is_complete, paths: &self.paths, page_size, params }
    }
}

/// Whether a list must be read again from its beginning.
pub(super) fn has_expired(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.code == 410)
}

/// A list that is being read.
pub(super) struct Pages<'l> {
    client: &'l Client,
    is_complete: bool,
    /// What is left, with the one that is being read.
    paths: &'l [String],
    page_size: u32,
    params: ListParams,
}

impl Pages<'_> {
    /// Adds the objects of the next page. `false` if there was none.
    ///
    /// # Errors
    /// When the API server does not answer, or its answer cannot be parsed.
    pub(super) async fn next(&mut self, add: impl FnMut(&RawValue)) -> Result<bool, Error> {
        let Some((path, left)) = self.paths.split_first() else { return Ok(false) };
        let text = self.text(path).await?;
        let page: Page<'_> = serde_json::from_str(&text).map_err(Error::SerdeError)?;
        page.items.into_iter().for_each(add);
        self.params.continue_token = page.metadata.more.filter(|more| !more.is_empty());
        if self.params.continue_token.is_none() {
            self.paths = left;
        }
        Ok(true)
    }

    /// The next page, of as many objects as fit.
    async fn text(&mut self, path: &str) -> Result<String, Error> {
        loop {
            let request = Request::new(path);
            let request =
                if self.is_complete { request.list(&self.params) } else { request.list_metadata(&self.params) };
            let text = limited_text(self.client, request.map_err(Error::BuildRequest)?).await?;
            let limit = self.params.limit.unwrap_or(self.page_size);
            if text.is_none() && limit > 1 {
                self.params.limit = Some(limit / 2);
                continue;
            }
            let text = match text {
                Some(text) => text,
                None => skipped(self.client, path, &self.params).await?,
            };
            self.params.limit = Some(self.page_size.min(limit * 2));
            return Ok(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use http::header::ACCEPT;
    use serde_json::{Value, json};

    use super::*;
    use crate::world::kubernetes::fake;

    #[tokio::test]
    async fn a_large_page_is_split_and_an_oversized_object_left_out() {
        // In MiB.
        const SIZES: [usize; 24] = [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 17, 1, 1, 1];
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&asked);
        let client = fake::client(move |head, _| {
            let query = head.uri.query().unwrap_or_default();
            let of = |key: &str| query.split('&').find_map(|part| part.strip_prefix(key)?.parse::<usize>().ok());
            let (start, limit) = (of("continue=").unwrap_or(0), of("limit=").unwrap());
            seen.lock().unwrap().push(format!("{limit} from {start}"));
            let accept = head.headers.get(ACCEPT).map_or("", |accept| accept.to_str().unwrap());
            let is_metadata = accept.contains("as=PartialObjectMetadataList");
            let end = (start + limit).min(SIZES.len());
            let items: Vec<Value> = (start..end)
                .map(|number| {
                    let data = if is_metadata { String::new() } else { "x".repeat(SIZES[number] << 20) };
                    json!({"metadata": {"name": number.to_string()}, "data": data})
                })
                .collect();
            let more = if end < SIZES.len() { end.to_string() } else { String::new() };
            (200, json!({"metadata": {"continue": more}, "items": items}))
        });
        let resource = ApiResource {
            group: String::new(),
            version: "v1".to_owned(),
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            plural: "configmaps".to_owned(),
        };
        let named = |names: &mut Vec<String>, item: &RawValue| {
            let item: Value = serde_json::from_str(item.get()).unwrap();
            names.push(item["metadata"]["name"].as_str().unwrap().to_owned());
        };
        let names = Listing::of(&resource, [None]).complete().fold(&client, Vec::new, named).await.unwrap();
        let wanted: Vec<_> = (0..SIZES.len()).filter(|number| *number != 20).map(|number| number.to_string()).collect();
        assert_eq!(names, wanted);
        let asked = asked.lock().unwrap().join(", ");
        assert!(
            asked.starts_with("50 from 0, 25 from 0, 12 from 0, 24 from 12, 12 from 12, 6 from 12, 12 from 18"),
            "{asked}"
        );
    }
}

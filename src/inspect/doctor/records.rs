//! How many release records each namespace has.

use std::collections::BTreeMap;

use http::Request;
use http::header::ACCEPT;
use kube::Client;
use serde_json::Value;

use super::fetch::METADATA_LIST;
use crate::world::kubernetes::api_error::reason;

/// The maximum number of pages that are counted, with 500 records each.
const MAX_PAGES: usize = 40;

/// The number of records in each namespace.
#[derive(Debug, Clone, Default)]
pub(super) struct RecordCounts {
    pub(super) by_namespace: BTreeMap<String, usize>,
    /// There are more records than the count says.
    pub(super) truncated: bool,
}

/// Counts the records in Secrets from their metadata.
pub(super) async fn count(client: &Client) -> Result<RecordCounts, String> {
    let mut records = RecordCounts::default();
    let mut more = String::new();
    for _ in 0..MAX_PAGES {
        let path = format!(
            "/api/v1/secrets?labelSelector=owner%3Dhelm&fieldSelector=type%3Dhelm.sh%2Frelease.v1&limit=500{more}"
        );
        let request = Request::get(path).header(ACCEPT, METADATA_LIST);
        let request = request.body(Vec::new()).map_err(|error| error.to_string())?;
        let page: Value = client.request(request).await.map_err(|error| reason(&error))?;
        for item in page["items"].as_array().into_iter().flatten() {
            let namespace = item["metadata"]["namespace"].as_str().unwrap_or_default();
            *records.by_namespace.entry(namespace.to_owned()).or_default() += 1;
        }
        match page["metadata"]["continue"].as_str() {
            // The API server encodes continue tokens as URL-safe base64.
            Some(token) if !token.is_empty() => more = format!("&continue={token}"),
            _ => return Ok(records),
        }
    }
    records.truncated = true;
    Ok(records)
}

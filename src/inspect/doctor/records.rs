//! How many release records each namespace has.

use std::collections::BTreeMap;

use kube::Client;

use super::fetch::metadata;

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
    let path = "/api/v1/secrets?labelSelector=owner%3Dhelm&fieldSelector=type%3Dhelm.sh%2Frelease.v1&limit=500";
    let mut records = RecordCounts::default();
    let mut more = String::new();
    for _ in 0..MAX_PAGES {
        let page = metadata(client, &format!("{path}{more}")).await;
        for item in page.items()? {
            let namespace = item["metadata"]["namespace"].as_str().unwrap_or_default();
            *records.by_namespace.entry(namespace.to_owned()).or_default() += 1;
        }
        let token = page.object()?.and_then(|page| page["metadata"]["continue"].as_str());
        let Some(token) = token.filter(|token| !token.is_empty()) else { return Ok(records) };
        // The API server encodes continue tokens as URL-safe base64.
        more = format!("&continue={token}");
    }
    records.truncated = true;
    Ok(records)
}

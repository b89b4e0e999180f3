//! Access reviews: the API server says who has which right.

use std::fmt;

use futures_util::{StreamExt, TryStreamExt, stream};
use http::Request;
use http::header::CONTENT_TYPE;
use kube::Client;
use serde::Serialize;
use serde_json::{Value, json};

use crate::world::kubernetes::api_error::reason;

/// The maximum number of concurrent access reviews.
const CONCURRENT_REVIEWS: usize = 8;

/// One right, as the resource attributes of a review. An empty field is no restriction.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Right {
    /// The role that grants the right.
    #[serde(skip)]
    pub(super) role: String,
    pub(super) verb: String,
    pub(super) group: String,
    pub(super) resource: String,
    pub(super) subresource: String,
    pub(super) name: String,
    pub(super) namespace: String,
}

impl Right {
    /// A right on a resource, or on `resource/subresource`, in all namespaces.
    pub(super) fn on([verb, group, resource]: [&str; 3]) -> Self {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let [verb, group, resource, subresource] = [verb, group, resource, subresource].map(str::to_owned);
        Self { verb, group, resource, subresource, ..Self::default() }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verb, group, resource, subresource, name, namespace, .. } = self;
        let dot = if group.is_empty() { "" } else { "." };
        let slash = if subresource.is_empty() { "" } else { "/" };
        write!(out, "{verb} {resource}{dot}{group}{slash}{subresource}")?;
        if !name.is_empty() {
            write!(out, " {name}")?;
        }
        if namespace.is_empty() { Ok(()) } else { write!(out, " in {namespace}") }
    }
}

/// Every right, and whether Interlock's account in a namespace has it. Without a namespace, the rights of the client's user.
///
/// # Errors
/// When the API server does not answer.
pub(super) async fn reviewed(
    client: &Client,
    account_in: Option<&str>,
    rights: Vec<Right>,
) -> Result<Vec<(Right, bool)>, String> {
    let kind = if account_in.is_some() { "SubjectAccessReview" } else { "SelfSubjectAccessReview" };
    let path = &format!("/apis/authorization.k8s.io/v1/{}s", kind.to_lowercase());
    let answers = stream::iter(rights).map(|right| async move {
        let mut spec = json!({"resourceAttributes": right});
        if let Some(namespace) = account_in {
            let all = format!("system:serviceaccounts:{namespace}");
            spec["user"] = format!("system:serviceaccount:{namespace}:interlock").into();
            spec["groups"] = json!(["system:serviceaccounts", all, "system:authenticated"]);
        }
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}).to_string();
        let request = Request::post(path).header(CONTENT_TYPE, "application/json").body(review.into_bytes());
        let answer = client.request::<Value>(request.map_err(|error| error.to_string())?).await;
        Ok((right, answer.map_err(|error| reason(&error))?["status"]["allowed"] == true))
    });
    answers.buffered(CONCURRENT_REVIEWS).try_collect().await
}

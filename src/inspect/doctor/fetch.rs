//! Reads of the API server, each with what to say when it fails.

use http::Request;
use http::header::{ACCEPT, DATE};
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use kube::client::Body;
use kube::{Client, Error};
use serde_json::Value;
use tokio::time::timeout;

use super::PATIENCE;
use crate::engine::policy::PolicyFiles;
use crate::world;

/// Metadata alone, of a list.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// What a read came to.
#[derive(Debug, Clone)]
pub(super) enum Seen {
    Known(Value),
    Absent,
    /// Why not.
    Unknown(String),
}

impl Seen {
    /// The items of a list.
    pub(super) fn items(&self) -> Result<&[Value], &str> {
        match self {
            Self::Known(list) => Ok(list["items"].as_array().map(Vec::as_slice).unwrap_or_default()),
            Self::Absent => Ok(&[]),
            Self::Unknown(why) => Err(why),
        }
    }

    /// The item of a list with this name.
    pub(super) fn named(&self, name: &str) -> Result<Option<&Value>, &str> {
        Ok(self.items()?.iter().find(|item| item["metadata"]["name"] == name))
    }
}

/// Reads one object or list.
pub(super) async fn get(client: &Client, path: String) -> Seen {
    read(client, &path, "application/json").await
}

/// The same of metadata.
pub(super) async fn metadata(client: &Client, path: &str) -> Seen {
    read(client, path, METADATA).await
}

async fn read(client: &Client, path: &str, accept: &str) -> Seen {
    let request = match Request::get(path).header(ACCEPT, accept).body(Vec::new()) {
        Ok(request) => request,
        Err(error) => return Seen::Unknown(error.to_string()),
    };
    match timeout(PATIENCE, client.request::<Value>(request)).await {
        Ok(Ok(value)) => Seen::Known(value),
        Ok(Err(Error::Api(status))) if status.code == 404 => Seen::Absent,
        Ok(Err(error)) => Seen::Unknown(why(&error)),
        Err(_) => Seen::Unknown("the API server did not answer in time".to_owned()),
    }
}

/// The policies of the installation in a namespace.
pub(super) async fn policies(client: &Client, namespace: &str) -> Result<Option<PolicyFiles>, String> {
    match timeout(PATIENCE, world::kubernetes::policies::policies(client, namespace)).await {
        Ok(read) => read.map_err(|error| why(&error)),
        Err(_) => Err("the API server did not answer in time".to_owned()),
    }
}

/// What to say of a call that failed. A refusal names the right that is missing by itself.
pub(super) fn why(error: &Error) -> String {
    match error {
        Error::Api(status) => status.message.clone(),
        error => format!("the API server did not answer: {error}"),
    }
}

/// The API server's clock, and ours.
pub(super) async fn clocks(client: &Client) -> Result<(Timestamp, Timestamp), Error> {
    let request = Request::get("/version").body(Body::empty()).map_err(Error::HttpError)?;
    let response = client.send(request).await?;
    let ours = Timestamp::now();
    let date = response.headers().get(DATE).and_then(|date| date.to_str().ok());
    // Without a Date there is nothing to compare, and every age is by our own clock.
    let theirs = date.and_then(|date| rfc2822::parse(date).ok()).map_or(ours, |date| date.timestamp());
    Ok((theirs, ours))
}

/// Our two registrations; null where there is none.
pub(super) async fn registrations(client: &Client) -> Result<[Value; 2], Error> {
    let mut both = [Value::Null, Value::Null];
    for (one, kind) in both.iter_mut().zip(["validatingwebhookconfigurations", "mutatingwebhookconfigurations"]) {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{kind}/interlock");
        let request = Request::get(path).body(Vec::new()).map_err(Error::HttpError)?;
        match client.request::<Value>(request).await {
            Ok(value) => *one = value,
            Err(Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(error),
        }
    }
    Ok(both)
}

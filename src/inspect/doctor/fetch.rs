//! Reads of the API server, each with what to say when it fails.

use http::Request;
use http::header::ACCEPT;
use jiff::Timestamp;
use kube::{Client, Error};
use serde_json::Value;
use tokio::time::timeout;

use super::PATIENCE;
use crate::engine::policy::Files;
use crate::world;
pub(super) use crate::world::kubernetes::api_error::reason as why;
use crate::world::kubernetes::clock::{ClockError, server_time};

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
pub(super) async fn policies(client: &Client, namespace: &str) -> Result<Option<Files>, String> {
    match timeout(PATIENCE, world::kubernetes::policies::policies(client, namespace)).await {
        Ok(read) => read.map_err(|error| why(&error)),
        Err(_) => Err("the API server did not answer in time".to_owned()),
    }
}

/// The API server's clock, and ours.
pub(super) async fn clocks(client: &Client) -> Result<(Timestamp, Timestamp), Error> {
    let theirs = server_time(client).await;
    let ours = Timestamp::now();
    match theirs {
        Ok(theirs) => Ok((theirs, ours)),
        Err(ClockError::NoAnswer(error)) => Err(error),
        // Without a Date there is nothing to compare, and every age is by our own clock.
        Err(ClockError::NoDate | ClockError::BadDate(_)) => Ok((ours, ours)),
    }
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

//! Reads of the API server. A failed read keeps the reason.

use std::time::Duration;

use http::Request;
use http::header::ACCEPT;
use interlock_engine::owners::status::status_controllers;
use interlock_engine::owners::{PROTECTING, ProtectingKind};
use interlock_engine::policy_files::PolicyFiles;
use jiff::Timestamp;
use kube::{Client, Error};
use serde_json::Value;
use tokio::time::timeout;

use crate::inspect::arrival::{Half, Registration};
use crate::world;
use crate::world::kubernetes::api_error::{is_not_found, reason};
use crate::world::kubernetes::clock::{ClockError, server_time};

/// The maximum time of a read.
pub(super) const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// The reason of a read that took longer.
pub(super) const TIMED_OUT: &str = "the API server did not answer within 30 s";

/// The media type of a list with metadata only.
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// The result of a read.
#[derive(Debug, Clone)]
pub(super) enum Fetched {
    Known(Value),
    Absent,
    /// The read failed for this reason.
    Unknown(String),
}

impl Fetched {
    /// The object; `None` if it does not exist.
    pub(super) fn object(&self) -> Result<Option<&Value>, &str> {
        match self {
            Self::Known(object) => Ok(Some(object)),
            Self::Absent => Ok(None),
            Self::Unknown(why) => Err(why),
        }
    }

    /// The items of a list.
    pub(super) fn items(&self) -> Result<&[Value], &str> {
        let items = self.object()?.and_then(|list| list["items"].as_array());
        Ok(items.map(Vec::as_slice).unwrap_or_default())
    }

    /// The list item with this name.
    pub(super) fn named(&self, name: &str) -> Result<Option<&Value>, &str> {
        Ok(self.items()?.iter().find(|item| item["metadata"]["name"] == name))
    }
}

/// Reads an object or a list.
pub(super) async fn get(client: &Client, path: String) -> Fetched {
    request(client, &path, "application/json").await
}

/// Reads the metadata of a list.
pub(super) async fn metadata(client: &Client, path: &str) -> Fetched {
    request(client, path, METADATA_LIST).await
}

async fn request(client: &Client, path: &str, accept: &str) -> Fetched {
    let request = match Request::get(path).header(ACCEPT, accept).body(Vec::new()) {
        Ok(request) => request,
        Err(error) => return Fetched::Unknown(error.to_string()),
    };
    match timeout(READ_TIMEOUT, client.request::<Value>(request)).await {
        Ok(Ok(value)) => Fetched::Known(value),
        Ok(Err(error)) if is_not_found(&error) => Fetched::Absent,
        Ok(Err(error)) => Fetched::Unknown(reason(&error)),
        Err(_) => Fetched::Unknown(TIMED_OUT.to_owned()),
    }
}

/// The users of the service accounts with the name of a controller that writes statuses.
pub(super) async fn controllers(client: &Client) -> Result<Vec<String>, String> {
    let mut users = Vec::new();
    for (_, name) in status_controllers() {
        let list =
            metadata(client, &format!("/api/v1/serviceaccounts?fieldSelector=metadata.name%3D{name}&limit=100")).await;
        let namespaces = list.items()?.iter().filter_map(|account| account["metadata"]["namespace"].as_str());
        users.extend(namespaces.map(|namespace| format!("system:serviceaccount:{namespace}:{name}")));
    }
    Ok(users)
}

/// The metadata of the objects whose annotation can protect a release, by their kind.
pub(super) async fn declarations(client: &Client) -> Vec<(&'static str, Fetched)> {
    let mut lists = Vec::new();
    for ProtectingKind { kind, path, .. } in PROTECTING {
        lists.push((kind, metadata(client, &format!("{path}?limit=5000")).await));
    }
    lists
}

/// The policies of the installation in a namespace; `None` without a ConfigMap.
pub(super) async fn policies(client: &Client, namespace: &str) -> Result<Option<PolicyFiles>, String> {
    match timeout(READ_TIMEOUT, world::kubernetes::policies::policies(client, namespace)).await {
        Ok(request) => request.map_err(|error| reason(&error)),
        Err(_) => Err(TIMED_OUT.to_owned()),
    }
}

/// The API server's clock, and this machine's clock. Without a Date header, both are this machine's clock.
pub(super) async fn clocks(client: &Client) -> Result<(Timestamp, Timestamp), Error> {
    let server = server_time(client).await;
    let local = Timestamp::now();
    match server {
        Ok(server) => Ok((server, local)),
        Err(ClockError::NoAnswer(error)) => Err(error),
        Err(ClockError::NoDate | ClockError::BadDate(_)) => Ok((local, local)),
    }
}

/// Both webhook configurations; null for a missing one.
pub(super) async fn registrations(client: &Client) -> Result<[Value; 2], Error> {
    let mut both = [Value::Null, Value::Null];
    for (one, half) in both.iter_mut().zip(Half::ALL) {
        if let Some(found) = Registration::read(client, half).await? {
            *one = found.into_object();
        }
    }
    Ok(both)
}

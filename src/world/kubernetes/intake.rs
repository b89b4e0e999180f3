//! The only entrance for objects of the cluster: tenants store them, and Interlock reads them later.
//!
//! Every answer of the API server to the world passes through [`client`]. Three kinds of answers are projected: objects with many
//! readers, metadata, and all lists and watches. Of these, only the fields that are read are kept. All other fields are dropped on
//! arrival, and are never in memory. The kept size of one object is limited, so the memory of a list depends on the number of its
//! objects, not on their size. An object over the limit is marked, and its neighbours are unaffected. Other answers are limited in
//! total. Larger amounts of memory are charged to the budget.

mod body;
mod fields;
mod metrics;
mod projector;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ApiResource;
use kube::client::Body;
use kube::core::DynamicResourceScope;
use kube::{Client, Resource};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use body::IntakeBody;
pub use body::IntakeError;
use interlock_engine::json::redacted;
pub use metrics::IntakeMetrics;

use crate::budget::Budget;
use projector::Projector;

/// A client whose answers pass through the intake. The world reads with this type only.
#[derive(Clone)]
pub(crate) struct IntakeClient(Client);

/// Wraps a client. Memory is charged to `budget`.
pub(crate) fn client(client: Client, budget: &Budget, metrics: &Arc<IntakeMetrics>) -> IntakeClient {
    let namespace = client.default_namespace().to_owned();
    let intake = Intake { client, budget: budget.clone(), metrics: Arc::clone(metrics) };
    IntakeClient(Client::new(intake, namespace))
}

impl IntakeClient {
    /// The client, for kube's functions.
    pub(crate) fn kube(&self) -> &Client {
        &self.0
    }
}

struct Intake {
    client: Client,
    budget: Budget,
    metrics: Arc<IntakeMetrics>,
}

impl tower_service::Service<Request<Body>> for Intake {
    type Response = Response<IntakeBody>;
    type Error = kube::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (client, budget, metrics) = (self.client.clone(), self.budget.clone(), Arc::clone(&self.metrics));
        Box::pin(async move {
            let kept = fields::kept(&request);
            let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
            let response = client.send(request).await?;
            // An error is a Status, which says what is wrong.
            let kept = kept.filter(|_| response.status().is_success());
            Ok(response.map(|body| match kept {
                Some((resource, keep)) => {
                    IntakeBody::projected(body, resource, keep, (!is_watch).then_some(budget), metrics)
                }
                None => IntakeBody::complete(body, budget, metrics),
            }))
        })
    }
}

/// The kept part of the answer to a GET of a path, which arrives in these parts. `None` if the complete text is kept.
///
/// # Errors
/// [`IntakeError::Malformed`] at a byte that is not valid in JSON.
pub fn kept_of<'p>(path: &str, parts: impl IntoIterator<Item = &'p [u8]>) -> Option<Result<Vec<u8>, IntakeError>> {
    let (_, keep) = fields::kept(&Request::get(path).body(()).ok()?)?;
    let mut projector = Projector::new(keep);
    let read = parts.into_iter().try_for_each(|part| projector.push(part));
    Some(read.map(|()| projector.take()).map_err(IntakeError::from))
}

/// Why an object cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unread {
    #[error("is too large in the fields that are read")]
    TooLarge,
    #[error("cannot be parsed: {0}")]
    Shape(String),
}

impl From<serde_json::Error> for Unread {
    fn from(error: serde_json::Error) -> Self {
        Self::Shape(redacted(&error))
    }
}

/// An object of a custom kind, reduced to the fields that are read. Only an answer that passed through the intake becomes one.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Projected {
    #[serde(default)]
    metadata: ObjectMeta,
    spec: Option<Box<RawValue>>,
    status: Option<Box<RawValue>>,
    /// Whether the object exceeded the limit. Then only its name is certain.
    #[serde(default)]
    cut: bool,
}

impl Projected {
    /// An object from the text of an answer.
    ///
    /// # Errors
    /// When the text is not an object.
    pub(crate) fn read(text: &str) -> Result<Self, Unread> {
        Ok(serde_json::from_str(text)?)
    }

    /// The maximum memory of the object, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        length(self.spec.as_deref()) + length(self.status.as_deref())
    }

    pub(crate) fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    /// `spec`; the default if it is missing.
    ///
    /// # Errors
    /// Why `spec` cannot be read.
    pub(crate) fn spec<T: DeserializeOwned + Default>(&self) -> Result<T, Unread> {
        self.part(self.spec.as_deref())
    }

    /// `status`; the default if it is missing.
    ///
    /// # Errors
    /// Why `status` cannot be read.
    pub(crate) fn status<T: DeserializeOwned + Default>(&self) -> Result<T, Unread> {
        self.part(self.status.as_deref())
    }

    fn part<T: DeserializeOwned + Default>(&self, text: Option<&RawValue>) -> Result<T, Unread> {
        if self.cut {
            return Err(Unread::TooLarge);
        }
        let Some(text) = text.map(RawValue::get).filter(|text| *text != "null") else {
            return Ok(T::default());
        };
        Ok(serde_json::from_str(text)?)
    }
}

fn length(part: Option<&RawValue>) -> usize {
    part.map_or(0, |text| text.get().len())
}

impl Resource for Projected {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> std::borrow::Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn group(resource: &ApiResource) -> std::borrow::Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> std::borrow::Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> std::borrow::Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests;

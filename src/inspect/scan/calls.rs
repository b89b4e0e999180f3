//! Counts calls of the API server, including retries and discovery.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use http::{Request, Response};
use kube::Client;
use kube::client::Body;

/// The number of calls so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Calls(Arc<AtomicU64>);

impl Calls {
    pub(super) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// A client that counts its calls.
    pub(super) fn counting(&self, client: Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        Client::new(Counting { client, calls: self.clone() }, namespace)
    }
}

struct Counting {
    client: Client,
    calls: Calls,
}

impl tower_service::Service<Request<Body>> for Counting {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.calls.0.fetch_add(1, Ordering::Relaxed);
        let client = self.client.clone();
        Box::pin(async move { client.send(request).await })
    }
}

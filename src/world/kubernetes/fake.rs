//! The API server of unit tests: a function from a request to an answer.

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use tower::{BoxError, service_fn};

/// A client whose requests are answered by `answer`, with a status code and an object. A request without a body has a null body.
pub(crate) fn client<F>(answer: F) -> Client
where
    F: Fn(&Parts, &Value) -> (u16, Value) + Clone + Send + 'static,
{
    client_with_warnings(move |head, body| {
        let (code, answer) = answer(head, body);
        (code, String::new(), answer)
    })
}

/// The same, with the text of a Warning header. An empty text means no header.
pub(crate) fn client_with_warnings<F>(answer: F) -> Client
where
    F: Fn(&Parts, &Value) -> (u16, String, Value) + Clone + Send + 'static,
{
    let service = service_fn(move |request: Request<Body>| {
        let answer = answer.clone();
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body)? };
            let (code, warning, answer) = answer(&head, &body);
            let mut response = Response::builder().status(code);
            if !warning.is_empty() {
                response = response.header("warning", format!("299 - \"{warning}\""));
            }
            Ok::<_, BoxError>(response.body(Full::new(Bytes::from(answer.to_string())))?)
        }
    });
    Client::new(service, "default")
}

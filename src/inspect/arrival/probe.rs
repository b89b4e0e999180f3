//! The dry run and its response.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use http::Request;
use interlock_engine::release_override::{ARRIVED, GROUP, KIND, NONCE, PLURAL, PROBE, VERSION, arrival};
use interlock_engine::text::printable;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{Half, Obstacle};

/// The name of the probe. It is never stored.
const NAME: &str = "interlock-probe";

/// The maximum time of a probe. Each call of the API server ends after three seconds.
const TIMEOUT: Duration = Duration::from_secs(15);

/// The longest message of the API server that is kept, in bytes.
const MAX_MESSAGE_BYTES: usize = 600;

/// The result of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Passage {
    /// The nonce came back.
    Arrived,
    /// The API server's call to Interlock failed with this message.
    Failed(String),
    /// The probe was admitted without its nonce.
    Silent,
    /// The probe was refused before a review arrived, with this message of the API server.
    Refused(String),
    /// The response shows nothing, for this reason.
    Unknown(String),
}

/// Sends a probe through a configuration, from a namespace.
pub(crate) async fn probe(client: &Client, namespace: &str, half: Half) -> Passage {
    probe_with(client, namespace, half, &nonce()).await
}

/// Sends a probe with the given nonce.
pub(crate) async fn probe_with(client: &Client, namespace: &str, half: Half, nonce: &str) -> Passage {
    let path = format!("/apis/{GROUP}/{VERSION}/namespaces/{namespace}/{PLURAL}?dryRun=All&fieldManager={NAME}");
    let sent = Request::post(path).header("content-type", "application/json");
    let sent = match sent.body(Body::from(body(half, nonce, Timestamp::now()).to_string().into_bytes())) {
        Ok(sent) => sent,
        Err(error) => return Passage::Unknown(error.to_string()),
    };
    match timeout(TIMEOUT, response(client, sent)).await {
        Ok(Ok(response)) => response.passage(half, nonce),
        Ok(Err(why)) => Passage::Unknown(format!("the API server did not answer: {why}")),
        Err(_) => Passage::Unknown(format!("the API server did not answer within {} s", TIMEOUT.as_secs())),
    }
}

/// A nonce that nobody knows before the probe is sent. The keys of each state come from the system's random source.
pub(crate) fn nonce() -> String {
    format!("{:016x}{:016x}", random(), random())
}

fn random() -> u64 {
    RandomState::new().hash_one(())
}

/// An override that is valid for any server that knows the definition.
fn body(half: Half, nonce: &str, now: Timestamp) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/{VERSION}"), "kind": KIND,
        "metadata": {"name": NAME, "labels": {PROBE: half.as_str()}, "annotations": {NONCE: nonce}},
        "spec": {
            "release": NAME, "rules": ["manual-edit"], "reason": "Shows whether reviews arrive; never stored.",
            "expiresAt": (now + SignedDuration::from_mins(1)).to_string(),
        },
    })
}

/// The API server's response.
#[derive(Debug)]
struct Response {
    code: u16,
    /// The Warning headers, unparsed.
    warnings: String,
    body: Value,
}

async fn response(client: &Client, request: Request<Body>) -> Result<Response, String> {
    let response = client.send(request).await.map_err(|error| error.to_string())?;
    let code = response.status().as_u16();
    let warnings = response.headers().get_all("warning").iter().filter_map(|it| it.to_str().ok());
    let warnings = warnings.collect::<Vec<_>>().join("\n");
    let body = http_body_util::BodyExt::collect(response.into_body()).await.map_err(|error| error.to_string())?;
    Ok(Response { code, warnings, body: serde_json::from_slice(&body.to_bytes()).unwrap_or_default() })
}

impl Response {
    fn passage(&self, half: Half, nonce: &str) -> Passage {
        let text = self.body["message"].as_str().unwrap_or_default();
        let message = || printable(text, MAX_MESSAGE_BYTES).into_owned();
        match self.code {
            200..300 => {
                let is_back = match half {
                    Half::Validating => self.warnings.contains(&arrival(nonce)),
                    Half::Mutating => self.body["metadata"]["annotations"][ARRIVED] == nonce,
                };
                if is_back { Passage::Arrived } else { Passage::Silent }
            }
            404 => Passage::Refused("the definition of ReleaseOverrides is not installed".to_owned()),
            _ if text.contains("failed calling webhook") && text.contains(".interlock.dev") => {
                Passage::Failed(message())
            }
            _ => Passage::Refused(message()),
        }
    }
}

impl Passage {
    /// Why the way is not proved, in the API server's words; `None` if it is.
    #[must_use]
    pub(crate) fn problem(&self) -> Option<String> {
        match self {
            Self::Arrived => None,
            Self::Failed(message) => Some(format!("the API server says: {message}")),
            Self::Silent => {
                Some("the API server admitted a probe without calling a replica of this version".to_owned())
            }
            Self::Refused(message) => Some(format!("the probe was refused before a review arrived: {message}")),
            Self::Unknown(why) => Some(why.clone()),
        }
    }

    /// Whether the API server sent the probe to Interlock, or would have done so.
    #[must_use]
    pub(crate) fn shows_the_way(&self) -> bool {
        matches!(self, Self::Arrived | Self::Failed(_) | Self::Silent)
    }

    /// The obstacle, if the response shows one.
    #[must_use]
    pub(crate) fn obstacle(&self) -> Option<Obstacle> {
        match self {
            Self::Failed(message) => Some(Obstacle::of(message)),
            Self::Refused(_) => Some(Obstacle::Rights),
            Self::Silent => Some(Obstacle::Unknown),
            Self::Arrived | Self::Unknown(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::kubernetes::fake;

    fn response(code: u16, warnings: &str, body: Value) -> Response {
        Response { code, warnings: warnings.to_owned(), body }
    }

    #[test]
    fn only_the_nonce_of_this_probe_proves_the_way() {
        let stamped = |nonce: &str| json!({"metadata": {"annotations": {NONCE: "n1", ARRIVED: nonce}}});
        let warned = format!("299 - \"{}\"", arrival("n1"));
        for (half, warnings, body, passage) in [
            (Half::Validating, warned.as_str(), json!({}), Passage::Arrived),
            (Half::Validating, "299 - \"interlock: the probe n2 arrived\"", json!({}), Passage::Silent),
            // The mutating half alone has answered.
            (Half::Validating, "", stamped("n1"), Passage::Silent),
            (Half::Mutating, "", stamped("n1"), Passage::Arrived),
            (Half::Mutating, "", stamped("n2"), Passage::Silent),
            (Half::Mutating, warned.as_str(), json!({"metadata": {"annotations": {NONCE: "n1"}}}), Passage::Silent),
        ] {
            assert_eq!(
                response(201, warnings, body.clone()).passage(half, "n1"),
                passage,
                "{half:?} {warnings} {body}"
            );
        }
    }

    #[test]
    fn a_failed_call_differs_from_a_refusal_on_the_way() {
        let status =
            |code, message: &str| response(code, "", json!({"message": message})).passage(Half::Validating, "n1");
        let refused = "failed calling webhook \"probes.interlock.dev\": failed to call webhook: dial tcp: connect: connection refused";
        assert_eq!(status(500, refused), Passage::Failed(refused.to_owned()));
        assert_eq!(status(500, refused).obstacle(), Some(Obstacle::Refused));
        let other = "failed calling webhook \"policy.example.com\": no endpoints available";
        assert_eq!(status(500, other), Passage::Refused(other.to_owned()));
        let forbidden = "releaseoverrides.interlock.dev is forbidden: User \"x\" cannot create resource";
        assert_eq!(status(403, forbidden), Passage::Refused(forbidden.to_owned()));
        assert!(
            matches!(status(404, "the server could not find"), Passage::Refused(why) if why.contains("definition"))
        );
    }

    #[tokio::test]
    async fn the_probe_is_a_dry_run_with_a_new_nonce() {
        let seen = std::sync::Arc::<std::sync::Mutex<Vec<Value>>>::default();
        let log = seen.clone();
        let client = fake::client(move |head, body| {
            assert!(head.uri.to_string().contains("/namespaces/guard/releaseoverrides?dryRun=All"), "{}", head.uri);
            log.lock().unwrap().push(body["metadata"].clone());
            let mut answer = body.clone();
            answer["metadata"]["annotations"][ARRIVED] = body["metadata"]["annotations"][NONCE].clone();
            (201, answer)
        });
        for _ in 0..2 {
            assert_eq!(probe(&client, "guard", Half::Mutating).await, Passage::Arrived);
        }
        let seen = seen.lock().unwrap();
        assert_eq!(seen[0]["labels"][PROBE], "mutating");
        let nonces = [0, 1].map(|number| seen[number]["annotations"][NONCE].as_str().unwrap().to_owned());
        assert_ne!(nonces[0], nonces[1]);
        assert!(nonces.iter().all(|nonce| interlock_engine::release_override::is_nonce(nonce)));
    }
}

//! Finds the addresses from which the API server calls, so that other callers cannot use up its share.
//!
//! The cluster publishes the addresses of its API servers. If calls arrive from other addresses, a probe finds these: only the API
//! server gets the nonce of the probe, so the address that delivers the nonce carries its calls.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::Api;
use kube::{Client, Error};
use tokio::time::sleep;

use super::https::KnownPeers;
use crate::inspect::arrival::{Half, nonce, probe_with};
use crate::world::kubernetes::api_error::reason;

/// The EndpointSlice with which the API servers publish their addresses, in the namespace `default`.
const ENDPOINT_SLICE: &str = "kubernetes";

/// How often the addresses are read, and how often a probe is sent while strangers call.
const INTERVAL: Duration = Duration::from_secs(30);

/// Keeps the addresses up to date, forever. `namespace` is Interlock's own, the only one for probes.
pub(crate) async fn follow(client: Client, namespace: String, peers: Arc<KnownPeers>) {
    let mut logged = [None, None];
    loop {
        let unread = match endpoints(&client).await {
            Ok(addresses) => {
                peers.set_endpoints(addresses);
                None
            }
            Err(error) => Some(format!("the addresses of the API servers cannot be read: {}", reason(&error))),
        };
        let unproved = if peers.take_strangers_call() { send_probe(&client, &namespace, &peers).await } else { None };
        for (logged, problem) in logged.iter_mut().zip([unread, unproved]) {
            if let Some(why) = problem.as_ref().filter(|why| logged.as_ref() != Some(*why)) {
                tracing::warn!(%why, "the API server may be taken for a stranger, which gets a quarter of the turns and memory");
            }
            *logged = problem;
        }
        sleep(INTERVAL).await;
    }
}

/// Sends a probe, whose nonce marks the address that delivers it. Returns why the probe did not arrive.
async fn send_probe(client: &Client, namespace: &str, peers: &KnownPeers) -> Option<String> {
    let nonce = nonce();
    peers.look_for(Some(&nonce));
    let passage = probe_with(client, namespace, Half::Validating, &nonce).await;
    peers.look_for(None);
    passage.problem()
}

/// The addresses of the API servers. Empty if they do not publish them.
async fn endpoints(client: &Client) -> Result<Vec<IpAddr>, Error> {
    let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), "default");
    let slice = slices.get_opt(ENDPOINT_SLICE).await?;
    let addresses = slice.into_iter().flat_map(|slice| slice.endpoints).flat_map(|endpoint| endpoint.addresses);
    Ok(addresses.filter_map(|address| address.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::world::kubernetes::fake;

    #[tokio::test]
    async fn published_addresses_of_api_servers_are_read() {
        let client = fake::client(|head, _| {
            assert_eq!(head.uri, "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes");
            let endpoints = json!([{"addresses": ["10.0.0.1"]}, {"addresses": ["fd00::1", "no address"]}]);
            (200, json!({"metadata": {"name": "kubernetes"}, "addressType": "IPv4", "endpoints": endpoints}))
        });
        let found = endpoints(&client).await.unwrap();
        assert_eq!(found, ["10.0.0.1", "fd00::1"].map(|address| address.parse::<IpAddr>().unwrap()));
    }
}

//! The user that Interlock is to the API server: its own writes are told from forged ones by it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::{Api, PostParams};
use kube::{Client, Error};

use crate::readiness::Gate;

/// Between two attempts.
const IDENTITY_RETRY: Duration = Duration::from_secs(1);

/// Asks the API server who we are until it answers; `gate` opens then.
///
/// An API server that refuses to tell is not asked again: without the name Interlock's own notes on records are refused as
/// forged, and everything else goes on.
pub(crate) async fn fetch_username(client: Client, name: Arc<OnceLock<String>>, gate: Gate) {
    let reviews: Api<SelfSubjectReview> = Api::all(client);
    loop {
        match reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await {
            Ok(review) => {
                let user = review.status.and_then(|status| status.user_info).and_then(|user| user.username);
                user.map(|user| name.set(user));
                break;
            }
            Err(Error::Api(status)) if status.code < 500 && status.code != 429 => {
                tracing::warn!(%status, "the API server does not tell who we are, so our own notes will pass for forged");
                break;
            }
            Err(error) => {
                tracing::debug!(%error, "the API server did not tell who we are");
                tokio::time::sleep(IDENTITY_RETRY).await;
            }
        }
    }
    gate.open();
}

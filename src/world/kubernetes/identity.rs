//! Interlock's own user at the API server. Its name identifies Interlock's own writes.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{SelfSubjectReview, UserInfo};
use kube::api::{Api, PostParams};
use kube::{Client, Error};

use crate::readiness::Gate;

const IDENTITY_RETRY: Duration = Duration::from_secs(1);

/// The user of a client, as the API server sees it.
///
/// # Errors
/// When the API server does not answer, or does not serve the review.
pub(crate) async fn own_user(client: &Client) -> Result<Option<UserInfo>, Error> {
    let reviews: Api<SelfSubjectReview> = Api::all(client.clone());
    let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await?;
    Ok(review.status.and_then(|status| status.user_info))
}

/// Reads Interlock's user name from the API server until it answers, and then opens `gate`.
///
/// A refusal ends the attempts. Without the name, Interlock's own notes on records are denied as forged. Everything else works.
pub(crate) async fn fetch_username(client: Client, name: Arc<OnceLock<String>>, gate: Gate) {
    loop {
        match own_user(&client).await {
            Ok(user) => {
                user.and_then(|user| user.username).map(|user| name.set(user));
                break;
            }
            Err(Error::Api(status)) if status.code < 500 && status.code != 429 => {
                tracing::warn!(%status, "the API server does not return our user name, so our own notes on records will be denied as forged");
                break;
            }
            Err(error) => {
                tracing::debug!(%error, "the API server did not return our user name");
                tokio::time::sleep(IDENTITY_RETRY).await;
            }
        }
    }
    gate.open();
}

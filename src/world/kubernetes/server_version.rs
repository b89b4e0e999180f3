//! The version of the API server. Interlock warns at startup if the version is too old.

use std::time::Duration;

use kube::{Client, Error};

use crate::supported::{OLDEST_MINOR, Support, support_of};

const VERSION_RETRY: Duration = Duration::from_secs(1);

/// Logs a warning if Interlock does not support the API server's version. Ends once the API server has answered.
pub(crate) async fn warn_if_too_old(client: Client) {
    if let Some(version) = too_old(&client).await {
        tracing::warn!(
            %version,
            "Kubernetes is older than 1.{OLDEST_MINOR}, the oldest version that Interlock supports: upgrade it"
        );
    }
}

/// The API server's version, if it is too old. Retries until the API server answers. A refusal ends the attempts.
async fn too_old(client: &Client) -> Option<String> {
    loop {
        match client.apiserver_version().await {
            Ok(version) => return (support_of(&version.minor) == Support::TooOld).then_some(version.git_version),
            Err(Error::Api(status)) if status.code < 500 && status.code != 429 => return None,
            Err(error) => {
                tracing::debug!(%error, "the API server did not return its version");
                tokio::time::sleep(VERSION_RETRY).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU32;
    use std::sync::atomic::Ordering::Relaxed;

    use serde_json::{Value, json};

    use super::*;
    use crate::supported::NEWEST_TESTED_MINOR;
    use crate::world::kubernetes::fake;

    /// The answer to `/version` of an API server of this minor version.
    fn version(minor: &str) -> Value {
        json!({
            "major": "1", "minor": minor, "gitVersion": format!("v1.{minor}.7"), "gitCommit": "", "gitTreeState": "",
            "buildDate": "", "goVersion": "", "compiler": "", "platform": "",
        })
    }

    #[tokio::test(start_paused = true)]
    async fn an_api_server_that_is_too_old_is_named_once_it_answers() {
        let older = (OLDEST_MINOR - 1).to_string();
        for (minor, expected) in [
            (older.clone(), Some(format!("v1.{older}.7"))),
            (format!("{older}+"), Some(format!("v1.{older}+.7"))),
            (OLDEST_MINOR.to_string(), None),
            ((NEWEST_TESTED_MINOR + 1).to_string(), None),
            ("x".to_owned(), None),
        ] {
            let asked = Arc::new(AtomicU32::new(0));
            let (count, answer) = (asked.clone(), version(&minor));
            let client = fake::client(move |head, _| {
                assert_eq!(head.uri.path(), "/version");
                match count.fetch_add(1, Relaxed) {
                    0 => (503, json!({"kind": "Status", "status": "Failure", "code": 503})),
                    _ => (200, answer.clone()),
                }
            });
            assert_eq!(too_old(&client).await, expected, "{minor}");
            assert_eq!(asked.load(Relaxed), 2, "{minor}");
        }
    }

    #[tokio::test]
    async fn a_refusal_of_the_version_ends_the_check() {
        let refusal =
            json!({"kind": "Status", "status": "Failure", "message": "no", "reason": "Forbidden", "code": 403});
        let client = fake::client(move |_, _| (403, refusal.clone()));
        assert_eq!(too_old(&client).await, None);
    }
}

//! The error message of a command, on one line.

use std::error::Error;
use std::sync::OnceLock;

use crate::world::kubernetes::api_error::root_cause;

/// The cluster that this command talks to.
static CLUSTER: OnceLock<String> = OnceLock::new();

/// Stores the cluster, so that the message about a failed connection can name it.
pub(super) fn talks_to(server: &str, context: Option<&str>) {
    let server = server.trim_end_matches('/');
    let cluster = context.map_or_else(|| server.to_owned(), |context| format!("{server} (context {context})"));
    _ = CLUSTER.set(cluster);
}

/// The error and its causes. Omits a cause that the previous text already contains. For a failed connection, names only the server and the
/// root cause.
pub(super) fn message(error: &anyhow::Error) -> String {
    described(error.chain(), CLUSTER.get().map(String::as_str))
}

fn described<'e>(chain: impl Iterator<Item = &'e (dyn Error + 'static)>, cluster: Option<&str>) -> String {
    let mut parts: Vec<String> = Vec::new();
    for error in chain {
        if is_unanswered(error) {
            parts.extend(cluster.map(str::to_owned));
            parts.push(root_cause(error));
            break;
        }
        let cause = error.to_string();
        if parts.last().is_none_or(|last| !last.contains(&cause)) {
            parts.push(cause);
        }
    }
    parts.join(": ")
}

/// Whether the API server did not answer.
fn is_unanswered(error: &(dyn Error + 'static)) -> bool {
    matches!(error.downcast_ref(), Some(kube::Error::Service(_) | kube::Error::HyperError(_)))
}

#[cfg(test)]
mod tests {
    use std::io::{self, ErrorKind};

    use anyhow::Context;

    use super::*;

    fn shown(error: &anyhow::Error, cluster: Option<&str>) -> String {
        described(error.chain(), cluster)
    }

    #[test]
    fn a_failed_connection_names_the_server_and_its_cause_once() {
        let refused = io::Error::other(io::Error::from(ErrorKind::ConnectionRefused));
        let failed: Result<(), _> = Err(kube::Error::Service(Box::new(refused)));
        let error = failed.context("failed to reach the API server").unwrap_err();
        let message = shown(&error, Some("https://a:6443 (context b)"));
        assert_eq!(message, "failed to reach the API server: https://a:6443 (context b): connection refused");
        assert_eq!(shown(&error, None), "failed to reach the API server: connection refused");
    }

    #[test]
    fn a_cause_in_the_previous_text_is_not_repeated() {
        let missing = io::Error::from(ErrorKind::NotFound);
        let again = format!("failed to read b: {missing}");
        let error = anyhow::Error::from(missing).context(again).context("a");
        assert_eq!(shown(&error, None), "a: failed to read b: entity not found");
    }
}

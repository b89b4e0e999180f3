//! Why a call of the API server failed, for people.

use kube::Error;

/// The message of the API server, which names a missing right, or the reason why it did not answer.
pub(crate) fn reason(error: &Error) -> String {
    match error {
        Error::Api(status) => format!("the API server answered {}: {}", status.code, status.message),
        error => format!("the API server did not answer: {error}"),
    }
}

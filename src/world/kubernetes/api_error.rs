//! Errors of the Kubernetes API: their meaning, and their text for people.

use interlock_engine::json::redacted;
use kube::Error;
use kube::runtime::watcher;

use super::intake::IntakeError;

/// Whether a 404 means that an object does not exist. The API server also answers 404 for a path that it does not serve, for
/// example if a kind is not installed.
pub(crate) fn is_missing_object(error: &Error) -> bool {
    let Error::Api(status) = error else { return false };
    status.code == 404 && status.details.as_ref().is_some_and(|details| !details.name.is_empty())
}

/// Whether an error is any 404.
pub(crate) fn is_not_found(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.code == 404)
}

/// What a read has found; `None` after any 404.
///
/// # Errors
/// Why the read failed otherwise, for people.
pub(super) fn if_found<T>(read: kube::Result<T>) -> Result<Option<T>, String> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(error) if is_not_found(&error) => Ok(None),
        Err(error) => Err(reason(&error)),
    }
}

/// Why a request failed, for people. If a permission is missing, the API server's message names it.
pub(crate) fn reason(error: &Error) -> String {
    match error {
        Error::Api(status) => format!("the API server answered {}: {}", status.code, status.message),
        // serde quotes the value with the wrong shape.
        Error::SerdeError(error) => format!("the answer of the API server cannot be parsed: {}", redacted(error)),
        Error::Service(error) if let Some(error) = error.downcast_ref::<IntakeError>() => error.to_string(),
        error => format!("the API server did not answer: {}", root_cause(error)),
    }
}

/// The last cause of an error. The causes before it only say that a connection failed.
pub(crate) fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.last().map(ToString::to_string).unwrap_or_default()
}

/// Why a watch failed, for people.
pub(crate) fn watch_reason(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => reason(error),
        error => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_connection_is_reported_by_its_cause() {
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let error = Error::Service(Box::new(std::io::Error::other(refused)));
        assert_eq!(reason(&error), "the API server did not answer: connection refused");
    }

    #[test]
    fn an_unparsable_answer_is_not_quoted() {
        let unread = || Error::SerdeError(serde_json::from_str::<u8>(r#""hunter2""#).unwrap_err());
        let texts = [reason(&unread()), watch_reason(&watcher::Error::WatchFailed(unread()))];
        for text in texts {
            assert!(text.contains("cannot be parsed: expected u8 at line 1") && !text.contains("hunter2"), "{text}");
        }
    }
}

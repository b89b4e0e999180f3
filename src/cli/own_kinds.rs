//! What the commands for ReleaseOverrides and Freezes have in common.

/// One of Interlock's own kinds, in the words of an error.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnKind {
    /// For example `ReleaseOverrides`.
    pub(super) plural: &'static str,
    /// The file of the definition below `manifests/base`.
    pub(super) definition: &'static str,
}

impl OwnKind {
    /// Why `attempt`, for example `create the override`, has failed.
    pub(super) fn failure(self, attempt: &str, error: kube::Error) -> anyhow::Error {
        let Self { plural, definition } = self;
        match error {
            // The error names a missing object or namespace; for a path that is not served it names nothing.
            kube::Error::Api(status)
                if status.code == 404 && status.details.as_ref().is_none_or(|it| it.name.is_empty()) =>
            {
                anyhow::anyhow!(
                    "failed to {attempt}: the CustomResourceDefinition of {plural} is not installed. \
                     Install it with `kubectl apply -f manifests/base/{definition}`"
                )
            }
            kube::Error::Api(status) => anyhow::anyhow!("failed to {attempt}: {}", status.message),
            error => anyhow::Error::from(error).context(format!("failed to {attempt}")),
        }
    }
}

//! Errors of the commands for ReleaseOverrides and Freezes.

/// One of Interlock's own kinds, for error messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnKind {
    /// For example `ReleaseOverrides`.
    pub(super) plural: &'static str,
    /// The file of the definition in `manifests/base`.
    pub(super) definition: &'static str,
}

impl OwnKind {
    /// The error of a failed `attempt`, for example `create the override`.
    pub(super) fn failure(self, attempt: &str, error: kube::Error) -> anyhow::Error {
        let Self { plural, definition } = self;
        match error {
            // If an object or namespace is missing, the error names it. If the path is not served, the error has no name.
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

//! `interlock certs rotate`: requests a rotation of the CA.

use std::io::{Write, stdout};

use anyhow::Context;
use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::installation::Installation;
use crate::cli::examples::examples;
use crate::cli::exit_status::ExitStatus;
use crate::serve::pki::ca_secret::{CaSecret, ROTATE_ANNOTATION, SECRET_NAME};

/// Request a rotation of the CA. The leader rotates in phases, without failing a review
///
/// Returns immediately; `interlock certs status` shows the progress. By default the next CA signs after ten minutes,
/// and the old CA stays trusted for a week.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&["interlock certs rotate", "interlock certs rotate -n guard"]))]
pub(super) struct Arguments {
    #[command(flatten)]
    installation: Installation,
}

pub(super) async fn run(Arguments { installation }: &Arguments) -> anyhow::Result<ExitStatus> {
    let (client, namespace) = (installation.client().await?, &installation.namespace);
    let found = installation.ca_secret(&client).await?.with_context(|| {
        format!("there is no Secret {SECRET_NAME} in namespace {namespace}. A replica creates it when it starts")
    })?;
    let now = Timestamp::now();
    let secret = CaSecret::parse(&found, now).with_context(|| {
        format!(
            "the Secret {SECRET_NAME} in namespace {namespace} cannot be used. Delete it, and a replica creates a new one"
        )
    })?;
    if let Some(next) = &secret.cas.next {
        writeln!(stdout(), "A rotation to CA {} is already in progress.", next.short())?;
        return Ok(ExitStatus::Success);
    }
    // The precondition on resourceVersion prevents a second rotation if one has started in the meantime.
    let patch = json!({
        "metadata": {
            "resourceVersion": found.metadata.resource_version,
            "annotations": {ROTATE_ANNOTATION: now.to_string()},
        },
    });
    let secrets = installation.secrets(&client);
    let asked = secrets.patch_metadata(SECRET_NAME, &PatchParams::default(), &Patch::Merge(&patch)).await;
    asked.with_context(|| format!("failed to request a rotation in the Secret {SECRET_NAME}. Try again"))?;
    writeln!(stdout(), "Requested a rotation of CA {}.", secret.cas.current.short())?;
    Ok(ExitStatus::Success)
}

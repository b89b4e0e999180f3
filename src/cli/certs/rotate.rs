//! `interlock certs rotate`: asks the leader for a rotation of the CA.

use std::io::{Write, stdout};

use anyhow::Context;
use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::Installation;
use crate::cli::Finding;
use crate::serve::pki::ca_secret::{self, CaSecret};

/// Ask the leader to rotate the CA now, in phases: no review is lost meanwhile
///
/// Returns at once; `interlock certs status` tells how far it is. By default the next CA signs after ten minutes, and the old
/// one stays trusted for a week.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    installation: Installation,
}

pub(super) async fn run(Arguments { installation }: &Arguments) -> anyhow::Result<Finding> {
    let (client, namespace) = (installation.client().await?, &installation.namespace);
    let secrets = installation.secrets(&client);
    let failed = || format!("failed to read the Secret {} in namespace {namespace}", ca_secret::SECRET_NAME);
    let found = secrets.get_opt(ca_secret::SECRET_NAME).await.with_context(failed)?;
    let found = found.with_context(|| {
        format!(
            "there is no Secret {} in namespace {namespace}: a replica makes it at its start",
            ca_secret::SECRET_NAME
        )
    })?;
    let now = Timestamp::now();
    let secret = CaSecret::parse(&found, now).with_context(|| {
        format!(
            "the Secret {} in namespace {namespace} cannot be used: delete it to have it made anew",
            ca_secret::SECRET_NAME
        )
    })?;
    if let Some(next) = &secret.cas.next {
        writeln!(stdout(), "A rotation to CA {} is under way already.", next.short())?;
        return Ok(Finding::Nothing);
    }
    // Over what was read: whoever began one meanwhile did what is asked for here.
    let patch = json!({
        "metadata": {
            "resourceVersion": found.metadata.resource_version,
            "annotations": {ca_secret::ROTATE_ANNOTATION: now.to_string()},
        },
    });
    let asked = secrets.patch_metadata(ca_secret::SECRET_NAME, &PatchParams::default(), &Patch::Merge(&patch)).await;
    asked
        .with_context(|| format!("failed to ask for a rotation in the Secret {}; try again", ca_secret::SECRET_NAME))?;
    writeln!(stdout(), "Asked for a rotation of CA {}.", secret.cas.current.short())?;
    Ok(Finding::Nothing)
}

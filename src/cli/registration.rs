//! `interlock registration`: removes Interlock from the API server in a safe order.

use std::time::Duration;

use anyhow::{Context, bail};
use clap::Subcommand;
use interlock_engine::policy::DEFAULT_NAMESPACE;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::Client;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::cluster::ClusterArguments;
use super::duration::seconds;
use super::examples::examples;
use super::exit_status::ExitStatus;
use super::output;
use crate::serve::leader::LEASE;
use crate::serve::pki::ca_secret;
use crate::world::kubernetes::api_error::is_not_found;
use crate::world::metadata_only::resource_of;

/// The name of the webhook configurations and the Deployment.
const NAME: &str = "interlock";

/// The label selector of the Deployment's pods.
const REPLICAS: &str = "app.kubernetes.io/name=interlock,app.kubernetes.io/component=webhook";

/// The time between two checks whether an object is deleted.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Manage the webhook configurations
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Remove(Remove),
}

/// Remove the webhook configurations, so that the API server no longer calls Interlock
///
/// Waits until they are deleted. Objects that do not exist are no error, so the command can be repeated. The chart runs
/// it before it deletes anything else of Interlock. Exits with 2 if an object could not be removed in time.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&["interlock registration remove --dry-run", "interlock registration remove --purge"]))]
struct Remove {
    /// Also stop the replicas, and delete their certificate authority and Lease
    #[arg(long)]
    purge: bool,
    /// Interlock's own namespace
    #[arg(long, value_name = "NAMESPACE", env = "INTERLOCK_NAMESPACE", default_value = DEFAULT_NAMESPACE)]
    namespace: String,
    /// How long to wait until the objects are deleted
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = seconds)]
    timeout: Duration,
    /// Let the API server validate the requests without changing anything
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    cluster: ClusterArguments,
}

pub(super) async fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let Command::Remove(remove) = &arguments.command;
    let client = remove.cluster.client().await?;
    let removal = Removal { client, deadline: Instant::now() + remove.timeout, dry_run: remove.dry_run };
    removal.remove_registration().await?;
    if remove.purge {
        removal.stop_replicas(&remove.namespace).await?;
        removal.delete_stored_state(&remove.namespace).await?;
    }
    Ok(ExitStatus::Success)
}

/// A running removal.
struct Removal {
    client: Client,
    deadline: Instant,
    dry_run: bool,
}

impl Removal {
    /// Removes both webhook configurations. Then the API server sends no reviews.
    async fn remove_registration(&self) -> anyhow::Result<()> {
        let kinds = [resource_of::<ValidatingWebhookConfiguration>(), resource_of::<MutatingWebhookConfiguration>()];
        for kind in &kinds {
            self.remove(kind, None, NAME).await?;
        }
        for kind in &kinds {
            self.await_gone(kind, NAME).await?;
        }
        Ok(())
    }

    /// Stops the replicas. Otherwise they would create their objects again.
    async fn stop_replicas(&self, namespace: &str) -> anyhow::Result<()> {
        let deployments = self.api(&resource_of::<Deployment>(), Some(namespace));
        let params = PatchParams { dry_run: self.dry_run, ..PatchParams::default() };
        let none = Patch::Merge(json!({"spec": {"replicas": 0}}));
        match deployments.patch_scale(NAME, &params, &none).await {
            Ok(_) => self.report("stopped", "Deployment", NAME)?,
            Err(error) if is_not_found(&error) => return self.report_absent("Deployment", NAME),
            Err(error) => return Err(error).context("failed to stop the replicas"),
        }
        if self.dry_run {
            return Ok(());
        }
        let pods = self.api(&resource_of::<Pod>(), Some(namespace));
        let replicas = ListParams::default().labels(REPLICAS).limit(1);
        loop {
            let found = pods.list_metadata(&replicas).await.context("failed to list the replicas")?;
            let Some(one) = found.items.first() else { return Ok(()) };
            let name = one.metadata.name.as_deref().unwrap_or_default();
            self.wait(&format!("pod {namespace}/{name}")).await?;
        }
    }

    /// Deletes the objects that the replicas created.
    async fn delete_stored_state(&self, namespace: &str) -> anyhow::Result<()> {
        self.remove(&resource_of::<Secret>(), Some(namespace), ca_secret::SECRET_NAME).await?;
        self.remove(&resource_of::<Lease>(), Some(namespace), LEASE).await
    }

    /// The objects of a built-in kind, in a namespace or cluster-scoped.
    fn api(&self, resource: &ApiResource, namespace: Option<&str>) -> Api<DynamicObject> {
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, resource),
            None => Api::all_with(self.client.clone(), resource),
        }
    }

    async fn remove(&self, resource: &ApiResource, namespace: Option<&str>, name: &str) -> anyhow::Result<()> {
        let kind = &resource.kind;
        let params = DeleteParams { dry_run: self.dry_run, ..DeleteParams::default() };
        match self.api(resource, namespace).delete(name, &params).await {
            Ok(_) => self.report("removed", kind, name),
            Err(error) if is_not_found(&error) => self.report_absent(kind, name),
            Err(error) => Err(error).with_context(|| format!("failed to remove {kind} {name}")),
        }
    }

    /// Waits until an object and its finalizers are gone.
    async fn await_gone(&self, resource: &ApiResource, name: &str) -> anyhow::Result<()> {
        if self.dry_run {
            return Ok(());
        }
        let (api, kind) = (self.api(resource, None), &resource.kind);
        loop {
            let there = api.get_metadata_opt(name).await;
            if there.with_context(|| format!("failed to look for {kind} {name}"))?.is_none() {
                return Ok(());
            }
            self.wait(&format!("{kind} {name}")).await?;
        }
    }

    /// Waits a moment. Fails after the deadline.
    async fn wait(&self, what: &str) -> anyhow::Result<()> {
        if Instant::now() >= self.deadline {
            bail!("{what} still exists. Check its metadata.finalizers and deletionTimestamp, and try again");
        }
        sleep(POLL_INTERVAL).await;
        Ok(())
    }

    fn report(&self, done: &str, kind: &str, name: &str) -> anyhow::Result<()> {
        let would = if self.dry_run { "would be " } else { "" };
        Ok(output::print(&format!("{kind} {name} {would}{done}\n"))?)
    }

    fn report_absent(&self, kind: &str, name: &str) -> anyhow::Result<()> {
        Ok(output::print(&format!("{kind} {name} does not exist\n"))?)
    }
}

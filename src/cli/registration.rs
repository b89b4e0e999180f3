//! `interlock registration`: takes Interlock out of the way of the API server, in order.

use std::fmt::Debug;
use std::io::{Write, stdout};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Subcommand;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kube::{Client, Error, Resource};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::Finding;
use super::cluster::ClusterArguments;
use crate::serve::leader::LEASE;
use crate::serve::pki::ca_secret;

/// What the webhook configurations and the Deployment are called.
const NAME: &str = "interlock";

/// The pods of that Deployment.
const REPLICAS: &str = "app.kubernetes.io/name=interlock,app.kubernetes.io/component=webhook";

/// Between two looks at whether something is gone.
const PAUSE: Duration = Duration::from_millis(500);

/// What the API server asks Interlock about
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Remove(Remove),
}

/// Remove the webhook configurations, so that nothing is judged, and nothing refused, any more
///
/// Waits until they are gone. What is gone already is no error, so it may be repeated. The chart runs this before anything
/// else of Interlock is deleted. Exits with 2 where something could not be removed in time.
#[derive(Debug, clap::Args)]
struct Remove {
    /// Then stop the replicas too, and delete what they keep: their certificate authority and their Lease
    #[arg(long)]
    purge: bool,
    /// Interlock's own namespace
    #[arg(long, value_name = "NAMESPACE", env = "INTERLOCK_NAMESPACE", default_value = "interlock-system")]
    namespace: String,
    /// Seconds until what is still there counts as stuck
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    timeout: u64,
    /// Let the API server check it, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    cluster: ClusterArguments,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<Finding> {
    let Command::Remove(remove) = &arguments.command;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let config = remove.cluster.found().await?;
        let client = Client::try_from(config).context("failed to make a client for the cluster")?;
        let removal =
            Removal { client, until: Instant::now() + Duration::from_secs(remove.timeout), dry_run: remove.dry_run };
        removal.registration().await?;
        if remove.purge {
            removal.replicas(&remove.namespace).await?;
            removal.kept(&remove.namespace).await?;
        }
        Ok(Finding::Nothing)
    })
}

/// A removal on its way.
struct Removal {
    client: Client,
    until: Instant,
    dry_run: bool,
}

impl Removal {
    /// The configurations, both of them: the API server asks about nothing any more.
    async fn registration(&self) -> anyhow::Result<()> {
        self.remove::<ValidatingWebhookConfiguration>(Api::all(self.client.clone()), NAME).await?;
        self.remove::<MutatingWebhookConfiguration>(Api::all(self.client.clone()), NAME).await?;
        self.await_gone::<ValidatingWebhookConfiguration>(Api::all(self.client.clone()), NAME).await?;
        self.await_gone::<MutatingWebhookConfiguration>(Api::all(self.client.clone()), NAME).await
    }

    /// The replicas, which would make anew what they keep.
    async fn replicas(&self, namespace: &str) -> anyhow::Result<()> {
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), namespace);
        let params = PatchParams { dry_run: self.dry_run, ..PatchParams::default() };
        let none = Patch::Merge(json!({"spec": {"replicas": 0}}));
        match deployments.patch_scale(NAME, &params, &none).await {
            Ok(_) => self.tell("stopped", "Deployment", NAME)?,
            Err(error) if is_absent(&error) => return self.tell_absent("Deployment", NAME),
            Err(error) => return Err(error).context("failed to stop the replicas"),
        }
        if self.dry_run {
            return Ok(());
        }
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let ours = ListParams::default().labels(REPLICAS).limit(1);
        loop {
            let found = pods.list_metadata(&ours).await.context("failed to list the replicas")?;
            let Some(one) = found.items.first() else { return Ok(()) };
            let name = one.metadata.name.as_deref().unwrap_or_default();
            self.pause(&format!("pod {namespace}/{name}")).await?;
        }
    }

    /// What the replicas kept.
    async fn kept(&self, namespace: &str) -> anyhow::Result<()> {
        self.remove::<Secret>(Api::namespaced(self.client.clone(), namespace), ca_secret::SECRET_NAME).await?;
        self.remove::<Lease>(Api::namespaced(self.client.clone(), namespace), LEASE).await
    }

    async fn remove<K>(&self, api: Api<K>, name: &str) -> anyhow::Result<()>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let kind = K::kind(&());
        let params = DeleteParams { dry_run: self.dry_run, ..DeleteParams::default() };
        match api.delete(name, &params).await {
            Ok(_) => self.tell("removed", &kind, name),
            Err(error) if is_absent(&error) => self.tell_absent(&kind, name),
            Err(error) => Err(error).with_context(|| format!("failed to remove {kind} {name}")),
        }
    }

    /// Waits for finalizers, if somebody has put any there.
    async fn await_gone<K>(&self, api: Api<K>, name: &str) -> anyhow::Result<()>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        if self.dry_run {
            return Ok(());
        }
        let kind = K::kind(&());
        loop {
            let there = api.get_metadata_opt(name).await;
            if there.with_context(|| format!("failed to look for {kind} {name}"))?.is_none() {
                return Ok(());
            }
            self.pause(&format!("{kind} {name}")).await?;
        }
    }

    /// Waits a moment for something to go.
    async fn pause(&self, what: &str) -> anyhow::Result<()> {
        if Instant::now() >= self.until {
            bail!("{what} is still there; look at its metadata.finalizers and deletionTimestamp, and try again");
        }
        sleep(PAUSE).await;
        Ok(())
    }

    fn tell(&self, done: &str, kind: &str, name: &str) -> anyhow::Result<()> {
        let would = if self.dry_run { "would be " } else { "" };
        Ok(writeln!(stdout(), "{kind} {name} {would}{done}")?)
    }

    fn tell_absent(&self, kind: &str, name: &str) -> anyhow::Result<()> {
        Ok(writeln!(stdout(), "{kind} {name} is not there")?)
    }
}

fn is_absent(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.code == 404)
}

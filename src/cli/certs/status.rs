//! `interlock certs status`: the CAs, when they expire, and which webhook entries trust them.

use anyhow::Context;
use jiff::Timestamp;
use serde::Serialize;

use super::installation::Installation;
use crate::cli::examples::examples;
use crate::cli::exit_status::ExitStatus;
use crate::cli::output::Output;
use crate::cli::table;
use crate::serve::pki::bundle::{Ca, CaBundle};
use crate::serve::pki::ca_secret::{CaSecret, SECRET_NAME};
use crate::serve::pki::live::{self, WebhookConfiguration};

/// Show the CAs, when they expire, and whether the webhook configurations trust them
///
/// Reads the Secret interlock-ca and both webhook configurations. Never prints the private key. Exits with 1 if the
/// Secret is missing or cannot be used, or if an entry does not trust the signing CA.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&["interlock certs status", "interlock certs status -o json"]))]
pub(super) struct Arguments {
    #[command(flatten)]
    installation: Installation,
    /// Output format
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct CertificateStatus {
    /// The problem with the Secret. `None` if the Secret is valid.
    problem: Option<String>,
    current: Option<CaSummary>,
    next: Option<CaSummary>,
    /// All CAs that entries must trust.
    bundle: Vec<CaSummary>,
    /// When the current CA was promoted.
    promoted: Option<Timestamp>,
    /// Whether a requested rotation has not started yet.
    asked: bool,
    entries: Vec<WebhookTrust>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct CaSummary {
    id: String,
    not_after: Timestamp,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct WebhookTrust {
    configuration: String,
    name: String,
    trusts: Vec<CaSummary>,
    trusts_current: bool,
}

pub(super) async fn run(Arguments { installation, output }: &Arguments) -> anyhow::Result<ExitStatus> {
    let (client, namespace) = (installation.client().await?, &installation.namespace);
    let configurations = live::read(&client).await.context("failed to read the webhook configurations")?;
    let secret = installation.ca_secret(&client).await?;
    let parsed = match secret.map(|secret| CaSecret::parse(&secret, Timestamp::now())) {
        Some(parsed) => parsed.map_err(|why| format!("the Secret {SECRET_NAME} cannot be used: {why}")),
        None => Err(format!("there is no Secret {SECRET_NAME} in namespace {namespace}")),
    };
    let status = CertificateStatus::of(parsed.as_ref().map_err(String::as_str), &configurations);
    output.print(&status, || status.text())?;
    let good = status.problem.is_none() && status.entries.iter().all(|entry| entry.trusts_current);
    Ok(if good { ExitStatus::Success } else { ExitStatus::Findings })
}

impl CertificateStatus {
    fn of(secret: Result<&CaSecret, &str>, configurations: &[WebhookConfiguration]) -> Self {
        let cas = secret.ok().map(|secret| &secret.cas);
        let current = cas.map(|cas| &cas.current);
        let entries = configurations.iter().flat_map(|found| {
            found.entries().map(|(name, bundle)| WebhookTrust {
                configuration: found.kind(),
                name: name.to_owned(),
                trusts: summaries(bundle),
                trusts_current: current.is_some_and(|current| bundle.has(current)),
            })
        });
        Self {
            problem: secret.err().map(str::to_owned),
            current: current.map(CaSummary::from),
            next: cas.and_then(|cas| cas.next.as_ref()).map(CaSummary::from),
            bundle: cas.map(|cas| summaries(&cas.bundle)).unwrap_or_default(),
            promoted: cas.and_then(|cas| cas.promoted),
            asked: cas.is_some_and(|cas| cas.asked),
            entries: entries.collect(),
        }
    }

    /// Text for people.
    fn text(&self) -> String {
        let mut text = String::new();
        if let Some(problem) = &self.problem {
            text += &format!("{problem}\n\n");
        }
        if !self.bundle.is_empty() {
            let mut cas = table::table(&["CA", "ROLE", "UNTIL", "TRUSTED BY"]);
            for ca in &self.bundle {
                let trusting = self.entries.iter().filter(|entry| entry.trusts.iter().any(|it| it.id == ca.id));
                let trusting = format!("{} of {} entries", trusting.count(), self.entries.len());
                cas.add_row([ca.id.clone(), self.role(ca).to_owned(), format!("{:.0}", ca.not_after), trusting]);
            }
            text += &format!("{cas}\n");
        }
        for entry in self.entries.iter().filter(|entry| !entry.trusts_current) {
            text += &format!("{} {} does not trust the signing CA\n", entry.configuration, entry.name);
        }
        if self.entries.is_empty() {
            text += &format!("there is no webhook configuration called {}\n", live::CONFIGURATION);
        }
        if self.asked {
            text += "a rotation was requested and has not started yet\n";
        }
        text
    }

    fn role(&self, ca: &CaSummary) -> &'static str {
        if self.current.as_ref().is_some_and(|current| current.id == ca.id) {
            "signs"
        } else if self.next.as_ref().is_some_and(|next| next.id == ca.id) {
            "signs next"
        } else {
            "signed before"
        }
    }
}

fn summaries(bundle: &CaBundle) -> Vec<CaSummary> {
    bundle.iter().map(CaSummary::from).collect()
}

impl From<&Ca> for CaSummary {
    fn from(ca: &Ca) -> Self {
        Self { id: ca.short(), not_after: ca.not_after }
    }
}

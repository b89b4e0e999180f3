//! The serving certificate: managed, from files, or for development.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kube::Client;

use crate::readiness::Readiness;
use crate::serve::https::{Certificates, Clients};
use crate::serve::pki::files::CertificateFiles;
use crate::serve::pki::managed::{Managed, Rotator};
use crate::serve::pki::metrics::{CertificateMetrics, CertificateRole};
use crate::serve::pki::rotation::{Lifetimes, LifetimesError};
use crate::serve::pki::{dev, tls};

/// The default directory of development certificates.
const DEFAULT_DIRECTORY: &str = "certs";

/// The arguments for certificates.
#[derive(Debug, clap::Args)]
pub(super) struct CertificateArguments {
    /// Directory of development certificates, which are created if they do not exist [default: certs when standalone;
    /// in a cluster Interlock manages a CA in the Secret interlock-ca]
    #[arg(long, value_name = "DIR", env = "INTERLOCK_CERTS")]
    certs: Option<PathBuf>,
    /// Service through which the API server reaches Interlock; the certificate is valid for its names
    #[arg(long, value_name = "NAME", env = "INTERLOCK_SERVICE", default_value = "interlock")]
    service: String,
    /// Additional name or address in the certificate; may be repeated
    #[arg(long = "certificate-name", value_name = "NAME", env = "INTERLOCK_CERTIFICATE_NAME", value_delimiter = ',')]
    names: Vec<String>,
    /// Certificate chain in PEM, for example from a Secret of cert-manager, reloaded when it changes; Interlock then
    /// manages no CA and writes no caBundle
    #[arg(
        long,
        value_name = "FILE",
        env = "INTERLOCK_TLS_CERT_FILE",
        conflicts_with = "certs",
        requires = "tls_private_key_file"
    )]
    tls_cert_file: Option<PathBuf>,
    /// Private key of --tls-cert-file in PEM, not encrypted
    #[arg(long, value_name = "FILE", env = "INTERLOCK_TLS_PRIVATE_KEY_FILE", requires = "tls_cert_file")]
    tls_private_key_file: Option<PathBuf>,
    /// CA certificates in PEM: only clients with a certificate from one of these CAs are accepted; the API server needs
    /// such a certificate
    #[arg(long, value_name = "FILE", env = "INTERLOCK_CLIENT_CA_FILE")]
    client_ca_file: Option<PathBuf>,
    /// Common name or subject alternative name of accepted client certificates; may be repeated, one match is enough
    #[arg(
        long = "client-name",
        value_name = "NAME",
        env = "INTERLOCK_CLIENT_NAME",
        value_delimiter = ',',
        requires = "client_ca_file"
    )]
    client_names: Vec<String>,
    /// Lifetime of a CA in seconds
    #[arg(long, value_name = "SECONDS", env = "INTERLOCK_CA_LIFETIME", hide = true)]
    ca_lifetime: Option<u32>,
    /// Lifetime of a serving certificate in seconds
    #[arg(long, value_name = "SECONDS", env = "INTERLOCK_LEAF_LIFETIME", hide = true)]
    leaf_lifetime: Option<u32>,
    /// Seconds to wait before a CA signs, after every caBundle contains it
    #[arg(long, value_name = "SECONDS", env = "INTERLOCK_CA_SETTLE", hide = true)]
    ca_settle: Option<u32>,
}

/// The serving certificate and its rotation.
pub(super) struct ServingCertificates {
    pub(super) certificates: Arc<Certificates>,
    /// The accepted clients. `None` accepts all clients.
    pub(super) clients: Option<Arc<Clients>>,
    /// The file of the CA that signed a development certificate.
    pub(super) ca_file: Option<PathBuf>,
    /// The rotation of managed certificates.
    pub(super) rotator: Option<Arc<Rotator>>,
}

/// The cluster in which certificates are managed.
pub(super) struct CertificateCluster<'a> {
    /// For reads and writes.
    pub(super) client: Client,
    /// For watches.
    pub(super) watches: &'a Client,
    /// Interlock's own namespace.
    pub(super) namespace: &'a str,
}

impl CertificateArguments {
    /// Loads, creates or manages the serving certificate.
    pub(super) fn load(
        &self,
        cluster: Option<CertificateCluster<'_>>,
        metrics: &Arc<CertificateMetrics>,
        readiness: &Readiness,
    ) -> anyhow::Result<ServingCertificates> {
        let clients =
            self.client_ca_file.as_ref().map(|file| Clients::open(file, self.client_names.clone())).transpose()?;
        if let Some(clients) = &clients {
            tokio::spawn(Arc::clone(clients).follow(Arc::clone(metrics)));
        }
        let serving = match (&self.tls_cert_file, &self.tls_private_key_file, cluster) {
            (Some(certificate), Some(key), _) => {
                let followed = CertificateFiles::open(certificate.clone(), key.clone(), Arc::clone(metrics))?;
                let certificates = followed.certificates();
                tokio::spawn(followed.follow());
                ServingCertificates { certificates, clients: None, ca_file: None, rotator: None }
            }
            (_, _, Some(cluster)) if self.certs.is_none() => self.managed(cluster, metrics, readiness)?,
            _ => {
                let directory = self.certs.clone().unwrap_or_else(|| DEFAULT_DIRECTORY.into());
                let made = dev::ensure(&directory, Timestamp::now())?;
                for key in &made.exposed_keys {
                    let file = key.display();
                    tracing::warn!(%file, "others than its owner can read this private key; use chmod 600");
                }
                metrics.set_expiry(CertificateRole::Leaf, Some(made.not_after));
                let certificates = Certificates::new(tls::load(&made.certificate_path, &made.key_path)?);
                ServingCertificates { certificates, clients: None, ca_file: Some(made.ca_path), rotator: None }
            }
        };
        Ok(ServingCertificates { clients, ..serving })
    }

    fn managed(
        &self,
        cluster: CertificateCluster<'_>,
        metrics: &Arc<CertificateMetrics>,
        readiness: &Readiness,
    ) -> anyhow::Result<ServingCertificates> {
        let certificates = Certificates::none();
        let managed = Managed {
            client: cluster.client,
            namespace: cluster.namespace.to_owned(),
            names: self.names(cluster.namespace),
            lifetimes: self.lifetimes()?,
            certificates: Arc::clone(&certificates),
            metrics: Arc::clone(metrics),
            served: readiness.gate("a serving certificate"),
            trusted: readiness.gate("the caBundle to trust it"),
        };
        let rotator = managed.start(cluster.watches);
        let noted = Arc::clone(&rotator);
        readiness.note("certificates", move || noted.state());
        Ok(ServingCertificates { certificates, clients: None, ca_file: None, rotator: Some(rotator) })
    }

    /// The API server uses the third name. The others are for people.
    fn names(&self, namespace: &str) -> Vec<String> {
        let service = &self.service;
        let names = [
            service.clone(),
            format!("{service}.{namespace}"),
            format!("{service}.{namespace}.svc"),
            format!("{service}.{namespace}.svc.cluster.local"),
        ];
        names.into_iter().chain(self.names.iter().cloned()).collect()
    }

    fn lifetimes(&self) -> Result<Lifetimes, LifetimesError> {
        let Lifetimes { ca, leaf, settle } = Lifetimes::default();
        Lifetimes {
            ca: seconds_or(self.ca_lifetime, ca),
            leaf: seconds_or(self.leaf_lifetime, leaf),
            settle: seconds_or(self.ca_settle, settle),
        }
        .checked()
    }
}

fn seconds_or(seconds: Option<u32>, default: SignedDuration) -> SignedDuration {
    seconds.map_or(default, |seconds| SignedDuration::from_secs(seconds.into()))
}

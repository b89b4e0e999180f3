//! Where the serving certificate comes from.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kube::Client;

use crate::pki::dev;
use crate::pki::managed::{Managed, Rotator};
use crate::pki::rotation::{Times, TimesError};
use crate::report::metrics::Metrics;
use crate::server::{Certificates, Readiness, tls};

/// Where development certificates lie unless told otherwise.
const DEVELOPMENT: &str = "certs";

/// Which certificate is served.
#[derive(Debug, clap::Args)]
pub(super) struct CertificateArguments {
    /// Directory of development certificates; they are made there when there are none [default: certs, when standalone; in
    /// a cluster Interlock keeps a CA in the Secret interlock-ca]
    #[arg(long, value_name = "DIR", env = "INTERLOCK_CERTS")]
    certs: Option<PathBuf>,
    /// The Service by which the API server reaches Interlock: the certificate is made for its names
    #[arg(long, value_name = "NAME", env = "INTERLOCK_SERVICE", default_value = "interlock")]
    service: String,
    /// A further name or address in the certificate; may be repeated
    #[arg(long = "certificate-name", value_name = "NAME", env = "INTERLOCK_CERTIFICATE_NAME", value_delimiter = ',')]
    names: Vec<String>,
    /// Seconds that a CA lives
    #[arg(long, value_name = "SECONDS", env = "INTERLOCK_CA_LIFETIME", hide = true)]
    ca_lifetime: Option<u32>,
    /// Seconds that a serving certificate lives
    #[arg(long, value_name = "SECONDS", env = "INTERLOCK_LEAF_LIFETIME", hide = true)]
    leaf_lifetime: Option<u32>,
    /// Seconds between the sight of a CA in every caBundle and its use
    #[arg(long, value_name = "SECONDS", env = "INTERLOCK_CA_SETTLE", hide = true)]
    ca_settle: Option<u32>,
}

/// The certificates, and who keeps them.
pub(super) struct Kept {
    pub(super) certificates: Arc<Certificates>,
    /// The file of the CA that a development certificate was signed by.
    pub(super) ca: Option<PathBuf>,
    /// Who rotates, where the certificates are managed.
    pub(super) rotator: Option<Arc<Rotator>>,
}

/// The cluster in front of which certificates are managed.
pub(super) struct Around<'a> {
    /// For reads and writes.
    pub(super) client: Client,
    /// For watches.
    pub(super) watches: &'a Client,
    /// Interlock's own namespace.
    pub(super) namespace: &'a str,
}

impl CertificateArguments {
    /// Finds, makes or manages them.
    pub(super) fn keep(
        &self,
        cluster: Option<Around<'_>>,
        metrics: &Arc<Metrics>,
        readiness: &Readiness,
    ) -> anyhow::Result<Kept> {
        match (&self.certs, cluster) {
            (None, Some(cluster)) => self.managed(cluster, metrics, readiness),
            (certs, _) => {
                let directory = certs.clone().unwrap_or_else(|| DEVELOPMENT.into());
                let made = dev::ensure(&directory, Timestamp::now())?;
                let key = tls::load(&made.certificate_path, &made.key_path)?;
                Ok(Kept { certificates: Certificates::new(key), ca: Some(made.ca_path), rotator: None })
            }
        }
    }

    fn managed(&self, cluster: Around<'_>, metrics: &Arc<Metrics>, readiness: &Readiness) -> anyhow::Result<Kept> {
        let certificates = Certificates::none();
        let managed = Managed {
            client: cluster.client,
            namespace: cluster.namespace.to_owned(),
            names: self.names(cluster.namespace),
            times: self.times()?,
            certificates: Arc::clone(&certificates),
            metrics: Arc::clone(metrics),
            served: readiness.gate("a serving certificate"),
            trusted: readiness.gate("the caBundle to trust it"),
        };
        let rotator = managed.start(cluster.watches);
        let noted = Arc::clone(&rotator);
        readiness.note("certificates", move || noted.state());
        Ok(Kept { certificates, ca: None, rotator: Some(rotator) })
    }

    /// The API server asks for the third; the others are for people.
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

    fn times(&self) -> Result<Times, TimesError> {
        let Times { ca, leaf, settle } = Times::default();
        let or = |seconds: Option<u32>, default| {
            seconds.map_or(default, |seconds| SignedDuration::from_secs(seconds.into()))
        };
        Times { ca: or(self.ca_lifetime, ca), leaf: or(self.leaf_lifetime, leaf), settle: or(self.ca_settle, settle) }
            .checked()
    }
}

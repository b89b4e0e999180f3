//! The helm plugin. helm removes its own flags from the command line, and passes their values to the plugin in the environment.

use std::env;

use anyhow::Context;
use kube::Config;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// The name in `packaging/helm-plugin/plugin.yaml`.
const PLUGIN: &str = "interlock";

/// helm's flags for the cluster, the identity and the namespace. Not `--kubeconfig`, which helm passes as `KUBECONFIG`.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct HelmFlags {
    /// Without the flag, the namespace of the kubeconfig's context.
    pub(super) namespace: Option<String>,
    pub(super) context: Option<String>,
    server: Option<String>,
    token: Option<String>,
    user: Option<String>,
    groups: Vec<String>,
    ca_file: Option<String>,
    insecure: bool,
    tls_server_name: Option<String>,
}

impl HelmFlags {
    /// The flags, if helm runs this process as its plugin.
    pub(super) fn of_plugin() -> Option<Self> {
        Self::read(|name| env::var(name).ok())
    }

    fn read(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        // helm sets most variables even if they are empty.
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        if set("HELM_PLUGIN_NAME")? != PLUGIN {
            return None;
        }
        let groups = set("HELM_KUBEASGROUPS").unwrap_or_default();
        Some(Self {
            namespace: set("HELM_NAMESPACE"),
            context: set("HELM_KUBECONTEXT"),
            server: set("HELM_KUBEAPISERVER"),
            token: set("HELM_KUBETOKEN"),
            user: set("HELM_KUBEASUSER"),
            groups: groups.split(',').filter(|group| !group.is_empty()).map(str::to_owned).collect(),
            ca_file: set("HELM_KUBECAFILE"),
            insecure: set("HELM_KUBEINSECURE_SKIP_TLS_VERIFY").as_deref() == Some("true"),
            tls_server_name: set("HELM_KUBETLS_SERVER_NAME"),
        })
    }

    /// Overrides the kubeconfig, as helm does. If a flag was ignored, `unstick` could write as another user.
    pub(super) fn apply(self, config: &mut Config) -> anyhow::Result<()> {
        if let Some(namespace) = self.namespace {
            config.default_namespace = namespace;
        }
        if let Some(server) = self.server {
            config.cluster_url = server.parse().with_context(|| format!("--kube-apiserver {server} is not a URL"))?;
        }
        if let Some(file) = self.ca_file {
            let read = CertificateDer::pem_file_iter(&file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            let certificates = read.with_context(|| format!("--kube-ca-file {file} cannot be used"))?;
            config.root_cert = Some(certificates.iter().map(|certificate| certificate.to_vec()).collect());
            config.root_cert_file = None;
        }
        config.accept_invalid_certs |= self.insecure;
        config.tls_server_name = self.tls_server_name.or(config.tls_server_name.take());
        let identity = &mut config.auth_info;
        if let Some(token) = self.token {
            identity.token = Some(token.into());
            identity.token_file = None;
        }
        if self.user.is_some() {
            identity.impersonate = self.user;
        }
        if !self.groups.is_empty() {
            identity.impersonate_groups = Some(self.groups);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Option<HelmFlags> {
        HelmFlags::read(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn only_helms_own_plugin_reads_the_environment_of_helm() {
        assert_eq!(of(&[("HELM_NAMESPACE", "shop")]), None);
        assert_eq!(of(&[("HELM_PLUGIN_NAME", "diff"), ("HELM_NAMESPACE", "shop")]), None);
        // helm sets these variables without any flag.
        let unset = [("HELM_PLUGIN_NAME", "interlock"), ("HELM_KUBECONTEXT", ""), ("HELM_KUBEASGROUPS", "")];
        assert_eq!(of(&unset), Some(HelmFlags::default()));
    }

    #[test]
    fn every_flag_of_helm_reaches_the_configuration() {
        let flags = of(&[
            ("HELM_PLUGIN_NAME", "interlock"),
            ("HELM_NAMESPACE", "shop"),
            ("HELM_KUBECONTEXT", "prod"),
            ("HELM_KUBEAPISERVER", "https://10.0.0.1:6443"),
            ("HELM_KUBETOKEN", "secret"),
            ("HELM_KUBEASUSER", "alice"),
            ("HELM_KUBEASGROUPS", "devs,ops"),
            ("HELM_KUBEINSECURE_SKIP_TLS_VERIFY", "true"),
            ("HELM_KUBETLS_SERVER_NAME", "kubernetes.default"),
        ]);
        let flags = flags.unwrap();
        assert_eq!(flags.context.as_deref(), Some("prod"));
        let mut config = Config::new("https://127.0.0.1".parse().unwrap());
        flags.apply(&mut config).unwrap();
        assert_eq!(config.default_namespace, "shop");
        assert_eq!(config.cluster_url, "https://10.0.0.1:6443");
        assert!(config.auth_info.token.is_some() && config.accept_invalid_certs);
        assert_eq!(config.auth_info.impersonate.as_deref(), Some("alice"));
        assert_eq!(config.auth_info.impersonate_groups, Some(vec!["devs".to_owned(), "ops".to_owned()]));
        assert_eq!(config.tls_server_name.as_deref(), Some("kubernetes.default"));
    }

    #[test]
    fn without_flags_the_kubeconfig_applies_and_bad_files_fail() {
        let mut config = Config::new("https://127.0.0.1".parse().unwrap());
        config.default_namespace = "shop".to_owned();
        config.tls_server_name = Some("kubernetes.default".to_owned());
        HelmFlags::default().apply(&mut config).unwrap();
        assert_eq!((config.default_namespace.as_str(), config.accept_invalid_certs), ("shop", false));
        assert_eq!(config.tls_server_name.as_deref(), Some("kubernetes.default"));
        let wrong = HelmFlags { ca_file: Some("/nowhere".to_owned()), ..HelmFlags::default() };
        assert!(wrong.apply(&mut config).unwrap_err().to_string().contains("--kube-ca-file /nowhere"));
    }
}

//! The obstacle between the API server and a replica, from the API server's message, and its usual causes.

/// The obstacle between the API server and a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// Nobody listens at the port.
    Refused,
    /// Packets are lost.
    Timeout,
    /// The Service has no ready endpoint.
    NoEndpoint,
    /// There is no such Service or port.
    NoService,
    /// Another server answers, or the caBundle belongs to another CA.
    Certificate,
    /// The probe was refused before it was sent.
    Rights,
    Unknown,
}

/// Go prints the reason last. The first match counts.
const MESSAGES: [(&str, Obstacle); 14] = [
    ("x509", Obstacle::Certificate),
    ("tls:", Obstacle::Certificate),
    ("server gave HTTP response to HTTPS client", Obstacle::Certificate),
    ("no endpoints available", Obstacle::NoEndpoint),
    ("No Endpoints", Obstacle::NoEndpoint),
    ("connection refused", Obstacle::Refused),
    ("Connection Refused", Obstacle::Refused),
    ("no service port", Obstacle::NoService),
    ("not found", Obstacle::NoService),
    ("no such host", Obstacle::NoService),
    ("deadline exceeded", Obstacle::Timeout),
    ("Timeout", Obstacle::Timeout),
    ("timeout", Obstacle::Timeout),
    ("no route to host", Obstacle::Timeout),
];

impl Obstacle {
    /// The obstacle that the API server's message about a failed call shows. The URL is skipped, because it has a parameter
    /// `timeout`.
    #[must_use]
    pub(super) fn of(message: &str) -> Self {
        let reason = message.rsplit_once("\": ").map_or(message, |(_, reason)| reason);
        MESSAGES.into_iter().find(|(text, _)| reason.contains(text)).map_or(Self::Unknown, |(_, obstacle)| obstacle)
    }

    /// The usual causes, by platform.
    #[must_use]
    pub(crate) fn usual_cause(self) -> &'static str {
        match self {
            Self::Timeout => {
                "Usual causes: a private GKE cluster, whose control plane reaches nodes on 443 and 10250 only (a firewall rule, or \
                 container port 10250); EKS with an overlay network (Calico, Cilium), whose control plane reaches no pod \
                 (hostNetwork: true); a network policy."
            }
            Self::Refused => {
                "Usual causes: a Service whose targetPort is not the port of the container; a container port that differs from \
                 the one of --listen; with hostNetwork, a port that another program has taken."
            }
            Self::NoEndpoint => {
                "Usual causes: no replica is ready; a Service whose selector or targetPort does not fit the pods."
            }
            Self::NoService => {
                "Usual causes: the Service has another name, namespace or port than the webhook configuration."
            }
            Self::Certificate => {
                "Usual causes: the caBundle is missing or of another CA (with cert-manager: its cainjector does not run); a \
                 service mesh (Istio, Linkerd) whose sidecar ends TLS: exclude the port."
            }
            Self::Rights => {
                "Usual causes: a missing Role interlock-probe, or a policy of another webhook on ReleaseOverrides."
            }
            Self::Unknown => {
                "Usual causes: replicas of an older version; a registration that the API server has not loaded yet."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_servers_message_shows_the_obstacle() {
        let call = "Internal error occurred: failed calling webhook \"probes.interlock.dev\": failed to call webhook: Post \
                    \"https://interlock.interlock-system.svc:443/validate?timeout=3s\": ";
        for (reason, obstacle) in [
            ("dial tcp 10.0.0.9:8443: connect: connection refused", Obstacle::Refused),
            ("context deadline exceeded", Obstacle::Timeout),
            ("net/http: request canceled while waiting for connection (Client.Timeout exceeded)", Obstacle::Timeout),
            ("dial tcp 10.0.0.9:8443: i/o timeout", Obstacle::Timeout),
            ("tls: failed to verify certificate: x509: certificate signed by unknown authority", Obstacle::Certificate),
            ("no endpoints available for service \"interlock\"", Obstacle::NoEndpoint),
            ("service \"interlock\" not found", Obstacle::NoService),
            ("EOF", Obstacle::Unknown),
        ] {
            assert_eq!(Obstacle::of(&format!("{call}{reason}")), obstacle, "{reason}");
        }
        assert!(Obstacle::Timeout.usual_cause().contains("10250"));
    }
}

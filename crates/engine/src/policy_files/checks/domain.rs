//! The possible values of the fields of a policy: an alphabet and a shape each. A glob that matches no possible value
//! is a mistake.

use std::sync::OnceLock;

use super::language::Language;
use crate::policy_files::file::nearest_to;
use crate::release::Storage;
use crate::review::Operation;

/// A DNS label (RFC 1123), such as the name of a namespace.
const DNS_LABEL: &str = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?";
/// A DNS subdomain, such as the name of most objects.
const DNS_SUBDOMAIN: &str = "[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?";

/// The beginning of the user names of all service accounts, and of no other user.
const ACCOUNT: &str = "system:serviceaccount";

/// The beginning of the names of the cluster's own users.
const RESERVED: &str = "system:";

/// Kinds that are common in policies, to recognise a plural or a typing error. Other kinds are as valid.
const KNOWN_KINDS: [&str; 32] = [
    "Application",
    "ClusterExtension",
    "ClusterObjectSet",
    "ClusterRole",
    "ClusterRoleBinding",
    "ConfigMap",
    "ConfigurationGroup",
    "CronJob",
    "CustomResourceDefinition",
    "DaemonSet",
    "Deployment",
    "Endpoints",
    "HelmRelease",
    "HorizontalPodAutoscaler",
    "Ingress",
    "Job",
    "Kustomization",
    "Namespace",
    "NetworkPolicy",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodDisruptionBudget",
    "ReplicaSet",
    "ReplicationController",
    "Role",
    "RoleBinding",
    "Secret",
    "Service",
    "ServiceAccount",
    "StatefulSet",
    "StorageClass",
];

/// The values of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Domain {
    User,
    /// Users that may be sessions of a pipeline.
    Session,
    /// Users that are service accounts.
    AccountUser,
    Group,
    ServiceAccount,
    /// Names of pipelines.
    Pipeline,
    /// The namespace of an object; empty for a cluster-scoped object.
    Namespace,
    Release,
    /// Commits of Sveltos, which count as releases.
    Commit,
    Kind,
    /// The kinds of the objects that store records.
    RecordKind,
    ObjectName,
    Operation,
    Owner,
    /// A field that the requests of a rule do not have.
    Nothing,
}

impl Domain {
    const COUNT: usize = 15;

    /// The values; `None` if they cannot be computed within bounds.
    pub(super) fn language(self) -> Option<&'static Language> {
        static LANGUAGES: [OnceLock<Option<Language>>; Domain::COUNT] = [const { OnceLock::new() }; Domain::COUNT];
        LANGUAGES[self as usize].get_or_init(|| Language::of(&[anchored(&self.expression())])).as_ref()
    }

    /// The shape of a value, to complete a sentence.
    pub(super) fn shape(self) -> &'static str {
        match self {
            Self::User | Self::AccountUser => "a service account is the user system:serviceaccount:NAMESPACE:NAME",
            Self::Session => {
                "a session of a pipeline has no name that starts with system:, except system:serviceaccount:NAMESPACE:NAME"
            }
            Self::Pipeline => "the name of a pipeline has lower-case letters, digits, `-` and `.` only",
            Self::Group => {
                "the groups of service accounts are system:serviceaccounts and system:serviceaccounts:NAMESPACE"
            }
            Self::ServiceAccount => "a service account is NAMESPACE:NAME here, for example ci:deployer",
            Self::Namespace => "a namespace has lower-case letters, digits and hyphens only",
            Self::Release => "a release is named without its namespace, and has letters, digits, `-`, `_` and `.` only",
            Self::Commit => "a commit of bundles is named CLUSTERSUMMARY.helm or CLUSTERSUMMARY.resources",
            Self::Kind => "a kind starts with a capital letter and has no plural, for example Deployment",
            Self::RecordKind => "this rule judges records, which are of the kinds Secret and ConfigMap",
            Self::ObjectName => "the name of an object has no `/` and no `%`",
            Self::Operation => "an operation is CREATE, UPDATE or DELETE",
            Self::Owner => "an owner is helm or operator-controller",
            Self::Nothing => "only records have owners, and this rule does not judge records",
        }
    }

    /// Whether every request has a value of this field. Then a condition with all values holds for every request.
    pub(super) fn is_always_given(self) -> bool {
        matches!(
            self,
            Self::User | Self::Namespace | Self::Kind | Self::RecordKind | Self::Operation | Self::ObjectName
        )
    }

    /// A value that few lists have: a list without it does not match all values.
    pub(super) fn sample(self) -> &'static str {
        match self {
            Self::User | Self::Session | Self::Group => "somebody@interlock.dev",
            Self::AccountUser => "system:serviceaccount:sample:sample",
            Self::ServiceAccount => "sample:sample",
            Self::Pipeline | Self::Namespace | Self::Release | Self::ObjectName => "sample",
            Self::Commit => "sample.helm",
            Self::Kind => "Sample",
            Self::RecordKind => "ConfigMap",
            Self::Operation => "DELETE",
            Self::Owner => "operator-controller",
            Self::Nothing => "",
        }
    }

    /// The value that was probably meant.
    pub(super) fn nearest(self, text: &str) -> Option<&'static str> {
        match self {
            Self::Kind => {
                let singular = KNOWN_KINDS.into_iter().find(|kind| is_plural_of(text, kind));
                singular.or_else(|| nearest_to(text, KNOWN_KINDS.into_iter()))
            }
            Self::RecordKind => nearest_to(text, record_kinds().into_iter()),
            Self::Operation => nearest_to(text, operations().into_iter()),
            Self::Owner => nearest_to(text, owners().into_iter()),
            _ => None,
        }
    }

    /// The value that was probably meant by a text that is possible, but hardly differs from a usual value.
    pub(super) fn doubted(self, text: &str) -> Option<String> {
        match self {
            Self::Kind if !KNOWN_KINDS.contains(&text) => {
                let meant = KNOWN_KINDS.into_iter().find(|kind| is_plural_of(text, kind) || is_slip_of(text, kind));
                meant.map(str::to_owned)
            }
            Self::User | Self::Session | Self::Group if text.trim() != text => Some(text.trim().to_owned()),
            Self::User | Self::Session => {
                let end = text.match_indices(':').nth(1)?.0;
                let known = [ACCOUNT, "system:node"];
                let meant = known.into_iter().find(|known| is_slip_of(&text[..end], known))?;
                Some(format!("{meant}{}", &text[end..]))
            }
            _ => None,
        }
    }

    fn expression(self) -> String {
        match self {
            Self::User => format!("{}|{ACCOUNT}:{DNS_LABEL}:{DNS_SUBDOMAIN}", not_starting_with(ACCOUNT)),
            Self::Session => format!("{}|{ACCOUNT}:{DNS_LABEL}:{DNS_SUBDOMAIN}", not_starting_with(RESERVED)),
            Self::AccountUser => format!("{ACCOUNT}:{DNS_LABEL}:{DNS_SUBDOMAIN}"),
            Self::Pipeline => DNS_SUBDOMAIN.to_owned(),
            Self::Group => format!("{}|{ACCOUNT}s(:{DNS_LABEL})?", not_starting_with(ACCOUNT)),
            Self::ServiceAccount => format!("{DNS_LABEL}:{DNS_SUBDOMAIN}"),
            Self::Namespace => format!("({DNS_LABEL})?"),
            // Helm's names are lower case. Its records have them as labels, which other clients write too, and profiles
            // are objects.
            Self::Release => "[A-Za-z0-9]([-A-Za-z0-9_.]{0,251}[A-Za-z0-9])?".to_owned(),
            Self::Commit => format!("{DNS_SUBDOMAIN}\\.(helm|resources)"),
            Self::Kind => "[A-Z][-A-Za-z0-9]{0,62}".to_owned(),
            Self::RecordKind => record_kinds().join("|"),
            Self::ObjectName => "[^/%]{1,253}".to_owned(),
            Self::Operation => operations().join("|"),
            Self::Owner => owners().join("|"),
            Self::Nothing => "[^\\x00-\\xff]".to_owned(),
        }
    }
}

/// An expression that matches only complete texts, byte by byte.
fn anchored(expression: &str) -> String {
    format!("(?-u)^(?:{expression})$")
}

/// Every text that does not start with this one, except the empty text.
fn not_starting_with(prefix: &str) -> String {
    let differs = prefix.char_indices().map(|(at, letter)| match at {
        0 => format!("[^{letter}].*"),
        _ => format!("{}([^{letter}].*)?", &prefix[..at]),
    });
    format!("(?:{})", differs.collect::<Vec<_>>().join("|"))
}

fn operations() -> [&'static str; 3] {
    [Operation::Create, Operation::Update, Operation::Delete].map(Operation::as_str)
}

fn record_kinds() -> [&'static str; 2] {
    [Storage::Secret, Storage::ConfigMap].map(Storage::kind)
}

fn owners() -> [&'static str; 2] {
    [Storage::Secret, Storage::Index].map(Storage::owner)
}

/// Whether a text is the plural of a kind, or the kind in another case.
fn is_plural_of(text: &str, kind: &str) -> bool {
    let (text, kind) = (text.to_lowercase(), kind.to_lowercase());
    let stem = kind.strip_suffix('y').map(|stem| format!("{stem}ies"));
    text == kind
        || [format!("{kind}s"), format!("{kind}es")].contains(&text)
        || stem.is_some_and(|plural| plural == text)
}

/// Whether a text differs from a word only by its case, or by at most two letters in a long word and one in a short
/// word.
fn is_slip_of(text: &str, word: &str) -> bool {
    let slips = if word.len() > 12 { 2 } else { 1 };
    text != word && strsim::damerau_levenshtein(&text.to_lowercase(), &word.to_lowercase()) <= slips
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_domain_has_the_values_that_requests_have() {
        let long = "x".repeat(63);
        for (domain, values, others) in [
            (
                Domain::User,
                &[
                    "alice",
                    "system:serviceaccount:ci:deployer",
                    "system:serviceaccount:ci:a.b",
                    "system:node:a",
                    "Иван",
                    "s",
                ][..],
                &[
                    "system:serviceaccount:ci",
                    "system:serviceaccounts:ci:a",
                    "system:serviceaccount:ci/a",
                    "system:serviceaccount",
                ][..],
            ),
            (
                Domain::Session,
                &["gitlab:ci_job:7", "arn:aws:sts::1:assumed-role/a/b", "system:serviceaccount:ci:deployer", "system"],
                &["system:admin", "system:node:a", "system:serviceaccount:ci"],
            ),
            (Domain::AccountUser, &["system:serviceaccount:ci:a"], &["system:serviceaccount:ci", "alice"]),
            (Domain::Pipeline, &["deploy", "a.b-1"], &["Deploy", "a/b", ""]),
            (
                Domain::Group,
                &["devs", "system:masters", "system:serviceaccounts", "system:serviceaccounts:ci", "a b"],
                &["system:serviceaccount:ci:deployer", "system:serviceaccounts:CI"],
            ),
            (Domain::ServiceAccount, &["ci:deployer"], &["deployer", "ci:a:b", "system:serviceaccount:ci:a", "Ci:a"]),
            (Domain::Namespace, &["shop", "", "0", &long], &["Shop", "shop/web", "shop.web", "-a", "магазин"]),
            (Domain::Release, &["web", "a.v1", "Web", "web_1"], &["shop/web", "web ", "", "wеb"]),
            (Domain::Commit, &["shop-sveltos-prod.helm", "a.resources"], &["web", "shop/web", ".helm"]),
            (Domain::Kind, &["Deployment", "HTTPRoute", "K8s"], &["deployment", "secrets", "apps/Deployment", ""]),
            (Domain::RecordKind, &["Secret", "ConfigMap"], &["Deployment", "secret"]),
            (Domain::ObjectName, &["web", "system:node", "Роль"], &["a/b", "", "50%"]),
            (Domain::Operation, &["CREATE", "UPDATE", "DELETE"], &["create", "PATCH", "CONNECT"]),
            (Domain::Owner, &["helm", "operator-controller"], &["Helm", "flux"]),
            (Domain::Nothing, &[], &["", "helm"]),
        ] {
            let language = domain.language().unwrap();
            assert_eq!(language.contains(domain.sample()), domain != Domain::Nothing, "{domain:?}");
            for value in values {
                assert!(language.contains(value), "{domain:?} {value}");
            }
            for other in others {
                assert!(!language.contains(other), "{domain:?} {other}");
            }
        }
        assert_eq!(Domain::COUNT, Domain::Nothing as usize + 1);
        let kinds = KNOWN_KINDS.map(|kind| Domain::Kind.language().unwrap().contains(kind));
        assert!(kinds.iter().all(|known| *known) && KNOWN_KINDS.is_sorted());
    }

    #[test]
    fn the_intended_value_is_recognised() {
        for (domain, text, meant) in [
            (Domain::Kind, "secrets", Some("Secret")),
            (Domain::Kind, "networkpolicies", Some("NetworkPolicy")),
            (Domain::Kind, "deploymnet", Some("Deployment")),
            (Domain::Operation, "create", Some("CREATE")),
            (Domain::Owner, "Helm", Some("helm")),
            (Domain::Kind, "widgets", None),
            (Domain::Namespace, "Shop", None),
        ] {
            assert_eq!(domain.nearest(text), meant, "{text}");
        }
        for (domain, text, meant) in [
            (Domain::Kind, "Secrets", Some("Secret")),
            (Domain::Kind, "Deploymnet", Some("Deployment")),
            (Domain::Kind, "Deployment", None),
            (Domain::Kind, "Rollout", None),
            (Domain::User, "sytem:serviceaccount:ci:a", Some("system:serviceaccount:ci:a")),
            (Domain::User, "System:ServiceAccount:ci:a", Some("system:serviceaccount:ci:a")),
            (Domain::User, "system:nodes:a", Some("system:node:a")),
            (Domain::User, "system:serviceaccount:ci:a", None),
            (Domain::User, "eks:nodegroup-manager:a", None),
            (Domain::User, "oidc:alice", None),
            (Domain::Group, "devs ", Some("devs")),
        ] {
            assert_eq!(domain.doubted(text).as_deref(), meant, "{text}");
        }
    }
}

//! The user behind a request. Only `userInfo` counts, because clients choose field manager and user agent freely.

mod control_plane;

use std::borrow::Cow;

use crate::object::{MAX_NAME_LENGTH, SERVICE_ACCOUNT_PREFIX, is_dns_label, is_dns_subdomain};
use crate::release::Stamps;
use crate::review::{BoundPod, UserInfo};

/// The prefix that Kubernetes reserves for itself and the platform. Authenticators give it to no other user.
const RESERVED_PREFIX: &str = "system:";

/// Reserved prefixes of single identities. A name with such a prefix that is not a valid identity is not a platform.
const IDENTITY_PREFIXES: [&str; 3] = ["system:node:", SERVICE_ACCOUNT_PREFIX, "system:bootstrap:"];

/// Reserved names of users that are people: the administrator of k3s and OpenShift, and a client without credentials.
const RESERVED_PEOPLE: [&str; 2] = ["system:admin", "system:anonymous"];

/// The prefix of a node's user name.
const NODE_PREFIX: &str = "system:node:";

/// The group of every node. The API server's authorizer requires it too.
const NODES: &str = "system:nodes";

/// The user behind a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Actor<'r> {
    pub name: &'r str,
    pub kind: ActorKind,
    pub groups: &'r [Cow<'r, str>],
    /// The pipeline of the policy that the user is a session of.
    pub session: Option<Session<'r>>,
    /// The pod that the token of a service account is bound to.
    pub pod: Option<BoundPod<'r>>,
    account: Option<&'r str>,
}

/// The kinds of actors that rules distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActorKind {
    /// `system:serviceaccount:NAMESPACE:NAME`.
    ServiceAccount,
    /// The control plane's own controllers, the API server and the scheduler.
    ControlPlane,
    /// A part of the platform: other users with the prefix `system:`, and users that the policy lists.
    Platform,
    /// A session of a pipeline that the policy lists.
    Pipeline,
    /// `system:node:NAME` in the group `system:nodes`.
    Node,
    /// Interlock itself, known by the name of its account at the API server.
    Interlock,
    /// Any other user, including `system:masters`: break-glass needs an override, not a group.
    Person,
}

/// A session of a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session<'r> {
    pub pipeline: &'r str,
    pub holder: SharedHolder<'r>,
}

/// Which sessions of a pipeline share an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedHolder<'r> {
    /// None. Each session is its own holder, by its user name.
    Session,
    /// All sessions of the pipeline.
    Pipeline,
    /// The sessions in this group.
    Group(&'r str),
}

impl ActorKind {
    /// The spelling in messages and documents.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ServiceAccount => "service account",
            Self::ControlPlane => "control plane",
            Self::Platform => "platform",
            Self::Pipeline => "pipeline",
            Self::Node => "node",
            Self::Interlock => "Interlock",
            Self::Person => "person",
        }
    }
}

impl Session<'_> {
    /// The stamp on operations that sessions share: `PIPELINE`, or `PIPELINE/GROUP`. `None` if each session is its own holder.
    /// The name of a pipeline has no `/`.
    #[must_use]
    pub fn stamp(&self) -> Option<String> {
        match self.holder {
            SharedHolder::Session => None,
            SharedHolder::Pipeline => Some(self.pipeline.to_owned()),
            SharedHolder::Group(group) => Some(format!("{}/{group}", self.pipeline)),
        }
    }

    fn has_stamp(&self, stamp: &str) -> bool {
        let rest = stamp.strip_prefix(self.pipeline);
        match self.holder {
            SharedHolder::Session => false,
            SharedHolder::Pipeline => rest == Some(""),
            SharedHolder::Group(group) => rest.and_then(|rest| rest.strip_prefix('/')) == Some(group),
        }
    }
}

impl<'r> Actor<'r> {
    /// Reads the actor from `userInfo`. Only a policy knows the platforms and pipelines that it lists.
    #[must_use]
    pub fn of(user: &'r UserInfo<'r>) -> Self {
        let named = Self::named(user.username.as_ref(), &user.groups);
        Self { pod: named.account.and_then(|_| user.pod()), ..named }
    }

    /// The user with this name, in these groups.
    #[must_use]
    pub fn named(name: &'r str, groups: &'r [Cow<'r, str>]) -> Self {
        let account = name.strip_prefix(SERVICE_ACCOUNT_PREFIX).filter(|account| is_account(account));
        Self { name, kind: kind_of(name, account, groups), groups, session: None, pod: None, account }
    }

    /// `NAMESPACE:NAME` of a service account.
    #[must_use]
    pub fn service_account(&self) -> Option<&'r str> {
        self.account
    }

    /// Whether the user is the service account of another program, regardless of its kind.
    #[must_use]
    pub fn is_service_account(&self) -> bool {
        self.account.is_some() && self.kind != ActorKind::Interlock
    }

    /// Whether the name has the reserved prefix and is not a service account. Only the platform gives out such names.
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        self.account.is_none() && self.name.starts_with(RESERVED_PREFIX)
    }

    /// Whether the user holds the operation with these stamps: by name, or as a session of the pipeline that holds it. All rules
    /// use this check.
    #[must_use]
    pub fn holds(&self, stamps: &Stamps) -> bool {
        stamps.holder() == Some(self.name) || self.shares(stamps)
    }

    /// Whether the user is a session of the pipeline that holds the operation with these stamps.
    #[must_use]
    pub fn shares(&self, stamps: &Stamps) -> bool {
        let stamped = stamps.pipeline().zip(self.session);
        stamped.is_some_and(|(stamp, session)| session.has_stamp(stamp))
    }

    /// Whether rules about records treat the user as a person, who may err and run helm in two terminals. Platforms deploy
    /// nothing, so rules about records treat them like any other user.
    #[must_use]
    pub fn is_person_on_records(&self) -> bool {
        match self.kind {
            ActorKind::Person => true,
            ActorKind::Platform => self.account.is_none(),
            _ => false,
        }
    }

    /// The same actor as a platform, which the policy lists.
    #[must_use]
    pub fn as_platform(self) -> Self {
        Self { kind: ActorKind::Platform, ..self }
    }

    /// The same actor as a session of a pipeline, which the policy lists.
    #[must_use]
    pub fn as_session(self, session: Session<'r>) -> Self {
        Self { kind: ActorKind::Pipeline, session: Some(session), ..self }
    }

    /// The same actor, or Interlock if its account has this name.
    #[must_use]
    pub fn or_interlock(self, ourselves: Option<&str>) -> Self {
        if ourselves == Some(self.name) { Self { kind: ActorKind::Interlock, ..self } } else { self }
    }
}

/// Whether a text is `NAMESPACE:NAME` of a valid service account.
fn is_account(text: &str) -> bool {
    text.split_once(':')
        .is_some_and(|(namespace, name)| is_dns_label(namespace) && is_dns_subdomain(name, MAX_NAME_LENGTH))
}

fn kind_of(name: &str, account: Option<&str>, groups: &[Cow<'_, str>]) -> ActorKind {
    if control_plane::is_component(name) || account.is_some_and(control_plane::is_controller) {
        return ActorKind::ControlPlane;
    }
    if account.is_some() {
        return ActorKind::ServiceAccount;
    }
    let node = name.strip_prefix(NODE_PREFIX).filter(|node| !node.is_empty());
    if node.is_some() && groups.iter().any(|group| group == NODES) {
        return ActorKind::Node;
    }
    // Kubernetes' own names are printable ASCII. Other names may only look like them.
    let is_reserved = name.starts_with(RESERVED_PREFIX) && name.bytes().all(|byte| byte.is_ascii_graphic());
    if is_reserved && may_be_platform(name) { ActorKind::Platform } else { ActorKind::Person }
}

/// Whether a user that is not a service account may be a platform. People with a reserved name may not, in upper or lower case.
/// Invalid identities may not either.
#[must_use]
pub(crate) fn may_be_platform(name: &str) -> bool {
    let is_identity = IDENTITY_PREFIXES.iter().any(|prefix| {
        // `system:node` without a node's name is invalid too.
        let stem = prefix.trim_end_matches(':');
        let start = name.get(..stem.len()).is_some_and(|start| start.eq_ignore_ascii_case(stem));
        start && matches!(name.as_bytes().get(stem.len()), None | Some(b':'))
    });
    let is_person = RESERVED_PEOPLE.iter().any(|person| name.eq_ignore_ascii_case(person));
    !name.is_empty() && name != RESERVED_PREFIX && !is_identity && !is_person
}

#[cfg(test)]
mod tests;

//! Flows: the units between which turns and memory are shared.

/// The prefix of the names of service accounts. The namespace follows it.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// The sender of a review, as far as its connection shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Peer {
    /// An API server, or a proxy that forwards its calls.
    Known,
    /// Any other client that reaches the port.
    Stranger,
}

/// The unit that takes turns: a peer, and a part of it that tenants cannot multiply. The part is the namespace of a service
/// account, and otherwise the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow<'u> {
    peer: Peer,
    owner: FlowOwner<'u>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum FlowOwner<'u> {
    /// All service accounts of a namespace.
    Namespace(&'u str),
    User(&'u str),
    Interlock,
}

impl<'u> Flow<'u> {
    /// The flow of the reviews of a user.
    #[must_use]
    pub fn of(peer: Peer, user: &'u str) -> Self {
        let account = user.strip_prefix(SERVICE_ACCOUNT).and_then(|account| account.split_once(':'));
        Self { peer, owner: account.map_or(FlowOwner::User(user), |(namespace, _)| FlowOwner::Namespace(namespace)) }
    }

    /// The flow of Interlock's own reads, including its reads from the API server.
    #[must_use]
    pub fn own() -> Self {
        Self { peer: Peer::Known, owner: FlowOwner::Interlock }
    }

    pub(super) fn is_of_strangers(self) -> bool {
        self.peer == Peer::Stranger
    }

    /// Whether its reviews prove that the API server calls.
    pub(super) fn is_called(self) -> bool {
        self.peer == Peer::Known && self.owner != FlowOwner::Interlock
    }

    /// Whether its steps give way to reviews from the API server.
    pub(super) fn gives_way(self) -> bool {
        !self.is_called()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_accounts_of_a_namespace_are_one_flow() {
        let of = |user| Flow::of(Peer::Known, user);
        assert_eq!(of("system:serviceaccount:shop:a"), of("system:serviceaccount:shop:b"));
        assert_ne!(of("system:serviceaccount:shop:a"), of("system:serviceaccount:shop-2:a"));
        assert_ne!(of("alice"), of("bob"));
        assert_ne!(of("alice"), Flow::of(Peer::Stranger, "alice"));
        // A service account always has a name after its namespace.
        assert_eq!(of("system:serviceaccount:shop").owner, FlowOwner::User("system:serviceaccount:shop"));
    }
}

//! Whose review it is, as far as reviews share turns and memory.

/// The prefix of the names of service accounts, which their namespace follows.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// Who sends a review, as far as its connection shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Peer {
    /// An API server, or who carries its calls.
    Known,
    /// Anybody else who reaches the port.
    Stranger,
}

/// What takes turns with others: a peer, and within it what a tenant cannot multiply. That is the namespace of a service account,
/// and otherwise the user.
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

    /// The flow of what Interlock reads by itself, and of what it reads from the API server.
    #[must_use]
    pub fn own() -> Self {
        Self { peer: Peer::Known, owner: FlowOwner::Interlock }
    }

    pub(super) fn is_of_strangers(self) -> bool {
        self.peer == Peer::Stranger
    }

    /// Whether it shows that the API server calls.
    pub(super) fn is_called(self) -> bool {
        self.peer == Peer::Known && self.owner != FlowOwner::Interlock
    }

    /// Whether its steps give way to those of reviews from the API server, as those of strangers do.
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
        // No service account has such a name.
        assert_eq!(of("system:serviceaccount:shop").owner, FlowOwner::User("system:serviceaccount:shop"));
    }
}

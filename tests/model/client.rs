//! What a client is: a program under an account, as operations that are sequences of writes.
//!
//! A client reads the cluster when it begins an operation, and keeps copies of what it read in the writes that it plans: that is
//! where the real clients' lost updates come from. It may read again in the middle ([`Act::Look`]). It may be killed before
//! any of its acts.

use interlock_engine::release::Status;

use crate::cluster::{Body, Chart, Cluster, Driver, Other, Revision};
use crate::users::User;

/// One write of a client, as it sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Write {
    /// CREATE of a record.
    Create(Body),
    /// CREATE of a record whose label `status` is not that of its body.
    CreateLabelled(Body, Status),
    /// CREATE of a record with a stamp of the client's choice, while the mutating half is out of service.
    CreateStamped(Body, Stamp),
    /// UPDATE of a record, without a resourceVersion: the last writer wins.
    Update(Body),
    /// DELETE of a record by its name.
    Delete(Driver, Revision),
    /// `kubectl label`.
    Relabel(Driver, Revision, Status),
    /// `kubectl annotate`: removes the note of an interrupted operation.
    RemoveNote(Driver, Revision),
    /// The object as the chart has it, created or updated.
    Apply(Chart),
    /// `kubectl create` of the object, where it is missing.
    Restore(Chart),
    /// `kubectl edit` of a declared field of the object.
    Edit,
    DeleteObject,
    /// Creates an object beside those of the release.
    Put(Other),
    /// Deletes it.
    Take(Other),
}

/// A forged stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Stamp {
    Holder(User),
    /// Names the HelmRelease of the release.
    Driver,
}

/// One step of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Act {
    /// Sends a write. The reaction is to any error: a refusal, 404, 409.
    Write(Write, Reaction),
    /// Reads the cluster, and goes on as [`Client::look`] says. The number says what for; the copies are what it has in memory.
    Look(u8, Vec<Body>),
    /// Sets what the client remembers between operations.
    Remember(u16),
}

/// What a client does when a write fails.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Reaction {
    /// Goes on as if nothing had happened.
    GoOn,
    /// Ends the operation.
    Stop,
    /// Does this in place of the rest.
    Instead(Vec<Act>),
}

impl Act {
    pub(crate) fn go_on(write: Write) -> Self {
        Self::Write(write, Reaction::GoOn)
    }

    pub(crate) fn or_stop(write: Write) -> Self {
        Self::Write(write, Reaction::Stop)
    }

    /// The copies of records that this act will write.
    pub(crate) fn copies(&self) -> Vec<Body> {
        match self {
            Self::Write(write, reaction) => {
                let mut copies = match write {
                    Write::Create(body)
                    | Write::Update(body)
                    | Write::CreateLabelled(body, _)
                    | Write::CreateStamped(body, _) => vec![*body],
                    _ => Vec::new(),
                };
                if let Reaction::Instead(acts) = reaction {
                    copies.extend(acts.iter().flat_map(Self::copies));
                }
                copies
            }
            Self::Look(_, copies) => copies.clone(),
            Self::Remember(_) => Vec::new(),
        }
    }
}

/// An operation that a client may begin.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    pub(crate) name: &'static str,
    pub(crate) acts: Vec<Act>,
}

/// What a client sees when it reads.
pub(crate) struct View<'c> {
    pub(crate) cluster: &'c Cluster,
    /// What it remembers of its earlier operations; 0 at first.
    pub(crate) memory: u16,
    /// The lives in the copies of the other client, as bits.
    pub(crate) lives: u32,
}

impl View<'_> {
    /// A life for a new record of this revision: none of the other client's copies is of it.
    pub(crate) fn new_life(&self, revision: Revision) -> u8 {
        (0..LIVES).find(|life| self.lives & life_bit(revision, *life) == 0).unwrap_or(LIVES - 1)
    }
}

/// How many lives of one revision are told apart.
const LIVES: u8 = 3;

fn life_bit(revision: Revision, life: u8) -> u32 {
    1_u32.rotate_left(u32::from(revision) * u32::from(LIVES) + u32::from(life))
}

/// Whether a cluster is where an owner wants it.
pub(crate) type Goal = fn(&Cluster) -> bool;

/// A program under an account.
pub(crate) trait Client: Sync {
    fn name(&self) -> &'static str;

    fn user(&self) -> User;

    /// The operations that it may begin now. An operation that the program itself would not start, as `helm upgrade` over a pending
    /// record, is none.
    fn begin(&self, view: &View<'_>) -> Vec<Operation>;

    /// How it goes on after reading in the middle of an operation: the acts that replace the look, one for each way.
    fn look(&self, what: u8, copies: &[Body], view: &View<'_>) -> Vec<Vec<Act>> {
        let _ = (what, copies, view);
        Vec::new()
    }

    /// Where an owner of the release wants to get to, whatever has happened: a deployed release, or none. `None` for a client that owns
    /// nothing.
    fn goal(&self) -> Option<Goal> {
        None
    }

    /// What goes with it when it dies.
    fn dies_with(&self) -> &'static [Other] {
        &[]
    }

    /// Who sends a write: somebody else where a client's way out is another's.
    fn user_of(&self, write: &Write) -> User {
        let _ = write;
        self.user()
    }

    /// What is left of its memory if it is killed.
    fn after_kill(&self, memory: u16) -> u16 {
        memory
    }
}

/// Where a client is in its operations.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Process {
    /// Operations that it may still begin.
    pub(crate) left: u8,
    pub(crate) memory: u16,
    /// What is left of the operation; empty between operations.
    pub(crate) acts: Vec<Act>,
}

impl Process {
    pub(crate) fn idle(left: u8) -> Self {
        Self { left, ..Self::default() }
    }

    /// Whether it holds nelm's lease, or is about to take and release it.
    pub(crate) fn holds_lease(&self) -> bool {
        self.acts.iter().any(|act| matches!(act, Act::Write(Write::Take(Other::Lease), _)))
    }

    /// The lives in its copies, as bits.
    pub(crate) fn lives(&self) -> u32 {
        let copies = self.acts.iter().flat_map(Act::copies);
        copies.fold(0, |bits, copy| bits | life_bit(copy.revision, copy.life))
    }
}

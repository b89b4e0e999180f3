//! The records of a release, by their metadata.

use jiff::Timestamp;

use super::{ProtectorRef, Revision, Stamps, Status};

/// A record of a release, by its metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    /// Empty if unknown. A reinstalled release may use the same object name again.
    pub uid: String,
    /// Empty if unknown.
    pub resource_version: String,
    /// From the label `version`.
    pub revision: Revision,
    /// From the label `status`.
    pub status: Status,
    /// The server's clock at creation.
    pub created: Option<Timestamp>,
    /// The annotations that the mutating half writes when the operation starts.
    pub stamps: Stamps,
}

impl Entry {
    /// When the operation of this record started, by the server's clock.
    #[must_use]
    pub fn started(&self) -> Option<Timestamp> {
        self.stamps.operation_started(Some(self.status), self.created)
    }
}

/// The records of one release in one storage, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct History(Vec<Entry>);

impl History {
    /// Orders records by revision.
    #[must_use]
    pub fn new(mut entries: Vec<Entry>) -> Self {
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.revision));
        Self(entries)
    }

    /// The records, newest first.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.0.iter()
    }

    /// The record with the highest revision.
    #[must_use]
    pub fn newest(&self) -> Option<&Entry> {
        self.0.first()
    }

    /// The stamps of the newest record; none without a record.
    #[must_use]
    pub fn stamps(&self) -> &Stamps {
        self.newest().map_or(Stamps::NONE, |newest| &newest.stamps)
    }

    /// The deployed record with the highest revision, which Helm upgrades from.
    #[must_use]
    pub fn newest_deployed(&self) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.status == Status::Deployed)
    }

    /// Whether the release exists, or is being created or removed: a record is deployed or in flight, and the newest
    /// record is not uninstalled.
    #[must_use]
    pub fn is_live(&self) -> bool {
        let gone = self.newest().is_none_or(|newest| newest.status == Status::Uninstalled);
        !gone && self.0.iter().any(|entry| entry.status == Status::Deployed || entry.status.is_in_flight())
    }

    /// Whether a revision was deployed since the release was last uninstalled.
    #[must_use]
    pub fn was_deployed(&self) -> bool {
        let is_deployed = self.newest_deployed().is_some();
        match self.newest().map(|newest| newest.status) {
            // An install starts a new life. `helm install --replace` marks earlier uninstalled revisions as superseded.
            Some(Status::PendingInstall) => is_deployed,
            _ => {
                let mut life = self.0.iter().take_while(|entry| entry.status != Status::Uninstalled);
                is_deployed || life.any(|entry| entry.status == Status::Superseded)
            }
        }
    }

    /// The objects that protect the release by the stamps of its records. Stamps below the newest deployed record may be of an earlier
    /// life of the release, which somebody was allowed to end.
    pub fn protectors(&self) -> impl Iterator<Item = ProtectorRef<'_>> {
        let base = self.newest_deployed().map_or(Revision(0), |base| base.revision);
        let life = self.0.iter().take_while(move |it| it.revision >= base && it.status != Status::Uninstalled);
        life.filter_map(|entry| entry.stamps.protected_by())
    }

    /// The records above a revision, newest first.
    pub fn above(&self, revision: Revision) -> impl Iterator<Item = &Entry> {
        self.0.iter().take_while(move |entry| entry.revision > revision)
    }

    /// The records below a revision, newest first.
    pub fn below(&self, revision: Revision) -> impl Iterator<Item = &Entry> {
        self.0.iter().filter(move |entry| entry.revision < revision)
    }
}

#[cfg(any(test, feature = "fixtures"))]
impl Entry {
    /// A record of release `web`, for tests.
    #[must_use]
    pub fn of_web(revision: u64, status: Status) -> Self {
        Self {
            name: format!("sh.helm.release.v1.web.v{revision}"),
            uid: String::new(),
            resource_version: String::new(),
            revision: Revision(revision),
            status,
            created: None,
            stamps: Stamps::default(),
        }
    }
}

//! The storage of records, as commands and JSON spell it.

use interlock_engine::release::Storage;
use serde::Serialize;

/// The storage of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StorageKind {
    /// Helm's Secrets.
    Secret,
    /// Helm's ConfigMaps.
    ConfigMap,
    /// OLM's Secrets.
    Olm,
}

impl From<Storage> for StorageKind {
    fn from(storage: Storage) -> Self {
        match storage {
            Storage::Secret => Self::Secret,
            Storage::ConfigMap => Self::ConfigMap,
            Storage::Index => Self::Olm,
        }
    }
}

impl From<StorageKind> for Storage {
    fn from(kept: StorageKind) -> Self {
        match kept {
            StorageKind::Secret => Self::Secret,
            StorageKind::ConfigMap => Self::ConfigMap,
            StorageKind::Olm => Self::Index,
        }
    }
}

impl StorageKind {
    /// The spelling in commands and JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Secret => "secret",
            Self::ConfigMap => "configmap",
            Self::Olm => "olm",
        }
    }
}

//! Ends the protection of a release by an annotated object that has been deleted: removes the stamps that name it.

use std::collections::BTreeSet;

use interlock_engine::evidence::question;
use interlock_engine::owners::key_of_protector;
use interlock_engine::release::stamps::PROTECTED_BY;
use interlock_engine::release::{Entry, ProtectorRef, ProtectorState, ReleaseRef, Storage};
use kube::{Client, Error};

use super::annotation::annotate;
use super::records::history;
use crate::world::ask;
use crate::world::kubernetes::Cluster;
use crate::world::kubernetes::api_error::reason;

/// Why the protection of a release does not end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnprotectError {
    /// The leader would set the stamp again.
    #[error("{object} still exists and is annotated, so remove its annotation instead: {command}")]
    Annotated { object: String, command: String },
    /// An admission webhook refused the write.
    #[error("{0}")]
    Refused(String),
    #[error("the record {0} has changed since it was read: try again")]
    Changed(String),
    #[error("failed to {what}: {why}")]
    Failed { what: String, why: String },
}

/// The stamped records of a release.
#[derive(Debug, Default)]
pub(crate) struct Stamped {
    pub(crate) records: Vec<(Storage, Entry)>,
    /// The deleted objects that protect the release, as people name them.
    pub(crate) protectors: BTreeSet<String>,
}

impl Stamped {
    /// Reads the records, and what has become of the objects that their stamps name.
    ///
    /// # Errors
    /// When an object still protects the release, or when the API server does not answer.
    pub(crate) async fn read(cluster: &Cluster, release: &ReleaseRef) -> Result<Self, UnprotectError> {
        let mut stamped = Self::default();
        for storage in Storage::ALL {
            let history = history(cluster, release, storage).await;
            let history = history.map_err(|why| failed(format!("read the records of release {release}"), why))?;
            for entry in history.iter() {
                let Some(stamp) = entry.stamps.get(PROTECTED_BY) else { continue };
                match ProtectorRef::parse(stamp) {
                    Some(protector) => stamped.add(cluster, protector).await?,
                    None => _ = stamped.protectors.insert(stamp.to_owned()),
                }
                stamped.records.push((storage, entry.clone()));
            }
        }
        Ok(stamped)
    }

    async fn add(&mut self, cluster: &Cluster, protector: ProtectorRef<'_>) -> Result<(), UnprotectError> {
        let object = protector.title();
        if self.protectors.contains(&object) {
            return Ok(());
        }
        if let Some(key) = key_of_protector(protector) {
            let what = || format!("read {object}");
            let stored = ask(cluster, question::Object(key)).await.map_err(|why| failed(what(), why))?;
            let state = protector.state(stored.as_deref()).map_err(|error| failed(what(), error.to_string()))?;
            if state == ProtectorState::Annotated {
                return Err(UnprotectError::Annotated { command: remove_annotation(protector), object });
            }
        }
        self.protectors.insert(object);
        Ok(())
    }

    /// Removes the stamps, and returns the names of the records.
    ///
    /// # Errors
    /// When a webhook refuses, a record has changed since it was read, or the API server does not answer. Stamps that were removed
    /// before stay removed, and the command can be run again.
    pub(crate) async fn remove(
        &self,
        client: &Client,
        namespace: &str,
        dry_run: bool,
    ) -> Result<Vec<String>, UnprotectError> {
        let mut names = Vec::new();
        for (storage, record) in &self.records {
            match annotate(client, (*storage, namespace), record, (PROTECTED_BY, None), dry_run).await {
                Ok(()) => names.push(record.name.clone()),
                Err(Error::Api(status)) if status.code == 404 => {}
                Err(Error::Api(status)) if status.code == 409 => {
                    return Err(UnprotectError::Changed(record.name.clone()));
                }
                Err(Error::Api(status)) if status.message.contains("denied the request") => {
                    return Err(UnprotectError::Refused(status.message.clone()));
                }
                Err(error) => return Err(failed(format!("write the record {}", record.name), reason(&error))),
            }
        }
        Ok(names)
    }
}

fn failed(what: String, why: String) -> UnprotectError {
    UnprotectError::Failed { what, why }
}

/// The command that removes the annotation of an object.
fn remove_annotation(ProtectorRef { kind, namespace, name, .. }: ProtectorRef<'_>) -> String {
    let kind = kind.to_lowercase();
    let namespace = if namespace.is_empty() { String::new() } else { format!(" -n {namespace}") };
    format!("kubectl annotate {kind} {name}{namespace} interlock.dev/protected-")
}

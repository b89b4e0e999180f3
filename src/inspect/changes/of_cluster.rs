//! The changes that the records of a cluster show, and the objects that carry their operations themselves.

use std::collections::BTreeMap;

use interlock_engine::effort::Effort;
use interlock_engine::owners::CARRIERS;
use interlock_engine::release::record::{Payload, chart_at_start};
use interlock_engine::release::{Record, ReleaseRef, Stamps, Storage, Stored};
use jiff::Timestamp;
use kube::Client;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::change::Change;
use super::of_objects;
use super::of_records::{RecordTrace, changes};
use super::wanted::Wanted;
use crate::inspect::scan::{Gap, gather};
use crate::world::kubernetes::api_error::reason;

/// The wanted changes that a cluster shows. The second value lists the parts that could not be read.
///
/// # Errors
/// Why the records in Secrets, or the one wanted object, cannot be listed.
pub(crate) async fn of_cluster(client: &Client, wanted: &Wanted) -> Result<(Vec<Change>, Vec<Gap>), String> {
    let (mut found, mut gaps) = match wanted.includes(None) {
        true => of_releases(client, wanted.namespace.as_deref(), wanted.release.as_deref()).await?,
        false => (Vec::new(), Vec::new()),
    };
    for carrier in CARRIERS.iter().filter(|carrier| wanted.includes(Some(carrier))) {
        let (kind, places) = ((carrier.group, carrier.kind), [wanted.namespace.as_deref()]);
        let listed = gather::objects(client, kind, places, |place, text| {
            of_objects::changes(carrier, place, carrier.trace(text).unwrap_or_default())
        });
        match listed.await {
            Ok(listed) => found.extend(listed),
            Err(error) if wanted.carrier.is_some() => {
                return Err(format!("failed to list the {}: {}", carrier.plural, reason(&error)));
            }
            Err(error) => gaps.push(Gap::new(carrier.plural, reason(&error))),
        }
    }
    Ok((found, gaps))
}

async fn of_releases(
    client: &Client,
    namespace: Option<&str>,
    release: Option<&str>,
) -> Result<(Vec<Change>, Vec<Gap>), String> {
    let (mut traces, mut gaps) = (Traces::default(), Vec::new());
    for kind in ["Secret", "ConfigMap"] {
        let add = |all: &mut Traces, item: &RawValue| all.add(kind, item);
        match gather::full_records(client, kind, namespace, release, Traces::default, add).await {
            Ok(more) => traces.0.extend(more.0),
            Err(error) if kind == "Secret" => {
                return Err(format!("failed to list the records in Secrets: {}", reason(&error)));
            }
            Err(error) => gaps.push(Gap::new(gather::CONFIG_MAPS, reason(&error))),
        }
    }
    let found = traces.0.iter().flat_map(|((release, storage), records)| changes(release, storage.kind(), records));
    Ok((found.collect(), gaps))
}

/// The traces of the records of each release, by storage. One name can have records in several storages.
#[derive(Default)]
struct Traces(BTreeMap<(ReleaseRef, Storage), Vec<RecordTrace>>);

#[derive(Deserialize)]
struct FieldsEntry {
    #[serde(default)]
    manager: String,
    time: Option<Timestamp>,
}

impl Traces {
    /// Adds a Secret or ConfigMap. An object that a client would not list as a record is ignored.
    fn add(&mut self, kind: &'static str, item: &RawValue) {
        let (Ok(stored), Some((namespace, _))) = (Stored::read(item.into()), gather::named(item)) else { return };
        let Some(storage) = stored.storage(kind) else { return };
        let Some((release, trace)) = trace(storage, &stored) else { return };
        let release = ReleaseRef::new(namespace, release);
        self.0.entry((release, storage)).or_default().push(trace);
    }
}

/// The name of a record's release, and the trace of the record.
fn trace(storage: Storage, stored: &Stored<'_>) -> Option<(String, RecordTrace)> {
    let metadata = &stored.metadata;
    let created = metadata.creation_timestamp?;
    let stamps = Stamps::of(|key| metadata.annotation(key).map(str::to_owned));
    let effort = Effort::of_review();
    let body = Payload::decode(storage, &stored.data).and_then(|payload| payload.inflate(&effort)).ok();
    let body = body.as_deref().and_then(|json| Record::read(json, &effort).ok());
    let status = body.as_ref().and_then(|body| body.info.status.parse().ok());
    let trace = RecordTrace {
        revision: metadata.label("version")?.parse().ok()?,
        status: status.or_else(|| metadata.label("status")?.parse().ok())?,
        created,
        written: last_write(stored).unwrap_or(created).max(created),
        chart: body
            .as_ref()
            .and_then(Record::chart)
            .or_else(|| stamps.chart().map(str::to_owned))
            .or_else(|| chart_at_start(storage, &stored.data)),
        stamps,
        description: body.map(|body| body.info.description.into_owned()).unwrap_or_default(),
    };
    Some((metadata.label("name")?.to_owned(), trace))
}

/// The last write that is not Interlock's. The leader adds notes about interrupted operations to records.
fn last_write(stored: &Stored<'_>) -> Option<Timestamp> {
    let entries: Vec<FieldsEntry> = serde_json::from_str(stored.metadata.managed_fields?.get()).ok()?;
    let others = entries.into_iter().filter(|entry| !entry.manager.starts_with("interlock"));
    others.filter_map(|entry| entry.time).max()
}

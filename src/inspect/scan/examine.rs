//! Examines one release: bodies of records, and on request the objects that the deployed record declares.

use std::sync::atomic::Ordering;

use http::Request;
use interlock_engine::effort::Effort;
use interlock_engine::evidence::question;
use interlock_engine::json::redacted;
use interlock_engine::object::{ObjectKey, group_of};
use interlock_engine::owners::{Driver, HELM_RELEASES};
use interlock_engine::release::manifest::objects;
use interlock_engine::release::{Entry, History, Record, ReleaseRef, Status, Storage};
use interlock_engine::rules::objects::exceptions::installing;
use kube::Error;
use kube::Resource;
use kube::api::DynamicObject;
use serde_json::Value;

use super::context::ScanContext;
use super::definitions;
use super::drift::{self, Declaring};
use super::finding::Finding;
use super::integrity;
use super::options::ScanOptions;
use crate::inspect::records::history;
use crate::world::ask;
use crate::world::kubernetes::api_error::reason;

const BODIES: &str = "bodies of some records";
const MANIFESTS: &str = "manifests of some releases";
const OBJECTS: &str = "some objects of releases";
const IGNORED: &str = "what some HelmReleases ignore";
const NOT_SERVED: &str = "objects of kinds that the cluster does not serve";

/// The records of a release to examine.
pub(super) struct Examination {
    release: ReleaseRef,
    storage: Storage,
    /// The object names of the records.
    objects: Vec<String>,
    /// The record whose declared objects are compared, by object name.
    declaring: Option<(String, Declaring)>,
    /// The HelmReleases for which Flux has installed the release, as listed.
    drivers: Vec<Driver>,
}

/// The result of an examination.
#[derive(Default)]
pub(super) struct ExaminationResult {
    pub(super) findings: Vec<Finding>,
    /// The records whose bodies were read.
    pub(super) read: Vec<ObjectKey>,
}

/// The objects that a record declares, and the default namespace of these objects.
struct Manifest {
    documents: Vec<Value>,
    namespace: String,
}

impl Examination {
    /// The parts of a release to examine; `None` if there are none.
    pub(super) fn of(
        options: &ScanOptions,
        release: ReleaseRef,
        storage: Storage,
        history: &History,
        drivers: &[Driver],
        is_questioned: bool,
    ) -> Option<Self> {
        let mut objects: Vec<_> =
            options.wanted(history, is_questioned).into_iter().map(|entry| entry.name.clone()).collect();
        let declaring = at_rest(history).filter(|_| options.drift && storage != Storage::Index).map(|entry| {
            let declaring = Declaring { release: release.clone(), revision: entry.revision };
            (entry.name.clone(), declaring)
        });
        if let Some((object, _)) = declaring.as_ref().filter(|(object, _)| !objects.contains(object)) {
            objects.push(object.clone());
        }
        let installed = drivers.iter().filter(|driver| declaring.is_some() && driver.installed() == Some(&release));
        let drivers = installed.cloned().collect();
        (!objects.is_empty()).then_some(Self { release, storage, objects, declaring, drivers })
    }

    pub(super) async fn carry_out(self, run: &ScanContext<'_>) -> ExaminationResult {
        let mut examined = ExaminationResult::default();
        for object in &self.objects {
            let declaring = self.declaring.as_ref().filter(|(declaring, _)| declaring == object);
            let manifest = self.read(run, object, declaring.is_some(), &mut examined).await;
            let Some((manifest, (_, declaring))) = manifest.zip(declaring) else { continue };
            let installing = installing(&self.drivers, &self.release, &manifest.namespace);
            let drivers = read_drivers(run, &installing).await;
            let differing = compare(run, &manifest, declaring, &drivers.iter().collect::<Vec<_>>()).await;
            // An upgrade that started meanwhile may have changed the objects.
            if !differing.is_empty() && self.still_rests(run, declaring).await {
                examined.findings.extend(differing);
            }
        }
        examined
    }

    /// Reads the body of a record, and on request its manifest.
    async fn read(
        &self,
        run: &ScanContext<'_>,
        object: &str,
        declares: bool,
        examined: &mut ExaminationResult,
    ) -> Option<Manifest> {
        let (storage, namespace) = (self.storage, self.release.namespace.as_str());
        let read = run.world.record(storage, namespace, object, |stored, body| {
            let declared = body.as_ref().ok().filter(|_| declares).map(|body| manifest(body));
            let read = body.and_then(|body| Record::read(body, &Effort::of_review()));
            let definitions =
                read.as_ref().ok().and_then(|record| definitions::of_record(storage, namespace, stored, record));
            let found: Vec<_> =
                integrity::of_body(storage, namespace, stored, read).into_iter().chain(definitions).collect();
            (found, declared)
        });
        match read.await {
            Ok(Some((found, declared))) => {
                run.bodies.fetch_add(1, Ordering::Relaxed);
                examined.read.push(ObjectKey::new("", storage.kind(), namespace, object));
                examined.findings.extend(found);
                declared?.map_err(|why| run.gap(MANIFESTS, why)).ok()
            }
            // Pruned or uninstalled since the list was read.
            Ok(None) => None,
            Err(why) => {
                run.gap(BODIES, why);
                None
            }
        }
    }

    async fn still_rests(&self, run: &ScanContext<'_>, declaring: &Declaring) -> bool {
        let history = history(&run.world, &self.release, self.storage).await;
        history.is_ok_and(|history| at_rest(&history).is_some_and(|entry| entry.revision == declaring.revision))
    }
}

/// The newest record, if it is deployed. During and after a failed operation, objects belong to two revisions.
fn at_rest(history: &History) -> Option<&Entry> {
    history.newest().filter(|newest| newest.status == Status::Deployed)
}

fn manifest(body: &[u8]) -> Result<Manifest, String> {
    let effort = Effort::of_review();
    let record = Record::read(body, &effort).map_err(|error| error.to_string())?;
    Ok(Manifest { documents: objects(&record.manifest(), &effort)?, namespace: record.namespace.into_owned() })
}

/// Reads HelmReleases with the drift that Flux ignores in them, which lists leave out. A HelmRelease that cannot be read is a gap.
async fn read_drivers(run: &ScanContext<'_>, listed: &[&Driver]) -> Vec<Driver> {
    let mut drivers = Vec::new();
    for Driver { namespace, name, .. } in listed {
        let object = question::Object(ObjectKey::new(HELM_RELEASES.0, HELM_RELEASES.1, namespace, name));
        match ask(&run.world, object).await {
            Ok(Some(text)) => match Driver::read(&text) {
                Ok(driver) => drivers.push(driver),
                Err(error) => run.gap(IGNORED, redacted(&error)),
            },
            Ok(None) => {}
            Err(why) => run.gap(IGNORED, why),
        }
    }
    drivers
}

/// Compares the objects of a release with their documents, one by one.
async fn compare(
    run: &ScanContext<'_>,
    manifest: &Manifest,
    declaring: &Declaring,
    drivers: &[&Driver],
) -> Vec<Finding> {
    let mut found = Vec::new();
    for document in &manifest.documents {
        match object(run, document, manifest, (declaring, drivers)).await {
            Ok(finding) => found.extend(finding),
            Err((what, why)) => run.gap(what, why),
        }
    }
    found
}

async fn object(
    run: &ScanContext<'_>,
    document: &Value,
    manifest: &Manifest,
    (declaring, drivers): (&Declaring, &[&Driver]),
) -> Result<Option<Finding>, (&'static str, String)> {
    let text = |pointer: &str| document.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
    let [Some(api_version), Some(kind), Some(name)] = ["/apiVersion", "/kind", "/metadata/name"].map(text) else {
        return Ok(None);
    };
    let Some(served) = run.kinds.get(&run.client, api_version, kind).await.map_err(unread)? else {
        return Err((NOT_SERVED, format!("{kind} of {api_version}")));
    };
    let namespace = if served.namespaced { text("/metadata/namespace").unwrap_or(&manifest.namespace) } else { "" };
    let key = ObjectKey::new(group_of(api_version), kind, namespace, name);
    if ![namespace, name].into_iter().all(is_plain) {
        return Err((OBJECTS, format!("the name of a {kind} is not a valid object name")));
    }
    let scope = Some(namespace).filter(|namespace| !namespace.is_empty());
    let path = format!("{}/{name}", DynamicObject::url_path(&served.resource, scope));
    let request = Request::get(path).body(Vec::new()).map_err(|error| unread(Error::HttpError(error)))?;
    match run.client.request_text(request).await {
        Ok(live) => {
            run.objects.fetch_add(1, Ordering::Relaxed);
            if let Some(adopted) = drift::adopted(declaring, &key, &live) {
                return Ok(Some(adopted));
            }
            let policy = run.policies.of(namespace);
            let fields = drift::drifted(document, &live, &key, &served.resource.plural, (policy, drivers));
            let fields = fields.map_err(|why| (OBJECTS, why))?;
            Ok((!fields.is_empty()).then(|| drift::differing(declaring, key, &fields)))
        }
        Err(Error::Api(status)) if status.code == 404 => {
            Ok((!drift::may_vanish(document)).then(|| drift::missing(declaring, key)))
        }
        Err(error) => Err(unread(error)),
    }
}

fn unread(error: Error) -> (&'static str, String) {
    (OBJECTS, reason(&error))
}

/// Whether a name may become part of a URL path. A manifest may contain any text, and names of roles may contain colons.
fn is_plain(name: &str) -> bool {
    name.len() <= 253
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte))
        && !matches!(name, "." | "..")
}

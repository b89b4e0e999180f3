//! Reads and writes reports. Their API is alpha and may change, so all code that depends on it is here.

use std::collections::BTreeMap;

use interlock_engine::release::ReleaseRef;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Client, Error};
use serde_json::{Value, json};

use super::body::{self, CONTENT, EVENTS, RELEASE, ReportBody, SOURCE};
use crate::inspect::annotation::FIELD_MANAGER;
use crate::serve::ownership::{MANAGED_BY, own_and};
use crate::world::kubernetes::Reach;

/// How many reports the API server returns at a time.
const PAGE_SIZE: u32 = 100;

/// The API of the reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavour {
    /// `Report` of openreports.io/v1alpha1.
    OpenReports,
    /// `PolicyReport` of wgpolicyk8s.io/v1alpha2, the predecessor.
    WgPolicy,
}

#[derive(Debug, Clone)]
pub(super) struct StoredReport {
    pub(super) release: ReleaseRef,
    pub(super) content: String,
    /// The Events that the report counts, by uid.
    pub(super) events: BTreeMap<String, u64>,
    pub(super) body: ReportBody,
}

/// Reads and writes reports.
pub(super) struct ReportWriter {
    client: Client,
    flavour: Flavour,
    reach: Reach,
    resource: ApiResource,
}

impl Flavour {
    fn resource(self) -> ApiResource {
        let (group, version, kind, plural) = match self {
            Self::OpenReports => ("openreports.io", "v1alpha1", "Report", "reports"),
            Self::WgPolicy => ("wgpolicyk8s.io", "v1alpha2", "PolicyReport", "policyreports"),
        };
        ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: format!("{group}/{version}"),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
        }
    }

    /// A report as an object of this API, with `labels` and Interlock's own label.
    fn object(
        self,
        (namespace, name): &(String, String),
        report: &StoredReport,
        labels: BTreeMap<String, String>,
    ) -> serde_json::Result<Value> {
        let resource = self.resource();
        let events: Vec<_> = report.events.iter().map(|(uid, count)| format!("{uid}={count}")).collect();
        let mut object = serde_json::to_value(&report.body)?;
        object["apiVersion"] = resource.api_version.into();
        object["kind"] = resource.kind.into();
        object["metadata"] = json!({
            "namespace": namespace,
            "name": name,
            "labels": own_and(labels),
            "annotations": {
                CONTENT: report.content,
                RELEASE: report.release.to_string(),
                EVENTS: events.join(","),
            },
        });
        // The API server rejects an applied object with a field that is not in the schema.
        if self == Self::OpenReports {
            object["source"] = SOURCE.into();
        }
        Ok(object)
    }
}

impl ReportWriter {
    pub(super) fn new(client: Client, flavour: Flavour, reach: Reach) -> Self {
        Self { client, flavour, reach, resource: flavour.resource() }
    }

    /// For example `reports.openreports.io`.
    pub(super) fn definition(&self) -> String {
        format!("{}.{}", self.resource.plural, self.resource.group)
    }

    /// All reports of Interlock. `None` if their kind is not installed.
    pub(super) async fn list(&self, own_namespace: &str) -> Result<Option<Vec<StoredReport>>, Error> {
        let mut found = Vec::new();
        let is_installed = self.each(own_namespace, |report| found.push(report)).await?;
        Ok(is_installed.then_some(found))
    }

    /// Takes each report of Interlock. Returns whether their kind is installed.
    pub(super) async fn each(&self, own_namespace: &str, mut take: impl FnMut(StoredReport)) -> Result<bool, Error> {
        let mut params = ListParams::default().labels(&format!("{}={}", MANAGED_BY.0, MANAGED_BY.1)).limit(PAGE_SIZE);
        for api in self.reach.apis_with::<DynamicObject>(&self.client, &self.resource) {
            loop {
                let page = match api.list(&params).await {
                    Ok(page) => page,
                    Err(Error::Api(status)) if status.code == 404 => return Ok(false),
                    Err(error) => return Err(error),
                };
                page.items
                    .into_iter()
                    .filter_map(|object| StoredReport::read(object, own_namespace))
                    .for_each(&mut take);
                params.continue_token = page.metadata.continue_.filter(|next| !next.is_empty());
                if params.continue_token.is_none() {
                    break;
                }
            }
        }
        Ok(true)
    }

    /// Writes a report with `labels`, and overwrites an existing one.
    pub(super) async fn apply(
        &self,
        place: &(String, String),
        report: &StoredReport,
        labels: BTreeMap<String, String>,
    ) -> Result<(), Error> {
        let (namespace, name) = place;
        let object = self.flavour.object(place, report, labels).map_err(Error::SerdeError)?;
        let params = PatchParams::apply(FIELD_MANAGER).force();
        self.api(namespace).patch(name, &params, &Patch::Apply(&object)).await.map(|_| ())
    }

    /// Deletes a report, if it exists.
    pub(super) async fn delete(&self, (namespace, name): &(String, String)) -> Result<(), Error> {
        match self.api(namespace).delete(name, &DeleteParams::default()).await {
            Err(Error::Api(status)) if status.code == 404 => Ok(()),
            deleted => deleted.map(|_| ()),
        }
    }

    fn api(&self, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, &self.resource)
    }
}

impl StoredReport {
    /// `None` for an object that is not a report of Interlock. Users with rights in one namespace must not be able to forge reports about
    /// another.
    fn read(object: DynamicObject, own_namespace: &str) -> Option<Self> {
        let annotations = object.metadata.annotations.unwrap_or_default();
        let release = annotations.get(RELEASE)?;
        let (namespace, name) = release.split_once('/').unwrap_or(("", release));
        let release = ReleaseRef::new(namespace, name);
        if body::place(&release, own_namespace) != (object.metadata.namespace?, object.metadata.name?) {
            return None;
        }
        let pairs = annotations.get(EVENTS).into_iter().flat_map(|events| events.split(','));
        let events = pairs.filter_map(|pair| {
            let (uid, count) = pair.split_once('=')?;
            Some((uid.to_owned(), count.parse().ok()?))
        });
        Some(Self {
            release,
            content: annotations.get(CONTENT).cloned().unwrap_or_default(),
            events: events.collect(),
            body: serde_json::from_value(object.data).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::report::openreports::body::FoundBy;
    use crate::serve::report::openreports::entry::ObservedEvent;
    use crate::serve::report::openreports::entry::tests::event;

    #[test]
    fn each_report_api_gets_only_its_own_fields() {
        let entry = ObservedEvent::read(&event("e1", 100, 3)).unwrap().entry;
        let body = ReportBody::of([(&entry, FoundBy::Admission)], None, None);
        let events = BTreeMap::from([("e1".to_owned(), 3)]);
        let report = StoredReport { release: ReleaseRef::new("shop", "web"), content: body.content(), events, body };
        let place = ("shop".to_owned(), "interlock-web".to_owned());
        for (flavour, kind, source) in
            [(Flavour::OpenReports, "Report", json!("interlock")), (Flavour::WgPolicy, "PolicyReport", Value::Null)]
        {
            let labels = [("team", "blue"), (MANAGED_BY.0, "Helm")];
            let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
            let object = flavour.object(&place, &report, labels.into()).unwrap();
            assert_eq!(object["metadata"]["labels"], json!({MANAGED_BY.0: "interlock", "team": "blue"}));
            assert_eq!((&object["kind"], &object["source"]), (&json!(kind), &source));
            assert_eq!(object["results"][0]["source"], "interlock");
            assert_eq!(object["metadata"]["annotations"]["interlock.dev/events"], "e1=3");
            let read = StoredReport::read(serde_json::from_value(object).unwrap(), "interlock-system").unwrap();
            assert_eq!(
                (read.release, read.events, read.body),
                (report.release.clone(), report.events.clone(), report.body.clone())
            );
        }
    }
}

//! A webhook configuration: where its reviews go, and which entries wait for a proof.

use kube::api::{Patch, PatchParams};
use kube::core::Request;
use kube::core::params::GetParams;
use kube::{Client, Error};
use serde_json::{Map, Value, json};

use super::{CONFIGURATION, Half};
use crate::world::kubernetes::api_error::is_not_found;

/// The annotation of a configuration with the names of entries, separated by commas, that fail open until a review has arrived
/// through the configuration. Installers set the annotation. The leader removes a name when it closes the entry.
pub(crate) const OPEN_UNTIL_CALLED: &str = "interlock.dev/open-until-called";

/// The name of this annotation in manifests of 0.1.0.
const FORMER_ANNOTATION: &str = "interlock.dev/fails-closed-when-ready";

/// The failure policy of an entry that fails closed.
pub(crate) const FAIL: &str = "Fail";

/// The destination of an entry's reviews, and the CA that the entry trusts. The path is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Way {
    /// Namespace, name and port of the Service, or the URL without its path.
    to: String,
    ca_bundle: String,
}

/// A webhook configuration that was read.
#[derive(Debug, Clone)]
pub(crate) struct Registration {
    half: Half,
    object: Value,
}

impl Registration {
    #[must_use]
    pub(crate) fn new(half: Half, object: Value) -> Self {
        Self { half, object }
    }

    /// Reads a configuration. `None` if it does not exist.
    pub(crate) async fn read(client: &Client, half: Half) -> Result<Option<Self>, Error> {
        let request = Request::new(half.path()).get(CONFIGURATION, &GetParams::default());
        match client.request(request.map_err(Error::BuildRequest)?).await {
            Ok(object) => Ok(Some(Self::new(half, object))),
            Err(error) if is_not_found(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Changes the configuration.
    pub(crate) async fn patch(
        &self,
        client: &Client,
        params: &PatchParams,
        patch: &Patch<Value>,
    ) -> Result<Self, Error> {
        let request = Request::new(self.half.path()).patch(CONFIGURATION, params, patch);
        let object = client.request(request.map_err(Error::BuildRequest)?).await?;
        Ok(Self::new(self.half, object))
    }

    pub(crate) fn into_object(self) -> Value {
        self.object
    }

    #[must_use]
    pub(crate) fn half(&self) -> Half {
        self.half
    }

    /// Gives up a field manager's ownership, if it has any.
    pub(crate) async fn disown(&self, client: &Client, manager: &str) -> Result<(), Error> {
        let Some(patch) = self.disowning(manager) else { return Ok(()) };
        self.patch(client, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
    }

    #[must_use]
    pub(crate) fn resource_version(&self) -> &str {
        self.object["metadata"]["resourceVersion"].as_str().unwrap_or_default()
    }

    /// Changes whenever an entry changes.
    #[must_use]
    pub(crate) fn generation(&self) -> u64 {
        self.object["metadata"]["generation"].as_u64().unwrap_or_default()
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Value> {
        self.object["webhooks"].as_array().into_iter().flatten()
    }

    /// The entry through which the probe goes.
    fn probed(&self) -> Option<&Value> {
        self.half.probed().into_iter().find_map(|name| self.entries().find(|entry| entry["name"] == name))
    }

    /// The entry through which the probe goes, by name.
    #[must_use]
    pub(crate) fn probed_name(&self) -> Option<&str> {
        self.probed()?["name"].as_str()
    }

    /// The names in both annotations.
    fn annotated(&self) -> Vec<&str> {
        let annotations = &self.object["metadata"]["annotations"];
        let texts = [OPEN_UNTIL_CALLED, FORMER_ANNOTATION].into_iter().filter_map(|name| annotations[name].as_str());
        texts.flat_map(|names| names.split(',')).map(str::trim).filter(|name| !name.is_empty()).collect()
    }

    /// The entries that fail open and wait for a proof.
    #[must_use]
    pub(crate) fn waiting(&self) -> Vec<&str> {
        let annotated = self.annotated();
        let open = self.entries().filter(|entry| entry["failurePolicy"] != FAIL);
        open.filter_map(|entry| entry["name"].as_str()).filter(|name| annotated.contains(name)).collect()
    }

    /// The waiting entries for which a probe proves nothing, because they send reviews elsewhere or trust another CA.
    #[must_use]
    pub(crate) fn strangers(&self) -> Vec<&str> {
        let proved = self.probed().map(way);
        let waiting = self.waiting();
        let elsewhere = self.entries().filter(|entry| Some(way(entry)) != proved);
        elsewhere.filter_map(|entry| entry["name"].as_str()).filter(|name| waiting.contains(name)).collect()
    }

    /// The waiting entries that a probe proves.
    #[must_use]
    pub(crate) fn provable(&self) -> Vec<&str> {
        let strangers = self.strangers();
        self.waiting().into_iter().filter(|name| !strangers.contains(name)).collect()
    }

    /// The merge patch that lets the proved entries fail closed and removes their names from the annotation. It applies only to the
    /// version that was read.
    #[must_use]
    pub(crate) fn closing(&self) -> Value {
        let closed = self.provable();
        let webhooks = self.entries().cloned().map(|mut entry| {
            if entry["name"].as_str().is_some_and(|name| closed.contains(&name)) {
                entry["failurePolicy"] = FAIL.into();
            }
            entry
        });
        let rest = self.strangers().join(",");
        let mut annotations = Map::new();
        let rest = if rest.is_empty() { Value::Null } else { rest.into() };
        annotations.insert(OPEN_UNTIL_CALLED.to_owned(), rest);
        annotations.insert(FORMER_ANNOTATION.to_owned(), Value::Null);
        json!({
            "metadata": {"resourceVersion": self.resource_version(), "annotations": annotations},
            "webhooks": webhooks.collect::<Vec<_>>(),
        })
    }

    /// The merge patch that removes a field manager's ownership; `None` if the manager owns nothing. With the ownership, the API
    /// server would keep the manager's part of an entry that an installer no longer applies, and reject the configuration because
    /// of this remnant.
    #[must_use]
    fn disowning(&self, manager: &str) -> Option<Value> {
        let managers = self.object["metadata"]["managedFields"].as_array()?;
        let others: Vec<_> = managers.iter().filter(|entry| entry["manager"] != manager).cloned().collect();
        // The API server ignores an empty list.
        if others.len() == managers.len() || others.is_empty() {
            return None;
        }
        Some(json!({"metadata": {"resourceVersion": self.resource_version(), "managedFields": others}}))
    }
}

fn way(entry: &Value) -> Way {
    let client = &entry["clientConfig"];
    let to = match client["url"].as_str() {
        // Scheme, host and port.
        Some(url) => url.split('/').take(3).collect::<Vec<_>>().join("/"),
        None => {
            let service = &client["service"];
            // 443 is the API server's default.
            format!("{}/{}:{}", service["namespace"], service["name"], service["port"].as_u64().unwrap_or(443))
        }
    };
    Way { to, ca_bundle: client["caBundle"].as_str().unwrap_or_default().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, policy: &str, bundle: &str) -> Value {
        let service = json!({"namespace": "guard", "name": "interlock", "port": 443, "path": "/validate"});
        json!({"name": name, "failurePolicy": policy, "clientConfig": {"service": service, "caBundle": bundle}})
    }

    fn registration(annotations: Value, entries: Vec<Value>) -> Registration {
        let metadata = json!({"resourceVersion": "7", "annotations": annotations});
        Registration::new(Half::Validating, json!({"metadata": metadata, "webhooks": entries}))
    }

    #[test]
    fn only_annotated_entries_wait() {
        let entries = || {
            vec![
                entry("a.interlock.dev", "Ignore", "ca"),
                entry("b.interlock.dev", "Fail", "ca"),
                entry("c.interlock.dev", "Ignore", "ca"),
                entry("probes.interlock.dev", "Fail", "ca"),
            ]
        };
        let named = json!({OPEN_UNTIL_CALLED: "a.interlock.dev, b.interlock.dev,gone.interlock.dev"});
        assert_eq!(registration(named, entries()).waiting(), ["a.interlock.dev"]);
        let former = json!({FORMER_ANNOTATION: "a.interlock.dev"});
        assert_eq!(registration(former, entries()).provable(), ["a.interlock.dev"]);
        assert!(registration(Value::Null, entries()).waiting().is_empty(), "somebody's choice stays");
    }

    #[test]
    fn one_proof_counts_for_all_entries_with_the_same_way() {
        let mut elsewhere = entry("d.interlock.dev", "Ignore", "ca");
        elsewhere["clientConfig"]["service"]["port"] = 8443.into();
        let mut default_port = entry("c.interlock.dev", "Ignore", "ca");
        default_port["clientConfig"]["service"].as_object_mut().unwrap().remove("port");
        default_port["clientConfig"]["service"]["path"] = "/other".into();
        let all = "a.interlock.dev,b.interlock.dev,c.interlock.dev,d.interlock.dev";
        let found = registration(
            json!({OPEN_UNTIL_CALLED: all}),
            vec![
                entry("a.interlock.dev", "Ignore", "ca"),
                entry("b.interlock.dev", "Ignore", "other"),
                default_port,
                elsewhere,
                entry("probes.interlock.dev", "Fail", "ca"),
            ],
        );
        assert_eq!(found.provable(), ["a.interlock.dev", "c.interlock.dev"]);
        assert_eq!(found.strangers(), ["b.interlock.dev", "d.interlock.dev"]);
        let closing = found.closing();
        let policies: Vec<_> =
            closing["webhooks"].as_array().unwrap().iter().map(|it| it["failurePolicy"].as_str().unwrap()).collect();
        assert_eq!(policies, ["Fail", "Ignore", "Fail", "Ignore", "Fail"]);
        assert_eq!(closing["metadata"]["resourceVersion"], "7");
        assert_eq!(closing["metadata"]["annotations"][OPEN_UNTIL_CALLED], "b.interlock.dev,d.interlock.dev");
        assert_eq!(closing["metadata"]["annotations"][FORMER_ANNOTATION], Value::Null);
    }

    #[test]
    fn without_an_entry_for_probes_that_of_overrides_is_the_proof() {
        let named = json!({OPEN_UNTIL_CALLED: "a.interlock.dev"});
        let entries = vec![entry("a.interlock.dev", "Ignore", "ca"), entry("overrides.interlock.dev", "Fail", "ca")];
        let old = registration(named.clone(), entries);
        assert_eq!((old.probed_name(), old.provable()), (Some("overrides.interlock.dev"), vec!["a.interlock.dev"]));
        let none = registration(named, vec![entry("a.interlock.dev", "Ignore", "ca")]);
        assert_eq!((none.probed_name(), none.strangers()), (None, vec!["a.interlock.dev"]));
    }

    #[test]
    fn entries_with_a_url_are_compared_without_their_path() {
        let at = |name: &str, url: &str| json!({"name": name, "failurePolicy": "Ignore", "clientConfig": {"url": url}});
        let found = registration(
            json!({OPEN_UNTIL_CALLED: "a.interlock.dev,b.interlock.dev"}),
            vec![
                at("a.interlock.dev", "https://10.0.0.1:8443/validate"),
                at("b.interlock.dev", "https://10.0.0.1:9443/validate"),
                at("probes.interlock.dev", "https://10.0.0.1:8443/probe"),
            ],
        );
        assert_eq!(found.provable(), ["a.interlock.dev"]);
    }

    #[test]
    fn a_managers_fields_are_given_up_unless_it_is_the_only_one() {
        let with = |managers: &[&str]| {
            let managers: Vec<_> = managers.iter().map(|name| json!({"manager": name})).collect();
            let object = json!({"metadata": {"resourceVersion": "7", "managedFields": managers}});
            Registration::new(Half::Mutating, object).disowning("ours")
        };
        let left = with(&["helm", "ours", "other"]).unwrap();
        assert_eq!(left["metadata"]["managedFields"], json!([{"manager": "helm"}, {"manager": "other"}]));
        assert_eq!((with(&["helm"]), with(&["ours"])), (None, None));
    }
}

//! The ConfigMap in which the replicas note what objects lose, so that all of them count the same. Each note names the version that its
//! verdict is based on, and the API server accepts only the first of two.

use std::collections::BTreeMap;

use interlock_engine::evidence::KnownLosses;
use interlock_engine::losses::Losses;
use interlock_engine::object::ObjectKey;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::api_error::{if_found, reason};
use crate::world::LossVerdict;

/// The name of the ConfigMap, in Interlock's own namespace.
const LOSSES: &str = "interlock-losses";

/// The longest texts of all objects together, in bytes. An object at the API server has at most 1 MiB of data.
const MOST_BYTES: usize = 900 << 10;

/// The longest key of a ConfigMap, in bytes.
const LONGEST_KEY: usize = 253;

/// Reads and writes the ConfigMap.
pub(super) struct SharedLosses(Api<ConfigMap>);

impl SharedLosses {
    pub(super) fn new(client: Client, namespace: &str) -> Self {
        Self(Api::namespaced(client, namespace))
    }

    /// What an object has lost; `None` if the ConfigMap may not be read, because the role is that of an earlier version.
    pub(super) async fn of(&self, object: &ObjectKey) -> Result<Option<KnownLosses>, String> {
        match self.0.get(LOSSES).await {
            Err(kube::Error::Api(status)) if status.code == 403 => Ok(None),
            read => Ok(Some(if_found(read)?.map(|stored| known(&stored, object)).unwrap_or_default())),
        }
    }

    /// Notes a loss with its verdict. Returns whether what was known still held. If not, nothing is noted.
    pub(super) async fn note(&self, verdict: LossVerdict<'_>) -> Result<bool, String> {
        let LossVerdict { loss, known, admitted, now } = verdict;
        let losses = json!(known.losses.with(loss, admitted, now)).to_string();
        let stored = if_found(self.0.get(LOSSES).await)?;
        let written = match stored {
            None => self.0.create(&PostParams::default(), &first(key(&loss.of), losses)).await.map(drop),
            Some(stored) => {
                let mut data = removed(&stored, losses.len(), now);
                data.insert(key(&loss.of), losses.into());
                let patch = json!({"metadata": {"resourceVersion": known.version}, "data": data});
                let patched = self.0.patch_metadata(LOSSES, &PatchParams::default(), &Patch::Merge(&patch)).await;
                patched.map(drop)
            }
        };
        match written {
            Ok(()) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
            Err(error) => Err(reason(&error)),
        }
    }
}

/// The ConfigMap with its first note.
fn first(key: String, losses: String) -> ConfigMap {
    let labels = BTreeMap::from([("app.kubernetes.io/name".to_owned(), "interlock".to_owned())]);
    let metadata = ObjectMeta { name: Some(LOSSES.to_owned()), labels: Some(labels), ..ObjectMeta::default() };
    ConfigMap { metadata, data: Some(BTreeMap::from([(key, losses)])), ..ConfigMap::default() }
}

fn known(stored: &ConfigMap, object: &ObjectKey) -> KnownLosses {
    let text = stored.data.as_ref().and_then(|data| data.get(&key(object)));
    // Text of another version counts as none.
    let losses = text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    KnownLosses { losses, version: stored.metadata.resource_version.clone().unwrap_or_default() }
}

/// Removes what counts no longer, and to make room for a text, what was noted longest ago: nobody fills the ConfigMap so that nothing
/// can be noted any longer.
fn removed(stored: &ConfigMap, wanted: usize, now: Timestamp) -> BTreeMap<String, Value> {
    let read = |text: &String| serde_json::from_str::<Losses>(text).unwrap_or_default();
    let mut all: Vec<_> = stored.data.iter().flatten().map(|(key, text)| (read(text), key, text.len())).collect();
    all.sort_by_key(|(losses, ..)| losses.last_note());
    let mut bytes = wanted + all.iter().map(|(.., bytes)| bytes).sum::<usize>();
    let mut removed = BTreeMap::new();
    for (losses, key, size) in all {
        if losses.is_outdated(now) || bytes > MOST_BYTES {
            bytes -= size;
            removed.insert(key.clone(), Value::Null);
        }
    }
    removed
}

/// The key of an object. A namespace has no dot.
fn key(ObjectKey { kind, namespace, name, .. }: &ObjectKey) -> String {
    let key = format!("{kind}.{namespace}.{name}");
    if key.len() <= LONGEST_KEY {
        return key;
    }
    let digest = Sha256::digest(name.as_bytes());
    let digest: String = digest[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{kind}.{namespace}..{digest}")
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use http::Method;
    use interlock_engine::losses::Loss;

    use super::*;
    use crate::world::kubernetes::fake;

    /// The API server of one namespace, with one ConfigMap at most.
    fn server() -> (SharedLosses, Arc<Mutex<Option<ConfigMap>>>) {
        let stored = Arc::<Mutex<Option<ConfigMap>>>::default();
        let held = Arc::clone(&stored);
        let client = fake::client(move |head, body| {
            let mut stored = held.lock().unwrap();
            let version = |stored: &Option<ConfigMap>| {
                stored.as_ref().and_then(|it| it.metadata.resource_version.clone()).unwrap_or_default()
            };
            let failure = |code: u16| {
                (
                    code,
                    json!({"kind": "Status", "status": "Failure", "code": code, "reason": "", "message": "", "details": {}}),
                )
            };
            let before = version(&stored);
            match head.method {
                Method::GET => {}
                Method::POST if stored.is_some() => return failure(409),
                Method::POST => *stored = serde_json::from_value(body.clone()).unwrap(),
                _ if body["metadata"]["resourceVersion"].as_str() != Some(&before) => return failure(409),
                _ => {
                    let data = stored.as_mut().unwrap().data.get_or_insert_default();
                    for (key, value) in body["data"].as_object().unwrap() {
                        match value {
                            Value::String(text) => data.insert(key.clone(), text.clone()),
                            _ => data.remove(key),
                        };
                    }
                }
            }
            let Some(map) = stored.as_mut() else { return failure(404) };
            if head.method != Method::GET {
                map.metadata.resource_version = Some(format!("{}0", before.len() + 1));
            }
            (200, json!(map))
        });
        (SharedLosses::new(client, "interlock-system"), stored)
    }

    fn loss(name: &str, child: &str) -> Loss {
        let of = ObjectKey::new("argoproj.io", "ApplicationSet", "argocd", name);
        Loss { of, child: child.to_owned(), children: 4, state: String::new(), is_meant: false }
    }

    fn at(hour: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + hour * 3_600).unwrap()
    }

    #[tokio::test]
    async fn of_two_notes_on_one_version_the_first_holds() {
        let (losses, stored) = server();
        let note = |child: &'static str, known: KnownLosses, hour: i64| {
            let losses = &losses;
            async move {
                let loss = loss("web", child);
                losses.note(LossVerdict { loss: &loss, known: &known, admitted: true, now: at(hour) }).await
            }
        };
        let none = losses.of(&loss("web", "").of).await.unwrap().unwrap();
        assert_eq!(none, KnownLosses::default());
        assert_eq!(note("a", none.clone(), 0).await, Ok(true));
        assert_eq!(note("b", none, 0).await, Ok(false));
        let known = losses.of(&loss("web", "").of).await.unwrap().unwrap();
        assert_eq!(note("b", known.clone(), 1).await, Ok(true));
        assert_eq!(note("c", known, 1).await, Ok(false));
        let data = stored.lock().unwrap().clone().unwrap().data.unwrap();
        let text = &data["ApplicationSet.argocd.web"];
        assert!(text.contains(r#""a""#) && text.contains(r#""b""#) && !text.contains(r#""c""#), "{text}");
    }

    #[tokio::test]
    async fn what_counts_no_longer_goes_with_the_next_note() {
        let (losses, stored) = server();
        for (name, hour) in [("web", 0), ("api", 1), ("next", 26)] {
            let loss = loss(name, "a");
            let known = losses.of(&loss.of).await.unwrap().unwrap();
            assert_eq!(
                losses.note(LossVerdict { loss: &loss, known: &known, admitted: true, now: at(hour) }).await,
                Ok(true)
            );
        }
        let data = stored.lock().unwrap().clone().unwrap().data.unwrap();
        assert_eq!(data.keys().collect::<Vec<_>>(), ["ApplicationSet.argocd.next"]);
    }

    #[test]
    fn a_full_map_makes_room_for_the_newest() {
        let text = |hour: i64| {
            let many = (0..1_000).fold(Losses::default(), |losses, number| {
                losses.with(&loss("web", &format!("{number}-{}", "n".repeat(150))), true, at(hour))
            });
            json!(many).to_string()
        };
        let data: BTreeMap<_, _> = (1..=4).map(|hour| (hour.to_string(), text(hour))).collect();
        let bytes = data["1"].len();
        assert!(4 * bytes > MOST_BYTES && 3 * bytes + 100 < MOST_BYTES, "{bytes}");
        let stored = ConfigMap { data: Some(data), ..ConfigMap::default() };
        assert_eq!(removed(&stored, 100, at(5)).into_keys().collect::<Vec<_>>(), ["1"]);
        assert_eq!(removed(&stored, 2 * bytes, at(5)).into_keys().collect::<Vec<_>>(), ["1", "2", "3"]);
        assert_eq!(removed(&stored, 100, at(26)).into_keys().collect::<Vec<_>>(), ["1", "2"]);
    }

    #[tokio::test]
    async fn a_role_of_an_earlier_version_notes_nothing() {
        let forbidden =
            json!({"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": "no"});
        let losses = SharedLosses::new(fake::client(move |_, _| (403, forbidden.clone())), "interlock-system");
        assert_eq!(losses.of(&loss("web", "").of).await, Ok(None));
    }

    #[test]
    fn a_long_name_has_a_key_of_its_own() {
        let key_of = |last: &str| key(&loss(&format!("{}{last}", "n".repeat(250)), "").of);
        assert!(key_of("a").len() <= LONGEST_KEY && key_of("a") != key_of("b"), "{}", key_of("a"));
    }
}

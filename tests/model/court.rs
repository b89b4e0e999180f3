//! Judges the writes of the model by the real stamp and the real decision, and applies what is admitted.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use interlock_engine::json::RawObject;
use interlock_engine::object::ObjectKey;
use interlock_engine::policy::Policies;
use interlock_engine::release::record::INFLATE_LIMIT;
use interlock_engine::release::stamps::{DRIVER, HOLDER};
use interlock_engine::release::{DecodeError, ReleaseRef, Status};
use interlock_engine::review::{Request, Review};
use jiff::Timestamp;
use release_interlock::budget::Budget;
use release_interlock::inspect::diagnosis::{self, Diagnosis};
use release_interlock::judge::Judge;
use release_interlock::world::memory::Memory;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::time::Instant;

use crate::client::{Stamp, Write};
use crate::cluster::{Body, Cluster, Driver, Object, Other, Record, Revision};
use crate::objects::{self, NOW};
use crate::texts::{Placed, Texts};
use crate::users::User;

/// What became of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ruling {
    /// The cluster afterwards.
    Admitted(Cluster),
    /// By these rules.
    Refused(Vec<Refusal>),
    /// The API server itself answers that the object does not exist, or exists already.
    Conflict,
}

/// A rule that refuses a write, and what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) rule: &'static str,
    pub(crate) message: String,
}

/// A judge over a world in memory that is made to be any cluster.
pub(crate) struct Court {
    judge: Judge,
    memory: Arc<Memory>,
    runtime: Runtime,
    /// What is in the memory now.
    placed: Placed,
    texts: Texts,
    policies: Policies,
    /// The number of reviews judged.
    pub(crate) judged: usize,
}

/// A write as a request.
pub(crate) struct Sent {
    pub(crate) operation: &'static str,
    pub(crate) key: ObjectKey,
    pub(crate) object: Option<Value>,
    pub(crate) sub_resource: Option<&'static str>,
    /// Whether the mutating half is called.
    pub(crate) is_stamped: bool,
}

impl Court {
    pub(crate) fn new(policies: Policies) -> Self {
        let memory = Arc::new(Memory::new(64 << 20));
        let judge = Judge::new(policies.clone(), Arc::clone(&memory) as _, Arc::new(Budget::new(2 * INFLATE_LIMIT)));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        Self { judge, memory, runtime, placed: Placed::new(), texts: Texts::default(), policies, judged: 0 }
    }

    /// Judges a write of a user.
    pub(crate) fn rule(&mut self, cluster: &Cluster, user: User, write: &Write) -> Ruling {
        if let Some(after) = under_change_control(cluster, write) {
            return Ruling::Admitted(after);
        }
        let Some(sent) = sent(cluster, write, NOW) else {
            return Ruling::Conflict;
        };
        self.place(cluster);
        self.judged += 1;
        let old = self.placed.get(&sent.key).cloned();
        let text = serde_json::to_string(&review(&sent, old.as_deref(), user)).unwrap();
        let review = Review::parse(text.as_bytes()).unwrap();
        let now = Timestamp::from_second(NOW).unwrap();
        let deadline = || Instant::now() + Duration::from_secs(60);
        let stamped = self.runtime.block_on(async {
            let patch =
                if sent.is_stamped { self.judge.mutate(&review.request, now, deadline()).await.unwrap() } else { None };
            patch.map(|patch| patched(sent.object.as_ref().unwrap(), &serde_json::to_value(patch).unwrap()))
        });
        let request =
            Request { object: stamped.as_deref().map(RawObject::from).or(review.request.object), ..review.request };
        let judgement = self.runtime.block_on(self.judge.validate(&request, now, deadline())).unwrap();
        if !judgement.outcome.allowed {
            let refusing = judgement.decision.findings.into_iter().filter(|finding| finding.refuses);
            let refusals = refusing.map(|finding| Refusal { rule: finding.rule.as_str(), message: finding.message });
            return Ruling::Refused(refusals.collect());
        }
        self.memory.apply(&request);
        let after = self.read_back(cluster, user, write);
        self.changed(&sent.key);
        Ruling::Admitted(after)
    }

    /// What is wrong with the release that keeps its records there, and the next step for a user; `None` without records.
    pub(crate) fn diagnose(&mut self, cluster: &Cluster, driver: Driver, user: User) -> Option<Diagnosis> {
        self.place(cluster);
        let broken = cluster.history(driver).filter(|record| record.broken).map(|record| {
            let missing = DecodeError::MissingChunks(vec![objects::missing_part(record)]);
            (objects::record_name(driver, record.body.revision), missing)
        });
        let release = ReleaseRef::new(objects::records_in(driver), objects::RELEASE);
        let (broken, now) = (broken.collect(), Timestamp::from_second(NOW).unwrap());
        let diagnosis =
            diagnosis::of_release(&*self.memory, &self.policies, &release, driver.storage(), &broken, user.name(), now);
        self.runtime.block_on(diagnosis).unwrap()
    }

    /// Makes the memory this cluster.
    fn place(&mut self, cluster: &Cluster) {
        let wanted = self.texts.of(cluster);
        for key in self.placed.keys().filter(|key| !wanted.contains_key(*key)) {
            self.memory.remove(key);
        }
        for (key, text) in &wanted {
            if self.placed.get(key) != Some(text) {
                self.memory.put(ObjectKey::clone(key), text.as_ref().to_owned());
            }
        }
        self.placed = wanted;
    }

    /// The cluster that the memory is after an admitted write.
    fn read_back(&mut self, before: &Cluster, user: User, write: &Write) -> Cluster {
        let mut after = before.clone();
        let written = body_of(before, write);
        match write {
            Write::Apply(chart) | Write::Restore(chart) => after.object = Some(Object::of(*chart)),
            Write::Edit => after.object.iter_mut().for_each(|object| object.edited = true),
            Write::DeleteObject => after.object = None,
            Write::Put(other) => after.put_other(*other),
            Write::Take(other) => _ = after.others.remove(other),
            Write::Delete(driver, revision) => after.remove(*driver, *revision),
            _ => {}
        }
        let mut bodies: Vec<Body> = after.records().iter().map(|record| record.body).collect();
        if let Some(body) = written {
            bodies.retain(|other| (other.driver, other.revision) != (body.driver, body.revision));
            bodies.push(body);
        }
        // A deletion changes another record too: it gets a note.
        for body in bodies {
            if let Some(text) = self.changed(&objects::record_key(body.driver, body.revision)) {
                let old = before.record(body.driver, body.revision);
                after.put(objects::read_back(body, old, &serde_json::from_str(&text).unwrap(), NOW));
            }
        }
        if let Some(promoted) = written.filter(|body| leaves_others(before, user, body)) {
            after.leave_all_but(promoted.driver, promoted.revision);
        }
        after.settled()
    }

    /// The text of an object if a write has changed it.
    fn changed(&mut self, key: &ObjectKey) -> Option<Rc<str>> {
        let text: Option<Rc<str>> = self.memory.get(key).map(Into::into);
        let old = match &text {
            Some(text) => self.placed.insert(Rc::new(key.clone()), Rc::clone(text)),
            None => self.placed.remove(key),
        };
        text.filter(|text| old.as_ref() != Some(text))
    }
}

/// The cluster after a freeze or a protection has begun or ended.
fn under_change_control(cluster: &Cluster, write: &Write) -> Option<Cluster> {
    let mut after = cluster.clone();
    match write {
        Write::Put(other) if other.is_change_control() => _ = after.others.insert(*other),
        Write::Take(other) if other.is_change_control() => _ = after.others.remove(other),
        _ => return None,
    }
    Some(after)
}

/// Whether a write promotes a record and leaves what was deployed before as it is, as its client does: an install over a failed revision,
/// any promotion under the lease of nelm, whose plan supersedes what was deployed when it read the history, and the holder's, which
/// supersedes first: that write can be lost.
fn leaves_others(before: &Cluster, user: User, body: &Body) -> bool {
    let promoted = before.record(body.driver, body.revision).filter(|old| old.status() != body.status);
    let Some(old) = promoted.filter(|_| body.status == Status::Deployed) else {
        return false;
    };
    let is_nelms = old.holder == Some(User::Nelm) || before.others.contains(&Other::Lease);
    old.status() == Status::PendingInstall || is_nelms || old.holder == Some(user)
}

/// The body of the record that a write leaves; `None` if it writes none.
fn body_of(cluster: &Cluster, write: &Write) -> Option<Body> {
    match write {
        Write::Create(body) | Write::CreateLabelled(body, _) | Write::CreateStamped(body, _) | Write::Update(body) => {
            Some(*body)
        }
        Write::Relabel(driver, revision, _) | Write::RemoveNote(driver, revision) => {
            cluster.record(*driver, *revision).map(|record| record.body)
        }
        _ => None,
    }
}

/// A write as it reaches the webhook at a moment; `None` if the API server answers without asking.
pub(crate) fn sent(cluster: &Cluster, write: &Write, now: i64) -> Option<Sent> {
    let record = |driver: Driver, revision: Revision| cluster.record(driver, revision);
    let of = |operation, object: Value, is_stamped| {
        Some(Sent { operation, key: objects::key_of(&object), object: Some(object), sub_resource: None, is_stamped })
    };
    match write {
        Write::Create(body) | Write::CreateLabelled(body, _) | Write::CreateStamped(body, _) => {
            let is_stamped = !matches!(write, Write::CreateStamped(..));
            record(body.driver, body.revision)
                .is_none()
                .then(|| created(write, body, now))
                .and_then(|object| of("CREATE", object, is_stamped))
        }
        Write::Update(body) => {
            let old = record(body.driver, body.revision)?;
            let mut object = objects::sent(body, body.status, 1);
            object["metadata"]["creationTimestamp"] = objects::at(now - old.created.seconds()).into();
            of("UPDATE", object, true)
        }
        Write::Relabel(driver, revision, label) => {
            let mut object = objects::stored(record(*driver, *revision)?, now);
            object["metadata"]["labels"]["status"] = label.as_str().into();
            of("UPDATE", object, true)
        }
        Write::RemoveNote(driver, revision) => {
            let old = record(*driver, *revision).filter(|record| record.interrupted.is_some())?;
            of("UPDATE", objects::stored(&Record { interrupted: None, ..*old }, now), true)
        }
        Write::Delete(driver, revision) => {
            record(*driver, *revision)?;
            let key = objects::record_key(*driver, *revision);
            Some(Sent { operation: "DELETE", key, object: None, sub_resource: None, is_stamped: false })
        }
        Write::Apply(chart) | Write::Restore(chart) => {
            let object = objects::deployment(&Object::of(*chart), cluster.is_extension());
            of(if cluster.object.is_some() { "UPDATE" } else { "CREATE" }, object, false)
        }
        Write::Edit => {
            let edited = Object { edited: true, ..cluster.object? };
            of("UPDATE", objects::deployment(&edited, cluster.is_extension()), false)
        }
        Write::DeleteObject => {
            cluster.object?;
            Some(Sent {
                operation: "DELETE",
                key: objects::deployment_key(),
                object: None,
                sub_resource: None,
                is_stamped: false,
            })
        }
        Write::Put(other) => put(cluster, *other, now),
        Write::Take(other) => {
            let key = cluster.others.contains(other).then(|| objects::key_of(&objects::other(*other, now)))?;
            Some(Sent { operation: "DELETE", key, object: None, sub_resource: None, is_stamped: false })
        }
    }
}

/// An object beside the release as its creation or update brings it.
fn put(cluster: &Cluster, other: Other, now: i64) -> Option<Sent> {
    let object = objects::other(other, now);
    let (operation, sub_resource) = match other {
        Other::StrangersStatus => {
            cluster.others.get(&Other::StrangersHelmRelease)?;
            ("UPDATE", Some("status"))
        }
        other => (if cluster.replaced_by(other).is_some() { "UPDATE" } else { "CREATE" }, None),
    };
    // A stamp is forged while the mutating half is out of service.
    let is_stamped = !matches!(other, Other::StrangersStatus | Other::StrangersStamp);
    Some(Sent { operation, key: objects::key_of(&object), object: Some(object), sub_resource, is_stamped })
}

/// A record as its CREATE brings it.
fn created(write: &Write, body: &Body, now: i64) -> Value {
    let label = if let Write::CreateLabelled(_, label) = write { *label } else { body.status };
    let mut object = objects::sent(body, label, 0);
    object["metadata"]["creationTimestamp"] = objects::at(now).into();
    if let Write::CreateStamped(_, stamp) = write {
        object["metadata"]["annotations"] = match stamp {
            Stamp::Holder(holder) => json!({HOLDER: holder.name()}),
            Stamp::Driver => json!({DRIVER: objects::own_driver().to_string()}),
        };
    }
    object
}

/// An AdmissionReview as it is sent.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SentReview<'r> {
    api_version: &'static str,
    kind: &'static str,
    request: SentRequest<'r>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SentRequest<'r> {
    uid: &'static str,
    operation: &'static str,
    name: Option<&'r str>,
    namespace: &'r str,
    kind: Value,
    resource: Value,
    sub_resource: Option<&'static str>,
    user_info: Value,
    object: Option<&'r Value>,
    old_object: Option<&'r RawValue>,
}

/// The AdmissionReview of a request.
pub(crate) fn review<'r>(sent: &'r Sent, old: Option<&'r str>, user: User) -> impl Serialize + 'r {
    let ObjectKey { group, kind, namespace, name } = &sent.key;
    let version = match group.as_str() {
        "helm.toolkit.fluxcd.io" => "v2",
        "interlock.dev" => "v1alpha1",
        _ => "v1",
    };
    let exists = sent.operation != "CREATE";
    let request = SentRequest {
        uid: "u",
        operation: sent.operation,
        name: exists.then_some(name),
        namespace,
        kind: json!({"group": group, "version": version, "kind": kind}),
        resource: json!({"group": group, "version": version, "resource": format!("{}s", kind.to_lowercase())}),
        sub_resource: sent.sub_resource,
        user_info: json!({"username": user.name()}),
        object: sent.object.as_ref(),
        old_object: old.filter(|_| exists).map(|old| serde_json::from_str(old).unwrap()),
    };
    SentReview { api_version: "admission.k8s.io/v1", kind: "AdmissionReview", request }
}

/// An object with a JSON patch applied: `add` and `remove` of annotations, or of all of them.
pub(crate) fn patched(object: &Value, patch: &Value) -> Box<RawValue> {
    let mut object = object.clone();
    for operation in patch.as_array().unwrap() {
        let path = operation["path"].as_str().unwrap();
        let (parent, member) = path.rsplit_once('/').unwrap();
        let member = member.replace("~1", "/").replace("~0", "~");
        let parent = object.pointer_mut(parent).and_then(Value::as_object_mut).unwrap();
        match operation["op"].as_str().unwrap() {
            "add" => _ = parent.insert(member, operation["value"].clone()),
            _ => _ = parent.remove(&member),
        }
    }
    RawValue::from_string(object.to_string()).unwrap()
}

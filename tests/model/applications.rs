//! The operation of an Application of Argo CD: every interleaving of its controller, its server and two people with kubectl, each write
//! judged by the real stamp and the real decision. A controller that is killed between two writes takes no further step, so every
//! interleaving has that too.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use interlock_engine::json::RawObject;
use interlock_engine::policy::{Policies, Policy};
use interlock_engine::review::{Request, Review};
use jiff::Timestamp;
use release_interlock::budget::Budget;
use release_interlock::judge::Judge;
use release_interlock::world::memory::Memory;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::time::Instant;

use crate::cluster::{Age, LATE};
use crate::court::patched;
use crate::guards::without_rule;
use crate::objects::NOW;

/// Who writes the Application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Who {
    Controller,
    /// Behind it, everybody who clicks.
    Server,
    Alice,
    Bob,
}

const EVERYBODY: [Who; 4] = [Who::Controller, Who::Server, Who::Alice, Who::Bob];

impl Who {
    fn user(self) -> &'static str {
        match self {
            Self::Controller => "system:serviceaccount:argocd:argocd-application-controller",
            Self::Server => "system:serviceaccount:argocd:argocd-server",
            Self::Alice => "alice",
            Self::Bob => "bob",
        }
    }

    fn named(user: &str) -> Option<Self> {
        EVERYBODY.into_iter().find(|who| who.user() == user)
    }
}

/// A sync: who has asked for it, and who holds it by the stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Sync {
    of: Who,
    holder: Option<Who>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Phase {
    Running(Age),
    Terminating,
    Succeeded,
}

/// `.operation`, and `status.operationState` with the controller's copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
struct Application {
    requested: Option<Sync>,
    state: Option<(Phase, Sync)>,
}

impl Application {
    fn is_running(&self) -> bool {
        matches!(self.state, Some((Phase::Running(_), _)))
    }

    fn is_fresh(&self) -> bool {
        matches!(self.state, Some((Phase::Running(Age::Fresh), _)))
    }

    /// Nothing is asked for, and nothing runs.
    fn is_free(&self) -> bool {
        self.requested.is_none() && !matches!(self.state, Some((Phase::Running(_) | Phase::Terminating, _)))
    }

    /// What somebody may write next, as real clients do. People also name others as holders.
    fn writes(&self, who: Who) -> Vec<Self> {
        let own = Sync { of: who, holder: None };
        let state = self.state;
        let start = Self { requested: Some(own), state };
        let afresh = Self { requested: Some(own), state: None };
        let terminate = state.map(|(_, sync)| Self { state: Some((Phase::Terminating, sync)), ..*self });
        match who {
            Who::Controller => self.reconciled().into_iter().collect(),
            // It refuses by itself only while an operation is asked for.
            Who::Server if self.requested.is_none() => vec![afresh],
            Who::Server => terminate.filter(|_| self.is_running()).into_iter().collect(),
            Who::Alice | Who::Bob => {
                let other = if who == Who::Alice { Who::Bob } else { Who::Alice };
                let forged = Self { requested: Some(Sync { of: who, holder: Some(other) }), state };
                let removed = Self { requested: None, state };
                let acts = [start, afresh, forged, removed].into_iter();
                acts.chain(terminate.filter(|_| self.is_running())).filter(|after| after != self).collect()
            }
        }
    }

    /// The next write of the controller. It goes on with its copy, whatever `.operation` says by then.
    fn reconciled(&self) -> Option<Self> {
        let Self { requested, state } = *self;
        let ended = |sync| Some(Self { requested: None, state: Some((Phase::Succeeded, sync)) });
        match (requested, state) {
            (Some(_), Some((Phase::Running(_) | Phase::Terminating, sync))) => ended(sync),
            (Some(sync), _) => Some(Self { requested, state: Some((Phase::Running(Age::Fresh), sync)) }),
            // By itself, after a commit.
            (None, None | Some((Phase::Succeeded, _))) => {
                Some(Self { requested: Some(Sync { of: Who::Controller, holder: None }), state: None })
            }
            (None, Some(_)) => None,
        }
    }

    fn later(mut self) -> Self {
        if let Some((Phase::Running(age), _)) = &mut self.state {
            *age = Age::Stale;
        }
        self
    }

    fn object(&self) -> Value {
        let operation = |sync: &Sync| {
            let holder = sync.holder.map(|who| json!({"name": "interlock.dev/holder", "value": who.user()}));
            json!({"sync": {"revision": format!("{:?}", sync.of)}, "info": holder.into_iter().collect::<Vec<_>>()})
        };
        let state = self.state.as_ref().map(|(phase, sync)| {
            let (phase, age) = match phase {
                Phase::Running(age) => ("Running", age.seconds()),
                Phase::Terminating => ("Terminating", LATE),
                Phase::Succeeded => ("Succeeded", LATE),
            };
            let started = Timestamp::from_second(NOW - age).unwrap();
            json!({"phase": phase, "startedAt": started.to_string(), "operation": operation(sync)})
        });
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "shop", "namespace": "argocd", "uid": "a1"}, "spec": {"project": "default"},
            "operation": self.requested.as_ref().map(operation), "status": {"operationState": state},
        })
    }
}

/// Judges the writes.
struct Court {
    judge: Judge,
    runtime: Runtime,
    is_stamped: bool,
}

impl Court {
    fn new(policies: impl Into<Policies>, is_stamped: bool) -> Self {
        let judge = Judge::new(policies, Arc::new(Memory::new(1 << 20)), Arc::new(Budget::new(1 << 20)));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        Self { judge, runtime, is_stamped }
    }

    /// The Application after a write, as it is stored; `None` if it is refused.
    fn written(&self, who: Who, before: &Application, after: &Application) -> Option<Application> {
        let (old, new) = (before.object(), after.object());
        let text = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "u", "operation": "UPDATE", "name": "shop", "namespace": "argocd",
                "kind": {"group": "argoproj.io", "version": "v1alpha1", "kind": "Application"},
                "resource": {"group": "argoproj.io", "version": "v1alpha1", "resource": "applications"},
                "userInfo": {"username": who.user()}, "object": new, "oldObject": old,
            },
        });
        let text = text.to_string();
        let review = Review::parse(text.as_bytes()).unwrap();
        let (now, deadline) = (Timestamp::from_second(NOW).unwrap(), || Instant::now() + Duration::from_secs(60));
        let patch = self.runtime.block_on(self.judge.mutate(&review.request, now, deadline())).unwrap();
        let patch = patch.filter(|_| self.is_stamped);
        let stamped = patch.map(|patch| patched(&new, &serde_json::to_value(patch).unwrap()));
        let object = stamped.as_deref().map(RawObject::from).or(review.request.object);
        let request = Request { object, ..review.request };
        let judgement = self.runtime.block_on(self.judge.validate(&request, now, deadline())).unwrap();
        if !judgement.outcome.allowed {
            return None;
        }
        let stored: Value = serde_json::from_str(object.unwrap().get()).unwrap();
        let holder = stored["operation"]["info"][0]["value"].as_str().and_then(Who::named);
        Some(Application { requested: after.requested.map(|sync| Sync { holder, ..sync }), ..*after })
    }
}

/// What an admitted write breaks.
fn broken(who: Who, before: &Application, after: &Application) -> Option<&'static str> {
    let copy = |application: &Application| application.state.map(|(_, sync)| sync);
    let is_new = after.requested.is_some_and(|sync| before.requested.is_none_or(|old| old.of != sync.of));
    let is_copied = copy(before) == copy(after);
    match after.requested {
        Some(sync) if is_new && sync.holder.is_some_and(|holder| holder != who) => Some("a sync names another holder"),
        _ if who == Who::Controller => None,
        None if before.requested.is_some() && before.is_fresh() && after.is_running() => Some("a sync is orphaned"),
        Some(_) if before.requested.is_some() && before.is_fresh() && is_new && is_copied => Some("a sync is lost"),
        Some(_) if before.requested.is_none() && before.is_running() && after.is_running() => {
            Some("a sync resumes an older one")
        }
        _ => match (before.state, after.state) {
            (Some((Phase::Running(Age::Fresh), sync)), Some((Phase::Terminating, _)))
                if who != Who::Server && sync.holder.is_some_and(|holder| holder != who) =>
            {
                Some("a fresh sync is ended by another")
            }
            _ => None,
        },
    }
}

/// What admitted writes and time lead to, from each Application.
type Edges = HashMap<Application, Vec<(Who, Application)>>;

/// All Applications that can be, what leads from each to others, and what admitted writes break.
fn explored(court: &Court) -> (Edges, BTreeSet<&'static str>) {
    let (mut edges, mut found) = (Edges::new(), BTreeSet::new());
    let mut queue = VecDeque::from([Application::default()]);
    while let Some(application) = queue.pop_front() {
        if edges.contains_key(&application) {
            continue;
        }
        let mut next = Vec::new();
        for who in EVERYBODY {
            for wanted in application.writes(who) {
                let Some(after) = court.written(who, &application, &wanted) else { continue };
                found.extend(broken(who, &application, &after));
                next.push((who, after));
            }
        }
        // Time is nobody's write.
        next.push((Who::Controller, application.later()));
        queue.extend(next.iter().map(|(_, after)| *after));
        edges.insert(application, next);
    }
    (edges, found)
}

/// Whether the controller and one person lead from here to an Application at rest.
fn has_a_way_out(edges: &Edges, from: &Application, person: Who) -> bool {
    let (mut seen, mut queue) = (BTreeSet::new(), VecDeque::from([*from]));
    while let Some(application) = queue.pop_front() {
        if application.is_free() {
            return true;
        }
        if seen.insert(application) {
            let usable = edges[&application].iter().filter(|(who, _)| [Who::Controller, person].contains(who));
            queue.extend(usable.map(|(_, after)| *after));
        }
    }
    false
}

#[test]
fn no_interleaving_loses_a_sync_and_everybody_finds_a_way_out() {
    for is_stamped in [true, false] {
        let (edges, broken) = explored(&Court::new(Policy::shipped().unwrap(), is_stamped));
        assert_eq!(broken, BTreeSet::new(), "stamped: {is_stamped}");
        assert!(edges.len() > 40, "{}", edges.len());
        for person in [Who::Server, Who::Alice, Who::Bob] {
            let wedged: Vec<_> = edges.keys().filter(|it| !has_a_way_out(&edges, it, person)).collect();
            assert!(wedged.is_empty(), "{person:?}: {wedged:?}");
        }
        let writes: usize = edges.values().map(Vec::len).sum();
        println!("an Application: {} states, {writes} edges, stamped: {is_stamped}", edges.len());
    }
}

#[test]
fn without_a_rule_there_is_a_counterexample() {
    for (rule, is_stamped, wanted) in [
        ("concurrent-operation", true, "a sync is orphaned"),
        ("concurrent-operation", true, "a sync is lost"),
        ("concurrent-operation", true, "a sync resumes an older one"),
        ("concurrent-operation", true, "a fresh sync is ended by another"),
        ("forged-stamp", false, "a sync names another holder"),
    ] {
        let (_, broken) = explored(&Court::new(without_rule(rule), is_stamped));
        assert!(broken.contains(wanted), "{rule}: {broken:?}");
    }
}

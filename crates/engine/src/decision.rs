//! The structured result of a review. The log line, metrics, Events and reports are built from it.

#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
mod groups;
mod transition;

use std::collections::BTreeSet;
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::str::FromStr;
use std::sync::LazyLock;
use std::time::Duration;

use jsonptr::Pointer;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub use groups::{BadGroups, Groups};
pub use transition::{BadTransition, OperationChange, Transition, TransitionKind, TransitionOutcome};

use super::facts::{Declaration, Facts, Subject};
use super::json::first_at;
use super::outcome::{Outcome, Verdict};
use super::policy::ScalableResource;
use super::release::ReleaseRef;
use super::review::{Operation, Request};
use super::rule::{Mode, RuleId};
use super::text::{MAX_LABEL_BYTES, MAX_NAME_BYTES, into_printable, printable, printable_name};
use super::violation::{Frozen, ViolationKind};
use super::ways_out::WaysOut;

/// The longest resource that is shown, with its group and subresource.
const MAX_RESOURCE_BYTES: usize = MAX_NAME_BYTES + 2 * MAX_LABEL_BYTES + "./".len();

/// The longest API version that is shown, with its group.
const MAX_API_VERSION_BYTES: usize = MAX_NAME_BYTES + MAX_LABEL_BYTES + "/".len();

/// The longest list of overrides or tickets, in bytes.
const MAX_LIST_BYTES: usize = 1024;

/// The largest number of fields that are hashed. To find a field, an object of up to several MiB is parsed.
const MAX_HASHED_FIELDS: usize = 8;

/// The fields that are hashed if a violation has no pointers: most objects have the first, records the others.
const DEFAULT_POINTERS: [&str; 3] = ["/spec", "/data", "/metadata/labels"];

/// Random keys for the hashes of changes. Nobody can construct two changes with the same hash.
static HASH_KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The result of one review. It never contains content of the object. Every text is printable and of bounded length.
/// Names longer than the API allows are cut, so nothing is looked up or decided by them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub uid: String,
    pub operation: Operation,
    /// `secrets`, `deployments.apps/scale`.
    pub resource: String,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    /// From the request, or from the object in a collection delete.
    pub name: String,
    /// `userInfo.username`.
    pub user: String,
    /// Whether the object can concern a release: a record, a declaration, an override, or an object with the marks of an owner.
    pub concerns_releases: bool,
    /// The release concerned, if known.
    pub release: Option<ReleaseRef>,
    pub allowed: bool,
    /// Whether the request is a dry run.
    pub dry_run: bool,
    /// Why a ReleaseOverride or a Freeze is refused. No rule decides this.
    pub objection: Option<String>,
    /// The rules that were broken or undecided.
    pub findings: Vec<DecisionFinding>,
    /// The object concerned; `None` if nothing was found.
    pub object: Option<ObjectReference>,
    /// Empty if the object has no uid yet, or nothing was found.
    pub object_uid: String,
    /// Distinguishes changes of objects if something was found: a hash of the values of the fields concerned, and of
    /// the full names, which the other fields may cut. It never leaves the process.
    pub change: u64,
    /// What happens to the status of a record, or to the operation in another object; `None` for a dry run.
    pub transition: Option<Box<Transition>>,
    /// From the arrival of the body to the verdict.
    pub took: Duration,
    /// The time to inflate and parse the bodies of the records in the request, if it has any.
    pub decoded: Option<Duration>,
    /// The steps that the review used.
    pub effort: u64,
    /// Whether a reader needed more steps than were left.
    pub over_budget: bool,
}

/// A reference to an object of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectReference {
    /// For example `apps/v1`.
    pub api_version: String,
    pub kind: String,
    /// Empty for cluster-scoped objects.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    pub name: String,
}

/// A text that does not name an object.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected <apiVersion> <kind> <namespace>/<name>")]
pub struct BadObjectReference;

impl fmt::Display for ObjectReference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {} {}/{}", self.api_version, self.kind, self.namespace, self.name)
    }
}

impl FromStr for ObjectReference {
    type Err = BadObjectReference;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // Names of roles may have spaces; no name has a slash.
        let mut parts = text.splitn(3, ' ').map(str::to_owned);
        let (Some(api_version), Some(kind), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(BadObjectReference);
        };
        let (namespace, name) = path.split_once('/').ok_or(BadObjectReference)?;
        Ok(Self { api_version, kind, namespace: namespace.to_owned(), name: name.to_owned() })
    }
}

/// One rule in a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionFinding {
    pub rule: RuleId,
    pub mode: Mode,
    /// Broken, or why the rule could not be evaluated.
    pub kind: ViolationKind,
    pub refuses: bool,
    /// The override that opened the rule, as `namespace/name`.
    pub overridden: Option<String>,
    /// The ticket that this override names.
    pub ticket: Option<String>,
    /// The freeze in force, if the finding is a freeze.
    pub frozen: Option<Frozen>,
    /// JSON pointers to the fields concerned, at most 20.
    pub pointers: Vec<String>,
    pub message: String,
    /// What the message names as ways out.
    pub ways_out: WaysOut,
}

/// What a decision says of its review, beside the outcome.
#[derive(Debug, Default)]
pub struct ReviewRun {
    /// From the arrival of the body to the verdict.
    pub took: Duration,
    /// The time to inflate and parse the bodies of the records in the request, if it has any.
    pub decoded: Option<Duration>,
    /// What happens to the status of a record, or to the operation in another object.
    pub transition: Option<Transition>,
}

impl DecisionFinding {
    /// Whether the rule could not be evaluated.
    #[must_use]
    pub fn is_undecided(&self) -> bool {
        self.kind.is_undecided()
    }

    /// The verdict on this finding.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        Verdict::of(self.kind, self.mode, self.refuses, self.overridden.is_some())
    }
}

impl Decision {
    /// The account of a judged request.
    #[must_use]
    pub fn of(request: &Request<'_>, facts: &Facts<'_>, outcome: &Outcome, run: ReviewRun) -> Self {
        let known = match (&facts.subject, facts.managed) {
            (Subject::Record(id, _), _) => Some(id.object.as_str()),
            (Subject::RecordChunk(part), _) => Some(part.name.as_str()),
            (Subject::Own(write), _) => Some(write.after.name.as_ref()),
            (_, Some(write)) => Some(write.name.as_str()),
            (Subject::Declaration(_) | Subject::Other, None) => None,
        };
        let name = request.name().or(known).unwrap_or_default();
        // The release in a finding takes precedence over the marks of an object.
        let of_itself = match &facts.subject {
            Subject::Record(..) | Subject::RecordChunk(_) | Subject::Own(_) => facts.release(),
            // Its operation starts or ends.
            Subject::Declaration(it) if run.transition.is_some() => Some(ReleaseRef::new(it.namespace(), it.name())),
            Subject::Declaration(_) | Subject::Other => None,
        };
        let disturbed = outcome.violations.iter().find_map(|judged| judged.violation.release.clone());
        let findings = outcome.violations.iter().map(|judged| DecisionFinding {
            rule: judged.violation.rule,
            mode: judged.mode,
            kind: judged.violation.kind,
            refuses: judged.refuses,
            overridden: judged.violation.overridden.as_ref().map(|applied| applied.name.clone()),
            ticket: judged.violation.overridden.as_ref().and_then(|applied| applied.ticket.clone()),
            frozen: judged.violation.frozen.clone(),
            pointers: judged.violation.shown_pointers().collect(),
            message: judged.violation.message(),
            ways_out: judged.violation.ways_out.clone(),
        });
        let is_found = !outcome.violations.is_empty();
        Self {
            uid: printable_name(&request.uid),
            operation: request.operation,
            resource: into_printable(request.resource_name(), MAX_RESOURCE_BYTES),
            namespace: printable(request.namespace(), MAX_LABEL_BYTES).into_owned(),
            name: printable_name(name),
            user: printable_name(facts.actor.name),
            concerns_releases: is_found || !matches!((&facts.subject, facts.managed), (Subject::Other, None)),
            release: of_itself.map(printable_release).or_else(|| disturbed.clone()).or_else(|| commit_of(facts)),
            allowed: outcome.allowed,
            objection: outcome.objection.clone(),
            dry_run: request.dry_run.unwrap_or_default(),
            object_uid: is_found
                .then(|| uid(request, facts))
                .flatten()
                .map(|uid| printable_name(&uid))
                .unwrap_or_default(),
            object: is_found.then(|| {
                let of_commit = ObjectReference::of_declaration(facts, disturbed.as_ref());
                of_commit.unwrap_or_else(|| ObjectReference::of(request, facts, name))
            }),
            change: if is_found { change(request, facts.actor.name, outcome) } else { 0 },
            transition: run.transition.map(Box::new),
            findings: findings.collect(),
            took: run.took,
            decoded: run.decoded,
            effort: facts.effort.used(),
            over_budget: facts.effort.was_exceeded(),
        }
    }

    /// The most severe verdict of the findings.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.findings.iter().map(DecisionFinding::verdict).max().unwrap_or(Verdict::Allowed)
    }

    /// The overrides that opened rules, separated by commas. Each appears once, however many rules it opened. At most 1
    /// KiB.
    #[must_use]
    pub fn overrides(&self) -> String {
        self.distinct(|finding| finding.overridden.as_deref())
    }

    /// The tickets that these overrides name, in the same format.
    #[must_use]
    pub fn tickets(&self) -> String {
        self.distinct(|finding| finding.ticket.as_deref())
    }

    fn distinct(&self, of: fn(&DecisionFinding) -> Option<&str>) -> String {
        let texts: BTreeSet<_> = self.findings.iter().filter_map(of).collect();
        into_printable(texts.into_iter().collect::<Vec<_>>().join(","), MAX_LIST_BYTES)
    }
}

impl ObjectReference {
    /// The object that a declaration is known by, where its own name differs from try to try and a refused one never exists.
    fn of_declaration(facts: &Facts<'_>, disturbed: Option<&ReleaseRef>) -> Option<Self> {
        let Subject::Declaration(declaration) = facts.subject else { return None };
        let (api_version, known) = declaration.lasting_object(disturbed)?;
        Some(Self {
            api_version,
            kind: known.kind,
            namespace: into_printable(known.namespace, MAX_LABEL_BYTES),
            name: printable_name(&known.name),
        })
    }

    /// The object of a request. For a subresource, this is the object that has it.
    fn of(request: &Request<'_>, facts: &Facts<'_>, name: &str) -> Self {
        let (group, version) = match request.sub_resource() {
            Some(_) => (&request.resource.group, &request.resource.version),
            None => (&request.kind.group, &request.kind.version),
        };
        // The request for a Namespace names it as its namespace, but a Namespace is cluster-scoped.
        let namespace = facts.namespace().unwrap_or_default();
        let api_version = if group.is_empty() { version.to_string() } else { format!("{group}/{version}") };
        let kind = scaled_kind(request).unwrap_or_else(|| request.kind.kind.to_string());
        Self {
            api_version: into_printable(api_version, MAX_API_VERSION_BYTES),
            kind: into_printable(kind, MAX_LABEL_BYTES),
            namespace: printable(namespace, MAX_LABEL_BYTES).into_owned(),
            name: printable_name(name),
        }
    }
}

/// The kind of the object whose subresource a request writes.
fn scaled_kind(request: &Request<'_>) -> Option<String> {
    request.sub_resource()?;
    let resource = &request.resource;
    let known = ScalableResource::built_in()
        .into_iter()
        .find(|known| known.group == resource.group && known.resource == resource.resource)?;
    Some(known.kind)
}

fn printable_release(ReleaseRef { namespace, name }: ReleaseRef) -> ReleaseRef {
    ReleaseRef { namespace: into_printable(namespace, MAX_LABEL_BYTES), name: into_printable(name, MAX_NAME_BYTES) }
}

/// The name of a Sveltos commit, if its group was parsed.
fn commit_of(facts: &Facts<'_>) -> Option<ReleaseRef> {
    match facts.subject {
        Subject::Declaration(declaration @ Declaration::ConfigurationGroup(written, _)) => {
            written.latest().and_then(|_| declaration.release_ref()).map(printable_release)
        }
        _ => None,
    }
}

/// The uid of the object. A new object already has a uid at its review. A commit has none: its object is another one.
fn uid(request: &Request<'_>, facts: &Facts<'_>) -> Option<String> {
    if matches!(facts.subject, Subject::Declaration(Declaration::ConfigurationGroup(..))) {
        return None;
    }
    let object = request.old_object.or(request.object)?;
    first_at(object.get(), &["metadata", "uid"]).ok().flatten()
}

/// A hash of the user, of the name, and of the fields of the new object that the violations point to, or else its main
/// fields.
fn change(request: &Request<'_>, user: &str, outcome: &Outcome) -> u64 {
    let mut hasher = HASH_KEYS.build_hasher();
    (user, request.namespace(), request.name()).hash(&mut hasher);
    let pointers = outcome.violations.iter().flat_map(|judged| &judged.violation.pointers);
    let mut pointers: Vec<_> = pointers.map(String::as_str).collect();
    pointers.sort_unstable();
    pointers.hash(&mut hasher);
    if pointers.is_empty() {
        pointers.extend(DEFAULT_POINTERS);
    }
    for pointer in pointers.into_iter().take(MAX_HASHED_FIELDS) {
        value_at(request, pointer).map(RawValue::get).hash(&mut hasher);
    }
    hasher.finish()
}

/// Comparing texts is enough: the API server writes equal values in the same way.
fn value_at<'r>(request: &Request<'r>, pointer: &str) -> Option<&'r RawValue> {
    let pointer = Pointer::parse(pointer).ok()?;
    let path: Vec<_> = pointer.tokens().map(|token| token.decoded().into_owned()).collect();
    let path: Vec<_> = path.iter().map(String::as_str).collect();
    first_at(request.object?.get(), &path).ok().flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::fixtures::{decision, finding};
    use super::*;
    use crate::effort::Effort;
    use crate::facts::{RecordBodies, RequestObjects};
    use crate::outcome::WeighedViolation;
    use crate::policy::Policy;
    use crate::reply;
    use crate::review::Review;
    use crate::text::hostile::hostile;
    use crate::text::is_printable;
    use crate::violation::Violation;

    #[test]
    fn an_override_that_opens_several_rules_is_listed_once() {
        let opened = |rule: &'static str, name: &str| DecisionFinding {
            overridden: Some(name.into()),
            ticket: Some("OPS-7".into()),
            ..finding(RuleId::known(rule), Mode::Enforce)
        };
        let found = decision(vec![
            opened("freeze", "shop/fix"),
            opened("manual-edit", "shop/all"),
            opened("illegal-transition", "shop/fix"),
            finding(RuleId::known("manual-edit"), Mode::Warn),
        ]);
        assert_eq!((found.overrides().as_str(), found.tickets().as_str()), ("shop/all,shop/fix", "OPS-7"));
    }

    fn change_of(object: &Value, pointers: &[&str]) -> u64 {
        change_by("alice", object, pointers)
    }

    fn change_by(user: &str, object: &Value, pointers: &[&str]) -> u64 {
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "u", "kind": {"group": "apps", "version": "v1", "kind": "Deployment"}, "operation": "UPDATE",
            "resource": {"group": "apps", "version": "v1", "resource": "deployments"}, "userInfo": {}, "object": object,
        }});
        let body = review.to_string();
        let review = Review::parse(body.as_bytes()).unwrap();
        let violation = Violation {
            rule: RuleId::known("manual-edit"),
            kind: ViolationKind::Refused,
            sentence: String::new(),
            ways_out: WaysOut::default(),
            pointers: pointers.iter().map(|&pointer| pointer.to_owned()).collect(),
            release: None,
            overridden: None,
            frozen: None,
        };
        let judged = vec![WeighedViolation { violation, mode: Mode::Audit, refuses: false }];
        let outcome = Outcome {
            allowed: true,
            code: 200,
            message: String::new(),
            objection: None,
            emergency: None,
            warnings: Vec::new(),
            audit: Vec::new(),
            violations: judged,
        };
        change(&review.request, user, &outcome)
    }

    #[test]
    fn only_the_values_of_its_fields_identify_a_change() {
        let object = |image: &str, version: &str| {
            json!({
                "metadata": {"resourceVersion": version, "labels": {"example.com/a": image}},
                "spec": {"containers": [{"name": "sidecar"}, {"image": image}]},
            })
        };
        for pointers in [&["/spec/containers/1/image"][..], &["/metadata/labels/example.com~1a"], &[]] {
            let one = change_of(&object("one", "1"), pointers);
            assert_eq!(one, change_of(&object("one", "2"), pointers), "{pointers:?}");
            assert_ne!(one, change_of(&object("two", "1"), pointers), "{pointers:?}");
        }
        let record =
            |status: &str, body: &str| json!({"metadata": {"labels": {"status": status}}, "data": {"release": body}});
        let one = change_of(&record("deployed", "one"), &[]);
        assert_eq!(one, change_of(&record("deployed", "one"), &[]));
        assert_ne!(one, change_of(&record("failed", "one"), &[]));
        assert_ne!(one, change_of(&record("deployed", "two"), &[]));
        let image = "/spec/containers/1/image";
        assert_ne!(change_of(&object("one", "1"), &[image]), change_of(&object("one", "1"), &[image, "/spec/x"]));
        // These names are cut to the same text.
        let long = |end: &str| change_by(&format!("{}{end}", "x".repeat(300)), &object("one", "1"), &[image]);
        assert_eq!(long("a"), long("a"));
        assert_ne!(long("a"), long("b"));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn decisions_and_replies_are_bounded_and_printable(
            texts in proptest::collection::vec(hostile(), 9),
            operation in prop_oneof![Just("CREATE"), Just("UPDATE"), Just("DELETE")],
            mode in prop_oneof![Just(Mode::Enforce), Just(Mode::Warn)],
        ) {
            let object = json!({"metadata": {"name": texts[0], "uid": texts[1], "labels": {"a": texts[2]}}});
            let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
                "uid": "u", "operation": operation, "object": object, "oldObject": object,
                "kind": {"group": texts[3], "version": texts[4], "kind": texts[5]},
                "resource": {"group": texts[3], "version": texts[4], "resource": texts[6]},
                "subResource": texts[0], "name": texts[7], "namespace": texts[8], "userInfo": {"username": texts[2]},
            }});
            let body = review.to_string();
            let request = Review::parse(body.as_bytes()).unwrap().request;
            let objects = RequestObjects::read(&request).unwrap();
            let effort = Effort::of_review();
            let bodies = objects.payloads(request.operation).inflate(&effort);
            let facts = Facts::of(&request, &objects, &bodies, &effort);
            let violation = Violation {
                rule: RuleId::known("manual-edit"),
                kind: ViolationKind::Refused,
                sentence: texts[0].clone(),
                ways_out: WaysOut::from(&*texts[1]),
                pointers: vec![texts[2].clone(); 30],
                release: Some(ReleaseRef::new(&*texts[3], &*texts[4])),
                overridden: None,
                frozen: None,
            };
            let judged = WeighedViolation { violation, mode, refuses: mode == Mode::Enforce };
            let outcome = Outcome::of(&Policy::shipped().unwrap(), vec![judged]);
            let decision = Decision::of(&request, &facts, &outcome, ReviewRun::default());
            // Debug would escape characters that cannot be printed, so the test checks each text by itself.
            let ObjectReference { api_version, kind, namespace, name } = decision.object.clone().unwrap();
            let finding = &decision.findings[0];
            let release = decision.release.clone().unwrap().to_string();
            let shown = [
                &decision.uid, &decision.resource, &decision.namespace, &decision.name, &decision.user, &decision.object_uid,
                &api_version, &kind, &namespace, &name, &release,
            ];
            for text in shown.into_iter().chain(&finding.pointers) {
                prop_assert!(text.len() <= 512 && is_printable(text), "{text:?}");
            }
            prop_assert!(finding.message.len() <= 5 << 10 && is_printable(&finding.message));
            prop_assert_eq!(finding.pointers.len(), 20);
            let reply = reply::answer(&request.uid, &outcome);
            prop_assert!(reply.len() <= 32 << 10, "{} bytes", reply.len());
            prop_assert!(is_printable(std::str::from_utf8(&reply).unwrap()));
        }
    }

    #[test]
    fn names_within_the_limits_of_the_api_are_not_cut() {
        let (name, namespace) = ("n".repeat(MAX_NAME_BYTES), "s".repeat(MAX_LABEL_BYTES));
        let group = format!("{}.example.com", "g".repeat(200));
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "operation": "UPDATE", "name": name, "namespace": namespace,
            "kind": {"group": group, "version": "v1", "kind": "Thing"}, "userInfo": {"username": name},
            "resource": {"group": group, "version": "v1", "resource": "things"}, "subResource": "status",
        }});
        let body = review.to_string();
        let request = Review::parse(body.as_bytes()).unwrap().request;
        let (objects, bodies) = (RequestObjects::default(), RecordBodies::default());
        let effort = Effort::of_review();
        let facts = Facts::of(&request, &objects, &bodies, &effort);
        let decision = Decision::of(&request, &facts, &Outcome::of_own(None, Mode::Enforce), ReviewRun::default());
        assert_eq!((&decision.name, &decision.user, &decision.namespace), (&name, &name, &namespace));
        assert_eq!((decision.uid.len(), decision.resource), (36, format!("things.{group}/status")));
    }

    #[test]
    fn a_reference_is_parsed_as_it_is_printed() {
        let deployment = decision(Vec::new()).object.unwrap();
        assert_eq!(deployment.to_string(), "apps/v1 Deployment shop/web");
        let role = ObjectReference {
            api_version: "rbac.authorization.k8s.io/v1".into(),
            kind: "ClusterRole".into(),
            namespace: String::new(),
            name: "system: all of it".into(),
        };
        for object in [deployment, role] {
            assert_eq!(object.to_string().parse(), Ok(object));
        }
        for wrong in ["", "apps/v1", "apps/v1 Deployment", "apps/v1 Deployment web"] {
            assert_eq!(wrong.parse::<ObjectReference>(), Err(BadObjectReference), "{wrong}");
        }
    }
}

//! Requests that cannot be judged: too late, overload, or an internal error.

use jiff::Timestamp;

use crate::evidence::Evidence;
use crate::facts::{ActorKind, Declaration, Facts, Subject, record_name, storing_kind, writes_own};
use crate::outcome::{Outcome, weigh};
use crate::policy::{Policy, Removal, Scope};
use crate::release::{RecordName, Storage};
use crate::review::{Operation, Request};
use crate::rule::{FailsClosed, RuleId};
use crate::rules::{self, Family};
use crate::violation::{Violation, ViolationKind};
use crate::ways_out::{Step, WaysOut};

/// Why a request was not judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewFailure {
    /// The review did not finish before its deadline.
    Late,
    /// No memory, core or time is free for a large or expensive review, or for a small review that opens rules.
    Busy,
    /// The review panicked.
    Failed,
}

impl ReviewFailure {
    /// The reason and the next step, for the user.
    fn reason(self) -> (&'static str, Step) {
        match self {
            Self::Late => ("the review did not finish in time", Step::retry("try again")),
            Self::Busy => ("Interlock had no time for it beside other reviews", Step::retry("try again")),
            Self::Failed => ("Interlock has an internal error, and its log has the details", "please report it".into()),
        }
    }

    fn kind(self) -> ViolationKind {
        match self {
            Self::Late => ViolationKind::Late,
            Self::Busy => ViolationKind::Overloaded,
            Self::Failed => ViolationKind::Failed,
        }
    }
}

/// The outcome of a request that was not judged. Every rule that may apply to it is undecided. Overrides and Freezes are refused,
/// overrides because they open rules. The facts may come from the head alone, without objects.
#[must_use]
pub fn outcome_of_failure(request: &Request<'_>, facts: &Facts<'_>, policy: &Policy, why: ReviewFailure) -> Outcome {
    let (reason, step) = why.reason();
    let ways_out = WaysOut::from(step);
    let sentence = format!("Could not check this request: {reason}.");
    if facts.actor.kind == ActorKind::ControlPlane {
        return Outcome::of(policy, Vec::new());
    }
    if writes_own(request) {
        return Outcome::of_own(Some(format!("{sentence} {ways_out}")), policy.cap);
    }
    let is_head = request.object.or(request.old_object).is_none();
    let record = record_name(request);
    let scope = match facts.subject {
        Subject::Other if is_head => scope_of_head(request, facts, record.as_ref()),
        _ => policy.scope(facts),
    };
    let of_subject = of_subject(request, facts, policy, &scope, is_head);
    let may_disturb = may_disturb_object(request, facts, is_head && record.is_none());
    let of_removals = of_removals().filter(|_| match scope.removal {
        Removal::Nothing => false,
        Removal::Possible => may_disturb,
        Removal::Protected => true,
    });
    let of_objects = Family::Objects.rules().filter(|_| may_disturb).chain(of_removals);
    let of_objects: Vec<_> = of_objects.filter(|rule| !of_subject.contains(rule)).collect();
    let undecided = of_subject.into_iter().chain(of_objects).map(|rule| Violation {
        rule,
        kind: why.kind(),
        sentence: sentence.clone(),
        ways_out: ways_out.clone(),
        pointers: Vec::new(),
        // An override would not help, because no time is left to search for one.
        release: None,
        overridden: None,
        frozen: None,
    });
    Outcome::of(policy, weigh(policy, &scope, undecided.collect()))
}

/// The rules that may concern the subject of a request.
fn of_subject(
    request: &Request<'_>,
    facts: &Facts<'_>,
    policy: &Policy,
    scope: &Scope<'_>,
    is_head: bool,
) -> Vec<RuleId> {
    match facts.subject {
        Subject::Record(..) | Subject::RecordChunk(_) => Family::Records.rules().collect(),
        Subject::Declaration(declaration) => of_declaration(declaration, facts, policy, scope),
        Subject::Other if is_head && storing_kind(request).is_some() => Family::Records.rules().collect(),
        Subject::Other | Subject::Own(_) => Vec::new(),
    }
}

/// The rules that must not admit any unjudged removal.
fn of_removals() -> impl Iterator<Item = RuleId> {
    rules::all().filter(|rule| rule.specification().fails_closed == FailsClosed::OnRemoval)
}

/// The rules about a declaration that are undecided if it cannot be parsed.
fn of_declaration(declaration: &Declaration<'_>, facts: &Facts<'_>, policy: &Policy, scope: &Scope<'_>) -> Vec<RuleId> {
    let (kind, namespace, name) = (declaration.kind(), declaration.namespace(), declaration.name());
    let unparsed = Declaration::Unparsed { kind, namespace, name, why: String::new() };
    let facts = Facts {
        // For a deletion, the rules would query the namespace.
        operation: Operation::Update,
        actor: facts.actor,
        collection: facts.collection,
        subject: Subject::Declaration(&unparsed),
        managed: None,
        peer_mark: None,
        effort: facts.effort,
    };
    match rules::check(&facts, policy, scope, &Evidence::default(), Timestamp::UNIX_EPOCH) {
        Ok(violations) => violations.into_iter().map(|violation| violation.rule).collect(),
        Err(_) => Family::Declarations.rules().collect(),
    }
}

/// Whether a request may write an object of a release. The release need not be known.
fn may_disturb_object(request: &Request<'_>, facts: &Facts<'_>, is_unknown: bool) -> bool {
    match (request.operation, request.sub_resource()) {
        (Operation::Update | Operation::Delete, None) | (Operation::Update, Some("scale")) => {
            is_unknown || facts.managed.is_some()
        }
        _ => false,
    }
}

/// The scope of a request whose object was not parsed. Helm names its records after their releases.
fn scope_of_head<'s>(request: &'s Request<'_>, facts: &Facts<'s>, record: Option<&'s RecordName>) -> Scope<'s> {
    Scope {
        actor: facts.actor,
        namespace: request.namespace(),
        release: record.map(|record| record.release.as_str()),
        kind: &request.kind.kind,
        owner: record.map(|_| Storage::Secret.owner()),
        operation: request.operation,
        creates_record: request.operation == Operation::Create && storing_kind(request).is_some(),
        removal: match request.operation {
            Operation::Delete if record.is_none() => Removal::Possible,
            _ => Removal::Nothing,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::effort::Effort;
    use crate::facts::{RecordBodies, RequestObjects};
    use crate::review::{Review, head_of};

    /// The rules that are undecided about the head of an UPDATE.
    fn rules_of(kind: &str, name: &str, policy: &str) -> Vec<&'static str> {
        let policy = format!("apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\nrules:\n{policy}");
        let policy = Policy::parse(&policy, Path::new("test")).unwrap();
        let review = format!(
            r#"{{"request":{{"uid":"u","kind":{{"version":"v1","kind":"{kind}"}},"resource":{{"version":"v1",
               "resource":"x"}},"name":"{name}","namespace":"shop","operation":"UPDATE","userInfo":{{}},"object":{{}}}}}}"#
        );
        let head = head_of(review.as_bytes()).unwrap();
        let objects = RequestObjects::read(&head).unwrap();
        let bodies = RecordBodies::default();
        let effort = Effort::of_review();
        let outcome =
            outcome_of_failure(&head, &Facts::of(&head, &objects, &bodies, &effort), &policy, ReviewFailure::Late);
        outcome.violations.iter().map(|judged| judged.violation.rule.as_str()).collect()
    }

    #[test]
    fn an_unread_secret_without_a_helm_name_may_be_a_record() {
        let (record, secret) = ("sh.helm.release.v1.web.v2", "password");
        for (kind, name, of_records, of_objects) in [
            ("Secret", record, true, false),
            ("ConfigMap", record, true, false),
            ("Secret", secret, true, true),
            ("Service", secret, false, true),
        ] {
            let rules = rules_of(kind, name, "  {}\n");
            assert_eq!(rules.contains(&"illegal-transition"), of_records, "{kind} {name}: {rules:?}");
            assert_eq!(rules.contains(&"manual-edit"), of_objects, "{kind} {name}: {rules:?}");
        }
    }

    /// Whether an unjudged deletion of a Service is admitted.
    fn may_go(policy: &str, annotations: &str) -> bool {
        let request = format!(
            r#""kind":{{"version":"v1","kind":"Service"}},"resource":{{"version":"v1","resource":"services"}},
               "name":"web","namespace":"shop","operation":"DELETE","oldObject":
               {{"metadata":{{"name":"web","labels":{{"app.kubernetes.io/managed-by":"Helm"}},"annotations":{annotations}}}}}"#
        );
        is_admitted(policy, &request)
    }

    #[test]
    fn unjudged_deletions_of_protected_releases_are_refused() {
        let of_web = r#"{"meta.helm.sh/release-name":"web","meta.helm.sh/release-namespace":"shop"}"#;
        for (policy, annotations, admitted) in [
            ("rules: {}", of_web, true),
            ("protected: {releases: [w*]}", of_web, false),
            ("protected: {namespaces: [prod]}", of_web, false),
            ("protected: {releases: [api]}", of_web, true),
            ("protected: {releases: [w*]}", "{}", true),
            ("protected: {releases: [w*]}\nrules: {protected-release: {mode: warn}}", of_web, true),
        ] {
            assert_eq!(may_go(policy, annotations), admitted, "{policy} {annotations}");
        }
    }

    /// Whether an unjudged request is admitted.
    fn is_admitted(policy: &str, request: &str) -> bool {
        let policy = format!("apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\n{policy}");
        let policy = Policy::parse(&policy, Path::new("test")).unwrap();
        let review = format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u","userInfo":{{}},{request}}}}}"#
        );
        let review = Review::parse(review.as_bytes()).unwrap();
        let objects = RequestObjects::read(&review.request).unwrap();
        let (bodies, effort) = (RecordBodies::default(), Effort::of_review());
        let facts = Facts::of(&review.request, &objects, &bodies, &effort);
        outcome_of_failure(&review.request, &facts, &policy, ReviewFailure::Late).allowed
    }

    #[test]
    fn unjudged_uninstalls_of_protected_releases_are_refused() {
        let side = |status: &str| {
            format!(
                r#"{{"type":"helm.sh/release.v1","metadata":{{"name":"sh.helm.release.v1.web.v5","labels":
                   {{"owner":"helm","name":"web","version":"5","status":"{status}"}}}},"data":{{"release":"eA=="}}}}"#
            )
        };
        for (policy, from, to, admitted) in [
            ("rules: {}", "deployed", "uninstalling", true),
            ("protected: {releases: [w*]}", "deployed", "uninstalling", false),
            ("protected: {releases: [w*]}", "deployed", "uninstalled", false),
            ("protected: {releases: [api]}", "deployed", "uninstalling", true),
            ("protected: {releases: [w*]}", "deployed", "superseded", true),
            ("protected: {releases: [w*]}", "uninstalling", "uninstalled", true),
        ] {
            let request = format!(
                r#""kind":{{"version":"v1","kind":"Secret"}},"resource":{{"version":"v1","resource":"secrets"}},
                   "name":"sh.helm.release.v1.web.v5","namespace":"shop","operation":"UPDATE","object":{},"oldObject":{}"#,
                side(to),
                side(from)
            );
            assert_eq!(is_admitted(policy, &request), admitted, "{policy} {from} {to}");
        }
    }

    #[test]
    fn an_unjudged_write_cannot_remove_the_protection_annotation() {
        let side = |annotations: &str| format!(r#"{{"metadata":{{"name":"shop","annotations":{annotations}}}}}"#);
        let annotated = side(r#"{"interlock.dev/protected":"true"}"#);
        for (old, new, operation, admitted) in [
            (&annotated, "null", "DELETE", false),
            (&annotated, &*side("{}"), "UPDATE", false),
            (&annotated, &*annotated, "UPDATE", true),
            (&side("{}"), "null", "DELETE", true),
        ] {
            let request = format!(
                r#""kind":{{"version":"v1","kind":"Namespace"}},"resource":{{"version":"v1","resource":"namespaces"}},
                   "name":"shop","namespace":"shop","operation":"{operation}","object":{new},"oldObject":{old}"#
            );
            assert_eq!(is_admitted("rules: {}", &request), admitted, "{operation} {old} {new}");
        }
    }

    #[test]
    fn a_mode_for_some_releases_applies_to_their_records() {
        let policy = "  illegal-transition: {mode: 'off', cases: [{when: {releases: [web]}, mode: enforce}]}\n";
        assert!(rules_of("Secret", "sh.helm.release.v1.web.v2", policy).contains(&"illegal-transition"));
        assert!(!rules_of("Secret", "sh.helm.release.v1.api.v2", policy).contains(&"illegal-transition"));
    }
}

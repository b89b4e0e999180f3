//! The AdmissionReview of a reply. Its texts are bounded and printable: those of an outcome already are, and a review
//! with another uid is refused earlier.

use std::borrow::Cow;

use serde::Serialize;

use super::json::Patch;
use super::outcome::Outcome;
use super::review::BadReview;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Reply<'a> {
    api_version: &'static str,
    kind: &'static str,
    response: Response<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<ReplyStatus<'a>>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'a [String],
    #[serde(skip_serializing_if = "AuditAnnotations::is_empty")]
    audit_annotations: AuditAnnotations<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
}

type AuditAnnotations<'a> = std::collections::BTreeMap<&'a str, &'a str>;

/// The part of `metav1.Status` that the API server passes on to the user.
#[derive(Serialize)]
struct ReplyStatus<'a> {
    status: &'static str,
    code: u16,
    reason: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details<'a>>,
}

#[derive(Serialize)]
struct Details<'a> {
    causes: Vec<Cause<'a>>,
}

#[derive(Serialize)]
struct Cause<'a> {
    reason: &'a str,
    message: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    field: Cow<'a, str>,
}

/// The largest number of causes. No request breaks more rules at once, and the message names all of them.
const MAX_CAUSES: usize = 32;

/// The body of a reply to `/validate`.
///
/// A refusal without a code would be shown as 400.
#[must_use]
pub fn answer(uid: &str, outcome: &Outcome) -> Vec<u8> {
    let invalid = outcome.code == 422;
    // If the reason is Invalid, kubectl shows only the causes, so they must contain the next steps.
    let emergency = outcome.emergency.as_deref().filter(|_| invalid);
    let status = (!outcome.allowed).then(|| ReplyStatus {
        status: "Failure",
        code: outcome.code,
        reason: if invalid { "Invalid" } else { "Forbidden" },
        message: &outcome.message,
        details: Some(Details {
            causes: outcome
                .refusals()
                .take(MAX_CAUSES)
                .map(|judged| Cause {
                    reason: judged.violation.rule.as_str(),
                    message: match &judged.violation {
                        violation if invalid => violation.message().into(),
                        violation => violation.sentence.as_str().into(),
                    },
                    field: judged.violation.shown_pointers().next().unwrap_or_default().into(),
                })
                .chain(emergency.map(|command| Cause {
                    reason: "Override",
                    message: command.into(),
                    field: Cow::default(),
                }))
                .collect(),
        }),
    });
    encode(Response {
        uid,
        allowed: outcome.allowed,
        status,
        warnings: &outcome.warnings,
        audit_annotations: outcome.audit.iter().map(|(key, value)| (*key, value.as_str())).collect(),
        patch: None,
        patch_type: None,
    })
}

/// The body of a reply to `/mutate`, which never refuses.
#[must_use]
pub fn allow_with_patch(uid: &str, patch: Option<&Patch>) -> Vec<u8> {
    let patch = patch.and_then(|patch| patch.encoded().ok());
    let patch_type = patch.is_some().then_some("JSONPatch");
    encode(Response {
        uid,
        allowed: true,
        status: None,
        warnings: &[],
        audit_annotations: AuditAnnotations::new(),
        patch,
        patch_type,
    })
}

/// The body of the reply, with status 400, to a body that is not a review.
#[must_use]
pub fn bad_request(error: &BadReview) -> Vec<u8> {
    format!(
        "{error}. This endpoint takes AdmissionReviews of admission.k8s.io/v1 from a Kubernetes API server; \
         `interlock review FILE` judges one from a file.\n"
    )
    .into_bytes()
}

fn encode(response: Response<'_>) -> Vec<u8> {
    let reply = Reply { api_version: "admission.k8s.io/v1", kind: "AdmissionReview", response };
    // Strings, bools and maps with string keys: serialization into a Vec has no way to fail.
    serde_json::to_vec(&reply).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::Value;

    use super::*;
    use crate::facts::Actor;
    use crate::outcome::{Outcome, weigh};
    use crate::policy::{Policy, Removal, Scope};
    use crate::release::ReleaseRef;
    use crate::review::Operation;
    use crate::rule::RuleId;
    use crate::violation::{Violation, ViolationKind as Kind};

    fn status(rule: RuleId) -> Value {
        let policy =
            Policy::parse("apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\n", Path::new("test")).unwrap();
        let actor = Actor::named("alice", &[]);
        let scope = Scope {
            actor,
            namespace: "civ",
            release: None,
            kind: "Any",
            owner: None,
            operation: Operation::Update,
            creates_record: false,
            removal: Removal::Nothing,
        };
        let violation = Violation {
            rule,
            kind: Kind::Refused,
            sentence: "It is so.".into(),
            ways_out: "Do this.".into(),
            pointers: vec!["/spec".into()],
            release: Some(ReleaseRef::new("civ", "prod")),
            overridden: None,
            frozen: None,
        };
        let reply: Value =
            serde_json::from_slice(&answer("u", &Outcome::of(&policy, weigh(&policy, &scope, vec![violation]))))
                .unwrap();
        reply["response"]["status"].clone()
    }

    #[test]
    fn the_causes_of_an_invalid_reply_have_the_next_steps() {
        let invalid = status(RuleId::known("dropped-bundles"));
        assert_eq!((&invalid["code"], &invalid["reason"]), (&422.into(), &"Invalid".into()));
        let sentence = "It is so. Do this. [dropped-bundles]";
        let command = "In an emergency: interlock override civ/prod --rule dropped-bundles --for 30m --reason \"...\"";
        assert_eq!(invalid["message"], format!("{sentence} {command}"));
        let causes = &invalid["details"]["causes"];
        assert_eq!((&causes[0]["message"], &causes[1]["message"]), (&sentence.into(), &command.into()));
        let forbidden = status(RuleId::known("manual-edit"));
        assert_eq!((&forbidden["code"], &forbidden["reason"]), (&403.into(), &"Forbidden".into()));
        assert_eq!(forbidden["details"]["causes"][0]["message"], "It is so.");
    }
}

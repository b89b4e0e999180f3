//! A borrowed view of an incoming AdmissionReview of `admission.k8s.io/v1`.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::json::{RawObject, Text};
use crate::text::{MAX_NAME_BYTES, is_printable, printable};

/// The longest reason why a body is not a review, in bytes.
const MAX_REASON_BYTES: usize = 512;

/// An AdmissionReview as the API server sends it.
///
/// Strings borrow from the body unless JSON escapes them. `object` and `oldObject` stay text until a rule needs them,
/// because rules do not read most objects.
#[derive(Debug)]
pub struct Review<'a> {
    pub request: Request<'a>,
}

/// `AdmissionReview.request`.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// Identifies this call; the reply must repeat it. A retry by the API server has another uid.
    pub uid: Cow<'a, str>,
    /// The kind of `object`, after any conversion by the API server.
    pub kind: Gvk<'a>,
    pub resource: Gvr<'a>,
    /// `scale`, `status`, ...; absent for a request on the object itself.
    pub sub_resource: Option<Cow<'a, str>>,
    /// Absent in a collection delete and in a create by `generateName`.
    pub name: Option<Cow<'a, str>>,
    /// Absent for cluster-scoped kinds, except Namespace, which has its own name here.
    pub namespace: Option<Cow<'a, str>>,
    pub operation: Operation,
    pub user_info: UserInfo<'a>,
    /// The object as it would be stored; absent on DELETE.
    pub object: Option<RawObject<'a>>,
    /// The stored object; absent on CREATE and CONNECT.
    pub old_object: Option<RawObject<'a>>,
    /// True if nothing is stored, regardless of the verdict.
    pub dry_run: Option<bool>,
}

/// A group, version and kind.
#[derive(Debug, Clone, Deserialize)]
pub struct Gvk<'a> {
    /// Empty for the core group.
    #[serde(borrow, default)]
    pub group: Cow<'a, str>,
    /// For example `v1`.
    #[serde(borrow)]
    pub version: Cow<'a, str>,
    /// For example `Secret`.
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
}

/// A group, version and resource.
#[derive(Debug, Clone, Deserialize)]
pub struct Gvr<'a> {
    /// Empty for the core group.
    #[serde(borrow, default)]
    pub group: Cow<'a, str>,
    /// For example `v1`.
    #[serde(borrow)]
    pub version: Cow<'a, str>,
    /// For example `secrets`.
    #[serde(borrow)]
    pub resource: Cow<'a, str>,
}

/// The operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// A POST, or a PUT or an apply that creates the object.
    Create,
    /// A PUT, any PATCH, or a write of a subresource.
    Update,
    /// A deletion of one object. A collection delete arrives as one review for each object, without a name.
    Delete,
    /// exec, attach, port-forward, proxy.
    Connect,
}

impl Operation {
    /// The API's spelling.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// The authenticated user. The real caller of an impersonated request is not visible.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct UserInfo<'a> {
    /// For example `alice` or `system:serviceaccount:flux-system:helm-controller`.
    #[serde(borrow, default)]
    pub username: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "groups")]
    pub groups: Vec<Cow<'a, str>>,
    /// What the authenticator of the API server adds: lists of text, unread until a rule needs them.
    #[serde(borrow, default)]
    pub extra: Option<&'a RawValue>,
}

/// The lists in `extra` about the pod of a token. Each has one text.
#[derive(Deserialize)]
struct PodClaims<'a> {
    #[serde(borrow, rename = "authentication.kubernetes.io/pod-name")]
    name: [&'a str; 1],
    #[serde(borrow, rename = "authentication.kubernetes.io/pod-uid")]
    uid: [&'a str; 1],
}

/// The pod that the token of a service account is bound to. Such a token is valid only as long as that pod exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoundPod<'a> {
    pub name: &'a str,
    pub uid: &'a str,
}

impl<'a> UserInfo<'a> {
    /// The pod of a token that is bound to one.
    #[must_use]
    pub fn pod(&self) -> Option<BoundPod<'a>> {
        let PodClaims { name: [name], uid: [uid] } = serde_json::from_str(self.extra?.get()).ok()?;
        (!name.is_empty() && !uid.is_empty()).then_some(BoundPod { name, uid })
    }
}

/// The most groups of a user that are parsed. Those of a token fit into the header of a request.
const MAX_GROUPS: usize = 20_000;

fn groups<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Cow<'de, str>>, D::Error> {
    struct Groups;
    impl<'de> Visitor<'de> for Groups {
        type Value = Vec<Cow<'de, str>>;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(out, "at most {MAX_GROUPS} groups")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut groups = Vec::new();
            while let Some(Text(group)) = list.next_element()? {
                if groups.len() == MAX_GROUPS {
                    return Err(A::Error::invalid_length(groups.len() + 1, &self));
                }
                groups.push(group);
            }
            Ok(groups)
        }
    }
    deserializer.deserialize_seq(Groups)
}

/// Why a body is not a review that can be answered.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadReview {
    /// Not JSON, or a field of the review has the wrong shape.
    #[error("the body is not an AdmissionReview: {}", printable(.0, MAX_REASON_BYTES))]
    Malformed(String),
    /// Another kind or version.
    #[error("expected kind AdmissionReview of admission.k8s.io/v1, got {kind:?} of {api_version:?}")]
    WrongKind { api_version: String, kind: String },
    /// A uid that no API server writes. The reply would have to repeat it.
    #[error(
        "request.uid is longer than {MAX_NAME_BYTES} bytes or contains a character that cannot be printed; an API server sends a UUID"
    )]
    BadUid,
    /// No `request`, as in one of Interlock's own replies.
    #[error("the AdmissionReview has no request")]
    NoRequest,
}

impl Request<'_> {
    /// The request without its objects.
    #[must_use]
    pub fn head(&self) -> Self {
        Self { object: None, old_object: None, ..self.clone() }
    }

    /// The resource in the notation of kubectl: `secrets`, `deployments.apps`, `deployments.apps/scale`.
    #[must_use]
    pub fn resource_name(&self) -> String {
        let mut name = self.resource.resource.to_string();
        if !self.resource.group.is_empty() {
            name.push('.');
            name.push_str(&self.resource.group);
        }
        if let Some(sub) = self.sub_resource() {
            name.push('/');
            name.push_str(sub);
        }
        name
    }

    /// The subresource, if any.
    #[must_use]
    pub fn sub_resource(&self) -> Option<&str> {
        self.sub_resource.as_deref().filter(|sub| !sub.is_empty())
    }

    /// The name, if the request has one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref().filter(|name| !name.is_empty())
    }

    /// The namespace; empty for cluster-scoped objects, and for a Namespace its own name.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }

    /// The namespace that the object is in; empty for cluster-scoped objects.
    #[must_use]
    pub fn namespace_of_object(&self) -> &str {
        if self.resource.group.is_empty() && self.resource.resource == "namespaces" { "" } else { self.namespace() }
    }
}

/// Whether a uid may be repeated in a reply. API servers write UUIDs; test suites write words.
pub(super) fn is_uid(uid: &str) -> bool {
    uid.len() <= MAX_NAME_BYTES && is_printable(uid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::head_of;

    fn review(request: &str) -> String {
        format!(r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{request}}}"#)
    }

    const REQUEST: &str = r#"{"uid":"u1","kind":{"group":"","version":"v1","kind":"Secret"},
        "resource":{"group":"","version":"v1","resource":"secrets"},"namespace":"shop","operation":"DELETE",
        "userInfo":{"username":"alice"},"object":null,"oldObject":{"a":1},"unknown":[{}]}"#;

    #[test]
    fn the_groups_of_a_user_are_limited() {
        let with = |count: usize| {
            let groups = vec![r#""g""#; count].join(",");
            review(&REQUEST.replace(r#"{"username":"alice"}"#, &format!(r#"{{"groups":[{groups}]}}"#)))
        };
        assert_eq!(Review::parse(with(MAX_GROUPS).as_bytes()).unwrap().request.user_info.groups.len(), MAX_GROUPS);
        let refused = Review::parse(with(MAX_GROUPS + 1).as_bytes()).unwrap_err().to_string();
        assert!(refused.contains("at most 20000 groups"), "{refused}");
    }

    #[test]
    fn a_review_is_borrowed_and_unknown_fields_are_tolerated() {
        let body = review(REQUEST);
        let review = Review::parse(body.as_bytes()).unwrap();
        assert!(matches!(review.request.uid, Cow::Borrowed("u1")));
        assert_eq!(review.request.operation, Operation::Delete);
        assert!(review.request.object.is_none());
        assert_eq!(review.request.old_object.unwrap().get(), r#"{"a":1}"#);
        assert_eq!(review.request.name(), None);
    }

    #[test]
    fn another_kind_is_named_in_the_error() {
        let error = Review::parse(br#"{"apiVersion":"v1","kind":"Pod","request":{"uid":7}}"#).unwrap_err();
        assert_eq!(error, BadReview::WrongKind { api_version: "v1".into(), kind: "Pod".into() });
    }

    #[test]
    fn a_reply_is_not_a_request() {
        let body = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"u"}}"#;
        assert_eq!(Review::parse(body.as_bytes()).unwrap_err(), BadReview::NoRequest);
    }

    #[test]
    fn a_duplicate_key_is_malformed_rather_than_a_choice() {
        let body = review(&REQUEST.replacen(r#""uid":"u1""#, r#""uid":"u1","uid":"u2""#, 1));
        assert!(matches!(Review::parse(body.as_bytes()), Err(BadReview::Malformed(_))));
    }

    #[test]
    fn truncated_bytes_are_malformed() {
        let body = review(REQUEST);
        for end in 0..body.len() {
            assert!(Review::parse(&body.as_bytes()[..end]).is_err(), "accepted {end} bytes of {}", body.len());
        }
    }

    #[test]
    fn an_impossible_uid_is_refused_with_its_limit() {
        let with = |uid: &str| review(&REQUEST.replacen("u1", uid, 1));
        for uid in ["705ab4f5-6393-11e8-b7cc-42010a800002", &"x".repeat(MAX_NAME_BYTES)] {
            assert_eq!(Review::parse(with(uid).as_bytes()).unwrap().request.uid, uid);
        }
        for uid in
            ["x".repeat(MAX_NAME_BYTES + 1), r"\u001b[2J".into(), r"a\nb".into(), "\u{202e}".into(), "\u{9b}".into()]
        {
            let body = with(&uid);
            let error = Review::parse(body.as_bytes()).unwrap_err();
            assert_eq!(error, BadReview::BadUid, "{uid}");
            assert!(error.to_string().contains("longer than 253 bytes"), "{error}");
            assert!(head_of(body.as_bytes()).is_none(), "{uid}");
        }
    }

    #[test]
    fn errors_of_a_body_are_short_and_printable() {
        let malformed = BadReview::Malformed(format!("\u{1b}[2J{}", "x".repeat(1 << 20))).to_string();
        assert!(malformed.len() < 600 && is_printable(&malformed), "{malformed}");
        let body = format!(r#"{{"apiVersion":"\u001b[2J","kind":"{}","request":{{}}}}"#, "P".repeat(1 << 20));
        let wrong = Review::parse(body.as_bytes()).unwrap_err().to_string();
        assert!(wrong.len() < 300 && is_printable(&wrong), "{wrong}");
    }
}

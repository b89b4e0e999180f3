//! The head of a review: the user, the operation and the names of the object, without the object itself.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserializer, de};

use super::request::{Gvk, Gvr, Operation, Request, UserInfo, is_uid};

/// The most bytes of a body that are parsed. The API server writes the head before the objects: a few hundred bytes,
/// and the groups of the user.
const MAX_BYTES: usize = 256 << 10;

/// The request of a review without its objects. `None` if the head is not at the start of the body.
#[must_use]
pub fn head_of(body: &[u8]) -> Option<Request<'_>> {
    let start = &body[..body.len().min(MAX_BYTES)];
    let mut found = Found::default();
    // Parsing stops early, which serde treats as an error. The members found before count.
    let _ = de::Deserializer::deserialize_map(&mut serde_json::Deserializer::from_slice(start), Envelope(&mut found));
    Some(Request {
        uid: found.uid.filter(|uid| is_uid(uid))?,
        kind: found.kind?,
        resource: found.resource?,
        sub_resource: found.sub_resource,
        name: found.name,
        namespace: found.namespace,
        operation: found.operation?,
        user_info: found.user_info?,
        object: None,
        old_object: None,
        dry_run: None,
    })
}

#[derive(Default)]
struct Found<'a> {
    uid: Option<Cow<'a, str>>,
    kind: Option<Gvk<'a>>,
    resource: Option<Gvr<'a>>,
    sub_resource: Option<Cow<'a, str>>,
    name: Option<Cow<'a, str>>,
    namespace: Option<Cow<'a, str>>,
    operation: Option<Operation>,
    user_info: Option<UserInfo<'a>>,
}

impl Found<'_> {
    fn is_complete(&self) -> bool {
        let named = self.uid.is_some() && self.kind.is_some() && self.resource.is_some();
        named && self.operation.is_some() && self.user_info.is_some()
    }
}

/// The AdmissionReview.
struct Envelope<'f, 'a>(&'f mut Found<'a>);

/// The `request` of the AdmissionReview.
struct Head<'f, 'a>(&'f mut Found<'a>);

impl<'a> Visitor<'a> for Envelope<'_, 'a> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an AdmissionReview")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut review: A) -> Result<(), A::Error> {
        while let Some(key) = review.next_key::<Cow<'a, str>>()? {
            if key == "request" {
                return review.next_value_seed(Head(self.0));
            }
            review.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

impl<'a> DeserializeSeed<'a> for Head<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'a> Visitor<'a> for Head<'_, 'a> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a request")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut request: A) -> Result<(), A::Error> {
        let found = self.0;
        while let Some(key) = request.next_key::<Cow<'a, str>>()? {
            match key.as_ref() {
                "uid" => found.uid = Some(request.next_value()?),
                "kind" => found.kind = Some(request.next_value()?),
                "resource" => found.resource = Some(request.next_value()?),
                "subResource" => found.sub_resource = request.next_value()?,
                "name" => found.name = request.next_value()?,
                "namespace" => found.namespace = request.next_value()?,
                "operation" => found.operation = Some(request.next_value()?),
                "userInfo" => found.user_info = Some(request.next_value()?),
                "object" | "oldObject" if found.is_complete() => return Err(A::Error::custom("the head ends here")),
                _ => {
                    request.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::Review;

    /// In the order of the API server.
    const REVIEW: &str = r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u1",
        "kind":{"group":"apps","version":"v1","kind":"Deployment"},
        "resource":{"group":"apps","version":"v1","resource":"deployments"},"subResource":"scale",
        "requestKind":{"group":"apps","version":"v1","kind":"Deployment"},"name":"web","namespace":"shop",
        "operation":"UPDATE","userInfo":{"username":"alice","groups":["team"],"extra":{"a":["b"]}},
        "object":{"a":1},"oldObject":{"a":2},"dryRun":false,"options":null}}"#;

    #[test]
    fn the_head_is_the_review_without_its_objects() {
        let head = head_of(REVIEW.as_bytes()).unwrap();
        let mut review = Review::parse(REVIEW.as_bytes()).unwrap().request;
        (review.object, review.old_object, review.dry_run) = (None, None, None);
        assert_eq!(format!("{head:?}"), format!("{review:?}"));
    }

    #[test]
    fn nothing_after_the_head_is_read() {
        let head = REVIEW.split_once(r#""object""#).unwrap().0;
        assert!(head_of(format!(r#"{head}"object": not even JSON"#).as_bytes()).is_some());
        for end in 0..head.rfind('}').unwrap() {
            assert!(head_of(&head.as_bytes()[..end]).is_none(), "{end}");
        }
    }

    #[test]
    fn a_head_after_small_objects_is_found() {
        let late = |object: &str| {
            let review = REVIEW.replacen(r#""uid":"u1","#, "", 1).replacen(r#"{"a":1}"#, object, 1);
            review.replacen(r#""dryRun""#, r#""uid":"u1","dryRun""#, 1)
        };
        assert!(head_of(late("{}").as_bytes()).is_some());
        let large = late(&format!("[{}]", " ".repeat(MAX_BYTES)));
        assert!(Review::parse(large.as_bytes()).is_ok() && head_of(large.as_bytes()).is_none());
    }
}

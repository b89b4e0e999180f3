//! Parses a review in one pass: serde parses the small members, and the objects are only delimited.
//!
//! A review without its objects is its head: the user, the operation and the names of the object.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::request::{BadReview, Request, Review, is_uid};
use crate::json::cursor::{Cursor, Member, unquoted};
use crate::json::{RawObject, Text, redacted};
use crate::text::printable;

/// The longest quote from the caller's text in an error, in bytes.
const EXCERPT_BYTES: usize = 80;

/// The most bytes of a body in which the head is searched. The API server writes the head before the objects: a few hundred
/// bytes, and the groups of the user.
const MAX_HEAD_BYTES: usize = 256 << 10;

impl<'a> Review<'a> {
    /// Parses a review.
    ///
    /// # Errors
    /// The problem with the body. No body causes a panic.
    pub fn parse(body: &'a [u8]) -> Result<Self, BadReview> {
        let text = std::str::from_utf8(body).map_err(|error| BadReview::Malformed(error.to_string()))?;
        let Envelope { heading, request } = Envelope::complete(text).ok_or_else(|| malformed(text))?;
        let of_type = |name| Ok(heading.read::<Option<Text<'_>>>(name)?.map(|text| text.0).unwrap_or_default());
        check_kind(&of_type("apiVersion")?, &of_type("kind")?)?;
        let request = Request::of(&request.ok_or(BadReview::NoRequest)?)?;
        if !is_uid(&request.uid) {
            return Err(BadReview::BadUid);
        }
        Ok(Self { request })
    }
}

/// The request of a review without its objects. `None` if the head is not at the start of the body.
#[must_use]
pub fn head_of(body: &[u8]) -> Option<Request<'_>> {
    // The limit may cut a character.
    let start = body[..body.len().min(MAX_HEAD_BYTES)].utf8_chunks().next()?.valid();
    let request = Request::of(&Envelope::head(start).request?).ok()?;
    is_uid(&request.uid).then_some(Request { object: None, old_object: None, dry_run: None, ..request })
}

/// The members of a review that are parsed. A hostile review has any number of others.
const HEADING: [&str; 2] = ["apiVersion", "kind"];
const REQUEST_MEMBERS: [&str; 11] = [
    "uid",
    "kind",
    "resource",
    "subResource",
    "name",
    "namespace",
    "operation",
    "userInfo",
    "object",
    "oldObject",
    "dryRun",
];

/// The members that every request has, apart from its objects.
const HEAD: [&str; 5] = ["uid", "kind", "resource", "operation", "userInfo"];

/// Some members of an object, as text.
struct Members<'a> {
    /// The path of the object in the review, for errors.
    path: &'static str,
    wanted: &'static [&'static str],
    found: Vec<Member<'a>>,
    twice: Option<Cow<'a, str>>,
}

/// How much of a review is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    All,
    /// Up to the objects of the request.
    Head,
}

/// The members of a review, apart from its request.
struct Envelope<'a> {
    heading: Members<'a>,
    request: Option<Members<'a>>,
}

impl<'a> Envelope<'a> {
    /// `None` if the text is not one JSON object.
    fn complete(text: &'a str) -> Option<Self> {
        let (mut envelope, mut cursor) = (Self::empty(), Cursor::new(text));
        envelope.collect(&mut cursor, Extent::All)?;
        cursor.peek().is_none().then_some(envelope)
    }

    /// The members up to the objects of the request, or up to the end of a text that ends early.
    fn head(text: &'a str) -> Self {
        let mut envelope = Self::empty();
        _ = envelope.collect(&mut Cursor::new(text), Extent::Head);
        envelope
    }

    fn empty() -> Self {
        Self { heading: Members::new("", &HEADING), request: None }
    }

    /// `None` if the text ends early, or is not an object.
    fn collect(&mut self, cursor: &mut Cursor<'a>, extent: Extent) -> Option<()> {
        cursor.expect_byte(b'{')?;
        while let Some(name) = cursor.next_name()? {
            if name != r#""request""# || self.request.is_some() || cursor.peek()? != b'{' {
                self.heading.add(name, cursor.skip_value()?)?;
                continue;
            }
            let request = self.request.insert(Members::new("request.", &REQUEST_MEMBERS));
            request.collect(cursor, extent)?;
            if extent == Extent::Head {
                break;
            }
        }
        Some(())
    }
}

impl<'a> Request<'a> {
    fn of(members: &Members<'a>) -> Result<Self, BadReview> {
        let text = |name| Ok(members.read::<Option<Text<'a>>>(name)?.map(|text| text.0));
        Ok(Self {
            uid: text("uid")?.ok_or_else(|| members.missing("uid"))?,
            kind: members.required("kind")?,
            resource: members.required("resource")?,
            sub_resource: text("subResource")?,
            name: text("name")?,
            namespace: text("namespace")?,
            operation: members.required("operation")?,
            user_info: members.required("userInfo")?,
            object: members.object("object")?,
            old_object: members.object("oldObject")?,
            dry_run: members.read("dryRun")?,
        })
    }
}

impl<'a> Members<'a> {
    fn new(path: &'static str, wanted: &'static [&'static str]) -> Self {
        Self { path, wanted, found: Vec::with_capacity(wanted.len()), twice: None }
    }

    /// `None` if the text ends early, or is not an object.
    fn collect(&mut self, cursor: &mut Cursor<'a>, extent: Extent) -> Option<()> {
        cursor.expect_byte(b'{')?;
        while let Some(name) = cursor.next_name()? {
            let is_object = [r#""object""#, r#""oldObject""#].contains(&name);
            if extent == Extent::Head && is_object && self.have_head() {
                break;
            }
            self.add(name, cursor.skip_value()?)?;
        }
        Some(())
    }

    fn have_head(&self) -> bool {
        HEAD.iter().all(|name| self.found.iter().any(|(found, _)| found == name))
    }

    /// Keeps a member if it is wanted. `None` if its name cannot be parsed.
    fn add(&mut self, name: &'a str, value: &'a str) -> Option<()> {
        let name = unquoted(name)?;
        if self.found.iter().any(|(known, _)| *known == name) {
            self.twice.get_or_insert(name);
        } else if self.wanted.contains(&name.as_ref()) {
            self.found.push((name, value));
        }
        Some(())
    }

    fn text(&self, name: &str) -> Result<Option<&'a str>, BadReview> {
        match &self.twice {
            Some(twice) => Err(BadReview::Malformed(format!("{}{twice} is there twice", self.path))),
            None => Ok(self.found.iter().find(|(known, _)| known == name).map(|(_, value)| *value)),
        }
    }

    /// An absent member and a null are the default.
    fn read<T: Deserialize<'a> + Default>(&self, name: &str) -> Result<T, BadReview> {
        self.text(name)?.map_or_else(|| Ok(T::default()), |text| self.parsed(name, text))
    }

    fn required<T: Deserialize<'a>>(&self, name: &str) -> Result<T, BadReview> {
        let text = self.text(name)?.ok_or_else(|| self.missing(name))?;
        self.parsed(name, text)
    }

    fn object(&self, name: &str) -> Result<Option<RawObject<'a>>, BadReview> {
        Ok(self.text(name)?.filter(|text| *text != "null").map(RawObject::delimited))
    }

    fn parsed<T: Deserialize<'a>>(&self, name: &str, text: &'a str) -> Result<T, BadReview> {
        serde_json::from_str(text)
            .map_err(|error| BadReview::Malformed(format!("{}{name}: {}", self.path, redacted(&error))))
    }

    fn missing(&self, name: &str) -> BadReview {
        BadReview::Malformed(format!("{}{name} is missing", self.path))
    }
}

fn check_kind(api_version: &str, kind: &str) -> Result<(), BadReview> {
    if api_version == "admission.k8s.io/v1" && kind == "AdmissionReview" {
        return Ok(());
    }
    Err(BadReview::WrongKind { api_version: excerpt(api_version), kind: excerpt(kind) })
}

fn excerpt(text: &str) -> String {
    printable(text, EXCERPT_BYTES).into_owned()
}

/// serde's error for a malformed text.
fn malformed(text: &str) -> BadReview {
    let read = serde_json::from_str::<IgnoredAny>(text);
    BadReview::Malformed(read.map_or_else(|error| redacted(&error), |_| "it is not a JSON object".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn review(request: &str) -> String {
        format!(r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{request}}}"#)
    }

    const REQUEST: &str = r#"{"uid":"u","kind":{"version":"v1","kind":"Secret"},"resource":{"version":"v1","resource":"secrets"},
        "operation":"CREATE","userInfo":{},"object":{"a":"}\""}}"#;

    #[test]
    fn errors_name_the_field() {
        assert_eq!(Review::parse(review(REQUEST).as_bytes()).unwrap().request.object.unwrap().get(), r#"{"a":"}\""}"#);
        for (from, to, wanted) in [
            (r#""uid":"u","#, "", "request.uid is missing"),
            (r#""uid":"u""#, r#""uid":null"#, "request.uid is missing"),
            (r#""userInfo":{},"#, "", "request.userInfo is missing"),
            (r#""userInfo":{}"#, r#""userInfo":7"#, "request.userInfo: "),
            (r#""CREATE""#, r#""PATCH""#, "request.operation: "),
            (r#""uid":"u""#, r#""uid":"u","dryRun":"no""#, "request.dryRun: "),
            (r#""userInfo":{}"#, r#""userInfo":{},"object":{}"#, "request.object is there twice"),
        ] {
            let error = Review::parse(review(&REQUEST.replacen(from, to, 1)).as_bytes()).unwrap_err().to_string();
            assert!(error.contains(wanted), "{to}: {error}");
        }
    }

    #[test]
    fn a_body_is_one_complete_object_in_unicode() {
        let valid = review(REQUEST);
        for (body, wanted) in [
            (format!("{valid}{{}}").into_bytes(), "trailing characters"),
            (valid.as_bytes()[1..].to_vec(), "trailing characters"),
            (b"[]".to_vec(), "not a JSON object"),
            (b"\"\xff\"".to_vec(), "invalid utf-8"),
            (Vec::new(), "EOF"),
        ] {
            let error = Review::parse(&body).unwrap_err().to_string();
            assert!(error.contains(wanted), "{wanted}: {error}");
        }
    }

    #[test]
    fn any_number_of_other_members_takes_no_memory() {
        let many = r#""x":0,"#.repeat(1 << 16);
        let body = review(&REQUEST.replacen('{', &format!("{{{many}"), 1));
        let Envelope { heading, request } = Envelope::complete(&body).unwrap();
        let request = request.unwrap();
        assert_eq!((heading.found.len(), request.found.len()), (2, 6));
        assert_eq!((heading.found.capacity(), request.found.capacity()), (HEADING.len(), REQUEST_MEMBERS.len()));
    }

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
        let large = late(&format!("[{}]", " ".repeat(MAX_HEAD_BYTES)));
        assert!(Review::parse(large.as_bytes()).is_ok() && head_of(large.as_bytes()).is_none());
    }
}

//! Records in memory. Inflating a record takes memory and time, so a lookup only finds it, and a later call inflates
//! it.

use super::{Found, Objects};
use crate::answers::payload::{self, OpenedPayload};
use crate::answers::{ObjectVersion, changed, manifest, read_document};
use crate::effort::Effort;
use crate::evidence::{Answer, Knowledge, ReadDocument, RecordRef, StoredBody, question};
use crate::release::Storage;
use crate::release::manifest::DocumentKey;
use crate::release::record::{DecodeError, Payload};

/// A record that answers a query with its body, or with a document of its manifest.
#[derive(Debug)]
pub struct FoundRecord<'q> {
    pub name: RecordName<'q>,
    pub payload: Payload,
    /// `None` asks for the body.
    pub document: Option<&'q DocumentKey>,
}

/// The name of a record in answers.
#[derive(Debug, Clone, Copy)]
pub struct RecordName<'q> {
    namespace: &'q str,
    object: &'q str,
}

impl FoundRecord<'_> {
    /// Inflates and parses the record.
    #[must_use]
    pub fn read(self, effort: &Effort) -> Answer {
        let Self { name, payload, document } = self;
        let body = payload.inflate(effort);
        match document {
            None => name.body(body),
            Some(document) => {
                let manifest = body.and_then(|body| manifest(&body, effort));
                name.document(manifest.map(|manifest| read_document(&manifest, document, effort)))
            }
        }
    }
}

impl RecordName<'_> {
    /// The answer for a body.
    #[must_use]
    pub fn body(self, body: Result<Vec<u8>, DecodeError>) -> Answer {
        match body {
            Ok(json) => Answer::Known(Knowledge::Body(StoredBody::Json(json))),
            Err(DecodeError::MissingChunks(names)) => Answer::Known(Knowledge::Body(StoredBody::MissingChunks(names))),
            Err(error) => self.undecodable(&error),
        }
    }

    /// The answer for a document. The inner error means that the review has no steps left.
    #[must_use]
    pub fn document(self, found: Result<Result<ReadDocument, String>, DecodeError>) -> Answer {
        match found {
            Ok(Ok(document)) => Answer::Known(Knowledge::Document(document)),
            Ok(Err(why)) => Answer::Unavailable(why),
            Err(error) => self.undecodable(&error),
        }
    }

    fn undecodable(self, error: &DecodeError) -> Answer {
        Answer::Unavailable(payload::undecodable(self.namespace, self.object, error))
    }
}

impl Objects {
    pub(super) fn body<'q>(&self, question::Body { storage, namespace, object }: &'q question::Body) -> Found<'q> {
        let Some(text) = self.record(*storage, namespace, object) else {
            return Found::Answer(Answer::Absent);
        };
        let name = RecordName { namespace, object };
        match self.payload(*storage, namespace, &text) {
            Ok(payload) => Found::Record(FoundRecord { name, payload, document: None }),
            Err(error) => Found::Answer(name.body(Err(error))),
        }
    }

    pub(super) fn document<'q>(
        &self,
        question::Document { record, object: document }: &'q question::Document,
    ) -> Found<'q> {
        let RecordRef { storage, namespace, name: object, uid, resource_version } = record;
        let Some(text) = self.record(*storage, namespace, object) else {
            return Found::Answer(Answer::Absent);
        };
        if ObjectVersion::new(uid, resource_version).is_some_and(|version| !version.matches(&text)) {
            return Found::Answer(Answer::Unavailable(changed(namespace, object)));
        }
        let name = RecordName { namespace, object };
        match self.payload(*storage, namespace, &text) {
            Ok(payload) => Found::Record(FoundRecord { name, payload, document: Some(document) }),
            Err(error) => Found::Answer(name.document(Err(error))),
        }
    }

    /// The payload of a record, from the JSON text of its object. OLM may have split it into several Secrets.
    fn payload(&self, storage: Storage, namespace: &str, text: &str) -> Result<Payload, DecodeError> {
        match payload::open(storage, text)? {
            OpenedPayload::Whole(payload) => Ok(payload),
            OpenedPayload::Chunked { first, others } => {
                let others = others.into_iter().map(|name| (self.record(storage, namespace, &name), name));
                payload::join(first, others.map(|(text, name)| (name, text)).collect())
            }
        }
    }
}

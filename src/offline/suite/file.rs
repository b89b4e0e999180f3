//! The YAML of a suite. It is parsed strictly, so that a misspelled key is an error and not a case that tests nothing.

use std::path::PathBuf;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::Spanned;

use super::expectation::ThenFile;
use super::record::RecordFile;
use super::step::StepFile;

const API_VERSION: &str = "interlock.dev/v1alpha1";
const KIND: &str = "PolicySuite";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SuiteFile {
    api_version: String,
    kind: String,
    /// A directory, relative to the suite; by default the shipped policy.
    pub(super) policies: Option<PathBuf>,
    #[serde(default)]
    pub(super) given: GivenFile,
    pub(super) cases: Vec<CaseFile>,
}

/// The state before every case.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct GivenFile {
    pub(super) now: Option<Timestamp>,
    /// Replayed first, as it was recorded.
    pub(super) recording: Option<PathBuf>,
    pub(super) objects: Vec<Value>,
    pub(super) records: Vec<RecordFile>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CaseFile {
    pub(super) name: Spanned<String>,
    /// In order. A step without an expectation must be admitted.
    pub(super) when: Vec<StepFile>,
    /// The expectation of the last step.
    pub(super) then: Option<ThenFile>,
}

impl SuiteFile {
    pub(super) fn check(&self) -> Result<(), String> {
        if (self.api_version.as_str(), self.kind.as_str()) != (API_VERSION, KIND) {
            let (kind, version) = (&self.kind, &self.api_version);
            return Err(format!("expected kind {KIND} of {API_VERSION}, got {kind} of {version}"));
        }
        if self.cases.is_empty() {
            return Err("it has no cases".to_owned());
        }
        self.cases.iter().try_for_each(CaseFile::check)
    }
}

impl CaseFile {
    fn check(&self) -> Result<(), String> {
        let at = || format!("line {}: case {:?}", self.name.referenced.line(), self.name.value);
        let last = self.when.last().ok_or_else(|| format!("{} does nothing: list its steps in `when`", at()))?;
        let expected = self.when.iter().map(|step| step.then.as_ref()).chain([self.then.as_ref()]);
        if let Some(why) = expected.flatten().find_map(ThenFile::never_or_always) {
            return Err(format!("{} {why}", at()));
        }
        match (&last.then, &self.then) {
            (None, None) => Err(format!("{} expects nothing: state the expected result in `then`", at())),
            (Some(_), Some(_)) => Err(format!("{} states the expected result of its last step twice", at())),
            _ => Ok(()),
        }
    }
}

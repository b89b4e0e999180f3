//! What came of one suite.

use std::path::PathBuf;

use crate::offline::suite::{CaseResult, SuiteError};

/// What came of a file.
pub(super) struct Ran {
    pub(super) file: PathBuf,
    pub(super) cases: Vec<CaseResult>,
    /// Why it could not be run, or not to its end.
    pub(super) broken: Option<SuiteError>,
}

/// An error with what it stems from.
pub(super) fn chain(error: &SuiteError) -> String {
    let mut told = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        told += &format!(": {error}");
        source = error.source();
    }
    told
}

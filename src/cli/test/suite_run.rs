//! What came of one suite.

use std::path::PathBuf;

use crate::offline::suite::{CaseResult, SuiteError};

/// What came of a file.
pub(super) struct SuiteRun {
    pub(super) file: PathBuf,
    pub(super) cases: Vec<CaseResult>,
    /// Why it could not be run, or not to its end.
    pub(super) error: Option<SuiteError>,
}

/// An error with what it stems from.
pub(super) fn chain(error: &SuiteError) -> String {
    let mut description = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        description += &format!(": {error}");
        source = error.source();
    }
    description
}

//! The result of one suite.

use std::path::PathBuf;

use crate::offline::suite::{CaseResult, SuiteError};

/// The result of a file.
pub(super) struct SuiteRun {
    pub(super) file: PathBuf,
    pub(super) cases: Vec<CaseResult>,
    /// Why the suite could not run, or not completely.
    pub(super) error: Option<SuiteError>,
}

/// An error with its sources.
pub(super) fn chain(error: &SuiteError) -> String {
    let mut description = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        description += &format!(": {error}");
        source = error.source();
    }
    description
}

//! Policy test suites: YAML files that state what a policy refuses and what it allows. They are judged as in a cluster.
//!
//! A suite has `given` (policies, objects, a recording) and cases. Each case starts from `given`, executes its steps in
//! order, and compares each result with the expected one.

mod duration;
mod expectation;
mod file;
mod record;
mod step;

use crate::world::policy_directory;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::replay::{Replay, Source, SourceError};
use crate::regular_file;
pub(crate) use expectation::StepFailure;
use interlock_engine::policy_files::{PolicyError, impossible_kind};

use file::{CaseFile, SuiteFile};

/// The suffix of suite files.
pub(crate) const SUITE_SUFFIX: &str = ".test.yaml";

/// The largest suite, in bytes. It may contain complete reviews.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// The clock of suites without `now`: any fixed time.
const DEFAULT_NOW: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// A loaded suite.
pub(crate) struct Suite {
    path: PathBuf,
    file: SuiteFile,
    /// The starting world of every case.
    given: Replay,
    now: Timestamp,
}

/// The result of a case.
#[derive(Debug)]
pub(crate) struct CaseResult {
    pub name: String,
    /// The line in the suite, from 1.
    pub line: u64,
    /// Empty if the case passed.
    pub failures: Vec<StepFailure>,
    pub took: Duration,
}

/// A suite cannot be run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SuiteError {
    /// A file cannot be read.
    #[error("failed to read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The recording in `given` cannot be read.
    #[error(transparent)]
    Recording(#[from] SourceError),
    /// The file is not a suite, or a step is not valid.
    #[error("the suite {} is not valid: {message}", path.display())]
    Invalid {
        /// The suite.
        path: PathBuf,
        /// The problem, with line and column if known.
        message: String,
    },
    /// The policies of the suite are not valid.
    #[error("the policies of the suite {} are not valid", path.display())]
    Policy {
        /// The suite.
        path: PathBuf,
        source: PolicyError,
    },
}

impl Suite {
    /// Loads a suite and builds the world in `given`.
    ///
    /// # Errors
    /// Names the file, and line and column if the file is readable but not valid.
    pub(crate) async fn load(path: &Path) -> Result<Self, SuiteError> {
        let text = read(path)?;
        let invalid = |message: String| SuiteError::Invalid { path: path.to_path_buf(), message };
        let file: SuiteFile = serde_saphyr::from_str(&text).map_err(|error| invalid(error.to_string()))?;
        file.check().map_err(invalid)?;
        let directory = path.parent().unwrap_or(Path::new("."));
        let policies = file.policies.as_ref().map(|named| directory.join(named));
        let policies = policy_directory::load_or_shipped(policies.as_deref())
            .map_err(|source| SuiteError::Policy { path: path.to_path_buf(), source })?;
        // Writes in `given` have taken place, even if the policy refuses them.
        let mut given = Replay::new(policies, true);
        if let Some(recording) = &file.given.recording {
            let mut source = Source::new(vec![directory.join(recording)])?;
            while let Some(line) = source.line()? {
                given.source_line(&line).await.map_err(|error| invalid(error.to_string()))?;
            }
        }
        let end = if file.given.recording.is_some() { given.now() } else { DEFAULT_NOW };
        let now = file.given.now.unwrap_or(end);
        let records = file.given.records.iter().map(|record| record.object(None, now));
        let records: Vec<_> =
            records.collect::<Result<_, _>>().map_err(|why| invalid(format!("given.records: {why}")))?;
        for (key, objects) in [("objects", &file.given.objects), ("records", &records)] {
            for object in objects {
                if let Some(why) = object["kind"].as_str().and_then(impossible_kind) {
                    return Err(invalid(format!("given.{key}: {why}")));
                }
                let line = json!({"object": object}).to_string();
                given.line(1, &line).await.map_err(|error| invalid(format!("given.{key}: {}", error.why)))?;
            }
        }
        Ok(Self { path: path.to_path_buf(), file, given, now })
    }

    /// The names of the cases.
    pub(crate) fn cases(&self) -> impl Iterator<Item = &str> {
        self.file.cases.iter().map(|case| case.name.value.as_str())
    }

    /// Runs a case by number, from 0.
    ///
    /// # Errors
    /// When a step is not valid.
    pub(crate) async fn run(&self, number: usize) -> Result<Option<CaseResult>, SuiteError> {
        let Some(case) = self.file.cases.get(number) else { return Ok(None) };
        let started = Instant::now();
        let failures = self.failures(case).await?;
        let line = case.name.referenced.line();
        Ok(Some(CaseResult { name: case.name.value.clone(), line, failures, took: started.elapsed() }))
    }

    async fn failures(&self, case: &CaseFile) -> Result<Vec<StepFailure>, SuiteError> {
        let mut world = self.given.branch();
        let (mut now, mut failures) = (self.now, Vec::new());
        for (index, step) in case.when.iter().enumerate() {
            let invalid = |why: String| {
                let (line, name) = (case.name.referenced.line(), &case.name.value);
                let message = format!("line {line}: case {name:?}, step {}: {why}", index + 1);
                SuiteError::Invalid { path: self.path.clone(), message }
            };
            now = step.starts(now).map_err(invalid)?;
            let directory = self.path.parent().unwrap_or(Path::new("."));
            let review = step.review(&world, now, directory).map_err(invalid)?;
            let line = json!({"t": seconds(now), "review": review}).to_string();
            let replayed = world.line(index + 1, &line).await.map_err(|error| invalid(error.why))?;
            let is_last = index + 1 == case.when.len();
            let then = step.then.as_ref().or(case.then.as_ref().filter(|_| is_last));
            failures.extend(replayed.iter().filter_map(|replayed| expectation::failure(then, index + 1, replayed)));
        }
        Ok(failures)
    }
}

/// The time as recordings write it.
fn seconds(at: Timestamp) -> Value {
    at.duration_since(Timestamp::UNIX_EPOCH).as_secs_f64().into()
}

fn read(path: &Path) -> Result<String, SuiteError> {
    regular_file::read_text(path, MAX_FILE_BYTES)
        .map_err(|source| SuiteError::Read { path: path.to_path_buf(), source })
}

//! Policy suites: what a policy refuses and what passes, written down in YAML and judged as a cluster would.
//!
//! A suite says what is `given` (policies, objects, a recording) and has cases; each starts from what is given, does its
//! steps one after the other, and expects of each what becomes of it.

mod duration;
mod expectation;
mod file;
mod record;
mod step;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::replay::{Replay, Source, SourceError};
use crate::engine::policy::{Policies, PolicyError};
use expectation::Expectation;
pub use expectation::StepFailure;
use file::{CaseFile, SuiteFile};

/// How the names of suites end.
pub const SUITE_SUFFIX: &str = ".test.yaml";

/// The clock of suites that do not say when they are: any moment will do, as long as it is the same every time.
const DEFAULT_NOW: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// A suite that was read.
pub struct Suite {
    path: PathBuf,
    file: SuiteFile,
    /// The world that every case starts from.
    given: Replay,
    now: Timestamp,
}

/// What came of a case.
#[derive(Debug)]
pub struct CaseResult {
    /// As the suite calls it.
    pub name: String,
    /// Where it stands in the suite, from 1.
    pub line: u64,
    /// What did not end as expected; empty when all is well.
    pub failures: Vec<StepFailure>,
    /// How long it took.
    pub took: Duration,
}

/// Why a suite cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// A file cannot be read.
    #[error("failed to read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The recording that it starts from cannot be read.
    #[error(transparent)]
    Recording(#[from] SourceError),
    /// The file is no suite, or a step of it makes no sense.
    #[error("the suite {} is not valid: {message}", path.display())]
    Invalid {
        /// The suite.
        path: PathBuf,
        /// What is wrong, with line and column where they are known.
        message: String,
    },
    /// The policies that it names are wrong.
    #[error("the suite {} names policies that cannot be used", path.display())]
    Policy {
        /// The suite.
        path: PathBuf,
        /// What is wrong with them.
        source: PolicyError,
    },
}

impl Suite {
    /// Reads a suite and brings about what it takes as given.
    ///
    /// # Errors
    /// Names the file, and line and column where it is readable but wrong.
    pub async fn load(path: &Path) -> Result<Self, SuiteError> {
        let text = read(path)?;
        let invalid = |message: String| SuiteError::Invalid { path: path.to_path_buf(), message };
        let file: SuiteFile = serde_saphyr::from_str(&text).map_err(|error| invalid(error.to_string()))?;
        file.check().map_err(invalid)?;
        let directory = path.parent().unwrap_or(Path::new("."));
        let policies = file.policies.as_ref().map(|named| directory.join(named));
        let policies = Policies::load_or_shipped(policies.as_deref())
            .map_err(|source| SuiteError::Policy { path: path.to_path_buf(), source })?;
        // What is given did happen, whatever the policy says of it.
        let mut given = Replay::new(policies, true);
        if let Some(recording) = &file.given.recording {
            let mut source = Source::new(vec![directory.join(recording)])?;
            while let Some(line) = source.line()? {
                let replayed = given.line(line.number, line.text).await;
                replayed.map_err(|error| invalid(format!("{}: {error}", line.file.display())))?;
            }
        }
        let end = if file.given.recording.is_some() { given.now() } else { DEFAULT_NOW };
        let now = file.given.now.unwrap_or(end);
        let records = file.given.records.iter().map(|record| record.object(None, now));
        let records: Vec<_> =
            records.collect::<Result<_, _>>().map_err(|why| invalid(format!("given.records: {why}")))?;
        for (key, objects) in [("objects", &file.given.objects), ("records", &records)] {
            for object in objects {
                let line = json!({"object": object}).to_string();
                given.line(1, &line).await.map_err(|error| invalid(format!("given.{key}: {}", error.why)))?;
            }
        }
        Ok(Self { path: path.to_path_buf(), file, given, now })
    }

    /// The names of its cases.
    pub fn cases(&self) -> impl Iterator<Item = &str> {
        self.file.cases.iter().map(|case| case.name.value.as_str())
    }

    /// Runs the case of this number, from 0.
    ///
    /// # Errors
    /// When a step makes no sense.
    pub async fn run(&self, number: usize) -> Result<Option<CaseResult>, SuiteError> {
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
            let expectation = then.map_or(Expectation::Admitted, Expectation::Is);
            for replayed in &replayed {
                failures.extend(expectation.failure(index + 1, replayed));
            }
        }
        Ok(failures)
    }
}

/// As recordings write the time.
fn seconds(at: Timestamp) -> Value {
    at.duration_since(Timestamp::UNIX_EPOCH).as_secs_f64().into()
}

fn read(path: &Path) -> Result<String, SuiteError> {
    std::fs::read_to_string(path).map_err(|source| SuiteError::Read { path: path.to_path_buf(), source })
}

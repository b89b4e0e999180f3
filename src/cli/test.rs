//! `interlock test`: runs policy test suites.

mod junit;
mod suite_run;

use std::fmt::Write as _;
use std::fs;
use std::io::{IsTerminal, stdout};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use interlock_engine::policy::Globs;
use serde::Serialize;

use super::examples::examples;
use super::exit_status::ExitStatus;
use super::output::{self, Output};
use super::progress::{Progress, Unit};
use super::runtime::block_on;
use crate::offline::suite::{CaseResult, SUITE_SUFFIX, StepFailure, Suite, SuiteError};
use suite_run::{SuiteRun, chain};

/// The suffix of files that look like suites but are not.
const OTHER_SUFFIX: &str = ".test.yml";

/// Run policy test suites
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "interlock test policies",
    "interlock test policies --run '*roll back*' --junit junit.xml",
]))]
pub(super) struct Arguments {
    /// Files *.test.yaml, or directories that contain them at any depth
    #[arg(required = true, value_name = "DIR")]
    paths: Vec<PathBuf>,
    /// Run only cases whose name matches this glob, for example '*roll back*'
    #[arg(long, value_name = "GLOB")]
    run: Option<String>,
    /// Also write the results to this file, as JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Output format
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

/// The output for programs.
#[derive(Serialize)]
struct TestOutput<'r> {
    cases: Vec<CaseOutput<'r>>,
}

#[derive(Serialize)]
struct CaseOutput<'r> {
    file: String,
    line: u64,
    case: &'r str,
    ok: bool,
    failures: &'r [StepFailure],
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let mut files = Vec::new();
    for path in &arguments.paths {
        let before = files.len();
        find(path, &mut files).with_context(|| format!("failed to read {}", path.display()))?;
        // A path without suites is a mistake, even if other paths have some.
        if files.len() == before {
            bail!("no files *{SUITE_SUFFIX} in {}", path.display());
        }
    }
    files.sort();
    files.dedup();
    let chosen = arguments.run.as_deref().map(|glob| Globs::new([glob])).transpose().context("--run")?;
    let run = block_on(run_all(files, chosen.as_ref()))?;
    if chosen.is_some() && run.iter().all(|run| run.cases.is_empty() && run.error.is_none()) {
        bail!("no case matches {}", arguments.run.as_deref().unwrap_or_default());
    }
    let cases = run.iter().flat_map(|run| run.cases.iter().map(|case| CaseOutput::of(&run.file, case))).collect();
    let text = text_of(&run, stdout().is_terminal())?;
    arguments.output.print(&TestOutput { cases }, || text)?;
    if let Some(path) = &arguments.junit {
        fs::write(path, junit::report(&run)).with_context(|| format!("failed to write {}", path.display()))?;
    }
    let error: Vec<_> = run.iter().filter_map(|run| run.error.as_ref()).collect();
    for error in error.iter().skip(1) {
        output::complain(&format!("interlock: {:#}", chain(error)));
    }
    if let Some(error) = error.first() {
        bail!("{}", chain(error));
    }
    let failed = run.iter().flat_map(|run| &run.cases).any(|case| !case.failures.is_empty());
    Ok(if failed { ExitStatus::Findings } else { ExitStatus::Success })
}

/// Collects the suites in a path.
fn find(path: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if !fs::metadata(path)?.is_dir() {
        found.push(path.to_path_buf());
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            find(&entry.path(), found)?;
            continue;
        }
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.ends_with(OTHER_SUFFIX) {
            let why = format!("{name} is not run: rename it to *{SUITE_SUFFIX}");
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, why));
        }
        if name.ends_with(SUITE_SUFFIX) {
            found.push(entry.path());
        }
    }
    Ok(())
}

async fn run_all(files: Vec<PathBuf>, chosen: Option<&Globs>) -> anyhow::Result<Vec<SuiteRun>> {
    let progress = Progress::new("testing", files.len() as u64, Unit::Things, false);
    let mut all = Vec::new();
    for file in files {
        let mut cases = Vec::new();
        let done = all.len() as u64;
        let error = run_file(&file, chosen, &mut cases, || progress.at(done)).await.err();
        all.push(SuiteRun { file, cases, error });
    }
    Ok(all)
}

/// Runs the cases of a file. Calls `run` after each case.
async fn run_file(
    file: &Path,
    chosen: Option<&Globs>,
    cases: &mut Vec<CaseResult>,
    mut run: impl FnMut(),
) -> Result<(), SuiteError> {
    let suite = Suite::load(file).await?;
    for (number, name) in suite.cases().enumerate() {
        if chosen.is_none_or(|chosen| chosen.contains(name)) {
            cases.extend(suite.run(number).await?);
            run();
        }
    }
    Ok(())
}

impl<'r> CaseOutput<'r> {
    fn of(file: &Path, case: &'r CaseResult) -> Self {
        Self {
            file: file.display().to_string(),
            line: case.line,
            case: &case.name,
            ok: case.failures.is_empty(),
            failures: &case.failures,
        }
    }
}

fn text_of(run: &[SuiteRun], coloured: bool) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    let out = &mut text;
    let [green, red, plain] = if coloured { ["\x1b[32m", "\x1b[31m", "\x1b[0m"] } else { ["", "", ""] };
    let (mut passed, mut failed) = (0, 0);
    for SuiteRun { file, cases, error } in run {
        writeln!(out, "{}", file.display())?;
        for case in cases {
            if case.failures.is_empty() {
                passed += 1;
                writeln!(out, "  {green}ok{plain}    {}", case.name)?;
                continue;
            }
            failed += 1;
            writeln!(out, "  {red}FAIL{plain}  {} (line {})", case.name, case.line)?;
            for failure in &case.failures {
                writeln!(out, "        step {}", failure.step)?;
                writeln!(out, "        {green}- expected {}{plain}", failure.expected)?;
                writeln!(out, "        {red}+ got      {}{plain}", failure.got)?;
                for message in &failure.messages {
                    writeln!(out, "          {message}")?;
                }
            }
        }
        if error.is_some() {
            writeln!(out, "  {red}BROKEN{plain}  see the error below")?;
        }
    }
    let files = if run.len() == 1 { "1 file".to_owned() } else { format!("{} files", run.len()) };
    writeln!(out, "{passed} passed, {failed} failed in {files}")?;
    Ok(text)
}

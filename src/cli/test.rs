//! `interlock test`: runs the suites of policies.

mod junit;
mod suite_run;

use std::fs;
use std::io::{IsTerminal, Write, stdout};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::Serialize;

use super::exit_status::ExitStatus;
use super::output::Output;
use super::progress::{Progress, Unit};
use super::runtime::block_on;
use crate::engine::policy::Globs;
use crate::offline::suite::{CaseResult, SUFFIX, Suite, SuiteError};
use suite_run::{Ran, chain};

/// Run the test suites of policies
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Directories with files *.test.yaml, at any depth, or such files
    #[arg(required = true, value_name = "DIR")]
    paths: Vec<PathBuf>,
    /// Run the cases whose name matches this glob, for example '*roll back*'
    #[arg(long, value_name = "GLOB")]
    run: Option<String>,
    /// Write the results to this file too, as JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// How to print
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

/// One line of `test -o json`.
#[derive(Serialize)]
struct Line<'r> {
    file: String,
    line: u64,
    case: &'r str,
    ok: bool,
    failures: Vec<FailureLine<'r>>,
}

#[derive(Serialize)]
struct FailureLine<'r> {
    step: usize,
    expected: &'r str,
    got: &'r str,
    messages: &'r [String],
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let mut files = Vec::new();
    for path in &arguments.paths {
        find(path, &mut files).with_context(|| format!("failed to read {}", path.display()))?;
    }
    files.sort();
    files.dedup();
    if files.is_empty() {
        let paths: Vec<_> = arguments.paths.iter().map(|path| path.display().to_string()).collect();
        bail!("no file *{SUFFIX} below {}", paths.join(", "));
    }
    let chosen = arguments.run.as_deref().map(|glob| Globs::new([glob])).transpose().context("--run")?;
    let ran = block_on(run_all(files, chosen.as_ref()))?;
    if chosen.is_some() && ran.iter().all(|ran| ran.cases.is_empty() && ran.broken.is_none()) {
        bail!("no case is called {}", arguments.run.as_deref().unwrap_or_default());
    }
    let mut out = stdout().lock();
    match arguments.output {
        Output::Json => print_lines(&mut out, &ran)?,
        Output::Table => print_text(&mut out, &ran, std::io::stdout().is_terminal())?,
    }
    if let Some(path) = &arguments.junit {
        fs::write(path, junit::report(&ran)).with_context(|| format!("failed to write {}", path.display()))?;
    }
    let broken: Vec<_> = ran.iter().filter_map(|ran| ran.broken.as_ref()).collect();
    for error in broken.iter().skip(1) {
        eprintln!("interlock: {:#}", chain(error));
    }
    if let Some(error) = broken.first() {
        bail!("{}", chain(error));
    }
    let failed = ran.iter().flat_map(|ran| &ran.cases).any(|case| !case.failures.is_empty());
    Ok(if failed { ExitStatus::Findings } else { ExitStatus::Success })
}

/// The suites at or below a path.
fn find(path: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if !fs::metadata(path)?.is_dir() {
        found.push(path.to_path_buf());
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            find(&entry.path(), found)?;
        } else if entry.file_name().to_string_lossy().ends_with(SUFFIX) {
            found.push(entry.path());
        }
    }
    Ok(())
}

async fn run_all(files: Vec<PathBuf>, chosen: Option<&Globs>) -> anyhow::Result<Vec<Ran>> {
    let mut progress = Progress::new("testing", files.len() as u64, Unit::Things, false);
    let mut all = Vec::new();
    for file in files {
        let mut cases = Vec::new();
        let done = all.len() as u64;
        let broken = run_file(&file, chosen, &mut cases, || progress.at(done)).await.err();
        all.push(Ran { file, cases, broken });
    }
    Ok(all)
}

/// Runs the cases of a file, and says so after each.
async fn run_file(
    file: &Path,
    chosen: Option<&Globs>,
    cases: &mut Vec<CaseResult>,
    mut ran: impl FnMut(),
) -> Result<(), SuiteError> {
    let suite = Suite::load(file).await?;
    for (number, name) in suite.cases().enumerate() {
        if chosen.is_none_or(|chosen| chosen.contains(name)) {
            cases.extend(suite.run(number).await?);
            ran();
        }
    }
    Ok(())
}

fn print_lines(out: &mut impl Write, ran: &[Ran]) -> anyhow::Result<()> {
    for Ran { file, cases, .. } in ran {
        for case in cases {
            let failures = case.failures.iter().map(|failure| FailureLine {
                step: failure.step,
                expected: &failure.expected,
                got: &failure.got,
                messages: &failure.messages,
            });
            let line = Line {
                file: file.display().to_string(),
                line: case.line,
                case: &case.name,
                ok: case.failures.is_empty(),
                failures: failures.collect(),
            };
            writeln!(out, "{}", serde_json::to_string(&line)?)?;
        }
    }
    Ok(())
}

fn print_text(out: &mut impl Write, ran: &[Ran], coloured: bool) -> std::io::Result<()> {
    let [green, red, plain] = if coloured { ["\x1b[32m", "\x1b[31m", "\x1b[0m"] } else { ["", "", ""] };
    let (mut passed, mut failed) = (0, 0);
    for Ran { file, cases, broken } in ran {
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
        if broken.is_some() {
            writeln!(out, "  {red}BROKEN{plain}  the reason is below")?;
        }
    }
    let files = if ran.len() == 1 { "1 file".to_owned() } else { format!("{} files", ran.len()) };
    writeln!(out, "{passed} passed, {failed} failed in {files}")
}

//! Interlock under disturbances: lives of releases by real helm, Flux and Argo CD, forbidden acts and a steady load of writes against three
//! replicas, while
//! at random replicas are killed and stopped, certificates rotate, policies change, the API server restarts, connections are cut,
//! and clocks are wrong.
//!
//! `cargo run --release --example soak -- --minutes 60` prints a table, and ends with 1 and the reasons if something is wrong.
//! It needs Go, for the first build of the control plane and of helm, and `cc`. The program is the harness of the e2e tests.
//! Cargo does not build the program `interlock` for an example, so this program also runs all of Interlock's commands.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    dead_code,
    missing_docs,
    reason = "the harness is written for tests, and this example uses only a part of it"
)]

#[path = "../../tests/e2e/harness"]
mod harness {
    pub(crate) mod applications;
    pub(crate) mod assets;
    pub(crate) mod balancer;
    pub(crate) mod chart;
    pub(crate) mod clients;
    pub(crate) mod clock;
    pub(crate) mod cluster;
    pub(crate) mod controllers;
    pub(crate) mod eventually;
    pub(crate) mod forging;
    pub(crate) mod gate;
    pub(crate) mod helm_releases;
    pub(crate) mod in_flight;
    pub(crate) mod kubectl_server;
    pub(crate) mod kubelet;
    pub(crate) mod load;
    pub(crate) mod namespace;
    pub(crate) mod plane;
    pub(crate) mod process;
    pub(crate) mod profile;
    pub(crate) mod records;
    pub(crate) mod webhook;
}

mod chance;
mod disturbances;
mod ending;
mod ledger;
mod lives;
mod load_account;
mod passed;
mod place;
mod resources;
mod run;
mod site;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Parser;

/// Soak: Interlock under disturbances
#[derive(Parser)]
struct Arguments {
    /// How long the acts go on; the start and the end take two minutes more
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// Repeats the random choices of another run
    #[arg(long)]
    seed: Option<u64>,
    /// Keeps a complete audit log in this file, for `interlock replay` and `adopt`; a GiB for an hour
    #[arg(long, value_name = "FILE")]
    audit_log: Option<PathBuf>,
}

fn main() -> ExitCode {
    // The replicas and `interlock certs rotate` are this program too.
    if std::env::args_os().nth(1).is_some_and(|first| !first.to_string_lossy().starts_with('-')) {
        return release_interlock::cli::main();
    }
    let Arguments { minutes, seed, audit_log } = Arguments::parse();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let seed = seed.unwrap_or(now.as_secs());
    println!("soak: {minutes} minutes, --seed {seed}");
    match run::run(minutes, seed, audit_log.as_deref()) {
        Ok(run) => {
            println!("{}", run.table);
            for reason in &run.reasons {
                println!("WRONG: {reason}");
            }
            println!("soak: {}", if run.reasons.is_empty() { "nothing is wrong" } else { "something is wrong" });
            ExitCode::from(u8::from(!run.reasons.is_empty()))
        }
        Err(error) => {
            eprintln!("soak: {error}");
            ExitCode::from(2)
        }
    }
}

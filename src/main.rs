//! The `interlock` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    release_interlock::cli::main()
}

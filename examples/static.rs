//! The whole of `interlock` for the tests of the image, which link it statically:
//! `cargo rustc --example static -- -C target-feature=+crt-static`. Only the last step differs, so nothing is compiled again.
//! An example shares its dependencies with the tests; the program itself has them with fewer features, and would take minutes.

use std::process::ExitCode;

fn main() -> ExitCode {
    release_interlock::cli::main()
}

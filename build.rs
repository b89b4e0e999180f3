//! Two settings of the build.
//!
//! - Packs the relocations of the program: one bit for each instead of 24 bytes, a megabyte less to load and to hold. The loader of
//!   glibc 2.36 and later can read them, and a static program, which relocates itself.
//! - Names the commit for `interlock version`.

use std::env::var;
use std::path::Path;
use std::process::Command;

/// The first glibc whose loader reads packed relocations.
const FIRST: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is_static =
        var("CARGO_CFG_TARGET_FEATURE").is_ok_and(|features| features.split(',').any(|it| it == "crt-static"));
    let is_glibc = var("CARGO_CFG_TARGET_ENV").is_ok_and(|env| env == "gnu");
    if is_glibc && (is_static || runs_here() && glibc().is_some_and(|version| version >= FIRST)) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    name_commit();
}

/// Sets `INTERLOCK_COMMIT` in release builds, unless the caller of cargo has set it, or this is not a clone.
fn name_commit() {
    println!("cargo::rerun-if-env-changed=INTERLOCK_COMMIT");
    // In debug builds, each commit would compile the program and all tests again. An unpacked archive may be inside another
    // repository, whose commit says nothing.
    let is_release = var("PROFILE").is_ok_and(|profile| profile == "release");
    if !is_release || var("INTERLOCK_COMMIT").is_ok() || !Path::new(".git").exists() {
        return;
    }
    let Some(commit) = output_of("git", &["rev-parse", "HEAD"]) else { return };
    println!("cargo::rustc-env=INTERLOCK_COMMIT={commit}");
    let branch = output_of("git", &["symbolic-ref", "--quiet", "HEAD"]);
    // A packed branch has no file of its own, but the log of HEAD changes with it.
    for name in ["HEAD", "logs/HEAD"].into_iter().chain(branch.as_deref()) {
        let path = output_of("git", &["rev-parse", "--git-path", name]);
        // Cargo runs a build script again and again if a file does not exist.
        if let Some(path) = path.filter(|path| Path::new(path).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}

/// Whether the program is for machines like this one. What another machine can load is not known.
fn runs_here() -> bool {
    var("HOST").ok() == var("TARGET").ok()
}

/// The version of this machine's glibc.
fn glibc() -> Option<(u32, u32)> {
    let version = output_of("getconf", &["GNU_LIBC_VERSION"])?;
    let (major, minor) = version.strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The output of a program; `None` if the program is missing or fails.
fn output_of(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

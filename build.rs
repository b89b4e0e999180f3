//! Packs the relocations of the program: one bit for each instead of 24 bytes, a megabyte less to load and to hold. The loader of
//! glibc 2.36 and later can read them, and a static program, which relocates itself.

use std::env::var;
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
}

/// Whether the program is for machines like this one. What another machine can load is not known.
fn runs_here() -> bool {
    var("HOST").ok() == var("TARGET").ok()
}

/// The version of this machine's glibc.
fn glibc() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let (major, minor) = str::from_utf8(&output.stdout).ok()?.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

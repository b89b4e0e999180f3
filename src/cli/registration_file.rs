//! The argument of commands that judge logs: the registration that decides which requests are judged.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;

use crate::offline::registration::Registration;

#[derive(Debug, clap::Args)]
pub(super) struct RegistrationFile {
    /// The registration that decides which requests are judged, if it is not the shipped one in the namespace
    /// interlock-system: `kubectl get validatingwebhookconfiguration interlock -o yaml`
    #[arg(long, value_name = "FILE")]
    registration: Option<PathBuf>,
}

impl RegistrationFile {
    /// The registration in the file, or the shipped one.
    pub(super) fn load(&self) -> anyhow::Result<Registration> {
        let Some(file) = &self.registration else {
            return Registration::shipped().context("the registration in this binary");
        };
        let text = fs::read_to_string(file).with_context(|| format!("failed to read {}", file.display()))?;
        Registration::parse(&text).with_context(|| file.display().to_string())
    }
}

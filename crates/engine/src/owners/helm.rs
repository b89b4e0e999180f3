//! Helm: the command line, and programs with its SDK. The format of its records is in [`crate::release`].

pub(crate) mod words;

/// The name that it gives itself.
pub(crate) const NAME: &str = "Helm";

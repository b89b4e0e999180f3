//! The rules that only OLM has, and the parts of a record that it stores in several Secrets.

pub(crate) mod extension_change_while_pending;
pub(crate) mod extension_safety;
pub(crate) mod record_part;

#[cfg(test)]
pub(crate) mod tests;

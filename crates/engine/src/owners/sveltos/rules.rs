//! The rules that only Sveltos has: what a commit of bundles may leave out.

pub(crate) mod dangling_bundle;
pub(crate) mod dropped_bundles;
pub(crate) mod group_commit;
pub(crate) mod protected_commits;
pub(crate) mod remove_while_live;

#[cfg(test)]
pub(crate) mod tests;

//! Shares equal lists of groups in memory, because one user makes many changes.

use std::collections::HashSet;

use interlock_engine::decision::Groups;

/// The maximum number of remembered lists, so that the kept changes bound the memory.
const MAX_LISTS: usize = 4_096;

/// Remembers lists of groups.
#[derive(Debug, Default)]
pub(crate) struct SharedGroups(HashSet<Groups>);

impl SharedGroups {
    /// The list itself, or an equal list that is already in memory.
    pub(crate) fn shared(&mut self, groups: Groups) -> Groups {
        if let Some(known) = self.0.get(&groups) {
            return known.clone();
        }
        if self.0.len() >= MAX_LISTS {
            self.0.clear();
        }
        self.0.insert(groups.clone());
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lists_are_one_in_memory() {
        let mut shared = SharedGroups::default();
        let [one, again] = [(); 2].map(|()| shared.shared(Groups::of(["devs", "ops"], 1024)));
        assert_eq!(one.names().as_ptr(), again.names().as_ptr());
        for index in 0..3 * MAX_LISTS {
            shared.shared(Groups::of([index.to_string().as_str()], 1024));
        }
        assert!(shared.0.len() <= MAX_LISTS);
    }
}

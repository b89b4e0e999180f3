//! The bundles of a release in a commit. They are numbered from 0, and the last one has a mark.

use std::collections::{HashMap, HashSet};

use crate::owners::sveltos::{Bundle, RemoteRelease};

/// The bundles of each deployed release. Bundles with the hooks of an uninstall do not count.
pub(super) fn by_release<'b>(bundles: impl Iterator<Item = &'b Bundle>) -> HashMap<&'b RemoteRelease, Staged> {
    let mut staged: HashMap<_, Staged> = HashMap::new();
    for bundle in bundles.filter(|bundle| !bundle.uninstalls) {
        if let Some(release) = &bundle.release {
            staged.entry(release).or_default().add(bundle);
        }
    }
    staged
}

/// The bundles of one release.
#[derive(Default)]
pub(super) struct Staged {
    numbers: HashSet<u32>,
    /// The number of the last bundle; `None` if the last bundle is missing or unnumbered.
    last: Option<u32>,
    has_last: bool,
    /// The bundles without a number.
    unnumbered: usize,
}

impl Staged {
    fn add(&mut self, bundle: &Bundle) {
        match bundle.number() {
            Some(number) => _ = self.numbers.insert(number),
            None => self.unnumbered += 1,
        }
        if bundle.is_last {
            self.has_last = true;
            self.last = self.last.max(bundle.number());
        }
    }

    /// Whether all bundles up to the last one exist.
    pub(super) fn is_complete(&self) -> bool {
        self.has_last && self.missing() == 0
    }

    /// The number of missing bundles before the last one. An unnumbered bundle can be any of them.
    fn missing(&self) -> usize {
        let Some(last) = self.last else { return 0 };
        let present = self.numbers.iter().filter(|number| **number < last).count() + self.unnumbered;
        (last as usize).saturating_sub(present)
    }

    /// The missing bundles, in parentheses, to follow the name of the release.
    pub(super) fn lacks(&self) -> String {
        match self.missing() {
            _ if !self.has_last => "its last bundle".to_owned(),
            missing => format!("{missing} of its bundles"),
        }
    }
}

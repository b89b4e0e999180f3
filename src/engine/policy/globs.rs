//! Globs over names.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// A set of globs over names, for example `system:serviceaccount:*:helm-controller`.
#[derive(Debug, Clone, Default)]
pub struct Globs(GlobSet);

/// Whether an optional condition matches a name. A condition that is not set matches everything, including an unknown name.
pub(super) fn matches(globs: Option<&Globs>, name: Option<&str>) -> bool {
    globs.is_none_or(|globs| name.is_some_and(|name| globs.contains(name)))
}

impl Globs {
    /// Compiles globs. A `*` matches any characters, the colons between namespace and name included.
    ///
    /// # Errors
    /// Names the glob that does not compile.
    pub fn new<'g>(globs: impl IntoIterator<Item = &'g str>) -> Result<Self, globset::Error> {
        let mut set = GlobSetBuilder::new();
        for glob in globs {
            set.add(GlobBuilder::new(glob).literal_separator(false).build()?);
        }
        Ok(Self(set.build()?))
    }

    /// Whether a name matches one of the globs.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.0.is_match(name)
    }
}

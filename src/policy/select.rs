//! Users named by globs.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// A set of globs over user names, for example `system:serviceaccount:*:helm-controller`.
#[derive(Debug, Clone, Default)]
pub struct UserGlobs(GlobSet);

impl UserGlobs {
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

    /// Whether a user is named.
    #[must_use]
    pub fn contains(&self, user: &str) -> bool {
        self.0.is_match(user)
    }
}

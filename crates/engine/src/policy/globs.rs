//! Globs over names.

use std::collections::BTreeSet;
use std::fmt;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::object::SERVICE_ACCOUNT_PREFIX;

/// A set of globs over names, for example `system:serviceaccount:*:helm-controller`.
#[derive(Clone, Default)]
pub struct Globs {
    set: GlobSet,
    /// The namespaces of the service accounts that the globs name.
    namespaces: BTreeSet<String>,
    /// As written.
    texts: Vec<String>,
}

/// Shows the globs as written: the compiled set is long and unordered.
impl fmt::Debug for Globs {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.texts.fmt(out)
    }
}

/// Equal globs in equal order.
impl PartialEq for Globs {
    fn eq(&self, other: &Self) -> bool {
        self.texts == other.texts
    }
}

impl Eq for Globs {}

/// Whether an optional condition matches a name. Without a condition, everything matches, even an unknown name.
pub(super) fn matches(globs: Option<&Globs>, name: Option<&str>) -> bool {
    globs.is_none_or(|globs| name.is_some_and(|name| globs.contains(name)))
}

impl Globs {
    /// Compiles globs. A `*` matches any characters, including the colons between namespace and name.
    ///
    /// # Errors
    /// A glob does not compile. The error names the glob.
    pub fn new<'g>(globs: impl IntoIterator<Item = &'g str>) -> Result<Self, globset::Error> {
        let (mut set, mut namespaces, mut texts) = (GlobSetBuilder::new(), BTreeSet::new(), Vec::new());
        for glob in globs {
            set.add(GlobBuilder::new(glob).literal_separator(false).build()?);
            let account = glob.strip_prefix(SERVICE_ACCOUNT_PREFIX).and_then(|account| account.split_once(':'));
            namespaces.extend(account.map(|(namespace, _)| namespace.to_owned()));
            texts.push(glob.to_owned());
        }
        Ok(Self { set: set.build()?, namespaces, texts })
    }

    /// Whether a glob names a service account in this namespace. A glob that matches several namespaces does not count.
    #[must_use]
    pub fn have_an_account_in(&self, namespace: &str) -> bool {
        self.namespaces.contains(namespace)
    }

    /// The globs as written.
    #[must_use]
    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    /// Whether a name matches one of the globs.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.set.is_match(name)
    }
}

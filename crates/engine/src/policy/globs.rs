//! Globs over names.

use std::collections::BTreeSet;
use std::fmt;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::object::SERVICE_ACCOUNT_PREFIX;

/// A set of globs over names, for example `system:serviceaccount:*:helm-controller`.
#[derive(Clone, Default)]
pub struct Globs {
    set: GlobSet,
    /// The namespaces of the service accounts among them.
    namespaces: BTreeSet<String>,
    /// As written.
    texts: Vec<String>,
}

/// As written: what is compiled from that is long, and in no order.
impl fmt::Debug for Globs {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.texts.fmt(out)
    }
}

/// The same globs in the same order.
impl PartialEq for Globs {
    fn eq(&self, other: &Self) -> bool {
        self.texts == other.texts
    }
}

impl Eq for Globs {}

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
        let (mut set, mut namespaces, mut texts) = (GlobSetBuilder::new(), BTreeSet::new(), Vec::new());
        for glob in globs {
            set.add(GlobBuilder::new(glob).literal_separator(false).build()?);
            let account = glob.strip_prefix(SERVICE_ACCOUNT_PREFIX).and_then(|account| account.split_once(':'));
            namespaces.extend(account.map(|(namespace, _)| namespace.to_owned()));
            texts.push(glob.to_owned());
        }
        Ok(Self { set: set.build()?, namespaces, texts })
    }

    /// Whether one of them names a service account in this namespace. A glob over namespaces names none.
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

//! The namespaces that policies and freezes use for an object that applies others.

use std::collections::BTreeSet;
use std::iter;

use crate::object::ObjectKey;

/// The namespaces of the objects that another one applies: the one that it deploys to, or else its own and those of the objects.
pub(super) fn homes<'n>(
    target: &'n str,
    own: &'n str,
    objects: impl Iterator<Item = &'n str>,
) -> impl Iterator<Item = &'n str> {
    let is_one = !target.is_empty();
    let others: BTreeSet<_> = objects.filter(|namespace| !is_one && !namespace.is_empty()).collect();
    iter::once(if is_one { target } else { own }).chain(others)
}

/// The namespace that policies use for what applies an object: the one that it deploys to, or that of the object, or its own.
pub(super) fn home_of(object: &ObjectKey, target: &str, own: &str) -> String {
    let named = [target, &object.namespace].into_iter().find(|namespace| !namespace.is_empty());
    named.unwrap_or(own).to_owned()
}

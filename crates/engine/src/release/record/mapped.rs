//! Whether a manifest is a copy of an older one with other versions of the same APIs, as helm-mapkubeapis writes it.
//!
//! The tool replaces the two lines `apiVersion` and `kind` of documents whose API version is deprecated, and nothing else. An API that
//! was removed without a successor loses both lines.

use super::content::same_chart_and_config;
use super::{READ_STEPS, Record};
use crate::effort::Effort;
use crate::object::group_of;
use crate::release::manifest::is_same_group;

/// Whether a record is a copy of another one by helm-mapkubeapis: the same chart, values and hooks, and the same
/// documents except for deprecated API versions.
#[must_use]
pub fn is_mapped_copy(old: &Record<'_>, new: &Record<'_>, effort: &Effort) -> bool {
    let same_place = old.name == new.name && old.namespace == new.namespace;
    same_place
        && same_hooks(old, new, effort)
        && is_mapped_manifest(old, new, effort)
        && same_chart_and_config(old, new, effort)
}

fn same_hooks(old: &Record<'_>, new: &Record<'_>, effort: &Effort) -> bool {
    old.has_hooks_like(new)
        || matches!((old.hooks(effort), new.hooks(effort)), (Some(old), Some(new)) if old.run_the_same(&new))
}

fn is_mapped_manifest(old: &Record<'_>, new: &Record<'_>, effort: &Effort) -> bool {
    let (old, new) = (old.manifest(), new.manifest());
    effort.take_text(&old, READ_STEPS).is_ok() && effort.take_text(&new, READ_STEPS).is_ok() && is_mapped(&old, &new)
}

/// Compares line by line.
fn is_mapped(old: &str, new: &str) -> bool {
    let (mut old, mut new) = (old.lines(), new.lines().peekable());
    while let Some(before) = old.next() {
        if new.next_if_eq(&before).is_some() {
            continue;
        }
        let (Some(from), Some(kind)) = (before.strip_prefix("apiVersion: "), old.next()) else {
            return false;
        };
        let Some(kind_name) = kind.strip_prefix("kind: ") else {
            return false;
        };
        let mapped = new.peek().and_then(|after| after.strip_prefix("apiVersion: "));
        match mapped {
            Some(to) if follows(from, to, kind_name) => {
                new.next();
                if new.next() != Some(kind) {
                    return false;
                }
            }
            None if is_deprecated(from) => {}
            _ => return false,
        }
    }
    new.next().is_none()
}

/// Whether an API version of a kind replaces another one.
fn follows(from: &str, to: &str, kind: &str) -> bool {
    is_deprecated(from) && is_same_group(kind, group_of(from), group_of(to))
}

fn is_deprecated(api_version: &str) -> bool {
    api_version.contains("alpha") || api_version.contains("beta")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ingress(api: &str, host: &str) -> String {
        format!("---\n# Source: a\n{api}metadata:\n  name: web\nspec:\n  host: {host}\n")
    }

    #[test]
    fn only_the_two_lines_of_deprecated_versions_differ() {
        let of = |version: &str, kind: &str| format!("apiVersion: {version}\nkind: {kind}\n");
        let old = ingress(&of("extensions/v1beta1", "Ingress"), "a") + &ingress(&of("policy/v1beta1", "X"), "b");
        let mapped = ingress(&of("networking.k8s.io/v1", "Ingress"), "a") + &ingress(&of("policy/v1", "X"), "b");
        let removed = ingress(&of("extensions/v1beta1", "Ingress"), "a") + &ingress("", "b");
        for new in [&old, &mapped, &removed] {
            assert!(is_mapped(&old, new), "{new}");
        }
        for wrong in [
            mapped.replace("host: a", "host: evil"),
            mapped.replace("kind: Ingress", "kind: Secret"),
            mapped.replace("networking.k8s.io/v1", "evil.example.com/v1"),
            mapped.replace("  host: a\n", ""),
            format!("{mapped}  more: true\n"),
            ingress(&of("networking.k8s.io/v1", "Ingress"), "a"),
            String::new(),
        ] {
            assert!(!is_mapped(&old, &wrong), "{wrong}");
        }
        // A version that is not deprecated stays.
        assert!(!is_mapped(&ingress(&of("apps/v1", "Deployment"), "a"), &ingress(&of("apps/v2", "Deployment"), "a")));
    }
}

//! The hooks of a record, compared by the work that they would do.
//!
//! A hook runs with the rights of the user who uninstalls or tests the release, so a stored hook must not change, except for the
//! result of its last run. `helm test --filter` writes a record with only the selected hooks, and restores the others at its end,
//! so hooks may be missing for a while.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::Record;
use crate::effort::Effort;
use crate::release::hook::{Hook, each_hook};

/// The steps to parse and hash a byte of the hooks.
const HOOK_STEPS: u64 = 8;

/// The maximum number of hooks that are compared. Charts have a few.
const MAX_HOOKS: usize = 10_000;

/// The policies that Helm sets for a hook without any.
const DEFAULT_DELETE_POLICIES: &[u8] = br#"["before-hook-creation"]"#;

/// The events of the hooks that `helm test` runs, as JSON.
const TEST_EVENTS: [&str; 2] = [r#""test""#, r#""test-success""#];

/// A digest of the work of one hook.
type HookDigest = [u8; 32];

/// The hooks of a record.
#[derive(Debug, PartialEq, Eq)]
pub struct Hooks(BTreeMap<HookDigest, LastRun>);

/// The result of the last run of a hook.
#[derive(Debug, PartialEq, Eq)]
struct LastRun {
    is_test: bool,
    digest: [u8; 32],
}

impl Hook<'_> {
    fn digest(&self) -> HookDigest {
        let mut digest = Sha256::new();
        let mut add = |text: &[u8]| {
            digest.update((text.len() as u64).to_le_bytes());
            digest.update(text);
        };
        [&self.name, &self.kind, &self.path, &self.manifest].into_iter().for_each(|text| add(text.as_bytes()));
        add(self.weight.to_string().as_bytes());
        add(&compact(self.events));
        add(match compact(self.delete_policies).as_slice() {
            b"" | b"null" | b"[]" => DEFAULT_DELETE_POLICIES,
            policies => policies,
        });
        digest.finalize().into()
    }
}

/// A list of words without white space.
fn compact(list: Option<&RawValue>) -> Vec<u8> {
    list.map_or("", RawValue::get).bytes().filter(|byte| !byte.is_ascii_whitespace()).collect()
}

impl<'de> Deserialize<'de> for Hooks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut hooks = BTreeMap::new();
        each_hook(deserializer, |hook| {
            if hooks.len() == MAX_HOOKS {
                return Err("too many hooks");
            }
            let events = hook.events.map_or("", RawValue::get);
            let is_test = TEST_EVENTS.iter().any(|event| events.contains(event));
            let digest = Sha256::digest(hook.last_run.map_or("", RawValue::get)).into();
            hooks.insert(hook.digest(), LastRun { is_test, digest });
            Ok(())
        })?;
        Ok(Self(hooks))
    }
}

impl Hooks {
    /// A digest of the work of all hooks, as text.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut digest = Sha256::new();
        self.0.keys().for_each(|hook| digest.update(hook));
        digest.finalize().iter().take(16).fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
    }

    /// Whether these are the hooks of a filtered test of `all`: a subset of them, at least one of which runs.
    #[must_use]
    pub fn are_tested_among(&self, all: &Self) -> bool {
        self.0.keys().all(|hook| all.0.contains_key(hook))
            && self
                .0
                .iter()
                .any(|(hook, run)| run.is_test && all.0.get(hook).is_some_and(|before| before.digest != run.digest))
    }

    /// Whether both would do the same work.
    #[must_use]
    pub fn run_the_same(&self, other: &Self) -> bool {
        self.0.keys().eq(other.0.keys())
    }
}

impl Record<'_> {
    /// The hooks; `None` if they cannot be parsed, are more than 10,000, or take more work than the review has left.
    #[must_use]
    pub fn hooks(&self, effort: &Effort) -> Option<Hooks> {
        let text = self.hooks.map_or("null", RawValue::get);
        effort.take_text(text, HOOK_STEPS).ok()?;
        serde_json::from_str(text).ok()
    }

    /// Whether the text of the hooks equals that of another record.
    #[must_use]
    pub fn has_hooks_like(&self, other: &Record<'_>) -> bool {
        self.hooks.map(RawValue::get) == other.hooks.map(RawValue::get)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hook(name: &str, event: &str, manifest: &str, more: &str) -> String {
        format!(r#"{{"name":"{name}","kind":"Job","path":"t","manifest":"{manifest}","events":["{event}"]{more}}}"#)
    }

    fn hooks(list: &[String]) -> String {
        format!("[{}]", list.join(","))
    }

    fn read(text: &str) -> Hooks {
        serde_json::from_str(text).unwrap()
    }

    const RAN: &str = r#","last_run":{"phase":"Running"}"#;

    #[test]
    fn runs_order_and_defaults_of_hooks_do_not_count() {
        let (one, two) = (hook("a", "test", "x", ""), hook("b", "pre-delete", "y", ""));
        let filled = hook("b", "pre-delete", "y", r#","delete_policies":[ "before-hook-creation" ],"weight":0"#);
        let (before, after) = (hooks(&[one, two]), hooks(&[filled, hook("a", "test", "x", RAN)]));
        assert!(read(&before).run_the_same(&read(&after)));
        assert_eq!(read(&before).digest(), read(&after).digest());
        assert!(read("null").run_the_same(&read("[]")));
    }

    #[test]
    fn every_part_that_decides_a_run_counts() {
        let before = hooks(&[hook("a", "test", "x", "")]);
        for other in [
            hook("a", "test", "evil", ""),
            hook("a", "pre-delete", "x", ""),
            hook("c", "test", "x", ""),
            hook("a", "test", "x", r#","weight":-5"#),
            hook("a", "test", "x", r#","delete_policies":["hook-succeeded"]"#),
        ] {
            let after = hooks(&[other]);
            assert!(!read(&before).run_the_same(&read(&after)), "{after}");
            assert_ne!(read(&before).digest(), read(&after).digest());
        }
    }

    /// Go takes each of these keys for a known one, and the next `helm uninstall` would run the value.
    #[test]
    fn hooks_with_keys_that_only_go_knows_are_an_error() {
        let stored = hooks(&[hook("a", "test", "x", r#","later":1"#)]);
        assert!(serde_json::from_str::<Hooks>(&stored).is_ok());
        for key in ["Manifest", "MANIFEST", "manife\\u017ft", "manifeſt", "Events", "Kind", "\u{212a}ind", "manifest"]
        {
            let odd = hooks(&[hook("a", "test", "x", &format!(r#","{key}":"evil""#))]);
            assert!(serde_json::from_str::<Hooks>(&odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn a_filtered_test_has_a_running_hook_and_no_new_one() {
        let (test, delete) = (hook("a", "test", "x", ""), hook("b", "pre-delete", "y", ""));
        let running = hook("a", "test", "x", RAN);
        let all = hooks(&[test.clone(), delete.clone()]);
        for (left, filtered) in [
            (vec![running.clone()], true),
            (vec![test], false),
            (vec![hook("b", "pre-delete", "y", RAN)], false),
            (vec![running, hook("c", "test", "z", "")], false),
            (vec![], false),
        ] {
            let left = hooks(&left);
            assert_eq!(read(&left).are_tested_among(&read(&all)), filtered, "{left}");
        }
    }

    #[test]
    fn too_many_hooks_are_not_compared() {
        let many: Vec<_> = (0..=MAX_HOOKS).map(|name| hook(&name.to_string(), "test", "x", "")).collect();
        assert!(serde_json::from_str::<Hooks>(&hooks(&many)).is_err());
    }
}

//! The commands of `packaging/k9s/plugins.yaml`, run as k9s runs them. k9s itself needs a terminal, and no registry has it.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use regex::{Captures, Regex};
use serde_json::Value;
use tempfile::TempDir;

use crate::harness::archive::packaging;
use crate::harness::assets::{assets, interlock};
use crate::harness::clients::{Identity, client_environment};
use crate::harness::namespace::Namespace;

/// k9s of a person, in a namespace.
pub(crate) struct K9s<'n> {
    namespace: &'n Namespace<'n>,
    who: Identity,
    plugins: Value,
    /// interlock, kubectl, and a `less` that does not page.
    programs: TempDir,
}

impl<'n> K9s<'n> {
    #[track_caller]
    pub(crate) fn new(namespace: &'n Namespace<'n>, person: &str) -> Self {
        let programs = tempfile::tempdir().expect("a temporary directory");
        let place = |name: &str| programs.path().join(name);
        symlink(interlock().unwrap_or_else(|error| panic!("{error}")), place("interlock")).expect("a link");
        symlink(&assets().kubectl, place("kubectl")).expect("a link");
        fs::write(place("less"), "#!/bin/sh\nexec cat\n").expect("a temporary directory is writable");
        fs::set_permissions(place("less"), fs::Permissions::from_mode(0o755)).expect("a file of our own");
        let text = fs::read_to_string(packaging("k9s/plugins.yaml")).expect("the plugins");
        let plugins = serde_saphyr::from_str(&text).expect("YAML");
        Self { namespace, who: namespace.plane().person(person), plugins, programs }
    }

    /// The command of a plugin on an object, with the words that k9s replaces.
    #[track_caller]
    pub(crate) fn command(&self, plugin: &str, resource: &str, name: &str) -> Command {
        let plugin = &self.plugins["plugins"][plugin];
        assert!(plugin["scopes"].as_array().is_some_and(|scopes| scopes.iter().any(|scope| scope == resource)));
        let context = self.namespace.kubectl_as(&self.who).ok(&["config", "current-context"]).stdout;
        let values = [
            ("CONTEXT", context.trim_end()),
            ("NAMESPACE", self.namespace.name()),
            ("NAME", name),
            ("RESOURCE_NAME", resource),
        ];
        // `Substitute` in k9s's internal/view/env.go: a word that it does not know ends the plugin.
        let variable = Regex::new(r"\$(!?[\w|\-]+)").expect("a regular expression");
        let value = |found: &Captures<'_>| match values.iter().find(|(known, _)| *known == &found[1]) {
            Some((_, value)) => (*value).to_owned(),
            None => panic!("k9s does not know {}", &found[0]),
        };
        let mut command = Command::new(plugin["command"].as_str().expect("a command"));
        for argument in plugin["args"].as_array().expect("arguments") {
            command.arg(variable.replace_all(argument.as_str().expect("text"), value).as_ref());
        }
        client_environment(&mut command, &self.who, self.namespace.plane().dir());
        command.env("PATH", path_after(self.programs.path()));
        command
    }
}

/// `PATH` with another directory before it.
fn path_after(directory: &Path) -> OsString {
    let others = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(directory.to_owned()).chain(std::env::split_paths(&others));
    std::env::join_paths(all).expect("directories without colons")
}

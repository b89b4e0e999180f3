//! A namespace in which one life takes place.

use crate::harness::clients::{Identity, Kubectl};
use crate::harness::eventually::within;
use crate::harness::namespace::Namespace;
use crate::harness::process::Output;

use super::ending::Expect;
use super::site::{AWAY, Site, steady};

/// Makes `--wait` wait, and the opposite.
const HANG: &str = "controlplane/pods=hang";
const READY: &str = "controlplane/pods-";

pub(crate) struct Place<'s> {
    pub(crate) site: &'s Site<'s>,
    pub(crate) namespace: Namespace<'s>,
    /// A stranger.
    pub(crate) bob: Kubectl,
    pub(crate) admin: Kubectl,
}

impl<'s> Place<'s> {
    pub(crate) fn begin(site: &'s Site<'s>, name: &str) -> Option<Self> {
        let plane = site.cluster.plane();
        let namespace = Namespace::existing(plane, name);
        let kubectl = |who: &str| namespace.kubectl_as(&plane.person(who));
        let (bob, admin) = (kubectl("bob"), kubectl("admin"));
        let created = admin.run(&["create", "namespace", name]);
        (created.success() || created.stderr.contains("already exists")).then_some(())?;
        steady(&admin, &["get", "serviceaccount", "default"])?;
        Some(Self { site, namespace, bob, admin })
    }

    /// Deleting a namespace is clean-up, which passes in every state.
    pub(crate) fn end(self) {
        let _ =
            steady(&self.admin, &["delete", "namespace", self.namespace.name(), "--wait=false", "--ignore-not-found"]);
    }

    pub(crate) fn kubectl_as(&self, who: &Identity) -> Kubectl {
        self.namespace.kubectl_as(who)
    }

    /// Notes an act; `None` if it did not end as expected, or if the life is over.
    pub(crate) fn act(&self, kind: &'static str, expect: Expect, output: &Output) -> Option<()> {
        // Controllers print JSON.
        let text = format!("{}\n{}\n{}", output.command, output.stdout.replace("\\\"", "\""), output.stderr);
        let right = self.site.ledger.act(kind, expect, output.success(), &text, output.took);
        (right && !self.site.is_stopped()).then_some(())
    }

    /// A forbidden act of the stranger, and an allowed one.
    pub(crate) fn forbidden(
        &self,
        kind: &'static str,
        args: &[&str],
        rules: &'static [&'static str],
        neighbour: &[&str],
    ) -> Option<()> {
        self.act(kind, Expect::Refused(rules), &self.bob.run(args))?;
        self.act("label an object", Expect::Passes, &self.bob.run(neighbour))
    }

    pub(crate) fn hang_pods(&self) -> Option<()> {
        self.label(HANG)
    }

    pub(crate) fn ready_pods(&self) -> Option<()> {
        self.label(READY)
    }

    fn label(&self, label: &str) -> Option<()> {
        steady(&self.admin, &["label", "namespace", self.namespace.name(), "--overwrite", label]).map(drop)
    }

    /// Creates an object, also while the API server may be away.
    pub(crate) fn create(&self, object: &serde_json::Value) -> Option<()> {
        let created = within(AWAY, "an object is created", || {
            let output = self.bob.with_file("create", object, &[]);
            if output.stderr.contains("already exists") { Ok(()) } else { output.into_result().map(drop) }
        });
        created.ok()
    }
}

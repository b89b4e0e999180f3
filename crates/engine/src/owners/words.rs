//! The terms and commands of a release's owner. Each owner has a [`Vocabulary`] in its folder.

use super::vocabulary::{OwnerWords, Vocabulary};
use super::{helm, olm};
use crate::release::{Revision, Status, Storage};
use crate::text::command::command;
use crate::ways_out::{Step, StepKind, WaysOut};

impl OwnerWords<'_> {
    fn vocabulary(&self) -> &'static Vocabulary {
        match self.storage {
            Storage::Secret | Storage::ConfigMap => &helm::words::VOCABULARY,
            Storage::Index => &olm::words::VOCABULARY,
        }
    }

    /// Whether there are commands to roll back and to uninstall. If not, the owner continues by itself.
    pub fn has_commands(&self) -> bool {
        self.vocabulary().has_commands
    }

    /// `Helm`, for the start or the middle of a sentence.
    pub fn name(&self) -> &'static str {
        self.vocabulary().name
    }

    /// The program: `helm` or `OLM`.
    pub fn client(&self) -> &'static str {
        self.vocabulary().client
    }

    /// The command that upgrades a Helm release, to a specific version of its chart if one is required. Records do not say where
    /// the chart comes from.
    pub fn upgrade_command(&self, version: Option<&str>) -> String {
        helm::words::upgrade_command(self, version)
    }

    /// The same, with exactly the values that a command prints.
    pub fn upgrade_command_with(&self, version: Option<&str>, values: &str) -> String {
        helm::words::upgrade_command_with(self, version, values)
    }

    /// The command that prints the values of a revision.
    pub fn values_command(&self, revision: Revision) -> String {
        helm::words::values_command(self, revision)
    }

    /// The command that rolls a Helm release back to a revision.
    pub fn rollback_command(&self, to: Revision) -> String {
        helm::words::rollback_command(self, to)
    }

    /// How to change the release.
    pub(crate) fn change(&self) -> WaysOut {
        (self.vocabulary().change)(self)
    }

    /// For a user who rewrites a record.
    pub(crate) fn history_stays(&self) -> WaysOut {
        WaysOut::default().note("A record is never rewritten.").and(self.change())
    }

    /// How to bring the release to another revision.
    pub(crate) fn start_anew(&self) -> WaysOut {
        (self.vocabulary().start_anew)(self)
    }

    /// For a user who installs over a release.
    pub(crate) fn upgrade_instead(&self) -> WaysOut {
        (self.vocabulary().upgrade_instead)(self)
    }

    /// For a user who may not roll back.
    pub(crate) fn go_forward(&self) -> WaysOut {
        (self.vocabulary().go_forward)(self)
    }

    /// Where to see the state of the release.
    pub(crate) fn look(&self) -> Step {
        Step { kind: StepKind::Look, ..Step::run("see {}", (self.vocabulary().look)(self)) }
    }

    /// The command that uninstalls the release.
    pub fn remove_command(&self) -> String {
        (self.vocabulary().remove_command)(self)
    }

    /// The operation that supersedes a record in flight.
    pub(crate) fn newer_operation(&self) -> &'static str {
        self.vocabulary().newer_operation
    }

    /// How to restart the operation of a stuck record.
    pub(crate) fn run_again(&self, status: Status, purpose: &str) -> Step {
        Step::of(StepKind::NextOperation, (self.vocabulary().run_again)(status) + purpose)
    }

    /// The phrase for a rollback to an earlier revision.
    pub(crate) fn roll_back(&self) -> &'static str {
        self.vocabulary().roll_back
    }

    /// How to finish an interrupted operation before another version.
    pub(crate) fn finish(&self, chart: &str) -> Step {
        (self.vocabulary().finish)(self, chart)
    }

    /// The command that deletes records.
    pub fn delete_command(&self, objects: &[&str]) -> String {
        let kind = self.storage.kind().to_lowercase();
        let words = ["kubectl", "delete", &kind, "-n", self.namespace];
        command(&words.into_iter().chain(objects.iter().copied()).collect::<Vec<_>>())
    }

    /// The command that removes an annotation from a record.
    pub fn remove_annotation_command(&self, object: &str, annotation: &str) -> String {
        let kind = self.storage.kind().to_lowercase();
        command(&["kubectl", "annotate", &kind, "-n", self.namespace, object, &format!("{annotation}-")])
    }
}

#[cfg(test)]
mod tests {
    use semver::Version;

    use super::*;
    use crate::owners::helm::words::operation;
    use crate::owners::olm::words::pin;

    #[test]
    fn messages_about_olm_use_its_terms() {
        let words = |storage| {
            let words = OwnerWords { storage, namespace: "shop", release: "web" };
            [
                words.name().to_owned(),
                words.history_stays().to_string(),
                words.start_anew().to_string(),
                WaysOut::from(words.look()).to_string(),
                words.remove_command(),
                WaysOut::from(words.run_again(Status::PendingUpgrade, "")).to_string(),
                WaysOut::from(words.finish("web-2.0.0")).to_string(),
            ]
            .join("\n")
            .to_lowercase()
        };
        let of_olm = words(Storage::Index);
        for foreign in ["helm", "uninstall", "history", "rollback", "roll back"] {
            assert!(!of_olm.contains(foreign), "{foreign}: {of_olm}");
        }
        assert!(words(Storage::Secret).contains("helm") && !words(Storage::Secret).contains("olm"));
    }

    #[test]
    fn each_owner_has_its_own_sentences() {
        let words = |storage| {
            let words = OwnerWords { storage, namespace: "shop", release: "web" };
            let sentences = [words.history_stays(), words.start_anew(), words.go_forward(), words.upgrade_instead()];
            let names = [words.name(), words.newer_operation(), words.roll_back()];
            (sentences.map(|ways| ways.to_string()), names.map(str::to_owned))
        };
        let (sentences, names) = words(Storage::Secret);
        assert_eq!(
            sentences,
            [
                "A record is never rewritten. Change the release with `helm upgrade web CHART -n shop`.",
                "To change the release, run `helm upgrade web CHART -n shop`, or run `helm rollback web -n shop`.",
                "Upgrade to a version that fixes the release instead.",
                "Upgrade it with the driver that has its records: `HELM_DRIVER=secret helm upgrade web CHART -n shop`.",
            ]
        );
        assert_eq!(names, ["Helm", "rollback", "roll back"]);
        let (sentences, names) = words(Storage::Index);
        let change = "To change the release, change the source of ClusterExtension web.";
        assert_eq!(sentences, [&format!("A record is never rewritten. {change}"), change, change, change]);
        assert_eq!(names, ["OLM", "newer operation", "start another operation of"]);
    }

    #[test]
    fn operations_have_the_names_that_helm_uses() {
        let called = Status::ALL.map(|status| (status.as_str(), operation(status)));
        let known = called.into_iter().filter(|(_, operation)| *operation != "operation").collect::<Vec<_>>();
        let wanted = [
            ("uninstalling", "uninstall"),
            ("pending-install", "install"),
            ("pending-upgrade", "upgrade"),
            ("pending-rollback", "rollback"),
        ];
        assert_eq!(known, wanted);
    }

    #[test]
    fn a_command_of_helm_can_be_pasted_into_a_shell() {
        let words = |storage, release| OwnerWords { storage, namespace: "shop", release };
        let upgrade = |storage, release| words(storage, release).upgrade_command(None);
        assert_eq!(upgrade(Storage::Secret, "web"), "helm upgrade web CHART -n shop");
        let anew = words(Storage::ConfigMap, "web").start_anew().to_string();
        assert!(anew.ends_with("`HELM_DRIVER=configmap helm rollback web -n shop`."), "{anew}");
        let instead = words(Storage::Secret, "web").upgrade_instead().to_string();
        assert!(instead.ends_with("`HELM_DRIVER=secret helm upgrade web CHART -n shop`."), "{instead}");
        assert_eq!(upgrade(Storage::Secret, "web; reboot"), "helm upgrade 'web; reboot' CHART -n shop");
    }

    #[test]
    fn commands_are_complete() {
        let words = OwnerWords { storage: Storage::Index, namespace: "olm", release: "web" };
        assert_eq!(words.delete_command(&["r.v2"]), "kubectl delete secret -n olm r.v2");
        assert_eq!(words.remove_annotation_command("r.v2", "a/b"), "kubectl annotate secret -n olm r.v2 a/b-");
        let version = Version::parse("2.0.0-rc.1+b").ok();
        let patch = r#"'{"spec":{"source":{"catalog":{"version":"2.0.0-rc.1+b"}}}}'"#;
        let command = format!("kubectl patch clusterextension web --type merge -p {patch}");
        assert_eq!(pin("web", version.as_ref()).command, Some(command));
    }
}

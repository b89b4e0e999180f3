//! What a release's owner calls things, and the commands for it: the one place that knows whether helm or OLM does something.
//!
//! OLM has no command that uninstalls, shows a history or goes back to an earlier revision. What it does next is said in the
//! ClusterExtension, and it tries again by itself.

use semver::Version;
use serde_json::json;

use super::{command, operation, quoted};
use crate::release::{Revision, Status, Storage};

/// The words for one release.
#[derive(Debug, Clone, Copy)]
pub struct OwnerWords<'a> {
    pub storage: Storage,
    /// The namespace of the records.
    pub namespace: &'a str,
    /// The name of the release, which is that of its ClusterExtension.
    pub release: &'a str,
}

impl OwnerWords<'_> {
    /// Whether OLM keeps the records: it has no commands of Helm.
    pub fn is_olm(&self) -> bool {
        self.storage == Storage::OlmIndex
    }

    fn choose<T>(&self, of_helm: T, of_olm: T) -> T {
        if self.is_olm() { of_olm } else { of_helm }
    }

    /// `Helm`, at the start of a sentence or in the middle of it.
    pub(crate) fn name(&self) -> &'static str {
        self.choose("Helm", "OLM")
    }

    /// The program: `helm` or `OLM`.
    pub fn client(&self) -> &'static str {
        self.choose("helm", "OLM")
    }

    /// `helm uninstall web -n shop`, for the driver of the records.
    fn helm_command(&self, subcommand: &str, arguments: &[&str]) -> String {
        let words = ["helm", subcommand, self.release].into_iter().chain(arguments.iter().copied());
        let command = command(&words.chain(["-n", self.namespace]).collect::<Vec<_>>());
        let driver = if self.storage == Storage::ConfigMap { "HELM_DRIVER=configmap " } else { "" };
        format!("{driver}{command}")
    }

    /// The same in backticks, as a sentence has it.
    fn helm(&self, subcommand: &str, arguments: &[&str]) -> String {
        format!("`{}`", self.helm_command(subcommand, arguments))
    }

    /// The command that upgrades a release of helm, to a version of its chart if it must be that one. Records do not say where the
    /// chart is from.
    pub fn upgrade_command(&self, version: Option<&str>) -> String {
        let version = version.map(|version| ["--version", version]);
        let arguments: Vec<_> = ["CHART"].into_iter().chain(version.into_iter().flatten()).collect();
        self.helm_command("upgrade", &arguments)
    }

    /// The command that rolls a release of helm back to a revision.
    pub fn rollback_command(&self, to: Revision) -> String {
        self.helm_command("rollback", &[&to.to_string()])
    }

    /// The command that upgrades a release of helm.
    pub(crate) fn upgrade(&self) -> String {
        self.helm("upgrade", &["CHART"])
    }

    /// The command that rolls a release of helm back.
    pub(crate) fn rollback(&self) -> String {
        self.helm("rollback", &[])
    }

    /// A sentence: how the release is changed.
    pub(crate) fn change(&self) -> String {
        self.choose(format!("Change the release with {}.", self.upgrade()), self.change_extension())
    }

    /// Sentences for somebody who rewrites a record.
    pub(crate) fn history_stays(&self) -> String {
        format!("A record is never rewritten. {}", self.change())
    }

    /// A sentence: how the release gets to another revision.
    pub(crate) fn start_anew(&self) -> String {
        let of_helm = format!("To change the release, run {} or {}.", self.upgrade(), self.rollback());
        self.choose(of_helm, self.change_extension())
    }

    fn change_extension(&self) -> String {
        format!("To change the release, change the source of ClusterExtension {}.", self.release)
    }

    /// A sentence for somebody who installs over a release.
    pub(crate) fn upgrade_instead(&self) -> String {
        let driver = self.storage.kind().to_lowercase();
        let command = command(&["helm", "upgrade", self.release, "CHART", "-n", self.namespace]);
        let command = format!("`HELM_DRIVER={driver} {command}`");
        self.choose(format!("Upgrade it with the driver that has its records: {command}."), self.change_extension())
    }

    /// A sentence: where the state of the release is seen.
    pub(crate) fn look(&self) -> String {
        let of_olm = quoted(&["kubectl", "get", "clusterextension", self.release, "-o", "yaml"]);
        format!("See {}.", self.choose(self.helm("history", &[]), of_olm))
    }

    /// The command that takes the release away, in a sentence.
    pub(crate) fn remove(&self) -> String {
        format!("`{}`", self.remove_command())
    }

    /// The command that takes the release away.
    pub fn remove_command(&self) -> String {
        let of_olm = command(&["kubectl", "delete", "clusterextension", self.release]);
        self.choose(self.helm_command("uninstall", &[]), of_olm)
    }

    /// The operation that supersedes a record in flight. OLM has none.
    pub(crate) fn newer_operation(&self) -> &'static str {
        self.choose("rollback", "newer operation")
    }

    /// What starts the operation of a stuck record again.
    pub(crate) fn run_again(&self, status: Status) -> String {
        self.choose(format!("run the {} again", operation(status)), "let OLM try again".to_owned())
    }

    /// The command that deletes a record, in a sentence.
    pub fn delete_record(&self, object: &str) -> String {
        format!("`{}`", self.delete_command(&[object]))
    }

    /// The command that deletes records.
    pub fn delete_command(&self, objects: &[&str]) -> String {
        let kind = self.storage.kind().to_lowercase();
        let words = ["kubectl", "delete", &kind, "-n", self.namespace];
        command(&words.into_iter().chain(objects.iter().copied()).collect::<Vec<_>>())
    }

    /// The command that removes an annotation from a record, in a sentence.
    pub(crate) fn remove_annotation(&self, object: &str, annotation: &str) -> String {
        format!("`{}`", self.remove_annotation_command(object, annotation))
    }

    /// The command that removes an annotation from a record.
    pub fn remove_annotation_command(&self, object: &str, annotation: &str) -> String {
        let kind = self.storage.kind().to_lowercase();
        command(&["kubectl", "annotate", &kind, "-n", self.namespace, object, &format!("{annotation}-")])
    }

    /// A sentence for somebody who may not go back.
    pub(crate) fn go_forward(&self) -> String {
        let of_helm = "Upgrade to a version that fixes the release instead.".to_owned();
        self.choose(of_helm, self.change_extension())
    }

    /// Goes back to an earlier revision. OLM has no such operation.
    pub(crate) fn roll_back(&self) -> &'static str {
        self.choose("roll back", "start another operation of")
    }

    /// The other way to finish an operation, as the end of a clause.
    pub(crate) fn or_roll_back(&self) -> &'static str {
        self.choose(" or roll back", "")
    }

    /// What finishes an interrupted operation before another version: of OLM a pin of that version.
    pub(crate) fn finish(&self, chart: &str, version: Option<&Version>) -> String {
        self.choose(format!("Upgrade to {chart} again"), format!("Pin it: {}", pin(self.release, version)))
    }
}

/// The command that pins a ClusterExtension to a version, in a sentence; what to pin, if the version is not known.
pub(crate) fn pin(extension: &str, version: Option<&Version>) -> String {
    version.map_or_else(
        || "set spec.source.catalog.version of the ClusterExtension to the version that is pending".to_owned(),
        |version| format!("`{}`", pin_command(extension, version)),
    )
}

/// The command that pins a ClusterExtension to a version.
pub fn pin_command(extension: &str, version: &Version) -> String {
    let patch = json!({"spec": {"source": {"catalog": {"version": version.to_string()}}}});
    command(&["kubectl", "patch", "clusterextension", extension, "--type", "merge", "-p", &patch.to_string()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn olm_is_spoken_of_in_its_own_words() {
        let words = |storage| {
            let words = OwnerWords { storage, namespace: "shop", release: "web" };
            let version = Version::parse("2.0.0").ok();
            [
                words.name().to_owned(),
                words.history_stays(),
                words.change(),
                words.start_anew(),
                words.look(),
                words.remove(),
                words.run_again(Status::PendingUpgrade),
                words.finish("web-2.0.0", version.as_ref()),
            ]
            .join("\n")
            .to_lowercase()
        };
        let of_olm = words(Storage::OlmIndex);
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
            let names = [words.name(), words.newer_operation(), words.roll_back(), words.or_roll_back()];
            (sentences, names.map(str::to_owned))
        };
        let (sentences, names) = words(Storage::Secret);
        assert_eq!(
            sentences,
            [
                "A record is never rewritten. Change the release with `helm upgrade web CHART -n shop`.",
                "To change the release, run `helm upgrade web CHART -n shop` or `helm rollback web -n shop`.",
                "Upgrade to a version that fixes the release instead.",
                "Upgrade it with the driver that has its records: `HELM_DRIVER=secret helm upgrade web CHART -n shop`.",
            ]
        );
        assert_eq!(names, ["Helm", "rollback", "roll back", " or roll back"]);
        let (sentences, names) = words(Storage::OlmIndex);
        let change = "To change the release, change the source of ClusterExtension web.";
        assert_eq!(sentences, [&format!("A record is never rewritten. {change}"), change, change, change]);
        assert_eq!(names, ["OLM", "newer operation", "start another operation of", ""]);
    }

    #[test]
    fn an_operation_is_called_as_helm_calls_it() {
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
        assert_eq!(words(Storage::Secret, "web").upgrade(), "`helm upgrade web CHART -n shop`");
        assert_eq!(words(Storage::ConfigMap, "web").rollback(), "`HELM_DRIVER=configmap helm rollback web -n shop`");
        let instead = words(Storage::Secret, "web").upgrade_instead();
        assert!(instead.ends_with("`HELM_DRIVER=secret helm upgrade web CHART -n shop`."), "{instead}");
        assert_eq!(words(Storage::Secret, "web; reboot").upgrade(), "`helm upgrade 'web; reboot' CHART -n shop`");
    }

    #[test]
    fn commands_are_complete() {
        let words = OwnerWords { storage: Storage::OlmIndex, namespace: "olm", release: "web" };
        assert_eq!(words.delete_record("r.v2"), "`kubectl delete secret -n olm r.v2`");
        assert_eq!(words.remove_annotation("r.v2", "a/b"), "`kubectl annotate secret -n olm r.v2 a/b-`");
        let version = Version::parse("2.0.0-rc.1+b").ok();
        let patch = r#"'{"spec":{"source":{"catalog":{"version":"2.0.0-rc.1+b"}}}}'"#;
        let command = format!("`kubectl patch clusterextension web --type merge -p {patch}`");
        assert_eq!(pin("web", version.as_ref()), command);
    }
}

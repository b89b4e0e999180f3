//! Containers from an unpacked image: confined to its root, which is read-only, and under the pod's user. There is nothing else:
//! no `/proc`, `/sys`, `/dev`, and no `/etc` apart from mounts. A cluster gives a container more.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;

/// Confines the rest of its arguments to a root: ROOT USER PROGRAM ARGUMENTS. The process id stays the same.
const CONFINED: &str = r#"root=$1 user=$2; shift 2
chroot=$(command -v chroot)
mount --bind "$root" "$root" && mount -o remount,bind,ro "$root" || exit 125
unset PATH
exec "$chroot" --userspec="$user" --groups= "$root" "$@""#;

/// An image, unpacked by `umoci` into a bundle.
#[derive(Debug, Clone)]
pub(crate) struct Image {
    root: PathBuf,
    pub(crate) program: String,
    pub(crate) user: String,
}

impl Image {
    /// `config.json` of a bundle says what the configuration of the image means.
    #[track_caller]
    pub(crate) fn unpacked(bundle: &Path) -> Self {
        let text = fs::read_to_string(bundle.join("config.json")).expect("a bundle has a configuration");
        let config: Value = serde_json::from_str(&text).expect("JSON");
        let process = &config["process"];
        let program = process["args"][0].as_str().expect("the image has an entry point").to_owned();
        let user = format!("{}:{}", process["user"]["uid"], process["user"]["gid"]);
        Self { root: bundle.join("rootfs"), program, user }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Puts the files of the image into a new root for one pod. Mounts are directories in it.
    pub(super) fn install(&self, root: &Path) -> Result<(), String> {
        if root.join(self.program.trim_start_matches('/')).exists() {
            return Ok(());
        }
        let copied = Command::new("cp").arg("-al").arg(self.root.join(".")).arg(root).output();
        match copied.map_err(|e| format!("cannot run cp: {e}"))? {
            output if output.status.success() => Ok(()),
            output => Err(format!("cannot copy the image: {}", String::from_utf8_lossy(&output.stderr))),
        }
    }

    /// The start of a command that runs the image's program in this root.
    pub(super) fn confined(&self, root: &Path, pod: &Pod) -> Vec<String> {
        let context = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
        let specified = context.and_then(|context| Some((context.run_as_user?, context.run_as_group?)));
        let user = specified.map_or_else(|| self.user.clone(), |(user, group)| format!("{user}:{group}"));
        // Only root may mount and change its user; others may in a namespace of their own, with subordinate users.
        let rights: &[&str] =
            if rustix::process::geteuid().is_root() { &[] } else { &["--user", "--map-root-user", "--map-auto"] };
        let mut words = vec!["unshare", "--mount"];
        words.extend(rights);
        words.extend(["sh", "-c", CONFINED, "confined"]);
        let mut words: Vec<_> = words.into_iter().map(str::to_owned).collect();
        words.extend([root.display().to_string(), user, self.program.clone()]);
        words
    }
}

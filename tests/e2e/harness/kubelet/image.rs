//! Containers from an unpacked image: confined to its root, which is read-only, and under the pod's user. There is nothing else:
//! no `/proc`, `/sys`, `/dev`, and no `/etc` apart from mounts. A cluster gives a container more.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;

use crate::harness::assets::image_reader;
use crate::harness::process::{Output, run};

/// The tools read and write files.
const TOOL: Duration = Duration::from_secs(60);

/// An unpacked image.
#[derive(Debug, Clone)]
pub(crate) struct Image {
    root: PathBuf,
    pub(crate) program: String,
    pub(crate) user: String,
    /// The program that confines another one.
    confine: PathBuf,
}

/// `images inspect`: the digest and the configuration of the image of a name in a layout, if it is valid.
#[track_caller]
pub(crate) fn inspect(layout: &Path, name: &str) -> Output {
    let mut reader = Command::new(image_reader());
    reader.arg("inspect").arg(layout).arg(name);
    run(reader, TOOL)
}

impl Image {
    /// The image of a name in a layout, unpacked into a directory.
    #[track_caller]
    pub(crate) fn unpacked(layout: &Path, name: &str, dir: &Path) -> Self {
        let settings = inspect(layout, name).expect_success().json()["configuration"]["config"].take();
        let text = |value: &Value| value.as_str().expect("a program and a user").to_owned();
        let (program, user) = (text(&settings["Entrypoint"][0]), text(&settings["User"]));
        let (root, confine) = (dir.join("root"), dir.join("confined"));
        let mut reader = Command::new(image_reader());
        reader.arg("unpack").arg(layout).arg(name).arg(&root);
        run(reader, TOOL).expect_success();
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/harness/kubelet/confined.c");
        let mut cc = Command::new("cc");
        cc.args(["-O2", "-o"]).arg(&confine).arg(source);
        run(cc, TOOL).expect_success();
        Self { root, program, user, confine }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Runs the program with nothing but the image.
    #[track_caller]
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let words = self.confined_as(&self.root, &self.user);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(arguments).env_clear();
        run(command, TOOL)
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
        self.confined_as(root, &user)
    }

    fn confined_as(&self, root: &Path, user: &str) -> Vec<String> {
        let (user, group) = user.split_once(':').unwrap_or((user, user));
        let [confine, root] = [&self.confine, root].map(|path| path.display().to_string());
        vec![confine, root, user.to_owned(), group.to_owned(), self.program.clone()]
    }
}

//! The commands of the documentation, executed as they are printed, page by page in the order of the book.
//!
//! Every block of commands says what becomes of it: ```` ```sh run ```` and ```` ```console run ```` are executed here, each command of a
//! ```` ```sh fails ```` block must fail, and `needs: ...` names what a test does not have. In `console` blocks, only lines after `$ ` are
//! commands; the others show what is printed.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::harness::assets;
use crate::harness::clients::{Identity, client_environment};
use crate::harness::plane::Plane;
use crate::harness::process::{Output, run};

const DEADLINE: Duration = Duration::from_secs(120);

/// The shipped policy, for which an operation counts as stuck as soon as with the real one.
const POLICY: &str = "apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\n";

/// What becomes of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Run,
    Fails,
    /// Something that a test does not have.
    Needs,
}

/// A block of commands of a page.
struct Block {
    mark: Mark,
    commands: Vec<String>,
}

/// The blocks of a page. Panics if one has no mark.
#[track_caller]
fn blocks(page: &str, text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```").filter(|info| !info.is_empty()) else { continue };
        let content: Vec<_> = lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
        let (language, mark) = info.split_once(' ').unwrap_or((info, ""));
        if !["sh", "console"].contains(&language) {
            continue;
        }
        let mark = match mark {
            "run" => Mark::Run,
            "fails" => Mark::Fails,
            needs if needs.starts_with("needs: ") => Mark::Needs,
            other => panic!("{page}: a block is marked {other:?}, not `run`, `fails` or `needs: ...`: {content:#?}"),
        };
        blocks.push(Block { mark, commands: commands(language == "console", &content) });
    }
    blocks
}

/// The commands of a block: a line each, with its continuations.
fn commands(is_console: bool, content: &[&str]) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut continues = false;
    for line in content {
        let (starts, text) = match line.strip_prefix("$ ") {
            Some(command) if is_console => (true, command),
            _ => (!is_console, *line),
        };
        match commands.last_mut() {
            Some(last) if continues => *last += &format!("\n{text}"),
            _ if starts && !text.trim().is_empty() && !text.starts_with('#') => commands.push(text.to_owned()),
            _ => continue,
        }
        continues = text.trim_end().ends_with(['\\', '|']);
    }
    commands
}

/// The reader: a plane with the webhook, and a directory with what the pages presuppose.
struct Reader<'p> {
    plane: &'p Plane,
    who: Identity,
    directory: tempfile::TempDir,
}

impl<'p> Reader<'p> {
    fn new(plane: &'p Plane) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
        for link in ["manifests", "packaging"] {
            std::os::unix::fs::symlink(repository.join(link), at(link)).unwrap();
        }
        fs::create_dir_all(at("bin")).unwrap();
        let programs = assets::prepared().unwrap();
        let interlock = assets::interlock().unwrap();
        for (name, program) in [("interlock", &interlock), ("helm", &programs.helm4), ("kubectl", &programs.kubectl)] {
            std::os::unix::fs::symlink(program, at("bin").join(name)).unwrap();
        }
        let who = named_context(plane, &at("kubeconfig"));
        Self { plane, who, directory }
    }

    /// Runs one command line in the directory.
    fn run(&self, line: &str) -> Output {
        let mut bash = Command::new("bash");
        client_environment(&mut bash, &self.who, self.directory.path());
        let path = std::env::var("PATH").unwrap_or_default();
        bash.current_dir(&self.directory).args(["-o", "pipefail", "-c", line]);
        bash.env("PATH", format!("{}:{path}", self.directory.path().join("bin").display()));
        run(bash, DEADLINE)
    }

    /// Makes the logs of the cluster available under the names that pages use.
    fn take_logs(&self) {
        let audit = fs::read(self.plane.audit_log()).unwrap();
        let log = fs::read(self.plane.webhook().log_file()).unwrap();
        let at = |name: &str| self.directory.path().join(name);
        fs::write(at("audit.log"), &audit).unwrap();
        fs::write(at("interlock-0.log"), log).unwrap();
        for name in ["audit.log.gz", "this-week.log.gz"] {
            let mut gzip = GzEncoder::new(fs::File::create(at(name)).unwrap(), Compression::fast());
            gzip.write_all(&audit).unwrap();
            gzip.finish().unwrap();
        }
    }

    /// What a page presupposes, beside the release shop/web of the quick start.
    #[track_caller]
    fn prepare(&self, page: &str) {
        let lines: &[&str] = match page {
            // The quick start has removed it.
            "rollout.md" => &["kubectl label namespace shop controlplane/pods-", "helm install web ./web -n shop"],
            "adopt.md" => &["rm -r policies"],
            "replay.md" => &["mkdir policies/stricter", "cp policies/cluster.yaml policies/stricter"],
            "on-call.md" => &[
                "helm create demo",
                "helm install demo ./demo -n shop",
                "kubectl label namespace shop --overwrite controlplane/pods=hang",
                "timeout -s KILL 15 helm upgrade demo ./demo -n shop --set image.tag=missing --wait || true",
            ],
            _ => &[],
        };
        for line in lines {
            self.run(line).expect_success();
        }
        if page == "pipelines.md" {
            let chart = self.directory.path().join("web/Chart.yaml");
            let text = fs::read_to_string(&chart).unwrap().replace("version: 0.1.0", "version: 1.3.0");
            fs::write(chart, text).unwrap();
        }
        self.take_logs();
    }

    /// From now on, new pods in namespace shop do not become ready.
    #[track_caller]
    fn hang_pods(&self) {
        self.run("kubectl label namespace shop --overwrite controlplane/pods=hang").expect_success();
    }

    #[track_caller]
    fn follow(&self, page: &str, block: &Block) {
        for command in &block.commands {
            // No node pulls images here.
            if command.contains("image.tag=missing") {
                self.hang_pods();
            }
            let output = self.run(command);
            let code = output.status.code();
            // `interlock` and `helm` exit with 1 for findings and for refusals, `interlock` with 2 for what went wrong.
            let finds = command.trim_start().starts_with("interlock") && code == Some(1);
            match block.mark {
                Mark::Run => assert!(code == Some(0) || finds, "{page}: expected success\n{output}"),
                Mark::Fails => assert!(code.is_some_and(|code| code != 0), "{page}: expected a failure\n{output}"),
                Mark::Needs => {}
            }
        }
    }
}

/// A kubeconfig of alice whose context is called `prod`, as on the pages.
fn named_context(plane: &Plane, file: &Path) -> Identity {
    let mut content: Value = serde_json::from_slice(&fs::read(plane.person("alice").kubeconfig()).unwrap()).unwrap();
    content["contexts"][0]["name"] = "prod".into();
    content["contexts"][0]["context"]["namespace"] = json!("shop");
    content["current-context"] = "prod".into();
    fs::write(file, content.to_string()).unwrap();
    Identity::new("alice", file)
}

/// The pages in the order of the book.
fn chapters() -> Vec<String> {
    let summary = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/SUMMARY.md")).unwrap();
    let links = summary.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    links.map(|(page, _)| page.to_owned()).collect()
}

#[test]
fn the_commands_of_the_book_do_what_they_say() {
    let plane = Plane::audited(POLICY);
    plane.define("manifests/base/releaseoverrides.yaml");
    plane.define("manifests/base/freezes.yaml");
    plane.define("tests/e2e/harness/crds/reports.yaml");
    let reader = Reader::new(&plane);
    let mut executed = 0;
    for page in chapters() {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(&page)).unwrap();
        let blocks = blocks(&page, &text);
        if blocks.iter().any(|block| block.mark != Mark::Needs) {
            reader.prepare(&page);
        }
        for block in blocks.iter().filter(|block| block.mark != Mark::Needs) {
            reader.follow(&page, block);
            executed += block.commands.len();
        }
    }
    assert!(executed > 30, "{executed} commands");
}

#[test]
fn commands_are_lines_with_their_continuations_and_output_is_none() {
    let shown = commands(true, &["$ helm install \\", "    web", "NAME: web", "$ interlock scan"]);
    assert_eq!(shown, ["helm install \\\n    web", "interlock scan"]);
    assert_eq!(commands(false, &["# why", "a |", "  b", "", "c"]), ["a |\n  b", "c"]);
    assert!(std::panic::catch_unwind(|| blocks("page", "```sh\nls\n```\n")).is_err());
    assert_eq!(blocks("page", "```sh fails\nls\n```\n```yaml\na: b\n```\n")[0].mark, Mark::Fails);
}

//! The command line: completions and manual pages name every subcommand, and the plugin's name works.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::process::{Command, Output};

use crate::harness::binary::{interlock, interlock_in, repository};

/// Set to write the page in place of comparing it.
const WRITE: &str = "INTERLOCK_WRITE_DOCS";

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The subcommands in the output of `--help`.
fn subcommands() -> Vec<String> {
    let help = text(&interlock(&["--help"]));
    let (_, listed) = help.split_once("Commands:\n").unwrap();
    let names = listed
        .lines()
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<_> =
        names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").collect();
    assert!(names.contains(&"doctor") && names.len() > 10, "{help}");
    names.into_iter().map(str::to_owned).collect()
}

#[test]
fn completions_and_manual_pages_know_every_subcommand() {
    let names = subcommands();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = text(&interlock(&["completions", shell]));
        for name in &names {
            assert!(script.contains(name.as_str()), "{shell} does not complete {name}");
        }
    }
    let pages = tempfile::tempdir().unwrap();
    text(&interlock(&["man", pages.path().to_str().unwrap()]));
    let first = text(&interlock(&["man"]));
    assert!(first.contains(".TH interlock 1"), "{first}");
    for name in &names {
        assert!(first.replace('\\', "").contains(&format!("interlock-{name}")), "{name}: {first}");
        let page = fs::read_to_string(pages.path().join(format!("interlock-{name}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS"), "{page}");
    }
}

/// People write the page. A command that it lacks gets a row from its help.
#[test]
fn the_page_of_the_command_line_has_every_command() {
    const PAGE: &str = "docs/command-line.md";
    let page = fs::read_to_string(repository(PAGE)).unwrap();
    let mut lines: Vec<_> = page.lines().map(str::to_owned).collect();
    for name in subcommands() {
        let told = [format!("`interlock {name}"), format!("`{name} ")];
        let is_row = |line: &String| line.starts_with("| `interlock ");
        if lines.iter().any(|line| is_row(line) && told.iter().any(|told| line.contains(told))) {
            continue;
        }
        let help = text(&interlock(&[&name, "--help"]));
        let about = help.lines().take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
        let last = lines.iter().rposition(is_row).unwrap();
        lines.insert(last + 1, format!("| `interlock {name}` | {about}. | |"));
    }
    let made = lines.join("\n") + "\n";
    if std::env::var_os(WRITE).is_some() {
        fs::write(repository(PAGE), &made).unwrap();
    } else {
        assert!(made == page, "{PAGE} lacks a command; {WRITE}=1 cargo test --test it command_line adds it");
    }
}

#[test]
fn a_link_makes_a_plugin_of_the_binary() {
    let links = tempfile::tempdir().unwrap();
    let link = |name: &str| {
        let link = links.path().join(name);
        symlink(env!("CARGO_BIN_EXE_interlock"), &link).unwrap();
        move |args: &[&str]| Command::new(&link).args(args).output().unwrap()
    };
    let plugin = link("kubectl-interlock");
    assert!(text(&plugin(&["--help"])).contains("Usage: kubectl interlock <COMMAND>"));
    assert!(text(&plugin(&["doctor", "--help"])).contains("Usage: kubectl interlock doctor"));
    let wrong = plugin(&["doctr"]);
    let printed = String::from_utf8(wrong.stderr).unwrap();
    assert!(
        wrong.status.code() == Some(2) && printed.contains("'doctor'") && printed.contains("kubectl interlock"),
        "{printed}"
    );
    assert_eq!(text(&link("kubectl_complete-interlock")(&["doc"])), "doctor\n");
}

/// What the page of the command line says about exit codes, for the commands that need no cluster: 0 for nothing found, 1 for a
/// finding, 2 for a command that could not do its work.
#[test]
fn commands_without_a_cluster_never_succeed_with_nothing_done() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
    };
    let header = "apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\n";
    write("fine/cluster.yaml", header);
    write("odd/cluster.yaml", &format!("{header}rules: {{manual-edit: {{cases: [{{when: {{}}, mode: audit}}]}}}}\n"));
    write(
        "never/cluster.yaml",
        &format!("{header}rules: {{manual-edit: {{cases: [{{when: {{users: []}}, mode: audit}}]}}}}\n"),
    );
    write("empty.jsonl", "");
    write("mark.jsonl", "{\"mark\": \"x\"}\n");
    write("suites/empty/readme.txt", "");
    write("suites/none.test.yaml", "apiVersion: interlock.dev/v1alpha1\nkind: PolicySuite\ncases: []\n");
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    for (arguments, code) in [
        (&["policy", "check", "fine"][..], 0),
        (&["policy", "check", "--strict", "fine"], 0),
        (&["policy", "check", "odd"], 0),
        (&["policy", "check", "--strict", "odd"], 1),
        (&["policy", "check", "never"], 1),
        (&["policy", "check", "nowhere"], 2),
        (&["replay", "empty.jsonl"], 2),
        (&["replay", "mark.jsonl"], 2),
        (&["replay", "-o", "json", "mark.jsonl", "empty.jsonl"], 2),
        (&["replay", "fine"], 2),
        (&["test", "suites/empty"], 2),
        (&["test", "suites/none.test.yaml"], 2),
        (&["review", "empty.jsonl"], 2),
    ] {
        let (last, first) = arguments.split_last().unwrap();
        let mut all: Vec<_> =
            first.iter().map(|word| if word.ends_with(".jsonl") { path(word) } else { (*word).to_owned() }).collect();
        all.push(path(last));
        let output = interlock(&all.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(code), "{arguments:?} {output:?}");
        assert!(code != 2 || !output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_wait_says_what_its_exit_codes_mean_and_needs_a_cluster_and_a_condition() {
    let help = text(&interlock(&["wait", "--help"])).split_whitespace().collect::<Vec<_>>().join(" ");
    for wanted in [
        "wait [OPTIONS] <RELEASE>",
        "--until <free|deployed|VERSION|open>",
        "with 3 after the timeout, and with 4 if a freeze lasts longer",
        "[default: free]",
        "[default: 5m]",
    ] {
        assert!(help.contains(wanted), "expected {wanted:?} in {help}");
    }
    let dir = tempfile::tempdir().unwrap();
    let nowhere = dir.path().join("kubeconfig");
    let away = dir.path().join("away");
    let cluster = "{name: away, cluster: {server: 'http://127.0.0.1:1'}}";
    let context = "{name: away, context: {cluster: away, user: nobody}}";
    let kubeconfig = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: away\nclusters: [{cluster}]\ncontexts: [{context}]\nusers: [{{name: nobody, user: {{}}}}]\n"
    );
    fs::write(&away, kubeconfig).unwrap();
    let [nowhere, away] = [nowhere, away].map(|path| path.to_str().unwrap().to_owned());
    for (arguments, wanted) in [
        (&["wait", "web"][..], "no cluster found"),
        (&["wait", "shop/web", "--until", "ready"], "\"ready\" is not free, deployed, open, or the version of a chart"),
        (&["wait", "shop/web", "--timeout", "soon"], "\"soon\" is not a duration"),
        (&["wait", "shop/web", "--kubeconfig", &nowhere], "failed to read the kubeconfig"),
        (&["wait", "shop/web", "--kubeconfig", &away], "failed to reach the API server"),
        (&["wait", "shop/web", "--kubeconfig", &away, "-o", "json"], "failed to reach the API server"),
    ] {
        let output = interlock(arguments);
        let printed = String::from_utf8(output.stderr).unwrap();
        assert!(
            output.status.code() == Some(2) && printed.contains(wanted) && output.stdout.is_empty(),
            "{arguments:?} {printed}"
        );
    }
}

/// On the host network of a node, another program may have the port.
#[test]
fn a_port_in_use_is_an_error_that_names_the_port_and_the_way_out() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let directory = tempfile::tempdir().unwrap();
    for (port, listen, admin) in [("admission", address.as_str(), "127.0.0.1:0"), ("admin", "127.0.0.1:0", &address)] {
        let mut serve = Command::new(env!("CARGO_BIN_EXE_interlock"));
        serve
            .args(["serve", "--listen", listen, "--admin-listen", admin, "--certs"])
            .arg(directory.path().join("certs"));
        let output = serve.current_dir(directory.path()).output().unwrap();
        let said = format!(
            "failed to listen on {address} for the {port} port: choose another address, or stop the program that uses it"
        );
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && error.contains(&said), "{error}");
    }
}

/// A width in the environment is not that of a terminal, so what a program reads does not depend on it.
#[test]
fn a_table_for_a_program_does_not_depend_on_the_width_in_the_environment() {
    let listed = |columns: Option<&str>| {
        let mut command = interlock_in("");
        command.arg("explain").env_remove("COLUMNS");
        text(&command.envs(columns.map(|columns| ("COLUMNS", columns))).output().unwrap())
    };
    let without = listed(None);
    assert!(without.contains("manual-edit") && without.contains("pending-recovery"), "{without}");
    for columns in ["0", "40"] {
        assert_eq!(listed(Some(columns)), without, "COLUMNS={columns}");
    }
}

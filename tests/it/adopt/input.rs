//! Input that cannot be read: the message names it, and the way out.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use crate::harness::binary::{interlock, interlock_in, stderr, stdout};
use crate::harness::fixtures::gzip;

use super::log::{Log, WEB};

const AWAY: &str = "{apiVersion: v1, kind: Config, current-context: away, users: [{name: nobody, user: {}}], clusters: [{name: away, \
                    cluster: {server: 'http://127.0.0.1:1'}}], contexts: [{name: away, context: {cluster: away, user: nobody}}]}";

/// Runs `adopt` on a file with this content, and returns its exit code and its messages.
fn refused(name: &str, content: &[u8], arguments: &[&str]) -> (i32, String) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(name);
    fs::write(&file, content).unwrap();
    let mut all = vec!["adopt", file.to_str().unwrap()];
    all.extend(arguments);
    let output = interlock(&all);
    assert!(output.stdout.is_empty(), "{}", stdout(&output));
    (output.status.code().unwrap(), stderr(&output).to_owned())
}

#[test]
fn bad_input_is_named_with_the_way_out() {
    let line = Log::new().upgrade("alice", WEB, 2).text();
    let cut = &line.as_bytes()[..line.len() - 40];
    let bomb = gzip(&vec![b'{'; 200 << 20]);
    for (name, content, wanted) in [
        ("empty.log", &b""[..], &["nothing"][..]),
        ("notes.txt", b"hello\n", &["notes.txt", "line 1"]),
        ("cut.log", cut, &["cut.log", "line "]),
        ("bomb.log.gz", &bomb, &["bomb.log.gz", "line 1"]),
    ] {
        let (code, message) = refused(name, content, &[]);
        let message_lower = message.to_lowercase();
        assert!(code == 2 && wanted.iter().all(|part| message_lower.contains(part)), "{name}: {code} {message}");
    }
}

#[test]
fn a_file_that_is_missing_and_a_cluster_that_does_not_answer_are_named() {
    let missing = interlock(&["adopt", "/nowhere/audit.log"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(stderr(&missing).contains("/nowhere/audit.log"), "{}", stderr(&missing));
    let dir = tempfile::tempdir().unwrap();
    let away = dir.path().join("kubeconfig");
    fs::write(&away, AWAY).unwrap();
    let log = Log::new().upgrade("alice", WEB, 2).text();
    let (code, message) = refused("audit.log", log.as_bytes(), &["--kubeconfig", away.to_str().unwrap()]);
    assert!(code == 2 && message.contains("http://127.0.0.1:1"), "{code} {message}");
}

#[test]
fn a_log_comes_from_a_pipe_and_a_policy_is_not_replaced_unasked() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("audit.log");
    fs::write(&file, Log::new().upgrade("alice", WEB, 2).text()).unwrap();
    let piped =
        interlock_in("").args(["adopt", "-"]).stdin(Stdio::from(fs::File::open(&file).unwrap())).output().unwrap();
    assert!(piped.status.success() && stdout(&piped).contains("alice"), "{}", stderr(&piped));
    let policies: PathBuf = dir.path().join("policies");
    fs::create_dir(&policies).unwrap();
    let own = policies.join("cluster.yaml");
    fs::write(&own, "apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\n").unwrap();
    let before = fs::read_to_string(&own).unwrap();
    let output = interlock(&["adopt", file.to_str().unwrap(), "--write", policies.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--policies"), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(&own).unwrap(), before);
}

//! Policy files for people: error texts, the schema for editors, and `explain`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::OnceLock;

use interlock_engine::policy_files::{schema, settings_of};
use interlock_engine::rules;
use serde_json::{Value, json};

use crate::harness::binary::{interlock_in, repository};

/// Set to rewrite the expected texts.
const WRITE: &str = "INTERLOCK_WRITE_EXPECTED";

/// Runs in `tests/policies`, so that the output has no paths of this machine.
fn interlock(args: &[&str]) -> Output {
    interlock_in("tests/policies").env("NO_COLOR", "1").args(args).output().unwrap()
}

/// Standard output, standard error and exit code.
fn transcript(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    format!("{}{}exit {}\n", text(&output.stdout), text(&output.stderr), output.status.code().unwrap())
}

fn expect(name: &str, output: &Output) {
    let file = repository("tests/policies/expected").join(name);
    let got = transcript(output);
    if std::env::var_os(WRITE).is_some() {
        fs::write(&file, &got).unwrap();
    }
    let expected = fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(got, expected, "{name} differs; {WRITE}=1 writes what is printed now");
}

#[test]
fn every_error_is_reported_at_once_with_its_excerpt() {
    for case in ["good", "typing-errors", "loosening", "not-yaml", "nowhere"] {
        expect(&format!("check-{case}.txt"), &interlock(&["policy", "check", case]));
    }
}

#[test]
fn conditions_that_never_hold_are_errors_and_those_that_always_hold_are_warnings() {
    expect("check-never.txt", &interlock(&["policy", "check", "never"]));
    expect("check-doubtful.txt", &interlock(&["policy", "check", "doubtful"]));
    expect("check-doubtful-strict.txt", &interlock(&["policy", "check", "doubtful", "--strict", "-o", "json"]));
    let strict = interlock(&["policy", "check", "good", "--strict"]);
    assert_eq!(strict.status.code(), Some(0), "{}", transcript(&strict));
    let help = transcript(&interlock(&["policy", "check", "--help"]));
    assert!(help.contains("Exits with 1 on errors") && help.contains("Exit with 1 on warnings too"), "{help}");
}

#[test]
fn a_server_starts_with_doubtful_settings_and_not_with_a_condition_that_never_holds() {
    let serve = |case: &str| {
        let address = "127.0.0.1:not-a-port";
        transcript(&interlock(&["serve", "--policies", case, "--listen", "127.0.0.1:0", "--admin-listen", address]))
    };
    let never =
        interlock(&["serve", "--policies", "never", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
    let text = transcript(&never);
    assert!(text.contains("did you mean `ci:deployer`?") && text.ends_with("exit 2\n"), "{text}");
    assert!(serve("doubtful").contains("not-a-port"));
}

/// A directory of policies with these bytes as its cluster policy.
fn directory(cluster: &[u8]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("namespaces")).unwrap();
    fs::write(dir.path().join("cluster.yaml"), cluster).unwrap();
    dir
}

#[test]
fn a_file_that_is_no_text_of_a_policy_says_what_it_is() {
    let header = b"apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\n";
    let check = |dir: &tempfile::TempDir| transcript(&interlock(&["policy", "check", dir.path().to_str().unwrap()]));
    let (full, byte) = (vec![b'#'; (1 << 20) - header.len()], [0xe9]);
    let full = directory(&[&header[..], &full].concat());
    let printed = check(&full);
    assert!(printed.contains("cluster.yaml is valid\n") && printed.ends_with("exit 0\n"), "{printed}");
    let large = directory(&[&header[..], &[b'#'; 1 << 20]].concat());
    let printed = check(&large);
    assert!(
        printed.contains("it has 1048631 bytes, more than the 1 MiB") && printed.ends_with("exit 2\n"),
        "{printed}"
    );
    let latin = directory(&[&header[..], b"# caf", &byte].concat());
    let printed = check(&latin);
    assert!(printed.contains("it is not UTF-8: byte 60 of the file, in line 3, is 0xe9"), "{printed}");
    assert!(check(&directory(&[b"\xef\xbb\xbf", &header[..]].concat())).ends_with("exit 0\n"));
    // The server says the same.
    let served = interlock(&["serve", "--policies", latin.path().to_str().unwrap(), "--listen", "127.0.0.1:0"]);
    assert!(transcript(&served).contains("it is not UTF-8: byte 60") && served.status.code() == Some(2));
    let namespaces = |dir: &tempfile::TempDir| dir.path().join("namespaces");
    let odd = directory(header);
    fs::create_dir(namespaces(&odd).join("bar.yaml")).unwrap();
    std::os::unix::fs::symlink("nowhere", namespaces(&odd).join("foo.yaml")).unwrap();
    fs::write(namespaces(&odd).join("sh\u{43e}p.yaml"), header).unwrap();
    let printed = check(&odd);
    for wanted in [
        "it is a directory, not a regular file",
        "it is a link to nowhere, which does not exist",
        "it has the Cyrillic letter U+043E, which looks like `o`",
    ] {
        assert!(printed.contains(wanted) && printed.ends_with("exit 2\n"), "{printed}");
    }
}

#[test]
fn the_same_errors_are_available_as_json() {
    let output = interlock(&["policy", "check", "loosening", "-o", "json"]);
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let files = printed["files"].as_array().unwrap();
    let good: Vec<_> =
        files.iter().map(|file| (file["file"].as_str().unwrap(), file["good"].as_bool().unwrap())).collect();
    let namespace = |name: &str| format!("loosening/namespaces/{name}.yaml");
    let wanted = [("loosening/cluster.yaml", true), (&namespace("bar"), true), (&namespace("shop"), false)];
    assert_eq!(good, wanted);
    let first = &files[2]["problems"][0];
    assert_eq!((&first["line"], &first["column"]), (&json!(3), &json!(1)));
    assert_eq!((&first["text"], &first["marked"]), (&json!("managers: ['*']"), &json!("managers")));
    assert!(
        printed["changed"].as_array().unwrap().iter().any(|it| it["path"] == "managers" && it["before"] == "none"),
        "{printed}"
    );
    assert_eq!(output.status.code(), Some(1));
}

/// The examples of the last release, and its shipped policy as a whole, with what they made of each recording.
const BEFORE: &str = "tests/policies/before";

/// The rules that were broken in a recording, each with the number of lines and the sum of their numbers.
type Findings = BTreeMap<String, (usize, usize)>;

fn findings(policies: &Path, recording: &str) -> Findings {
    let recording = repository(&format!("tests/recordings/{recording}.jsonl.gz"));
    let args = [
        "replay",
        "--as-recorded",
        "-o",
        "json",
        "--policies",
        policies.to_str().unwrap(),
        recording.to_str().unwrap(),
    ];
    let output = interlock(&args);
    let mut found = Findings::new();
    for line in output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let line: Value = serde_json::from_slice(line).unwrap();
        let broken = line["violations"].as_array().unwrap().iter().map(|violation| {
            let undecided = if violation["undecided"] == true { " undecided" } else { "" };
            format!("{} {}{undecided}", violation["rule"].as_str().unwrap(), violation["mode"].as_str().unwrap())
        });
        let denied = (line["allowed"] == false).then(|| "denied".to_owned());
        for key in broken.chain(denied).collect::<BTreeSet<_>>() {
            let (count, sum) = found.entry(key).or_default();
            (*count, *sum) = (*count + 1, *sum + usize::try_from(line["line"].as_u64().unwrap()).unwrap());
        }
    }
    found
}

#[test]
fn migrated_policies_judge_all_recordings_as_before() {
    let expected = fs::read_to_string(repository(BEFORE).join("expected.json")).unwrap();
    let expected: BTreeMap<String, BTreeMap<String, Findings>> = serde_json::from_str(&expected).unwrap();
    assert!(expected.len() == 7 && expected.values().all(|of| of.len() > 15), "{expected:?}");
    for (name, recordings) in expected {
        let before = repository(BEFORE).join(&name);
        let migrated = interlock(&["policy", "migrate", before.to_str().unwrap()]);
        assert!(migrated.status.success(), "{}", transcript(&migrated));
        // The whole shipped policy means the same.
        let directory = match &*migrated.stdout {
            [] if name == "whole" => None,
            text => Some(directory(text)),
        };
        let policies = directory.as_ref().map_or(&*before, |directory| directory.path());
        for (recording, wanted) in recordings {
            assert_eq!(findings(policies, &recording), wanted, "{name} {recording}");
        }
    }
}

#[test]
fn a_policy_of_before_is_rewritten_in_place_and_checked() {
    let text = fs::read(repository(BEFORE).join("production/cluster.yaml")).unwrap();
    let directory = directory(&text);
    let path = directory.path().to_str().unwrap();
    let check = |extra: &[&str]| transcript(&interlock(&[&["policy", "check", path], extra].concat()));
    let printed = check(&[]);
    assert!(
        printed.contains("note: a file states differences")
            && printed.contains("  tools\n    before: none\n    now:    "),
        "{printed}"
    );
    assert!(
        printed.contains(
            "before: enforce\n    now:    warn when {serviceAccounts: ['*argocd-server']}, otherwise audit when"
        ),
        "{printed}"
    );
    let written = interlock(&["policy", "migrate", path, "--write"]);
    assert!(written.status.success() && transcript(&written).contains("wrote "), "{}", transcript(&written));
    let printed = check(&["--strict"]);
    assert!(printed.ends_with("is valid\nexit 0\n"), "{printed}");
    let kept = fs::read_to_string(directory.path().join("cluster.yaml")).unwrap();
    assert!(kept.contains("# For a cluster that customers depend on"), "{kept}");
    assert!(transcript(&interlock(&["policy", "migrate", path])).contains("there is nothing to change"));
}

#[test]
fn the_whole_policy_is_shown_with_the_origin_of_each_line() {
    let shown = interlock(&["policy", "show", "good"]);
    let text = String::from_utf8(shown.stdout).unwrap();
    for line in [
        "    mode: warn                                                # good/cluster.yaml:7",
        "  - system:serviceaccount:flux-system:helm-controller         # shipped",
        "    mode: enforce                                             # good/namespaces/shop.yaml:5",
    ] {
        assert!(text.lines().any(|printed| printed == line), "{line}\n{text}");
    }
    let shown = interlock(&["policy", "show", "good", "-o", "json"]);
    let printed: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let settings = printed["policies"][0]["settings"].as_array().unwrap();
    let mode = json!({"path": "rules.manual-edit.mode", "value": "warn", "origin": "good/cluster.yaml:7"});
    assert!(settings.contains(&mode), "{printed}");
    assert_eq!(interlock(&["policy", "show", "typing-errors"]).status.code(), Some(2));
}

/// Two lines, and the examples where they say nothing else.
#[test]
fn a_policy_of_two_lines_judges_as_the_shipped_one() {
    let header = "apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\n";
    let (two, whole) = (
        directory(format!("{header}protected: {{releases: [ledger-*]}}\n").as_bytes()),
        repository(BEFORE).join("whole"),
    );
    for recording in
        ["helm", "flux", "olm", "sveltos-v1.7.0", "written/velero", "written/crossplane", "written/klipper"]
    {
        assert_eq!(findings(two.path(), recording), findings(&whole, recording), "{recording}");
        assert_eq!(findings(&repository("policies"), recording), findings(&whole, recording), "{recording}");
        // Their own lists are about users and kinds that are not in the recordings.
        let production = findings(&repository("policies/examples/production"), recording);
        let others = |found: Findings| {
            found.into_iter().filter(|(key, _)| !key.starts_with("freeze") && key != "denied").collect::<Findings>()
        };
        assert_eq!(others(production), others(findings(&whole, recording)), "{recording}");
    }
}

#[test]
fn a_server_does_not_start_with_a_wrong_file() {
    for (case, says) in
        [("typing-errors", "did you mean `manual-edit`?"), ("loosening", "`audit` loosens the cluster policy")]
    {
        let output =
            interlock(&["serve", "--policies", case, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
        let text = transcript(&output);
        assert!(text.contains(says) && text.ends_with("exit 2\n"), "{text}");
    }
}

#[test]
fn the_committed_schema_is_the_one_that_files_are_read_by() {
    let printed = interlock(&["policy", "schema"]).stdout;
    if std::env::var_os(WRITE).is_some() {
        fs::write(repository("policies/schema.json"), &printed).unwrap();
    }
    let committed = fs::read_to_string(repository("policies/schema.json")).unwrap();
    assert!(committed.as_bytes() == printed, "policies/schema.json differs; {WRITE}=1 writes it");
    let rules = &schema()["else"]["properties"]["rules"]["properties"];
    assert_eq!(rules["manual-edit"]["properties"]["mode"]["enum"], json!(["enforce", "warn", "audit", "off"]));
    assert_eq!(rules["manual-edit"]["properties"].get("staleAfter"), None);
    assert_eq!(rules["pending-recovery"]["properties"]["staleAfter"]["default"], "15m");
}

static ALL: OnceLock<Value> = OnceLock::new();

/// The violations of a value. Covers only the keywords of JSON Schema that our schema uses.
fn wrong(schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let mut found = Vec::new();
    let referred = ALL.get_or_init(self::schema);
    let referred =
        schema.get("$ref").map(|path| referred.pointer(path.as_str().unwrap().trim_start_matches('#')).unwrap());
    let schema = referred.unwrap_or(schema);
    let choice = |name: &str| schema.get(name);
    if choice("enum").is_some_and(|all| !all.as_array().unwrap().contains(value)) {
        found.push(format!("{at}: not one of the choices"));
    }
    if choice("const").is_some_and(|only| only != value) {
        found.push(format!("{at}: not the only choice"));
    }
    let is = |kind: &Value| match kind.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "boolean" => value.is_boolean(),
        _ => value.is_string(),
    };
    let is_any = |kinds: &Value| kinds.as_array().map_or_else(|| is(kinds), |kinds| kinds.iter().any(is));
    if choice("type").is_some_and(|kinds| !is_any(kinds)) {
        found.push(format!("{at}: not of the type"));
    }
    for (key, value) in value.as_object().into_iter().flatten() {
        match schema["properties"].get(key) {
            Some(schema) => found.extend(wrong(schema, value, &format!("{at}/{key}"))),
            None if choice("additionalProperties") == Some(&json!(false)) => found.push(format!("{at}/{key}: unknown")),
            None => {}
        }
    }
    for required in choice("required").and_then(Value::as_array).into_iter().flatten() {
        if value.as_object().is_some_and(|value| !value.contains_key(required.as_str().unwrap())) {
            found.push(format!("{at}: {required} is missing"));
        }
    }
    for item in value.as_array().into_iter().flatten() {
        found.extend(schema.get("items").into_iter().flat_map(|items| wrong(items, item, at)));
    }
    if let Some(condition) = choice("if") {
        let branch = if wrong(condition, value, at).is_empty() { "then" } else { "else" };
        found.extend(wrong(&schema[branch], value, at));
    }
    found
}

fn yaml(path: PathBuf) -> Value {
    serde_saphyr::from_str(&fs::read_to_string(&path).unwrap()).unwrap()
}

#[test]
fn the_schema_allows_what_is_good_and_shows_editors_what_is_not() {
    let of = |file: &str| wrong(&schema(), &yaml(repository(file)), "");
    assert_eq!(of("policies/cluster.yaml"), [""; 0]);
    assert_eq!(of("tests/policies/good/cluster.yaml"), [""; 0]);
    assert_eq!(of("tests/policies/good/namespaces/shop.yaml"), [""; 0]);
    assert_eq!(of("tests/policies/loosening/namespaces/shop.yaml"), ["/managers: unknown"]);
    let mut policy = yaml(repository(SHIPPED));
    policy["apiVersion"] = "interlock.dev/v1alpha1".into();
    policy["kind"] = "ClusterPolicy".into();
    policy["managers"] = json!({"only": ["a"]});
    assert_eq!(wrong(&schema(), &policy, ""), [""; 0]);
    policy["managers"] = json!({"only": "a"});
    policy["tools"] = json!({"also": []});
    policy["rules"]["manual-edit"]["staleAfter"] = "5m".into();
    policy["rules"]["manual-delete"]["mode"] = "enforced".into();
    policy["rules"]["manual-scale"]["cases"] = json!([{"when": {"user": []}, "mode": "audit"}]);
    policy["delegate"] = json!(["manual-edits"]);
    assert_eq!(wrong(&schema(), &policy, "").len(), 7);
}

/// The head of `policies/cluster.yaml`.
const HEAD: &str = "# yaml-language-server: $schema=schema.json
# That schema is for editors. Beside a copy of this file, write it with `interlock policy schema > schema.json`.
#
# The policy for the whole cluster. It states differences from the shipped policy: a rule, a setting or a list that it does not
# mention is as shipped. As it stands, it states nothing.
#
# A list adds to the shipped one: `managers: [a]`. Its entries stand first, and count first. `managers: {only: [a]}` replaces the
# shipped list. The same holds for the `cases` of a rule. A rule that states `mode` keeps the shipped cases that are not stricter.
# `interlock policy show` prints the whole policy, with the origin of each line.
apiVersion: interlock.dev/v1alpha1
kind: ClusterPolicy

# What follows is the shipped policy, as a comment. Copy what you want to change, with the keys above it.
#
";

/// The policy that the program contains. A rule or a setting that it does not state, no command shows.
const SHIPPED: &str = "crates/engine/src/policy_files/shipped.yaml";

/// A line of the shipped policy, as long as the longest ones.
const LINE: usize = 126;

/// The shipped policy with every rule and every setting that has a default. What the text lacks follows the rule before it, with the
/// words of the reference.
fn completed(shipped: &str) -> String {
    let mut lines: Vec<_> = shipped.lines().map(str::to_owned).collect();
    let mut end = lines.iter().position(|line| line == "rules:").unwrap() + 1;
    for rule in rules::all() {
        let head = format!("  {rule}:");
        let stated = lines[end..].iter().position(|line| line.starts_with(&head)).map(|place| end + place);
        let start = stated.unwrap_or(end);
        if stated.is_none() {
            lines.insert(start, format!("{head} {{mode: {}}}", rule.specification().mode.as_str()));
        }
        end = start + 1 + lines[start + 1..].iter().take_while(|line| line.starts_with("    ")).count();
        for setting in settings_of(rule) {
            let key = format!("    {}: ", setting.name);
            let Some(default) = setting.default.filter(|_| setting.name != "mode") else { continue };
            if lines[start..end].iter().any(|line| line.starts_with(&key)) {
                continue;
            }
            let mut added = words_in_lines(&setting.about, "    # ");
            added.push(key + &default);
            // A rule on one line gets one for each setting.
            if let Some(mode) = lines[start].strip_prefix(&format!("{head} {{")).and_then(|rest| rest.strip_suffix('}'))
            {
                added.insert(0, format!("    {mode}"));
                lines[start] = head.clone();
            }
            let next = end + added.len();
            lines.splice(end..end, added);
            end = next;
        }
    }
    lines.join("\n") + "\n"
}

/// A text in lines that begin alike.
fn words_in_lines(text: &str, start: &str) -> Vec<String> {
    let mut lines = vec![start.trim_end().to_owned()];
    for word in text.split(' ') {
        if lines[lines.len() - 1].len() + 1 + word.len() > LINE {
            lines.push(start.trim_end().to_owned());
        }
        let last = lines.len() - 1;
        lines[last].push_str(&format!(" {word}"));
    }
    lines
}

#[test]
fn the_shipped_policy_states_every_rule_and_every_setting() {
    let file = repository(SHIPPED);
    let shipped = fs::read_to_string(&file).unwrap();
    let made = completed(&shipped);
    if std::env::var_os(WRITE).is_some() && made != shipped {
        fs::write(&file, &made).unwrap();
    }
    // The program contains the text of before.
    assert!(made == shipped, "{SHIPPED} lacks a rule or a setting; {WRITE}=1 adds it, and the next run compiles it");
}

#[test]
fn a_rule_and_a_setting_that_the_shipped_policy_lacks_are_added_to_it() {
    let shipped = completed(&fs::read_to_string(repository(SHIPPED)).unwrap());
    let without = |text: &str| {
        assert!(shipped.contains(text), "{text}");
        completed(&shipped.replacen(text, "", 1))
    };
    assert_eq!(without("  revision-order: {mode: enforce}\n"), shipped);
    let startless = shipped.replacen("    startedBy: anybody\n", "", 1);
    assert!(
        completed(&startless).contains("# Who may start operations")
            && completed(&startless).contains("\n    startedBy: anybody\n")
    );
    let (head, rest) = shipped.split_once("  unusual-create:\n").unwrap();
    let (_, tail) = rest.split_once("    startedBy: anybody\n").unwrap();
    let short = completed(&format!("{head}  unusual-create: {{mode: enforce}}\n{tail}"));
    assert!(short.contains("  unusual-create:\n    mode: enforce\n    # Who may start operations"), "{short}");
}

/// The shipped policy as a comment. Its comments stay as they are.
fn commented(shipped: &str) -> String {
    let (_, shipped) = shipped.split_once("\n#\n").unwrap();
    let line = |line: &str| match line.trim_start() {
        "" => "\n".to_owned(),
        text if text.starts_with('#') => format!("{line}\n"),
        _ => format!("#{line}\n"),
    };
    shipped.lines().map(line).collect()
}

#[test]
fn the_policy_to_edit_states_nothing_and_has_the_shipped_one_as_a_comment() {
    let shipped = fs::read_to_string(repository(SHIPPED)).unwrap();
    let (file, text) = (repository("policies/cluster.yaml"), format!("{HEAD}{}", commented(&shipped)));
    if std::env::var_os(WRITE).is_some() {
        fs::write(&file, &text).unwrap();
    }
    assert!(fs::read_to_string(&file).unwrap() == text, "policies/cluster.yaml differs; {WRITE}=1 writes it");
    assert_eq!(yaml(file), json!({"apiVersion": "interlock.dev/v1alpha1", "kind": "ClusterPolicy"}));
    assert_eq!(text.lines().next(), Some("# yaml-language-server: $schema=schema.json"));
}

#[test]
fn freezes_are_told_for_any_time() {
    const PRODUCTION: &str = "../../policies/examples/production";
    let at = |time: &str, more: &[&str]| {
        let checked = interlock(&[&["policy", "check", PRODUCTION, "--strict", "--at", time][..], more].concat());
        assert_eq!(checked.status.code(), Some(0), "{}", transcript(&checked));
        transcript(&checked)
    };
    let saturday = at("2026-11-28", &[]);
    for line in [
        "freeze year-end: from 2026-12-20 00:00 Europe/Berlin",
        "freeze weekend-days: in force until 2026-11-30 00:00 Europe/Berlin",
        "freeze shop-hours: in force until 2026-11-30 09:00 Europe/Berlin",
    ] {
        assert!(saturday.lines().any(|printed| printed == line), "{line}: {saturday}");
    }
    let over = interlock(&["policy", "check", PRODUCTION, "--at", "2027-02-01T10:00[Europe/Berlin]"]);
    assert!(transcript(&over).contains("freeze year-end: over\n"), "{}", transcript(&over));
    assert!(transcript(&over).contains("warning: the freeze is over"), "{}", transcript(&over));
    let printed = interlock(&["policy", "check", PRODUCTION, "--at", "2026-11-28", "-o", "json"]);
    let printed: Value = serde_json::from_slice(&printed.stdout).unwrap();
    let weekend =
        printed["freezes"].as_array().unwrap().iter().find(|freeze| freeze["freeze"] == "weekend-days").unwrap();
    assert_eq!((&weekend["changes"], &weekend["inForce"]), (&json!("2026-11-29T23:00:00Z"), &json!(true)));
    let explained = |namespace| {
        let time = "2026-12-24T18:00[Europe/Berlin]";
        transcript(&interlock(&["explain", namespace, "--policies", PRODUCTION, "--at", time]))
    };
    assert!(explained("shop").contains("in force until 2027-01-02 06:00 Europe/Berlin (no changes over the holidays)"));
    for line in
        ["  every release, except for groups on-call", "  every release in namespaces shop, except for groups on-call"]
    {
        assert!(explained("shop").lines().any(|printed| printed.ends_with(line)), "{line}: {}", explained("shop"));
    }
    assert!(explained("shop").contains("shop-hours") && !explained("crm").contains("shop-hours"));
    assert!(explained("crm").contains("protected releases\n  protected "), "{}", explained("crm"));
    let wrong = interlock(&["policy", "check", PRODUCTION, "--at", "tomorrow"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(transcript(&wrong).contains("is not a time like 2026-12-24T18:00:00Z"), "{}", transcript(&wrong));
}

#[test]
fn rules_and_namespaces_are_explained() {
    expect("explain.txt", &interlock(&["explain"]));
    expect("explain-rule.txt", &interlock(&["explain", "pending-recovery"]));
    expect("explain-namespace.txt", &interlock(&["explain", "shop", "--policies", "good"]));
    let mistyped = interlock(&["explain", "manual-edti", "--policies", "good"]);
    let printed = "interlock: manual-edti is no rule and no namespace; did you mean manual-edit?\n";
    assert_eq!((mistyped.status.code(), String::from_utf8_lossy(&mistyped.stderr).as_ref()), (Some(1), printed));
    let rule: Value = serde_json::from_slice(&interlock(&["explain", "manual-edit", "-o", "json"]).stdout).unwrap();
    assert_eq!(rule["settings"][3]["default"], "1m");
    assert!(rule["breakGlass"].as_str().unwrap().contains("--rule manual-edit"));
    let shop = interlock(&["explain", "shop", "--policies", "good", "-o", "json"]);
    let shop: Value = serde_json::from_slice(&shop.stdout).unwrap();
    let edit = shop["rules"].as_array().unwrap().iter().find(|rule| rule["rule"] == "manual-edit").unwrap();
    let origin = json!({"file": "good/namespaces/shop.yaml", "line": 5});
    assert_eq!(edit["settings"][0], json!({"name": "mode", "value": "enforce", "origin": origin}));
    assert_eq!(interlock(&["explain", "shop", "--policies", "typing-errors"]).status.code(), Some(2));
}

#[test]
fn doubtful_platforms_and_pipelines_are_named_with_their_lines() {
    expect("check-accounts.txt", &interlock(&["policy", "check", "accounts"]));
    assert_eq!(interlock(&["policy", "check", "accounts", "--strict"]).status.code(), Some(1));
}

#[test]
fn a_user_is_explained_with_the_line_of_the_policy_that_says_what_it_counts_as() {
    let explained = |user: &str, groups: &[&str]| {
        let groups = groups.iter().flat_map(|group| ["--group", *group]);
        let args: Vec<_> = ["explain", "--user", user, "--policies", "accounts"].into_iter().chain(groups).collect();
        (transcript(&interlock(&args)), interlock(&[&args[..], &["-o", "json"]].concat()))
    };
    let json = |output: &Output| serde_json::from_slice::<Value>(&output.stdout).unwrap();
    for (user, groups, kind, line, holder) in [
        ("eks:addon-manager", &[][..], "platform", Some(7), Value::Null),
        ("system:serviceaccount:shop:router", &[], "platform", Some(8), Value::Null),
        ("system:vpa-recommender", &[], "platform", None, Value::Null),
        ("system:serviceaccount:flux-system:helm-controller", &[], "service account", Some(5), Value::Null),
        ("system:serviceaccount:kube-system:namespace-controller", &[], "control plane", None, Value::Null),
        ("system:node:worker-1", &["system:nodes"], "node", None, Value::Null),
        ("system:node:worker-1", &["system:authenticated"], "person", None, Value::Null),
        ("system:admin", &["system:authenticated"], "person", None, Value::Null),
        ("Admin", &[], "person", None, Value::Null),
        (
            "gitlab:ci_job:7",
            &["gitlab:ci_job", "gitlab:project:42"],
            "pipeline",
            Some(11),
            json!({"pipeline": "gitlab", "group": "gitlab:project:42"}),
        ),
        ("gitlab:ci_job:7", &["gitlab:ci_job"], "pipeline", Some(11), json!({"session": "gitlab:ci_job:7"})),
        ("arn:aws:sts::1:assumed-role/deploy/job-1", &[], "pipeline", Some(14), json!({"pipeline": "deploy"})),
        ("alice", &["system:authenticated"], "pipeline", Some(17), json!({"session": "alice"})),
    ] {
        let (text, output) = explained(user, groups);
        let printed = json(&output);
        assert!(output.status.success(), "{text}");
        assert_eq!((&printed["countsAs"], &printed["holder"]), (&json!(kind), &holder), "{user} {groups:?}: {text}");
        let origin = line.map(|line| json!({"file": "accounts/cluster.yaml", "line": line}));
        assert_eq!(printed["entries"][0]["origin"], json!(origin), "{user}: {text}");
        assert!(text.contains(&format!(" counts as: {kind}")), "{text}");
        assert!(line.is_none_or(|line| text.contains(&format!("accounts/cluster.yaml:{line}"))), "{text}");
    }
    expect(
        "explain-user.txt",
        &interlock(&["explain", "--user", "gitlab:ci_job:7", "--group", "gitlab:project:42", "--policies", "accounts"]),
    );
    // Without a policy of one's own, the shipped one says it.
    let shipped = transcript(&interlock(&["explain", "--user", "helm-installer"]));
    assert!(shipped.contains("helm-installer counts as: pipeline (rancher)"), "{shipped}");
    assert_eq!(interlock(&["explain", "--user", "bob", "--policies", "typing-errors"]).status.code(), Some(2));
    assert_eq!(interlock(&["explain", "shop", "--user", "bob"]).status.code(), Some(2));
}

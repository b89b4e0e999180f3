//! What the documents tell of the code is what the code says.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use interlock_engine::policy_files::{LoadedPolicies, schema, settings_of};
use interlock_engine::release::status::{Guard, Status, transition};
use interlock_engine::rule::{FailsClosed, Mode, RuleId, Specification};
use interlock_engine::rules::{self, Family};
use release_interlock::world::policy_directory;
use serde_json::Value;

/// Set to write the documents in place of comparing them.
const WRITE: &str = "INTERLOCK_WRITE_DOCS";

/// Around what is generated in a document that people write.
const BEGIN: &str = "<!-- written by INTERLOCK_WRITE_DOCS=1 cargo test --test it documentation -->\n";
/// Around the list of rules in the README.
const LIST: &str = "<!-- rules: generated -->\n";
const END: &str = "<!-- end -->\n";

/// Documents beside those in `docs/`.
const OUTSIDE: [&str; 5] =
    ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "tests/recordings/README.md"];

/// Settings that every rule has; told once.
const SHARED: [&str; 3] = ["mode", "onUndecided", "cases"];

pub(crate) fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

#[track_caller]
fn is_committed(name: &str, made: &str) {
    if std::env::var_os(WRITE).is_some() {
        fs::write(path(name), made).unwrap();
    }
    let committed = fs::read_to_string(path(name)).unwrap_or_default();
    assert!(committed == made, "{name} is old; {WRITE}=1 cargo test --test it documentation writes it");
}

#[test]
fn the_pictures_of_the_architecture_are_those_of_the_code() {
    let text = fs::read_to_string(path("docs/architecture.md")).unwrap();
    let mut made = [transitions()].into_iter();
    let mut parts = text.split(BEGIN);
    let mut whole = parts.next().unwrap().to_owned();
    for part in parts {
        let (_, rest) = part.split_once(END).expect("an end to every generated part");
        whole += &format!("{BEGIN}{}{END}{rest}", made.next().expect("as many generated parts as are made"));
    }
    assert_eq!(made.next(), None);
    is_committed("docs/architecture.md", &whole);
}

/// The list of rules on the front page, by family.
#[test]
fn the_readme_lists_the_rules_of_the_table() {
    let text = fs::read_to_string(path("README.md")).unwrap();
    let (head, rest) = text.split_once(LIST).unwrap();
    let (_, tail) = rest.split_once(END).unwrap();
    is_committed("README.md", &format!("{head}{LIST}{}{END}{tail}", rule_list()));
}

fn rule_list() -> String {
    let mut text = String::from("\n| rule | shipped as | what it enforces |\n|---|---|---|\n");
    for (family, title) in [
        (Family::Records, "Release records"),
        (Family::Objects, "Objects of a release"),
        (Family::Declarations, "Declarations of Sveltos, Flux and OLM"),
    ] {
        writeln!(text, "| **{title}** | | |").unwrap();
        for rule in family.rules() {
            writeln!(text, "| `{rule}` | {} | {} |", shipped(rule), rule.specification().summary).unwrap();
        }
    }
    text.push('\n');
    text
}

/// People write the page. A rule that it lacks gets a row from its specification.
#[test]
fn the_page_of_rules_has_a_row_for_each() {
    const PAGE: &str = "docs/rules.md";
    let text = fs::read_to_string(path(PAGE)).unwrap();
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    for family in Family::ALL {
        let row = |rule: RuleId| format!("| `{rule}` ");
        for rule in family.rules() {
            if lines.iter().any(|line| line.starts_with(&row(rule))) {
                continue;
            }
            let Specification { mode, refused, allowed, .. } = rule.specification();
            let mode = if *mode == Mode::Enforce { String::new() } else { format!("(`{}`) ", mode.as_str()) };
            let last = lines.iter().rposition(|line| family.rules().any(|known| line.starts_with(&row(known))));
            lines.insert(last.unwrap() + 1, format!("{}{mode}| {refused} | {allowed} |", row(rule)));
        }
    }
    is_committed(PAGE, &(lines.join("\n") + "\n"));
}

#[test]
fn the_shipped_policy_has_the_modes_of_the_specifications() {
    for rule in rules::all() {
        assert_eq!(shipped(rule).split(',').next(), Some(rule.specification().mode.as_str()), "{rule}");
    }
}

#[test]
fn the_policy_reference_is_what_policies_are_read_by() {
    is_committed("docs/policy-reference.md", &reference());
}

/// Every setting with its default, all of them in one file.
#[test]
fn the_defaults_of_the_reference_are_a_policy() {
    let examples: String = rules::all().map(example).collect();
    let dir = tempfile::tempdir().unwrap();
    let file = format!("apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\nrules:\n{examples}");
    fs::write(dir.path().join("cluster.yaml"), &file).unwrap();
    let read = LoadedPolicies::of(&policy_directory::read(dir.path())).into_policies();
    assert!(read.is_ok(), "{:?}\n{file}", read.err());
}

#[test]
fn every_link_of_the_documents_leads_somewhere() {
    let mut seen = 0;
    for document in pages().chain(OUTSIDE.map(path)) {
        for link in links(&fs::read_to_string(&document).unwrap()) {
            let (file, heading) = link.split_once('#').map_or((link.as_str(), None), |(file, id)| (file, Some(id)));
            let file = if file.is_empty() { document.clone() } else { document.with_file_name(file) };
            assert!(file.exists(), "{} leads to {link}, which is not there", document.display());
            let found = heading.is_none_or(|id| headings(&fs::read_to_string(&file).unwrap()).any(|known| known == id));
            assert!(found, "{} leads to {link}: no such heading", document.display());
            seen += 1;
        }
    }
    assert!(seen > 40, "{seen}");
}

#[test]
fn every_page_is_a_chapter_of_the_book() {
    let listed = links(&fs::read_to_string(path("docs/SUMMARY.md")).unwrap());
    for page in pages() {
        let page = page.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(page == "SUMMARY.md" || listed.contains(&page), "docs/SUMMARY.md does not list {page}");
    }
}

/// Nobody reads more.
#[test]
fn the_book_has_at_most_25_000_words_and_leads_nowhere_else_in_the_repository() {
    let mut words = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        words += text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count();
        let outside: Vec<_> = links(&text).into_iter().filter(|link| link.starts_with("../")).collect();
        assert!(outside.is_empty(), "{}: a reader of the book cannot follow {outside:?}", page.display());
    }
    assert!(words <= 25_000, "{words} words");
}

/// The documents in `docs/`, without their pictures.
fn pages() -> impl Iterator<Item = PathBuf> {
    let files = fs::read_dir(path("docs")).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|file| file.extension().is_some_and(|extension| extension == "md"))
}

/// Within the repository.
fn links(document: &str) -> Vec<String> {
    let targets = document.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target.to_owned()).filter(|target| !target.contains("://")).collect()
}

/// As links name them: lower case, blanks as hyphens, and no punctuation.
fn headings(document: &str) -> impl Iterator<Item = String> {
    let lines = document.lines().filter(|line| line.starts_with('#'));
    lines.map(|line| {
        let text = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        text.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
    })
}

/// Rows are what stands there, columns what is written.
fn transitions() -> String {
    let states: Vec<Option<Status>> = [None].into_iter().chain(Status::ALL.map(Some)).collect();
    let name = |state: &Option<Status>| state.map_or("no record", Status::as_str);
    let mut text = String::from("\n| from \\ to |");
    states.iter().for_each(|to| write!(text, " {} |", name(to)).unwrap());
    text += &format!("\n|---|{}\n", "---|".repeat(states.len()));
    for from in &states {
        write!(text, "| **{}** |", name(from)).unwrap();
        for to in &states {
            write!(text, " {} |", printed(transition(*from, *to), from.is_none() && to.is_none())).unwrap();
        }
        text.push('\n');
    }
    text.push('\n');
    text
}

fn printed(guard: Guard, is_nothing: bool) -> &'static str {
    match guard {
        _ if is_nothing => "",
        Guard::Free => "free",
        Guard::NothingInFlight => "operation",
        Guard::MappedApis => "mapped",
        Guard::JustEnded => "just ended",
        Guard::Resumption => "resumption",
        Guard::Unlock => "unlock",
        Guard::NewerRollback => "rollback",
        Guard::Deletion => "deletion",
        Guard::Never => "·",
    }
}

/// As the shipped policy has it, cases included.
fn shipped(rule: RuleId) -> String {
    let policy: Value =
        serde_saphyr::from_str(&fs::read_to_string(path("crates/engine/src/policy_files/shipped.yaml")).unwrap())
            .unwrap();
    let settings = &policy["rules"][rule.as_str()];
    let cases =
        settings["cases"].as_array().into_iter().flatten().map(|case| format!(", {} by a case", text(&case["mode"])));
    text(&settings["mode"]).to_owned() + &cases.collect::<String>()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn reference() -> String {
    let schema = schema();
    let mut text = String::from(
        "# Policy reference\n\n\
         Generated from the code that parses policy files: `INTERLOCK_WRITE_DOCS=1 cargo test --test it documentation`.\n\
         `interlock policy schema` prints the JSON Schema. How the policies of the cluster and of namespaces work together:\n\
         [policies](policies.md). What each rule refuses and allows: [rules](rules.md), or `interlock explain RULE` on a terminal.\n\n\
         Durations are numbers with units: `90s`, `15m`, `1h30m`, `90d`. Globs support `*`, `?`, `[ab]` and `{a,b}`; `*` also\n\
         matches slashes and colons.\n\n\
         What a file does not mention is as shipped. A list of a cluster policy adds to the shipped one, `{only: [...]}` replaces it.\n\n\
         ## A file\n\n| key | in the file of | description |\n|---|---|---|\n",
    );
    let of_namespaces = &schema["then"]["properties"];
    for (key, about) in schema["else"]["properties"].as_object().unwrap() {
        let whose = if of_namespaces.get(key).is_some() { "both" } else { "the cluster" };
        let about = about["description"].as_str().unwrap_or("ClusterPolicy or NamespacePolicy.");
        writeln!(text, "| `{key}` | {whose} | {about} |").unwrap();
    }
    text += "\n### overrides\n\n";
    text += &keys(&schema["else"]["properties"]["overrides"]);
    text += "\n### ignore\n\nA list. Each entry has these keys:\n\n";
    text += &keys(&schema["else"]["properties"]["ignore"]["items"]);
    text += "\n## Settings of every rule\n\n| setting | default | description |\n|---|---|---|\n";
    for setting in settings_of(rules::named("concurrent-operation").unwrap()) {
        let default = if setting.name == "mode" { "see the rule" } else { "-" };
        writeln!(text, "| `{}` | {default} | {}{} |", setting.name, setting.about, choices(&setting.choices)).unwrap();
    }
    let case = &schema["definitions"]["cases"]["items"]["properties"];
    text += "\nEach of the `cases` has a `mode` and a `when`. ";
    text += case["when"]["description"].as_str().unwrap();
    text += " The keys of `when` are lists of globs:\n\n";
    text += &keys(&case["when"]);
    for rule in rules::all() {
        let Specification { summary, status_code, fails_closed, .. } = rule.specification();
        let undecided = match fails_closed {
            FailsClosed::Always => "refuses",
            FailsClosed::OnRemoval => "refuses what may take a protected release away, and admits the rest",
            FailsClosed::OnRecordCreate => "refuses a CREATE, and admits the rest",
            FailsClosed::Never => "admits",
        };
        let shipped = shipped(rule);
        writeln!(
            text,
            "\n## {rule}\n\n{summary} Shipped as: {shipped}. Status code: {status_code}. If undecided: {undecided}.\n"
        )
        .unwrap();
        let own: Vec<_> = settings_of(rule).into_iter().filter(|setting| !SHARED.contains(&setting.name)).collect();
        if !own.is_empty() {
            text += "| setting | default | description |\n|---|---|---|\n";
            for setting in own {
                let default = setting.default.as_deref().unwrap_or("-");
                let (name, about, choices) = (setting.name, setting.about, choices(&setting.choices));
                writeln!(text, "| `{name}` | `{default}` | {about}{choices} |").unwrap();
            }
        }
    }
    text
}

/// What a file says of a rule where it says everything that has a default.
fn example(rule: RuleId) -> String {
    let mut text = format!("  {rule}:\n");
    for setting in settings_of(rule) {
        if let Some(default) = setting.default {
            writeln!(text, "    {}: {default}", setting.name).unwrap();
        }
    }
    text
}

fn keys(schema: &Value) -> String {
    let mut text = String::from("| key | default | description |\n|---|---|---|\n");
    for (key, about) in schema["properties"].as_object().unwrap() {
        let default = match &about["default"] {
            Value::Null => "-".to_owned(),
            Value::String(text) => format!("`{text}`"),
            other => format!("`{other}`"),
        };
        writeln!(text, "| `{key}` | {default} | {} |", about["description"].as_str().unwrap_or_default()).unwrap();
    }
    text
}

fn choices(all: &[String]) -> String {
    if all.is_empty() { String::new() } else { format!(" One of `{}`.", all.join("`, `")) }
}

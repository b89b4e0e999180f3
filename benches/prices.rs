#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark has no callers to report an error to")]

//! What a step of an effort costs, reader by reader: each reads the texts that take it the longest for their size, and the table shows
//! the time and the memory for a thousand of the steps that it charges.
//!
//! A step is meant to take about a nanosecond. A price that is more than twice too low ends the run with an error, because a budget that is
//! used up must be reached in less than two seconds of a core.

use std::hint::black_box;
use std::io::Write;
use std::process::Command;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use interlock_engine::effort::Effort;
use interlock_engine::managed::{Declared, ManagedFields, declared_by, delta, touched};
use interlock_engine::release::Record;
use interlock_engine::release::manifest::{DocumentKey, document, hooks_of_kind, objects, workloads};
use interlock_engine::release::record::{Payload, differences, is_mapped_copy};
use serde_json::value::RawValue;
use serde_json::{Value, json};

#[path = "fixtures/process.rs"]
#[allow(dead_code, reason = "other benchmarks use the rest")]
mod process;

/// The argument of a process that measures one row.
const ROW: &str = "--row=";

const ROUNDS: usize = 5;

/// More than this for a thousand steps is a price that is too low.
const MAX: Duration = Duration::from_micros(2);

/// A text and how it is read.
struct Reader {
    name: &'static str,
    read: Box<dyn Fn(&Effort)>,
}

fn reader(name: &'static str, read: impl Fn(&Effort) + 'static) -> Reader {
    Reader { name, read: Box::new(read) }
}

fn main() {
    let readers = || records().into_iter().chain(hooks()).chain(manifests()).chain(fields());
    if let Some(index) = std::env::args().find_map(|argument| argument.strip_prefix(ROW)?.parse().ok()) {
        return measure(&readers().nth(index).unwrap());
    }
    println!("{:<48}{:>14}{:>12}{:>14}{:>16}", "reader", "steps", "ms", "us / 1000", "bytes / 1000");
    // Each in a process of its own, so that no memory is left over from the one before.
    let is_row = |index: usize| {
        let row = Command::new(std::env::current_exe().unwrap()).arg(format!("{ROW}{index}")).status();
        row.unwrap().success()
    };
    let missed: Vec<_> = readers().enumerate().filter(|(index, _)| !is_row(*index)).map(|(_, it)| it.name).collect();
    assert!(missed.is_empty(), "a thousand steps of these take longer than {MAX:?}: {missed:?}");
}

/// Prints the row of a reader, and ends with an error if its price is too low.
fn measure(Reader { name, read }: &Reader) {
    let resident = || process::memory(std::process::id()).unwrap().0;
    // Not what it took to make the texts.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = resident();
    let (mut best, mut steps, mut peak) = (Duration::MAX, 0, before);
    for _ in 0..ROUNDS {
        let effort = Effort::of_review();
        let started = Instant::now();
        read(&effort);
        best = best.min(started.elapsed());
        steps = effort.used();
        peak = process::memory(std::process::id()).unwrap().1;
    }
    let thousands = steps as f64 / 1e3;
    let (ms, time) = (best.as_secs_f64() * 1e3, best.as_secs_f64() * 1e6 / thousands);
    println!("{name:<48}{steps:>14}{ms:>12.1}{time:>14.2}{:>16.0}", (peak - before).max(0.0) * 1048576.0 / thousands);
    // What takes no time needs no price.
    if best > Duration::from_millis(5) && time > MAX.as_secs_f64() * 1e6 {
        std::process::exit(1);
    }
}

/// A record, with some of its members.
fn record(config: &str, manifest: &str, hooks: &str) -> String {
    let (manifest, status) = (Value::from(manifest), "deployed");
    format!(
        r#"{{"name":"web","info":{{"status":"{status}"}},"chart":{{"metadata":{{"name":"shop"}}}},"config":{config},"manifest":{manifest},"hooks":{hooks},"version":1,"namespace":"shop"}}"#
    )
}

fn records() -> Vec<Reader> {
    let inflated = record("{}", &"a: b\n".repeat(2 << 20), "[]");
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(inflated.as_bytes()).unwrap();
    let payload = Payload::join([STANDARD.encode(gzip.finish().unwrap())].iter().map(String::as_str)).unwrap();
    let lists = |item: &str, last: [&str; 2]| last.map(|last| format!(r#"{{"a":[{}{last}]}}"#, item.repeat(2 << 20)));
    let ends = [r#"{"x":1,"y":2}"#, r#"{"y":2,"x":1}"#];
    let members: String = (0..400_000).map(|key| format!(r#""k{key}":{key},"#)).collect();
    let keys = [r#""x":1,"y":2"#, r#""y":2,"x":1"#].map(|last| format!("{{{members}{last}}}"));
    let escaped = ["a", "b"].map(|last| record("{}", &format!("{}{last}", "\u{1}".repeat(2 << 20)), "[]"));
    let (body, one, other) = (inflated.clone(), inflated.clone(), inflated.replace("a: b", "a: c"));
    vec![
        reader("inflate a record", move |effort| _ = black_box(payload.inflate(effort))),
        reader("read a record", move |effort| _ = black_box(Record::read(body.as_bytes(), effort).is_ok())),
        compared("compare manifests, escaped", escaped),
        reader("whether one is a copy with other API versions", move |effort| {
            black_box(is_mapped_copy(&read(&one, effort), &read(&other, effort), effort));
        }),
        compared("values that differ in form, tiny maps", with_values(&lists("{},", ends))),
        compared("values that differ in form, numbers", with_values(&lists("1.5,", ends))),
        compared("values that differ in form, keys", with_values(&keys)),
    ]
}

fn with_values(values: &[String; 2]) -> [String; 2] {
    values.each_ref().map(|values| record(values, "", "[]"))
}

fn compared(name: &'static str, [old, new]: [String; 2]) -> Reader {
    reader(name, move |effort| _ = black_box(differences(&read(&old, effort), &read(&new, effort), effort)))
}

fn read<'b>(body: &'b str, effort: &Effort) -> Record<'b> {
    Record::read(body.as_bytes(), effort).unwrap()
}

fn hooks() -> Vec<Reader> {
    let of = |name, hooks: String| {
        let body = record("{}", "", &hooks);
        reader(name, move |effort| _ = black_box(read(&body, effort).hooks(effort).is_some()))
    };
    let list = |hook: String, count: usize| format!("[{}]", vec![hook; count].join(","));
    let jobs = list(r#"{"kind":"Job","manifest":"kind: Job\nmetadata: {name: a}"}"#.to_owned(), 10_000);
    vec![
        of("hooks, tiny", list(r#"{"name":"a"}"#.to_owned(), 10_000)),
        of("hooks, escaped", list(format!(r#"{{"manifest":"{}"}}"#, r"\u0001".repeat(4 << 20)), 1)),
        of("hooks, events with blanks", list(format!(r#"{{"events":[{}1]}}"#, "1 ,".repeat(8 << 20)), 1)),
        of("hooks, long account of the last run", list(format!(r#"{{"last_run":[{}1]}}"#, "1,".repeat(12 << 20)), 1)),
        of("hooks, unknown members", list(format!(r#"{{{}"name":"a"}}"#, r#""x":{},"#.repeat(4 << 20)), 1)),
        reader("jobs among the hooks", move |effort| {
            _ = black_box(hooks_of_kind(&jobs, "Job", "shop", effort).is_ok())
        }),
    ]
}

fn key(kind: &str, name: &str) -> DocumentKey {
    let text = str::to_owned;
    DocumentKey {
        group: text("apps"),
        kind: text(kind),
        namespace: text("shop"),
        name: text(name),
        default_namespace: text("shop"),
    }
}

fn manifests() -> Vec<Reader> {
    let find = |name, manifest: String| {
        reader(name, move |effort| _ = black_box(document(&manifest, &key("Deployment", "web"), effort).is_ok()))
    };
    let own = |spec: &str| format!("apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n{spec}");
    let neighbours: String = (0..10_000)
        .map(|index| {
            format!("---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: w{index}\nspec: {{a: [1, 2, 3]}}\n")
        })
        .collect();
    let list = format!(r#"{{"apiVersion":"v1","kind":"List","items":[{}{{}}]}}"#, r#"{"kind":"A"},"#.repeat(200_000));
    let stuck = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n---\n".repeat(50_000);
    let many = "kind: A\nmetadata: {name: a}\n---\n".repeat(50_000);
    vec![
        find("find a document among 380,000", "kind: Deployment\n---\n".repeat(380_000)),
        find("find a document among 10,000 of its kind", neighbours + "---\n" + &own("  a: 1\n")),
        find("a document of short lines", own(&"  - {}\n".repeat(200_000))),
        find("a document of scalars", own(&(0..200_000).map(|key| format!("  k{key}: {key}\n")).collect::<String>())),
        find("a document of JSON", list),
        reader("the workloads of a manifest", move |effort| _ = black_box(workloads(&stuck, "shop", effort).is_ok())),
        reader("the objects of a manifest", move |effort| _ = black_box(objects(&many, effort).is_ok())),
    ]
}

fn fields() -> Vec<Reader> {
    let items: Vec<String> =
        (0..16_000).map(|index| format!(r#""k:{{\"name\":\"v{index}\"}}":{{".":{{}},"f:value":{{}}}}"#)).collect();
    let fields = format!(r#"{{"f:spec":{{"f:env":{{{}}}}}}}"#, items.join(","));
    let managed = format!(
        r#"[{{"manager":"helm","operation":"Apply","apiVersion":"apps/v1","fieldsType":"FieldsV1","fieldsV1":{fields}}}]"#
    );
    let variables = |reversed: bool| {
        let mut items: Vec<Value> =
            (0..16_000).map(|index| json!({"name": format!("v{index}"), "value": "x"})).collect();
        if reversed {
            items.reverse();
        }
        json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "env": items}]}}}})
    };
    let (declared, new) = (variables(false), variables(true).to_string());
    let old = declared.to_string();
    vec![
        reader("managed fields", move |effort| {
            let managed: &RawValue = serde_json::from_str(&managed).unwrap();
            let read = ManagedFields::read(Some(managed.into()), effort);
            black_box(read.of("apps/v1", |_| true));
        }),
        reader("variables in another order", move |effort| {
            let whole = Declared::Leaf(None);
            let declared = declared_by(&declared, &whole);
            black_box(touched(&[declared], &delta(&old, &new).unwrap(), &|_| false, effort));
        }),
    ]
}

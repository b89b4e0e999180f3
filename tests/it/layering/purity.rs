//! What has no place in the engine: the same arguments must give the same result, and nothing else may happen.

use super::house::House;

/// Paths that the engine must not name, by their first segments.
const FORBIDDEN: [&str; 27] = [
    "arc_swap",
    "axum",
    "futures_util",
    "http",
    "hyper",
    "hyper_util",
    "k8s_openapi",
    "kube",
    "notify",
    "opentelemetry",
    "prometheus_client",
    "rcgen",
    "rustls",
    "std::env",
    "std::fs",
    "std::net",
    "std::os",
    "std::process",
    "std::sync::Mutex",
    "std::thread",
    "std::time::Instant",
    "std::time::SystemTime",
    "tokio",
    "tower_service",
    "tracing",
    "Timestamp::now",
    "Zoned::now",
];

/// Macros that write to a terminal.
const PRINTING: [&str; 5] = ["dbg", "eprint", "eprintln", "print", "println"];

/// Every place of the engine that is not pure.
pub(super) fn impure(house: &House) -> Vec<String> {
    let engine = house.contents().filter(|(module, _)| module[0] == "engine");
    let found = engine.flat_map(|(module, contents)| {
        let file = module.join("/");
        let paths = contents.imports.iter().filter_map(|import| {
            let forbidden = FORBIDDEN.iter().find(|path| is_named(path, &import.path))?;
            Some((import.line, (*forbidden).to_owned()))
        });
        let asynchronous = contents.asynchronous.iter().map(|line| (*line, "async".to_owned()));
        let printing = contents.macros.iter().filter(|(_, name)| PRINTING.contains(&name.as_str()));
        let printing = printing.map(|(line, name)| (*line, format!("{name}!")));
        let all: Vec<_> = paths.chain(asynchronous).chain(printing).collect();
        all.into_iter().map(move |(line, what)| format!("src/{file}.rs:{line} names {what}: the engine is pure"))
    });
    found.collect()
}

/// Whether a path starts with these segments, or ends with them where they are a type and its function.
fn is_named(forbidden: &str, path: &[String]) -> bool {
    let wanted: Vec<_> = forbidden.split("::").collect();
    let is_type = wanted[0].starts_with(char::is_uppercase);
    if path.len() < wanted.len() {
        return false;
    }
    let part = if is_type { &path[path.len() - wanted.len()..] } else { &path[..wanted.len()] };
    part == wanted
}

//! The house of `src/lib.rs`: arrows point down, nothing runs in circles, and the engine is pure.
//!
//! An arrow is a `use`, or a path in a body, from one file to the file that defines the name. A
//! `pub use` of a child is no arrow: whoever imports the name depends on its definition. Tests are left out.

mod arrows;
mod house;
mod imports;
mod intake;
mod purity;

use arrows::{circles, upward};
use house::House;
use intake::around_the_intake;
use purity::impure;

/// The floors, from the ground up, and the rooms of each. The rooms of the ground import nothing of ours.
const FLOORS: [&[&str]; 8] = [
    &["budget", "file_watch", "log_limit", "readiness", "regular_file", "supported"],
    &["engine"],
    &["world"],
    &["judge"],
    &["inspect"],
    &["serve"],
    &["offline"],
    &["cli"],
];

/// The order inside `engine/`: a room imports only what stands before it.
const ENGINE: [&str; 28] = [
    "effort",
    "text",
    "json",
    "yaml",
    "object",
    "severity",
    "olm",
    "release",
    "flux",
    "managed",
    "sveltos",
    "review",
    "rule",
    "release_override",
    "freeze_resource",
    "facts",
    "policy",
    "evidence",
    "violation",
    "stamp",
    "rules",
    "outcome",
    "overrides",
    "decide",
    "policy_files",
    "freezes",
    "decision",
    "reply",
];

#[test]
fn arrows_point_down() {
    let house = House::of_the_project();
    assert!(house.files() > 250, "read only {} files", house.files());
    let wrong = upward(&house);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_circle_crosses_rooms_and_none_inside_a_room_has_more_than_two_files() {
    let circles = circles(&House::of_the_project());
    assert!(circles.is_empty(), "{}", circles.join("\n"));
}

#[test]
fn the_engine_has_no_async_clock_environment_file_log_http_or_client() {
    let found = impure(&House::of_the_project());
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_world_reads_the_cluster_through_the_intake() {
    let found = around_the_intake(&House::of_the_project());
    assert!(found.is_empty(), "{}", found.join("\n"));
    let house = built(&[
        ("world/kubernetes.rs", "use kube::Client;\n"),
        ("world/kubernetes/index.rs", "use kube::{Client, Resource};\n"),
        ("serve/leader.rs", "use kube::Client;\n"),
    ]);
    assert_eq!(
        around_the_intake(&house),
        ["src/world/kubernetes/index.rs:1 names kube's client: read through the intake"]
    );
}

#[test]
fn public_items_are_documented() {
    let found = House::of_the_project().undocumented();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// A house of these files, each a path below `src/` and its text.
fn built(files: &[(&str, &str)]) -> House {
    House::of(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())))
}

#[test]
fn an_arrow_to_a_higher_floor_is_reported_with_file_line_and_reason() {
    let house = built(&[
        ("judge.rs", "use crate::serve::https;\n"),
        ("serve.rs", "pub mod https;\n"),
        ("serve/https.rs", "use crate::judge;\n"),
        ("world.rs", "//! x\nfn f() { crate::inspect::scan() }\n"),
        ("inspect.rs", "pub fn scan() {}\n"),
    ]);
    assert_eq!(
        upward(&house),
        [
            "src/judge.rs:1 imports serve/https: judge stands below serve",
            "src/world.rs:2 imports inspect: world stands below inspect",
        ]
    );
}

#[test]
fn an_arrow_against_the_order_of_the_engine_is_reported() {
    let house = built(&[
        ("engine.rs", "pub mod facts;\npub mod rules;\n"),
        ("engine/facts.rs", "\nuse super::rules::records::{Case as C, other};\n"),
        ("engine/rules.rs", "pub mod records;\nuse super::facts;\n"),
        ("engine/rules/records.rs", "pub struct Case;\npub fn other() {}\n"),
    ]);
    let reason = "in engine/, facts stands before rules";
    assert_eq!(upward(&house), [format!("src/engine/facts.rs:2 imports engine/rules/records: {reason}")]);
}

#[test]
fn a_name_that_is_handed_on_leads_to_its_definition() {
    let house = built(&[
        ("engine.rs", "pub mod facts;\npub mod rules;\n"),
        ("engine/facts.rs", "pub use actor::Actor;\nmod actor;\n"),
        ("engine/facts/actor.rs", "use crate::engine::rules::Named;\npub struct Actor(Named);\n"),
        ("engine/rules.rs", "mod names;\npub use names::Named;\n"),
        ("engine/rules/names.rs", "use crate::engine::facts::Actor;\npub struct Named(Actor);\n"),
    ]);
    let reason = "in engine/, facts stands before rules";
    assert_eq!(upward(&house), [format!("src/engine/facts/actor.rs:1 imports engine/rules/names: {reason}")]);
    let circles = circles(&house);
    assert_eq!(circles.len(), 1);
    assert!(circles[0].starts_with("a circle across rooms:\n  src/engine/facts/actor.rs:1 imports"), "{circles:?}");
}

#[test]
fn the_ground_imports_nothing_and_an_unknown_room_is_reported() {
    let house = built(&[
        ("budget.rs", "use crate::readiness::Gate;\n"),
        ("readiness.rs", "pub struct Gate;\n"),
        ("attic.rs", "use crate::budget;\n"),
        ("engine.rs", ""),
        ("engine/cellar.rs", "use crate::engine::json;\n"),
        ("engine/json.rs", ""),
    ]);
    assert_eq!(
        upward(&house),
        [
            "src/attic.rs:1 imports budget: attic is on no floor of the table",
            "src/budget.rs:1 imports readiness: the ground imports nothing of ours",
            "src/engine/cellar.rs:1 imports engine/json: cellar has no place in the order of engine/",
        ]
    );
}

#[test]
fn a_circle_of_three_files_in_a_room_is_reported_and_one_of_two_is_not() {
    let pair = [("cli.rs", "mod a;\npub struct X;\nuse a::Y;\n"), ("cli/a.rs", "use super::X;\npub struct Y;\n")];
    assert_eq!(circles(&built(&pair)), [] as [&str; 0]);
    let three = [
        ("cli.rs", "mod a;\nmod b;\n"),
        ("cli/a.rs", "use super::b::B;\npub struct A;\n"),
        ("cli/b.rs", "mod c;\nuse c::C;\npub struct B;\n"),
        ("cli/b/c.rs", "use crate::cli::a::A;\npub struct C;\n"),
    ];
    let found = circles(&built(&three));
    assert!(found.len() == 1 && found[0].starts_with("a circle of 3 files in cli:\n"), "{found:?}");
}

#[test]
fn whatever_is_not_pure_is_found_in_the_engine_and_tests_are_left_out() {
    let text = "use std::{fs, time::Instant};\nasync fn f() { tokio::time::sleep(d).await; }\nfn g() { println!(\"x\"); \
                let t = Timestamp::now(); std::env::var(\"X\"); }\n#[cfg(test)]\nmod tests { use std::net::TcpListener; }\n";
    let found = impure(&built(&[("engine.rs", ""), ("engine/json.rs", text), ("world.rs", text)]));
    for reason in ["std::fs", "std::time::Instant", "async", "tokio", "println!", "Timestamp::now", "std::env"] {
        assert!(found.iter().any(|line| line.contains(reason)), "{reason}: {found:?}");
    }
    assert!(
        found.iter().all(|line| line.starts_with("src/engine/json.rs:") && !line.contains("std::net")),
        "{found:?}"
    );
}

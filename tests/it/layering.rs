//! The floors of both crates: arrows point down, and nothing runs in circles. That the engine knows nothing of the program is for
//! the compiler, and that it is pure for `crates/engine/clippy.toml`.
//!
//! An arrow is a `use`, or a path in a body, from one file to the file that defines the name. A
//! `pub use` of a child is no arrow: whoever imports the name depends on its definition. Tests are left out.

mod arrows;
mod house;
mod imports;
mod intake;
mod owners;

use arrows::{circles, upward};
use house::House;
use intake::around_the_intake;

/// The floors of the program, from the ground up, and the rooms of each. The rooms of the ground import nothing of ours.
const PROGRAM: [&[&str]; 7] = [
    &["budget", "file_watch", "cluster_name", "log_limit", "readiness", "regular_file", "supported"],
    &["world"],
    &["judge"],
    &["inspect"],
    &["serve"],
    &["offline"],
    &["cli"],
];

/// The rooms of the engine, in the order of a request. `owners/*` stands for the folder of each owner that has no floor of its own. The
/// rules that only one owner has stand in its folder, and on the floor of the other rules.
const ENGINE: [&[&str]; 37] = [
    &["effort"],
    &["text"],
    &["json"],
    &["yaml"],
    &["object"],
    &["severity"],
    &["losses"],
    &["ways_out"],
    &["release"],
    &["managed"],
    &["owners/carried", "owners/homes", "owners/upstream", "owners/vocabulary"],
    &["owners/*"],
    &["owners/helm"],
    &["owners/words"],
    &["owners/marks"],
    &["review"],
    &["owners/status"],
    &["owners/declaration"],
    &["owners"],
    &["rule"],
    &["release_override"],
    &["freeze_resource"],
    &["facts"],
    &["policy"],
    &["evidence"],
    &["violation"],
    &["stamp"],
    &["rules"],
    &["outcome"],
    &["overrides"],
    &["decide"],
    &["policy_files"],
    &["answers"],
    &["memory"],
    &["freezes"],
    &["decision"],
    &["reply"],
];

fn program() -> House {
    House::read("src", &PROGRAM)
}

fn engine() -> House {
    House::read("crates/engine/src", &ENGINE)
}

#[test]
fn arrows_point_down() {
    for house in [program(), engine()] {
        assert!(house.files() > 150, "read only {} files", house.files());
        let wrong = upward(&house);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

#[test]
fn no_circle_crosses_rooms_and_none_inside_a_room_has_more_than_two_files() {
    for house in [program(), engine()] {
        let circles = circles(&house);
        assert!(circles.is_empty(), "{}", circles.join("\n"));
    }
}

#[test]
fn the_world_reads_the_cluster_through_the_intake() {
    let found = around_the_intake(&program());
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
    for house in [program(), engine()] {
        let found = house.undocumented();
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
}

/// The program made of these files, each a path below `src/` and its text.
fn built(files: &[(&str, &str)]) -> House {
    House::of("src", &PROGRAM, files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())))
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
fn a_name_that_is_handed_on_leads_to_its_definition() {
    let house = built(&[
        ("judge.rs", "pub use steps::Steps;\nmod steps;\n"),
        ("judge/steps.rs", "use crate::serve::Named;\npub struct Steps(Named);\n"),
        ("serve.rs", "mod names;\npub use names::Named;\n"),
        ("serve/names.rs", "use crate::judge::Steps;\npub struct Named(Steps);\n"),
    ]);
    assert_eq!(upward(&house), ["src/judge/steps.rs:1 imports serve/names: judge stands below serve"]);
    let circles = circles(&house);
    assert_eq!(circles.len(), 1);
    assert!(circles[0].starts_with("a circle across rooms:\n  src/judge/steps.rs:1 imports"), "{circles:?}");
}

#[test]
fn the_ground_imports_nothing_and_an_unknown_room_is_reported() {
    let house = built(&[
        ("budget.rs", "use crate::readiness::Gate;\n"),
        ("readiness.rs", "pub struct Gate;\n"),
        ("attic.rs", "use crate::budget;\n"),
    ]);
    assert_eq!(
        upward(&house),
        [
            "src/attic.rs:1 imports budget: attic is on no floor of the table",
            "src/budget.rs:1 imports readiness: the ground imports nothing of ours",
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
fn only_their_folders_name_owners() {
    let found = [program(), engine()].iter().flat_map(House::named_owners).collect::<Vec<_>>();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn an_owner_that_is_named_elsewhere_is_reported() {
    let of = |path: &str, text: &str| owners::named(path, text).into_iter().collect::<Vec<_>>();
    let text = "//! Flux.\nuse crate::owners::flux;\nfn by_olm() { let _ = (FluxAccount, \"the Sveltos agent\"); log!(of_flux) }\n";
    assert_eq!(of("src/world.rs", text), ["FluxAccount", "by_olm", "flux", "of_flux", "the Sveltos agent"]);
    assert_eq!(of("crates/engine/src/owners/olm.rs", text), [""; 0]);
    let other =
        "/// Of OLM.\nfn helm_column() -> &'static str { \"volumes\" }\n#[cfg(test)]\nmod tests { use flux; }\n";
    assert_eq!(of("src/world.rs", other), [""; 0]);
}

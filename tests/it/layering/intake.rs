//! Whatever the world reads of the cluster comes through `world/kubernetes/intake`.

use super::house::House;

/// The files of the world that name kube's own client. Those that take one from outside read nothing that tenants store, and the
/// others get it from the intake, wrap it, or list labels for a command.
const WITH_A_CLIENT: [&str; 14] = [
    "world/kubernetes",
    "world/kubernetes/clock",
    "world/kubernetes/freezes",
    "world/kubernetes/identity",
    "world/kubernetes/intake",
    "world/kubernetes/kinds",
    "world/kubernetes/losses",
    "world/kubernetes/namespaces",
    "world/kubernetes/own_objects",
    "world/kubernetes/policies",
    "world/kubernetes/reach",
    "world/kubernetes/reader",
    "world/kubernetes/release_overrides",
    "world/kubernetes/server_version",
];

/// Every other file of the world that names it.
pub(super) fn around_the_intake(house: &House) -> Vec<String> {
    let world = house.contents().filter(|(module, _)| module[0] == "world");
    let found = world.flat_map(|(module, contents)| {
        let file = module.join("/");
        let is_client = |path: &[String]| {
            path.first().is_some_and(|krate| krate == "kube") && path.last().is_some_and(|name| name == "Client")
        };
        let named = contents.imports.iter().filter(move |import| is_client(&import.path));
        let around = named.filter(|_| !WITH_A_CLIENT.contains(&file.as_str()) && !file.ends_with("fake"));
        around
            .map(|import| format!("src/{file}.rs:{} names kube's client: read through the intake", import.line))
            .collect::<Vec<_>>()
    });
    found.collect()
}

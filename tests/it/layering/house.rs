//! The files of a crate, and the arrows between them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::imports::{Contents, Import};

/// A module by its path: `["engine", "facts"]`.
pub(super) type Module = Vec<String>;

/// An import of one file from another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Arrow {
    pub(super) from: Module,
    pub(super) line: usize,
    pub(super) to: Module,
}

impl Arrow {
    /// `src/judge.rs:3 imports serve/https`.
    pub(super) fn description(&self, house: &House) -> String {
        format!("{}/{}.rs:{} imports {}", house.root, self.from.join("/"), self.line, self.to.join("/"))
    }
}

/// The sources of a crate.
pub(super) struct House {
    /// The folder of the sources, in the repository.
    root: &'static str,
    /// The rooms of each floor, from the ground up.
    floors: &'static [&'static [&'static str]],
    /// Every file by its module, tests left out.
    modules: BTreeMap<Module, Contents>,
    /// Where an owner is named.
    named_owners: Vec<String>,
}

impl House {
    pub(super) fn of(
        root: &'static str,
        floors: &'static [&'static [&'static str]],
        files: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        let mut named_owners = Vec::new();
        let modules = files.into_iter().filter_map(|(path, text)| {
            let file = format!("{root}/{path}");
            let names = super::owners::named(&file, &text);
            named_owners.extend(names.into_iter().map(|name| format!("{file} names an owner: {name}")));
            let module: Module = path.strip_suffix(".rs")?.split('/').map(str::to_owned).collect();
            let is_room = module != ["lib"] && module != ["main"] && !module.iter().any(|name| name == "tests");
            is_room.then(|| (module, Contents::of(&text)))
        });
        let modules = modules.collect();
        Self { root, floors, modules, named_owners }
    }

    /// The crate whose sources are in this folder of the repository.
    pub(super) fn read(root: &'static str, floors: &'static [&'static [&'static str]]) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(root);
        let mut files = Vec::new();
        read(&folder, &folder, &mut files);
        Self::of(root, floors, files)
    }

    /// The room of a file: the longest entry of the floors that its path starts with, or its first folder.
    pub(super) fn room(&self, module: &Module) -> String {
        if module[0] == "owners" && module.iter().take(3).any(|part| part == "rules") {
            return "rules".to_owned();
        }
        let path = module.join("/");
        let rooms = self.floors.iter().copied().flatten();
        let room = rooms.filter(|room| path == **room || path.starts_with(&format!("{room}/")));
        let room = room.max_by_key(|room| room.len()).map_or_else(|| module[0].clone(), |room| (*room).to_owned());
        if room == "owners" && self.is_of_owner(module) { module[..2].join("/") } else { room }
    }

    /// Whether a file stands in the folder of an owner, or is its face.
    fn is_of_owner(&self, module: &Module) -> bool {
        module.len() > 1 && self.modules.keys().any(|file| file.len() > 2 && file[..2] == module[..2])
    }

    /// The floor of a room, counted from the ground.
    pub(super) fn floor(&self, room: &str) -> Option<usize> {
        let with = |room: &str| self.floors.iter().position(|rooms| rooms.contains(&room));
        with(room).or_else(|| with("owners/*").filter(|_| room.starts_with("owners/")))
    }

    /// The part of a crate in which files may import each other: in the program a folder of a room (`serve/https`), else a room.
    pub(super) fn part(&self, module: &Module) -> String {
        let is_split = self.root == "src" && module[0] != "cli" && module.len() > 1;
        if is_split { module[..2].join("/") } else { self.room(module) }
    }

    /// Every name of an owner outside of its folder.
    pub(super) fn named_owners(&self) -> Vec<String> {
        self.named_owners.clone()
    }

    pub(super) fn files(&self) -> usize {
        self.modules.len()
    }

    pub(super) fn contents(&self) -> impl Iterator<Item = (&Module, &Contents)> {
        self.modules.iter()
    }

    /// Every arrow, once a pair of files and line.
    pub(super) fn arrows(&self) -> BTreeSet<Arrow> {
        let arrows = self.modules.iter().flat_map(|(from, contents)| {
            contents.imports.iter().filter_map(move |import| {
                let to = self.definition(&self.absolute(from, &import.path)?, 0)?;
                // A parent that shows what its children define is their face; any other name that is handed on is imported.
                let is_face = import.is_handed_on && to.starts_with(from);
                (to != *from && !is_face).then(|| Arrow { from: from.clone(), line: import.line, to })
            })
        });
        arrows.collect()
    }

    pub(super) fn undocumented(&self) -> Vec<String> {
        let lines = self.modules.iter().flat_map(|(module, contents)| {
            let line = |line: &usize| {
                format!("{}/{}.rs:{line}: a public item without a doc comment", self.root, module.join("/"))
            };
            contents.undocumented.iter().map(line)
        });
        lines.collect()
    }

    /// A path from the root of the crate; `None` where it leads out of it.
    fn absolute(&self, module: &Module, path: &[String]) -> Option<Vec<String>> {
        let (first, rest) = path.split_first()?;
        let mut from = match first.as_str() {
            "crate" => Vec::new(),
            "self" => module.clone(),
            "super" => module[..module.len() - 1].to_vec(),
            _ => {
                let child: Module = module.iter().chain([first]).cloned().collect();
                return self.modules.contains_key(&child).then(|| [&child, rest].concat());
            }
        };
        let above = rest.iter().take_while(|segment| *segment == "super").count();
        from.truncate(from.len().saturating_sub(above));
        from.extend_from_slice(&rest[above..]);
        Some(from)
    }

    /// The file that defines a path, through any file that hands its name on.
    fn definition(&self, path: &[String], depth: usize) -> Option<Module> {
        let length = (1..=path.len()).rev().find(|&length| self.modules.contains_key(&path[..length]))?;
        let module = path[..length].to_vec();
        let handed_on = path.get(length).and_then(|name| {
            let imports = self.modules[&module].imports.iter().filter(|import| import.is_use);
            imports
                .filter(|import| import.name == *name)
                .find_map(|import: &Import| self.absolute(&module, &import.path))
        });
        match handed_on {
            // A chain of names is short; a circle of them would not compile.
            Some(next) if depth < 8 => {
                self.definition(&[&next, &path[length + 1..]].concat(), depth + 1).or(Some(module))
            }
            _ => Some(module),
        }
    }
}

fn read(root: &Path, directory: &Path, files: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read(root, &path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            files.push((name, fs::read_to_string(&path).unwrap()));
        }
    }
}

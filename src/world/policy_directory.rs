//! The directory of policies: `cluster.yaml`, and `namespaces/NAMESPACE.yaml`.

use std::path::{Path, PathBuf};
use std::{fs, io};

use interlock_engine::object::is_dns_label;
use interlock_engine::policy::{Policies, Policy};
use interlock_engine::policy_files::{NAMESPACES_DIR, PolicyError, PolicyFiles, bad_file_name};

use crate::regular_file;

/// The maximum size of a mounted ConfigMap, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Files in the directory that are no policies of namespaces: the policy of the cluster, and the file that publishes it.
const OTHER_FILES: [&str; 2] = ["cluster.yaml", "kustomization.yaml"];

/// The suffix of suites, which test policies.
const SUITE_SUFFIX: &str = ".test.yaml";

/// The policies of a directory, or the shipped policy if no directory is named.
///
/// # Errors
/// All errors, over all files.
pub fn load_or_shipped(directory: Option<&Path>) -> Result<Policies, PolicyError> {
    directory.map_or_else(|| Policy::shipped().map(Policies::from), load)
}

/// The policies of a directory.
///
/// # Errors
/// All errors, over all files.
pub fn load(directory: &Path) -> Result<Policies, PolicyError> {
    Policies::of_files(&read(directory))
}

/// The files of a directory.
#[must_use]
pub fn read(directory: &Path) -> PolicyFiles {
    let mut files = PolicyFiles::default();
    let path = directory.join("cluster.yaml");
    if let Some(text) = read_text(&mut files, &path, "name the directory that holds it with --policies") {
        files.set_cluster(path, text);
    }
    for_each(&mut files, directory, report_misplaced);
    for_each(&mut files, &directory.join(NAMESPACES_DIR), read_namespace);
    files
}

/// Visits all entries of a directory, in order.
fn for_each(files: &mut PolicyFiles, directory: &Path, visit: fn(&mut PolicyFiles, PathBuf)) {
    match listed(directory) {
        Ok(paths) => paths.into_iter().for_each(|path| visit(files, path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => report_unreadable(files, directory.to_owned(), &error, "let Interlock list it"),
    }
}

/// Reports a file in the directory of `cluster.yaml` that somebody may mistake for a policy in force.
fn report_misplaced(files: &mut PolicyFiles, path: PathBuf) {
    let name = file_name(&path);
    let is_read = OTHER_FILES.contains(&name) || name.ends_with(SUITE_SUFFIX) || name.starts_with('.');
    if !is_read && (name.ends_with(".yaml") || name.ends_with(".yml")) {
        let message = "is not read from here; the policy of a namespace is namespaces/NAMESPACE.yaml";
        files.add_wrong(path, message.to_owned());
    }
}

fn read_namespace(files: &mut PolicyFiles, path: PathBuf) {
    let name = file_name(&path);
    match name.rsplit_once('.') {
        // Kubernetes mounts a ConfigMap with such directories and links, and editors leave such files.
        _ if name.starts_with('.') => {}
        Some((namespace, "yaml")) if is_dns_label(namespace) => {
            let namespace = namespace.to_owned();
            if let Some(text) = read_text(files, &path, "let Interlock read it") {
                files.add_namespace(namespace, path, text);
            }
        }
        Some((_, "yaml" | "yml")) => {
            let message = bad_file_name(name);
            files.add_wrong(path, message);
        }
        _ if path.is_dir() => for_each(files, &path, report_nested),
        _ => {}
    }
}

/// Reports a file below `namespaces/` that somebody may mistake for a policy in force.
fn report_nested(files: &mut PolicyFiles, path: PathBuf) {
    if matches!(file_name(&path).rsplit_once('.'), Some((_, "yaml" | "yml"))) {
        let message = "is not read from here; move it to namespaces/, because directories below that are not read";
        files.add_wrong(path, message.to_owned());
    }
}

fn read_text(files: &mut PolicyFiles, path: &Path, way_out: &str) -> Option<String> {
    regular_file::read_text(path, MAX_FILE_BYTES)
        .map_err(|error| report_unreadable(files, path.to_owned(), &error, way_out))
        .ok()
}

fn report_unreadable(files: &mut PolicyFiles, file: PathBuf, error: &io::Error, way_out: &str) {
    match error.kind() {
        // The file was read, and is not text.
        io::ErrorKind::InvalidData => files.add_wrong(file, error.to_string()),
        io::ErrorKind::FileTooLarge => files.add_wrong(file, format!("{error}; a ConfigMap holds no more")),
        _ => files.add_unread(file, format!("failed to read it: {error}; {way_out}")),
    }
}

fn file_name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

fn listed(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths: Vec<_> = fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    paths.sort_unstable();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use interlock_engine::policy_files::LoadedPolicies;
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn a_pipe_in_place_of_a_policy_is_reported_and_never_hangs() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join(NAMESPACES_DIR)).unwrap();
        for file in ["cluster.yaml", "namespaces/shop.yaml"] {
            mknodat(CWD, directory.path().join(file), FileType::Fifo, Mode::RUSR, 0).unwrap();
        }
        let problems = LoadedPolicies::of(&read(directory.path())).problems;
        let reported: Vec<_> = problems.iter().map(|problem| file_name(&problem.file)).collect();
        assert_eq!(reported, ["cluster.yaml", "shop.yaml"]);
        assert!(
            problems.iter().all(|problem| problem.message.contains("it is a pipe, not a regular file")),
            "{problems:?}"
        );
    }

    #[test]
    fn a_file_in_the_wrong_place_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        for file in ["cluster.yaml", "shop.yaml", "suite.test.yaml", "schema.json", "kustomization.yaml", "cluster.yml"]
        {
            fs::write(directory.path().join(file), "kind: ClusterPolicy\napiVersion: interlock.dev/v1alpha1\n")
                .unwrap();
        }
        let problems = LoadedPolicies::of(&read(directory.path())).problems;
        let reported: Vec<_> = problems.iter().map(|problem| file_name(&problem.file)).collect();
        assert_eq!(reported, ["cluster.yml", "shop.yaml"]);
        assert!(problems[0].message.contains("namespaces/NAMESPACE.yaml"));
        fs::create_dir_all(directory.path().join("namespaces/team")).unwrap();
        fs::create_dir_all(directory.path().join("namespaces/..2026_11_21")).unwrap();
        for file in ["team/shop.yaml", "team/notes.txt", "..2026_11_21/crm.yaml"] {
            fs::write(directory.path().join("namespaces").join(file), "").unwrap();
        }
        let problems = LoadedPolicies::of(&read(directory.path())).problems;
        let nested: Vec<_> = problems.iter().filter(|problem| problem.file.ends_with("team/shop.yaml")).collect();
        assert!(problems.len() == 3 && nested[0].message.contains("move it to namespaces/"), "{problems:?}");
    }
}

//! Files as the kubelet publishes them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Publishes files as the kubelet does with a ConfigMap or Secret: in a new directory, to which the link `..data` is
/// swapped.
pub(crate) fn mount(directory: &Path, generation: usize, files: &[(&str, String)]) {
    fs::create_dir_all(directory).unwrap();
    let real = format!("..{generation}");
    fs::create_dir(directory.join(&real)).unwrap();
    for (name, text) in files {
        fs::write(directory.join(&real).join(name), text).unwrap();
        if fs::symlink_metadata(directory.join(name)).is_err() {
            symlink(Path::new("..data").join(name), directory.join(name)).unwrap();
        }
    }
    let old = fs::read_link(directory.join("..data"));
    symlink(&real, directory.join("..data_tmp")).unwrap();
    fs::rename(directory.join("..data_tmp"), directory.join("..data")).unwrap();
    if let Ok(old) = old {
        fs::remove_dir_all(directory.join(old)).unwrap();
    }
}

//! Memory and open files of the replicas.

use std::fs;

use crate::harness::kubelet::Replica;

/// How much more memory a replica may have at rest than the largest one had before: the half of it, and this much.
const MORE_MIB: u64 = 16;
/// Files that come and go: a reload, a watch that begins again.
const MORE_FILES: u64 = 8;

/// One replica at rest.
#[derive(Debug, Clone)]
pub(crate) struct Usage {
    pub(crate) pod: String,
    pub(crate) memory_mib: u64,
    pub(crate) files: u64,
}

pub(crate) fn usage(replicas: &[Replica]) -> Result<Vec<Usage>, String> {
    replicas.iter().map(of).collect()
}

fn of(replica: &Replica) -> Result<Usage, String> {
    let proc = format!("/proc/{}", replica.pid);
    let status = fs::read_to_string(format!("{proc}/status")).map_err(|e| format!("cannot read {proc}/status: {e}"))?;
    let kib =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse::<u64>().ok());
    let files = fs::read_dir(format!("{proc}/fd")).map_err(|e| format!("cannot read {proc}/fd: {e}"))?.count() as u64;
    let memory_mib = kib.ok_or("no VmRSS")? / 1024;
    Ok(Usage { pod: replica.pod.clone(), memory_mib, files })
}

/// What is not back to what it was.
pub(crate) fn reasons(before: &[Usage], after: &[Usage]) -> Vec<String> {
    let most = |of: fn(&Usage) -> u64| before.iter().map(of).max().unwrap_or(0);
    let (memory, files) = (most(|it| it.memory_mib), most(|it| it.files));
    let (memory, files) = (memory * 3 / 2 + MORE_MIB, files + MORE_FILES);
    let grown = after.iter().filter(|it| it.memory_mib > memory || it.files > files);
    grown
        .map(|it| {
            format!(
                "at rest, {} has {} MiB and {} files; at most {memory} and {files} are expected",
                it.pod, it.memory_mib, it.files
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(memory_mib: u64, files: u64) -> Usage {
        Usage { pod: "one".to_owned(), memory_mib, files }
    }

    #[test]
    fn more_memory_or_files_than_before_is_a_reason() {
        let before = [usage(20, 30), usage(24, 28)];
        assert!(reasons(&before, &[usage(52, 38)]).is_empty());
        assert_eq!(reasons(&before, &[usage(53, 30), usage(20, 39)]).len(), 2);
    }
}

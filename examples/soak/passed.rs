//! The API server's own account of what it admitted unjudged: its audit log.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Who makes the forbidden acts.
const STRANGER: &str = "bob";

/// Enough to count the forbidden acts.
const POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, users: [bob], verbs: [create, update, patch, delete]}
- {level: None}
";

/// What `interlock replay` and `adopt` need.
const COMPLETE: &str = include_str!("../audit-policy.yaml");

pub(crate) struct AuditLog {
    log: PathBuf,
    policy: PathBuf,
}

impl AuditLog {
    /// A log that ends with the run, or a complete one in the file `kept`.
    pub(crate) fn in_dir(dir: &Path, kept: Option<&Path>) -> Result<Self, String> {
        let log = kept.map_or_else(|| Ok(dir.join("audit.log")), std::path::absolute);
        let log = log.map_err(|e| format!("cannot name the audit log: {e}"))?;
        let policy = dir.join("audit.yaml");
        fs::write(&policy, if kept.is_some() { COMPLETE } else { POLICY })
            .map_err(|e| format!("cannot write {}: {e}", policy.display()))?;
        Ok(Self { log, policy })
    }

    /// For the API server.
    pub(crate) fn flags(&self) -> [String; 3] {
        [
            format!("--apiserver-flag=--audit-policy-file={}", self.policy.display()),
            format!("--apiserver-flag=--audit-log-path={}", self.log.display()),
            "--apiserver-flag=--audit-log-maxsize=20000".to_owned(),
        ]
    }

    /// How many of the stranger's writes were admitted because an entry failed open, or because Interlock could not judge them.
    pub(crate) fn unjudged(&self) -> u64 {
        let Ok(log) = File::open(&self.log) else { return 0 };
        BufReader::new(log).lines().map_while(Result::ok).filter(|line| is_unjudged(line)).count() as u64
    }
}

fn is_unjudged(line: &str) -> bool {
    let Ok(event) = serde_json::from_str::<Value>(line) else { return false };
    let admitted = event["responseStatus"]["code"].as_u64().is_some_and(|code| code < 300);
    let says = |key: &String| key.starts_with("failed-open.") || key.ends_with("/undecided");
    admitted
        && event["user"]["username"] == STRANGER
        && event["annotations"].as_object().is_some_and(|annotations| annotations.keys().any(says))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_admitted_writes_of_the_stranger_that_nobody_judged_count() {
        let open = "failed-open.validating.webhook.admission.k8s.io/round_0_index_3";
        let event = |user: &str, code: u32, key: &str| {
            let event =
                json!({"user": {"username": user}, "responseStatus": {"code": code}, "annotations": {key: "x"}});
            is_unjudged(&event.to_string())
        };
        assert!(event("bob", 200, open) && event("bob", 201, "objects.interlock.dev/undecided"));
        assert!(
            !event("alice", 200, open) && !event("bob", 403, open) && !event("bob", 200, "objects.interlock.dev/rule")
        );
    }
}

//! The API server's own account of what it admitted unjudged: its audit log.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Who makes the forbidden acts.
const STRANGER: &str = "bob";

const POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, users: [bob], verbs: [create, update, patch, delete]}
- {level: None}
";

pub(crate) struct AuditLog {
    log: PathBuf,
    policy: PathBuf,
}

impl AuditLog {
    pub(crate) fn in_dir(dir: &Path) -> Result<Self, String> {
        let (log, policy) = (dir.join("audit.log"), dir.join("audit.yaml"));
        fs::write(&policy, POLICY).map_err(|e| format!("cannot write {}: {e}", policy.display()))?;
        Ok(Self { log, policy })
    }

    /// For the API server.
    pub(crate) fn flags(&self) -> [String; 3] {
        [
            format!("--apiserver-flag=--audit-policy-file={}", self.policy.display()),
            format!("--apiserver-flag=--audit-log-path={}", self.log.display()),
            "--apiserver-flag=--audit-log-maxsize=2000".to_owned(),
        ]
    }

    /// How many of the stranger's writes were admitted because an entry failed open, or because Interlock could not judge them.
    pub(crate) fn unjudged(&self) -> u64 {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        log.lines().filter(|line| is_unjudged(line)).count() as u64
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

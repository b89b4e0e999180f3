//! `interlock explain --user`: how the policy classifies a user, and by which line.

use interlock_engine::facts::ActorKind;
use interlock_engine::policy_files::{HeldBy, Identity, PipelineIdentity};
use serde_json::{Value, json};

use super::{origin, setting_json};

/// The text for people.
pub(super) fn text(user: &str, groups: &[String], identity: &Identity) -> String {
    let in_groups = if groups.is_empty() { String::new() } else { format!(" in {}", groups.join(", ")) };
    let of_pipeline = identity.pipeline.as_ref().map(|of| format!(" ({})", of.name)).unwrap_or_default();
    let mut text = format!(
        "{user}{in_groups} counts as: {}{of_pipeline}\n\nWhy      {}\nObjects  {}\nRecords  {}\n",
        identity.kind.as_str(),
        why(user, identity),
        on_objects(identity),
        on_records(identity),
    );
    if !identity.entries.is_empty() {
        text.push_str("\nEntries of the policy that match:\n");
    }
    for entry in &identity.entries {
        text.push_str(&format!("  {:<18} {:<40} {}\n", entry.name, entry.value, origin(&entry.origin)));
    }
    text.trim_end().to_owned()
}

/// The JSON for programs.
pub(super) fn json(user: &str, groups: &[String], identity: &Identity, policy: &str) -> Value {
    let holder = identity.pipeline.as_ref().map(|of| match &of.holder {
        HeldBy::User => json!({"session": user}),
        HeldBy::Pipeline => json!({"pipeline": of.name}),
        HeldBy::Group(group) => json!({"pipeline": of.name, "group": group}),
    });
    json!({
        "user": user, "policy": policy, "groups": groups, "countsAs": identity.kind.as_str(),
        "pipeline": identity.pipeline.as_ref().map(|of| &of.name), "holder": holder, "why": why(user, identity),
        "entries": identity.entries.iter().map(setting_json).collect::<Vec<_>>(),
    })
}

fn why(user: &str, identity: &Identity) -> String {
    let listed = |list: &str| {
        let entry = identity.entries.iter().find(|entry| entry.name.starts_with(list))?;
        Some(format!("{} ({})", entry.value, origin(&entry.origin)))
    };
    match identity.kind {
        ActorKind::ServiceAccount => "its name is that of a service account".to_owned(),
        ActorKind::ControlPlane => {
            "its name is that of a controller of Kubernetes, the API server or the scheduler".to_owned()
        }
        ActorKind::Node => "its name is that of a node, and it is in the group system:nodes".to_owned(),
        ActorKind::Interlock => "it is Interlock's own account".to_owned(),
        ActorKind::Platform => listed("platform").unwrap_or_else(|| {
            "its name has the prefix system:, which Kubernetes reserves for the cluster's own users".to_owned()
        }),
        ActorKind::Pipeline => listed("pipelines").unwrap_or_else(|| "the list pipelines of the policy".to_owned()),
        ActorKind::Person if user.starts_with("system:node:") => {
            "a node is in the group system:nodes, and this user is not (--group)".to_owned()
        }
        ActorKind::Person if user.starts_with("system:") => {
            "the name has the prefix system:, but it is a person's, or not a valid name of what it looks like"
                .to_owned()
        }
        ActorKind::Person => "no list of the policy says otherwise".to_owned(),
    }
}

/// How rules about objects treat the user.
fn on_objects(identity: &Identity) -> &'static str {
    let is_listed = |list: &str| identity.entries.iter().any(|entry| entry.name == list);
    match identity.kind {
        ActorKind::ControlPlane | ActorKind::Platform | ActorKind::Node => "exempt",
        _ if is_listed("controllers") => "exempt, as an entry of controllers",
        _ if is_listed("managers") => {
            "exempt, as a manager; but it deletes nothing during an operation that it may not end"
        }
        ActorKind::ServiceAccount => "the cases for serviceAccounts apply",
        ActorKind::Pipeline => "the cases for pipelines apply",
        ActorKind::Interlock | ActorKind::Person => {
            "the modes of the rules apply, unless a case names the user or a group"
        }
    }
}

/// The holder of the operations that the user starts.
fn on_records(identity: &Identity) -> String {
    let holder = identity.pipeline.as_ref().map(|PipelineIdentity { name, holder }| match holder {
        HeldBy::User => "this user name alone holds its operations".to_owned(),
        HeldBy::Pipeline => format!("every session of the pipeline {name} holds its operations"),
        HeldBy::Group(group) => {
            format!("every session of the pipeline {name} in the group {group} holds its operations")
        }
    });
    match identity.kind {
        ActorKind::ControlPlane => "exempt".to_owned(),
        _ => holder.unwrap_or_else(|| "this user name alone holds its operations".to_owned()),
    }
}

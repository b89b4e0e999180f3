//! Lines of a policy that open honest work. Each names what the log shows, and nothing else.

use std::collections::BTreeSet;

/// A list of the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum List {
    Managers,
    Tools,
    Platform,
    Pipelines,
}

impl List {
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Managers => "managers",
            Self::Tools => "tools",
            Self::Platform => "platform",
            Self::Pipelines => "pipelines",
        }
    }
}

/// An entry of a list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) list: List,
    /// The user name. For the sessions of a pipeline, a glob over them.
    pub(super) user: String,
    /// The name of a pipeline.
    pub(super) name: String,
}

/// A line that opens honest work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Opening {
    Entry(Entry),
    /// Cases of these rules for one service account, in the mode `off`.
    Cases {
        rules: Vec<&'static str>,
        account: String,
        kinds: BTreeSet<String>,
    },
}

impl Entry {
    /// An entry for one user; `None` if a policy cannot name it exactly.
    pub(super) fn exact(list: List, user: &str) -> Option<Self> {
        is_plain(user).then(|| Self { list, user: user.to_owned(), name: pipeline_name(user) })
    }

    /// A pipeline whose sessions share a stem.
    pub(super) fn sessions(stem: &str) -> Option<Self> {
        is_plain(stem).then(|| Self { list: List::Pipelines, user: format!("{stem}*"), name: pipeline_name(stem) })
    }

    /// The entry in YAML.
    pub(super) fn yaml(&self) -> String {
        let user = quoted(&self.user);
        match self.list {
            List::Pipelines => format!("{{name: {}, users: [{user}]}}", self.name),
            List::Managers | List::Tools | List::Platform => user,
        }
    }
}

/// The case in YAML.
pub(super) fn case_yaml(account: &str, kinds: &BTreeSet<String>) -> String {
    let kinds: Vec<_> = kinds.iter().map(|kind| quoted(kind)).collect();
    let kinds = if kinds.is_empty() { String::new() } else { format!(", kinds: [{}]", kinds.join(", ")) };
    format!("{{when: {{serviceAccounts: [{}]{kinds}}}, mode: \"off\"}}", quoted(account))
}

/// Whether a glob of this text matches the text alone, and a comment can show it.
pub(super) fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 512
        && text.bytes().all(|byte| byte.is_ascii_graphic() && !b"*?[]{}\\!".contains(&byte))
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A name for a pipeline: the last words of the user name that have a letter.
fn pipeline_name(user: &str) -> String {
    let parts = user.split(['/', ':', '@', '#']).filter(|part| part.bytes().any(|byte| byte.is_ascii_alphabetic()));
    let named: Vec<_> = parts.collect();
    // The part before an e-mail domain names the account, and the last part of a path or an ARN does.
    let part = if user.contains('@') { named.first() } else { named.last() };
    let name = part.copied().unwrap_or("pipeline").to_ascii_lowercase();
    let name: String = name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
    format!("{}-adopted", name.trim_matches('-').chars().take(40).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_name_one_user_or_the_sessions_of_one_stem() {
        let platform = Entry::exact(List::Platform, "eks:addon-manager").unwrap();
        assert_eq!(platform.yaml(), "'eks:addon-manager'");
        let sessions = Entry::sessions("arn:aws:sts::1:assumed-role/deploy/").unwrap();
        assert_eq!(sessions.yaml(), "{name: deploy-adopted, users: ['arn:aws:sts::1:assumed-role/deploy/*']}");
        let mail = Entry::exact(List::Pipelines, "deployer@shop.iam.gserviceaccount.com").unwrap();
        assert_eq!(mail.name, "deployer-adopted");
        for wide in ["*", "a*", "a?", "[ab]", "a\nb", "a b", ""] {
            assert_eq!(Entry::exact(List::Platform, wide), None, "{wide}");
        }
        assert_eq!(
            case_yaml("keda:scaler", &BTreeSet::from(["Deployment".to_owned()])),
            "{when: {serviceAccounts: ['keda:scaler'], kinds: ['Deployment']}, mode: \"off\"}"
        );
    }
}

//! Whether a user name is that of a machine: by the format that an authenticator gives to machines, by a word in it, or because many
//! names differ only in the number of a session.
//!
//! The formats are those of facts that clouds and CI systems document: they name service accounts by an e-mail address of their own
//! domain, jobs by the claims of their OIDC token, roles by an ARN with a session, and service principals by a GUID.

/// The domain of Google's service accounts.
const SERVICE_ACCOUNT_DOMAIN: &str = ".iam.gserviceaccount.com";

/// What the subject of a CI system's OIDC token starts with, and a claim that follows.
const CI_SUBJECTS: [(&str, &[&str]); 2] =
    [("repo:", &[":ref:", ":environment:", ":pull_request", ":job_workflow_ref:"]), ("project_path:", &[":ref_type:"])];

/// The part of an ARN before the role and the session.
const ASSUMED_ROLE: &str = ":assumed-role/";

/// The start of the roles that people get from single sign-on.
const SSO_ROLE: &str = "AWSReservedSSO_";

/// Words in the names of pipelines. Names are split where letters, digits and case change.
const WORDS: [&str; 24] = [
    "actions",
    "automation",
    "bot",
    "buildkite",
    "cd",
    "ci",
    "cicd",
    "circleci",
    "deploy",
    "deployer",
    "deployment",
    "drone",
    "github",
    "gitlab",
    "jenkins",
    "octopus",
    "pipeline",
    "pipelines",
    "release",
    "releaser",
    "runner",
    "spinnaker",
    "teamcity",
    "terraform",
];

/// Words in the names of sessions of pipelines.
const SESSION_WORDS: [&str; 3] = ["build", "job", "run"];

/// How a name shows that a machine has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// Only machines get names of this format.
    Format(&'static str),
    /// A word that people choose for pipelines.
    Word(&'static str),
}

/// The sign of a machine in a user name; `None` if it may be a person's.
pub(super) fn sign(name: &str) -> Option<Sign> {
    if name.ends_with(SERVICE_ACCOUNT_DOMAIN) {
        return Some(Sign::Format("it is the e-mail address of a service account"));
    }
    let is_ci = |(start, claims): &(&str, &[&str])| {
        let at = name.find(start).filter(|at| *at == 0 || name[..*at].ends_with(['#', '/', ':']));
        at.is_some_and(|at| claims.iter().any(|claim| name[at..].contains(claim)))
    };
    if CI_SUBJECTS.iter().any(is_ci) {
        return Some(Sign::Format("it is the subject of a CI job's token"));
    }
    if is_guid(name) {
        return Some(Sign::Format("it is the ID of a service principal"));
    }
    // An e-mail address is a person's, whatever words it contains.
    if name.contains('@') || name.contains(SSO_ROLE) {
        return None;
    }
    let words = words(name);
    WORDS.into_iter().find(|word| words.iter().any(|found| found == word)).map(Sign::Word)
}

/// The part of a name that all sessions share, with its separator, if the rest is the ID of a session; `None` for names of people.
pub(super) fn stem(name: &str) -> Option<&str> {
    let at = name.rfind(['/', ':'])? + 1;
    let (stem, session) = name.split_at(at);
    let digits = session.bytes().filter(u8::is_ascii_digit).count();
    let is_id = digits >= 3 && !session.contains('@') && !stem.contains(SSO_ROLE);
    (stem.len() > 2 && is_id).then_some(stem)
}

/// Whether names with this stem may be the sessions of a pipeline: roles and words of pipelines are. Numbers alone are also those of
/// employees.
pub(super) fn is_of_pipeline(stem: &str, session: &str) -> bool {
    let is_of_session = |word: &String| SESSION_WORDS.contains(&word.as_str());
    stem.contains(ASSUMED_ROLE)
        || matches!(sign(stem).or(sign(session)), Some(Sign::Word(_)))
        || words(session).iter().any(is_of_session)
}

fn is_guid(name: &str) -> bool {
    let lengths: Vec<_> = name.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && name.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

/// The words of a name, in lower case.
pub(super) fn words(name: &str) -> Vec<String> {
    let (mut words, mut before) = (vec![String::new()], ' ');
    for letter in name.chars() {
        let starts = letter.is_ascii_uppercase() && before.is_ascii_lowercase();
        if starts || letter.is_ascii_alphabetic() != before.is_ascii_alphabetic() {
            words.push(String::new());
        }
        if letter.is_ascii_alphabetic() {
            words.last_mut().into_iter().for_each(|word| word.push(letter.to_ascii_lowercase()));
        }
        before = letter;
    }
    words.retain(|word| !word.is_empty());
    // GitHub and GitLab are one word each, and their own spelling breaks them.
    let joined: Vec<_> = words.windows(2).map(|pair| pair.concat()).collect();
    words.extend(joined);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_have_names_that_people_do_not_get() {
        for (name, wanted) in [
            ("deployer@shop-prod.iam.gserviceaccount.com", "format"),
            ("repo:acme/shop:ref:refs/heads/main", "format"),
            ("https://token.actions.githubusercontent.com#repo:acme/shop:environment:prod", "format"),
            ("project_path:acme/shop:ref_type:branch:ref:main", "format"),
            ("7f0e0d5c-1111-2222-3333-444455556666", "format"),
            ("arn:aws:sts::123456789012:assumed-role/eks-deploy/GitHubActions", "word"),
            ("jenkins", "word"),
            ("ci-bot", "word"),
            ("alice", ""),
            ("abbot", ""),
            ("ci@example.com", ""),
            ("bob.deployer@example.com", ""),
            ("kubernetes-admin", ""),
            ("masterclient", ""),
            ("u-b4qkhsnliz", ""),
            ("arn:aws:sts::123456789012:assumed-role/AWSReservedSSO_Deploy_0a1b2c/alice", ""),
            ("arn:aws:sts::123456789012:assumed-role/Admin/alice", ""),
        ] {
            let found = match sign(name) {
                Some(Sign::Format(_)) => "format",
                Some(Sign::Word(_)) => "word",
                None => "",
            };
            assert_eq!(found, wanted, "{name}");
        }
    }

    #[test]
    fn a_session_has_a_number_and_a_person_has_a_name() {
        for (name, wanted) in [
            ("arn:aws:sts::1:assumed-role/deploy/job-4711", Some("arn:aws:sts::1:assumed-role/deploy/")),
            ("ci:build:20231", Some("ci:build:")),
            ("arn:aws:sts::1:assumed-role/Admin/alice", None),
            ("arn:aws:sts::1:assumed-role/AWSReservedSSO_x/bob1234", None),
            ("oidc:carol42", None),
            ("oidc:e123456@example.com", None),
            ("alice", None),
        ] {
            assert_eq!(stem(name), wanted, "{name}");
        }
        assert!(is_of_pipeline("arn:aws:sts::1:assumed-role/shop/", "i-0123") && is_of_pipeline("oidc:", "job-12345"));
        assert!(!is_of_pipeline("oidc:", "e123456"), "it may be the number of an employee");
    }
}

//! `interlock override`: opens some rules over one release, for a while.

use std::io::{Write, stdout};

use anyhow::Context;
use clap::builder::{PossibleValue, PossibleValuesParser};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};

use super::cluster::{ClusterArguments, server_time};
use super::{Finding, Output};
use crate::engine::overrides::PLURAL;
use crate::engine::release::{ReleaseRef, is_subdomain};
use crate::engine::rules;
use crate::world::kubernetes::override_definition::{ReleaseOverride, ReleaseOverrideSpec};

/// The longest name that an object can have, in bytes.
const LONGEST_NAME: usize = 253;

/// Break-glass: for a while, let rules not refuse what is done to one release
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// NAMESPACE/NAME of the release, as the refusal names it
    #[arg(value_name = "NAMESPACE/RELEASE", value_parser = release)]
    release: ReleaseRef,
    /// A rule to open, as the refusal names it in brackets; may be repeated
    #[arg(long = "rule", value_name = "RULE", required = true, value_parser = rules(), hide_possible_values = true)]
    rules: Vec<String>,
    /// For how long, for example 30m or 1h30m; the policy says how long at most
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    open_for: SignedDuration,
    /// Why, for those who read the audit log later: 5 to 500 characters
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Who may use it, a glob over user names; may be repeated; everybody unless given
    #[arg(long = "user", value_name = "USER")]
    users: Vec<String>,
    #[command(flatten)]
    cluster: ClusterArguments,
    /// Let the API server check it, and make nothing
    #[arg(long)]
    dry_run: bool,
    /// How to print
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<Finding> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(create(arguments))
}

async fn create(arguments: &Arguments) -> anyhow::Result<Finding> {
    let config = arguments.cluster.found().await?;
    let client = Client::try_from(config).context("failed to make a client for the cluster")?;
    let now = server_time(&client).await?;
    let asked = arguments.asked(now)?;
    let api: Api<ReleaseOverride> = Api::namespaced(client, &arguments.release.namespace);
    let parameters = PostParams { dry_run: arguments.dry_run, ..PostParams::default() };
    let made = api.create(&parameters, &asked).await.map_err(refused)?;
    match arguments.output {
        Output::Json => writeln!(stdout(), "{}", serde_json::to_string_pretty(&made)?)?,
        Output::Table => write!(stdout(), "{}", told(&made, now, arguments.dry_run))?,
    }
    Ok(Finding::Nothing)
}

impl Arguments {
    /// The object to create, at a moment by the API server's clock.
    fn asked(&self, now: Timestamp) -> anyhow::Result<ReleaseOverride> {
        let expires_at = now.checked_add(self.open_for).context("--for is too long")?;
        let spec = ReleaseOverrideSpec {
            release: self.release.name.clone(),
            rules: self.rules.clone(),
            users: (!self.users.is_empty()).then(|| self.users.clone()),
            reason: self.reason.clone(),
            expires_at,
        };
        let metadata = ObjectMeta {
            generate_name: Some(format!("{}-", self.release.name)),
            namespace: Some(self.release.namespace.clone()),
            ..ObjectMeta::default()
        };
        Ok(ReleaseOverride { metadata, spec })
    }
}

/// What is open now, for people in a hurry.
fn told(made: &ReleaseOverride, now: Timestamp, dry_run: bool) -> String {
    let ReleaseOverrideSpec { release, rules, users, expires_at, .. } = &made.spec;
    let namespace = made.metadata.namespace.as_deref().unwrap_or_default();
    let name = made.metadata.name.as_deref().unwrap_or_default();
    let whom = users.as_ref().map_or("everybody".to_owned(), |users| users.join(", "));
    let left = expires_at.duration_since(now);
    let head = if dry_run {
        "Nothing was made: this is what the API server would admit.".to_owned()
    } else {
        format!("Made ReleaseOverride {namespace}/{name}.")
    };
    let close = if dry_run {
        String::new()
    } else {
        format!("To close it earlier: kubectl delete {PLURAL} -n {namespace} {name}\n")
    };
    format!(
        "{head}\n  release  {namespace}/{release}\n  opens    {}\n  for      {whom}\n  closes   {expires_at} (in {left:#})\n{close}",
        rules.join(", "),
    )
}

fn refused(error: kube::Error) -> anyhow::Error {
    match error {
        // An object or a namespace that is missing is named; a path that is not served names nothing.
        kube::Error::Api(status)
            if status.code == 404 && status.details.as_ref().is_none_or(|it| it.name.is_empty()) =>
        {
            anyhow::anyhow!(
                "failed to make the override: the cluster does not know ReleaseOverrides. Install their definition with \
                 `kubectl apply -f manifests/base/releaseoverrides.yaml`"
            )
        }
        kube::Error::Api(status) => anyhow::anyhow!("failed to make the override: {}", status.message),
        error => anyhow::Error::from(error).context("failed to make the override"),
    }
}

/// `NAMESPACE/RELEASE`.
pub(super) fn release(text: &str) -> Result<ReleaseRef, String> {
    let (namespace, name) = text.split_once('/').ok_or("name it as NAMESPACE/RELEASE, for example shop/web")?;
    if namespace.is_empty() || namespace.contains('.') {
        return Err(format!("{namespace:?} is not a namespace"));
    }
    // Profiles and extensions may have longer names than releases.
    if !is_subdomain(name, LONGEST_NAME) {
        return Err(format!("{name:?} is not a name: a lower-case DNS subdomain of at most {LONGEST_NAME} characters"));
    }
    Ok(ReleaseRef::new(namespace, name))
}

fn rules() -> PossibleValuesParser {
    PossibleValuesParser::new(rules::all().map(|rule| PossibleValue::new(rule.as_str())))
}

fn duration(text: &str) -> Result<SignedDuration, String> {
    let read = text.parse::<SignedDuration>().ok().filter(SignedDuration::is_positive);
    read.ok_or_else(|| format!("{text:?} is not a duration like 30m or 1h30m"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn parse(line: &[&str]) -> Result<Arguments, String> {
        let line = Line::try_parse_from(["override"].iter().chain(line));
        line.map(|line| line.arguments).map_err(|error| error.to_string())
    }

    #[test]
    fn a_command_line_becomes_an_object_that_ends_by_the_servers_clock() {
        let rules = ["--rule", "manual-edit", "--rule", "manual-scale"];
        let rest = ["--for", "1h30m", "--reason", "incident 7", "--user", "bob"];
        let arguments = parse(&[&["shop/web.v1"], &rules[..], &rest[..]].concat()).unwrap();
        let now = "2026-11-21T10:00:00Z".parse().unwrap();
        let object = arguments.asked(now).unwrap();
        let object = serde_json::to_value(&object).unwrap();
        assert_eq!(
            object,
            serde_json::json!({
                "apiVersion": "interlock.dev/v1alpha1", "kind": "ReleaseOverride",
                "metadata": {"namespace": "shop", "generateName": "web.v1-"},
                "spec": {
                    "release": "web.v1", "rules": ["manual-edit", "manual-scale"], "users": ["bob"],
                    "reason": "incident 7", "expiresAt": "2026-11-21T11:30:00Z",
                },
            })
        );
        let text = object.to_string();
        // What the rules read of it is the same.
        let read: crate::engine::overrides::OverrideSpec = serde_json::from_value(object["spec"].clone()).unwrap();
        assert_eq!(
            (read.rules, text.contains("11:30")),
            (
                vec![
                    crate::engine::rule::RuleId::known("manual-edit"),
                    crate::engine::rule::RuleId::known("manual-scale")
                ],
                true
            )
        );
        assert_eq!(
            told(&serde_json::from_str(&text).unwrap(), now, true),
            "Nothing was made: this is what the API server would admit.\n  release  shop/web.v1\n  opens    manual-edit, \
             manual-scale\n  for      bob\n  closes   2026-11-21T11:30:00Z (in 1h 30m)\n"
        );
    }

    #[test]
    fn a_wrong_command_line_says_what_is_wrong_with_it() {
        let rest = ["--reason", "incident 7"];
        let name = |length: usize| format!("shop/{}", "a".repeat(length));
        assert!(parse(&[&[name(253).as_str(), "--rule", "manual-edit", "--for", "30m"], &rest[..]].concat()).is_ok());
        let long = name(254);
        for (line, wanted) in [
            (&["web", "--rule", "manual-edit", "--for", "30m"][..], "NAMESPACE/RELEASE"),
            (&["shop/Web", "--rule", "manual-edit", "--for", "30m"], "is not a name"),
            (&[&long, "--rule", "manual-edit", "--for", "30m"], "of at most 253 characters"),
            (&["shop/web", "--rule", "manual-edits", "--for", "30m"], "a similar value exists: 'manual-edit'"),
            (&["shop/web", "--rule", "manual-edit", "--for", "-30m"], "--for"),
            (&["shop/web", "--rule", "manual-edit", "--for=soon"], "is not a duration like 30m"),
            (&["shop/web", "--for", "30m"], "--rule"),
        ] {
            let error = parse(&[line, &rest[..]].concat()).unwrap_err();
            assert!(error.contains(wanted), "{line:?}: {error}");
        }
    }
}

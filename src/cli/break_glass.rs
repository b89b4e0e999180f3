//! `interlock override`: suspends rules for one release, for a limited time.

use std::ops::RangeInclusive;

use anyhow::Context;
use clap::builder::{PossibleValue, PossibleValuesParser};
use interlock_engine::release::ReleaseRef;
use interlock_engine::release_override::{PLURAL, VOID};
use interlock_engine::rules;
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;
use kube::api::{Api, ObjectMeta, PostParams};

use super::cluster::{ClusterArguments, server_time};
use super::duration::some_time;
use super::examples::examples;
use super::exit_status::ExitStatus;
use super::output::{self, ObjectOutput};
use super::own_kinds::OwnKind;
use super::release_argument::ReleaseArgument;
use super::table::printable;
use crate::world::kubernetes::override_definition::{ReleaseOverride, ReleaseOverrideSpec};

const OVERRIDES: OwnKind = OwnKind { plural: "ReleaseOverrides", definition: "releaseoverrides.yaml" };

/// Create an override: for a limited time, the named rules do not refuse changes to one release
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "interlock override shop/web --rule manual-edit --for 30m --reason 'INC-7: raise the memory limit'",
    "interlock override -n shop web --rule freeze --for 1h --reason 'INC-7: security fix' --dry-run",
]))]
pub(super) struct Arguments {
    #[command(flatten)]
    release: ReleaseArgument,
    /// A rule to suspend, as in brackets in the refusal; may be repeated
    #[arg(long = "rule", value_name = "RULE", required = true, value_parser = rules(), hide_possible_values = true)]
    rules: Vec<String>,
    /// Duration, for example 30m or 1h30m; the policy limits it
    #[arg(long = "for", value_name = "DURATION", value_parser = some_time)]
    open_for: SignedDuration,
    /// Reason, for readers of the audit log: 5 to 500 characters
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,
    /// Ticket, change or incident that the override belongs to, shown wherever it is used: up to 200 characters
    #[arg(long, value_name = "TICKET")]
    ticket: Option<String>,
    /// Users who may use the override, as a glob over user names; may be repeated [default: all users]
    #[arg(long = "user", value_name = "USER")]
    users: Vec<String>,
    #[command(flatten)]
    cluster: ClusterArguments,
    /// Let the API server validate the override without creating it
    #[arg(long)]
    dry_run: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value = "table")]
    output: ObjectOutput,
}

pub(super) async fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let client = arguments.cluster.client().await?;
    let release = arguments.release.within(client.default_namespace())?;
    let now = server_time(&client).await?;
    let requested = arguments.requested(&release, now)?;
    let api: Api<ReleaseOverride> = Api::namespaced(client, &release.namespace);
    let parameters = PostParams { dry_run: arguments.dry_run, ..PostParams::default() };
    let created = api.create(&parameters, &requested).await;
    let created = created.map_err(|error| OVERRIDES.failure("create the override", error))?;
    let text = || text_of(&created, now, arguments.dry_run);
    arguments.output.print(std::slice::from_ref(&created), &created, text)?;
    if let Some(why) = created.annotations().get(VOID) {
        output::complain(&format!(
            "interlock: the policy refuses nothing, and the override opens nothing: {}",
            printable(why)
        ));
    }
    Ok(ExitStatus::Success)
}

impl Arguments {
    /// The object to create. `now` is by the API server's clock.
    fn requested(&self, release: &ReleaseRef, now: Timestamp) -> anyhow::Result<ReleaseOverride> {
        let expires_at = now.checked_add(self.open_for).context("--for is too long")?;
        let spec = ReleaseOverrideSpec {
            release: release.name.clone(),
            rules: self.rules.clone(),
            users: (!self.users.is_empty()).then(|| self.users.clone()),
            reason: self.reason.clone(),
            ticket: self.ticket.clone(),
            expires_at,
        };
        let metadata = ObjectMeta {
            generate_name: Some(format!("{}-", release.name)),
            namespace: Some(release.namespace.clone()),
            ..ObjectMeta::default()
        };
        Ok(ReleaseOverride { metadata, spec })
    }
}

/// A short text for people.
fn text_of(created: &ReleaseOverride, now: Timestamp, dry_run: bool) -> String {
    let ReleaseOverrideSpec { release, rules, users, expires_at, ticket, .. } = &created.spec;
    let namespace = created.metadata.namespace.as_deref().unwrap_or_default();
    let name = created.metadata.name.as_deref().unwrap_or_default();
    let whom = users.as_ref().map_or("all users".to_owned(), |users| users.join(", "));
    let ticket = ticket.as_ref().map(|ticket| format!("  ticket   {}\n", printable(ticket))).unwrap_or_default();
    let left = expires_at.duration_since(now);
    let head = if dry_run {
        "Dry run, nothing was created. The API server would admit this override:".to_owned()
    } else {
        format!("Created ReleaseOverride {namespace}/{name}.")
    };
    let close = if dry_run {
        String::new()
    } else {
        format!("To end it earlier: kubectl delete {PLURAL} -n {namespace} {name}\n")
    };
    format!(
        "{head}\n  release  {namespace}/{release}\n  rules    {}\n  users    {whom}\n{ticket}  expires  {expires_at} (in {left:#})\n{close}",
        rules.join(", "),
    )
}

fn rules() -> PossibleValuesParser {
    PossibleValuesParser::new(rules::all().map(|rule| PossibleValue::new(rule.as_str())))
}

/// The allowed lengths of a reason, in characters. Equals the limits in the definition of ReleaseOverrides.
const REASON_CHARS: RangeInclusive<usize> = 5..=500;

fn reason(text: &str) -> Result<String, String> {
    if !text.contains(char::is_alphanumeric) {
        return Err("write why the override is needed in place of the dots, for readers of the audit log".to_owned());
    }
    let length = text.chars().count();
    if REASON_CHARS.contains(&length) {
        return Ok(text.to_owned());
    }
    Err(format!("it has {length} characters; a reason has {} to {}", REASON_CHARS.start(), REASON_CHARS.end()))
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
        let arguments = line.map_err(|error| error.to_string())?.arguments;
        arguments.release.within("mine").map_err(|error| error.to_string())?;
        Ok(arguments)
    }

    #[test]
    fn the_override_expires_by_the_servers_clock() {
        let rules = ["--rule", "manual-edit", "--rule", "manual-scale"];
        let rest = ["--for", "1h30m", "--reason", "incident 7", "--user", "bob", "--ticket", "OPS-7"];
        let arguments = parse(&[&["shop/web.v1"], &rules[..], &rest[..]].concat()).unwrap();
        let now = "2026-11-21T10:00:00Z".parse().unwrap();
        let object = arguments.requested(&arguments.release.within("mine").unwrap(), now).unwrap();
        let object = serde_json::to_value(&object).unwrap();
        assert_eq!(
            object,
            serde_json::json!({
                "apiVersion": "interlock.dev/v1alpha1", "kind": "ReleaseOverride",
                "metadata": {"namespace": "shop", "generateName": "web.v1-"},
                "spec": {
                    "release": "web.v1", "rules": ["manual-edit", "manual-scale"], "users": ["bob"],
                    "reason": "incident 7", "ticket": "OPS-7", "expiresAt": "2026-11-21T11:30:00Z",
                },
            })
        );
        let text = object.to_string();
        // The rules parse the same values.
        let read: interlock_engine::release_override::OverrideSpec =
            serde_json::from_value(object["spec"].clone()).unwrap();
        assert_eq!(
            (read.rules, text.contains("11:30")),
            (
                vec![
                    interlock_engine::rule::RuleId::known("manual-edit"),
                    interlock_engine::rule::RuleId::known("manual-scale")
                ],
                true
            )
        );
        assert_eq!(
            text_of(&serde_json::from_str(&text).unwrap(), now, true),
            "Dry run, nothing was created. The API server would admit this override:\n  release  shop/web.v1\n  \
             rules    manual-edit, \
             manual-scale\n  users    bob\n  ticket   OPS-7\n  expires  2026-11-21T11:30:00Z (in 1h 30m)\n"
        );
    }

    #[test]
    fn an_invalid_command_line_names_the_problem() {
        let rest = ["--reason", "incident 7"];
        let name = |length: usize| format!("shop/{}", "a".repeat(length));
        assert!(parse(&[&[name(253).as_str(), "--rule", "manual-edit", "--for", "30m"], &rest[..]].concat()).is_ok());
        let long = name(254);
        for (line, wanted) in [
            (&["shop/web", "-n", "other", "--rule", "manual-edit", "--for", "30m"][..], "name the namespace once"),
            (&["shop/Web", "--rule", "manual-edit", "--for", "30m"], "is not a name"),
            (&[&long, "--rule", "manual-edit", "--for", "30m"], "of at most 253 characters"),
            (&["shop/web", "--rule", "manual-edits", "--for", "30m"], "a similar value exists: 'manual-edit'"),
            (&["shop/web", "--rule", "manual-edit", "--for", "-30m"], "--for"),
            (&["shop/web", "--rule", "manual-edit", "--for=soon"], "is not a duration like"),
            (&["shop/web", "--for", "30m"], "--rule"),
        ] {
            let error = parse(&[line, &rest[..]].concat()).unwrap_err();
            assert!(error.contains(wanted), "{line:?}: {error}");
        }
        for (reason, wanted) in
            [("...", "in place of the dots"), ("      ", "in place of the dots"), ("fix", "it has 3 characters")]
        {
            let error = parse(&["shop/web", "--rule", "manual-edit", "--for", "30m", "--reason", reason]).unwrap_err();
            assert!(error.contains(wanted), "{reason}: {error}");
        }
    }
}

//! `interlock explain`: explains a rule, the settings in force in a namespace, or the classification of a user.

mod user;

use interlock_engine::policy::{Freeze, LimitedFreeze, Policies};
use interlock_engine::policy_files::{
    InForce, SettingInForce, SettingOrigin, identity, in_force, nearest_to, settings_of,
};
use interlock_engine::rule::{RuleId, Specification};
use interlock_engine::rules;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::Api;
use serde_json::{Value, json};

use super::cluster::ClusterArguments;
use super::examples::examples;
use super::exit_status::ExitStatus;
use super::freezes;
use super::output::{self, Output};
use super::policies_in_force::{FoundPolicies, PoliciesInForce};
use super::table::{self, printable};
use crate::world::kubernetes::api_error::reason;
use crate::world::kubernetes::freezes as stored;

/// Explain a rule, show the settings and the freezes in force in a namespace, or say what a user counts as; without an argument, list
/// the rules
///
/// The settings are those of the policy in force in the cluster, or of the directory of --policies. Without a cluster they are those of
/// the policy shipped with this binary. Exits with 1 if there is no such rule and no such namespace.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "interlock explain manual-edit",
    "interlock explain shop --at 2026-12-24T18:00[Europe/Berlin]",
    "interlock explain --user system:serviceaccount:ci:deploy --group system:serviceaccounts",
]))]
pub(super) struct Arguments {
    /// Name of a rule, otherwise of a namespace
    #[arg(value_name = "RULE | NAMESPACE")]
    subject: Option<String>,
    /// Say what this user counts as (person, service account, pipeline, platform, node, control plane), and by which line of
    /// the policy
    #[arg(long, value_name = "NAME", conflicts_with_all = ["subject", "at"])]
    user: Option<String>,
    /// A group of the user; may be repeated
    #[arg(long, value_name = "GROUP", requires = "user")]
    group: Vec<String>,
    /// Say which freezes are in force at this time, for example 2026-12-24T18:00[Europe/Berlin]; without a zone in UTC [default: now]
    #[arg(long, value_name = "TIME", value_parser = freezes::moment)]
    at: Option<Timestamp>,
    /// Output format
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
    #[command(flatten)]
    policies: PoliciesInForce,
    #[command(flatten)]
    cluster: ClusterArguments,
}

pub(super) async fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let rule = arguments.subject.as_deref().map(|name| (name, rules::named(name)));
    let Explained { value, text } = match (rule, &arguments.user) {
        (_, Some(user)) => user_explained(user, arguments).await?,
        (None, None) => Explained { value: list_json(), text: list_text() },
        (Some((_, Some(rule))), None) => Explained { value: rule_json(rule), text: rule_text(rule) },
        (Some((name, None)), None) => match namespace_explained(name, arguments).await? {
            Ok(explained) => explained,
            Err(why) => {
                output::complain(&why);
                return Ok(ExitStatus::Findings);
            }
        },
    };
    arguments.output.print(&value, || text + "\n")?;
    Ok(ExitStatus::Success)
}

/// An explanation, for programs and for people.
struct Explained {
    value: Value,
    text: String,
}

async fn user_explained(user: &str, arguments: &Arguments) -> anyhow::Result<Explained> {
    let groups = &arguments.group;
    let Known { policies, .. } = arguments.known(None).await?;
    let identity = identity(&policies.files, user, groups)?;
    Ok(Explained {
        value: user::json(user, groups, &identity, &policies.origin),
        text: format!("{}\n\nBy {}.", user::text(user, groups, &identity), policies.origin),
    })
}

/// The settings in force in a namespace. The inner error is a message that there is no such namespace.
async fn namespace_explained(name: &str, arguments: &Arguments) -> anyhow::Result<Result<Explained, String>> {
    let Known { policies, exists, freezes } = arguments.known(Some(name)).await?;
    let in_force = in_force(&policies.files, name, policies.policies.labels())?;
    let meant = nearest_to(name, rules::all().map(RuleId::as_str).collect::<Vec<_>>().into_iter());
    let is_known = in_force.has_file || exists.unwrap_or(meant.is_none());
    if !is_known {
        let meant =
            meant.map_or("`interlock explain` lists the rules".to_owned(), |meant| format!("did you mean {meant}?"));
        return Ok(Err(format!("interlock: {name} is no rule and no namespace; {meant}")));
    }
    let at = arguments.at.unwrap_or_else(Timestamp::now);
    let freezes = freezes_of_files(&in_force).chain(limited(&policies.policies, &freezes)).collect::<Vec<_>>();
    Ok(Ok(Explained {
        value: namespace_json(name, &in_force, &freezes, &policies.origin, at),
        text: namespace_text(name, &in_force, &freezes, &policies.origin, at),
    }))
}

/// The policies, and the state of a namespace in the cluster.
struct Known {
    policies: FoundPolicies,
    /// Whether the namespace exists, if known.
    exists: Option<bool>,
    /// The Freezes in the namespace.
    freezes: Vec<Freeze>,
}

impl Arguments {
    async fn known(&self, namespace: Option<&str>) -> anyhow::Result<Known> {
        // The files in a directory may be for another cluster than that of kubectl.
        if self.policies.is_directory() && !self.cluster.is_named() {
            return self.without_cluster();
        }
        let client = match self.cluster.client().await {
            Err(why) if !self.cluster.is_named() => {
                output::complain(&format!(
                    "interlock: using the shipped policy: {why:#}. Set --policies to another directory"
                ));
                return self.without_cluster();
            }
            client => client?,
        };
        let policies = self.policies.read(&client).await?;
        let Some(namespace) = namespace else { return Ok(Known { policies, exists: None, freezes: Vec::new() }) };
        let freezes = stored::list(&client, namespace).await.unwrap_or_else(|error| {
            let why = printable(&reason(&error));
            output::complain(&format!("interlock: the Freezes of the cluster are not shown: {why}"));
            Vec::new()
        });
        let found = Api::<Namespace>::all(client).get_metadata_opt(namespace).await;
        Ok(Known { policies, exists: found.ok().map(|found| found.is_some()), freezes })
    }

    fn without_cluster(&self) -> anyhow::Result<Known> {
        Ok(Known { policies: self.policies.without_cluster()?, exists: None, freezes: Vec::new() })
    }
}

fn list_json() -> Value {
    let rules = rules::all()
        .map(|rule| json!({"rule": rule.as_str(), "what": rule.specification().summary, "owners": owners(rule)}));
    json!(rules.collect::<Vec<_>>())
}

fn list_text() -> String {
    let mut table = table::table(&["rule", "what"]);
    for rule in rules::all() {
        table.add_row([rule.as_str(), rule.specification().summary]);
    }
    format!(
        "{table}\n`interlock explain RULE` explains a rule. `interlock explain NAMESPACE` shows the settings in force there."
    )
}

fn rule_json(rule: RuleId) -> Value {
    let Specification { summary, why, allowed, refused, way_out, .. } = rule.specification();
    let settings = settings_of(rule).into_iter().map(|setting| {
        json!({"name": setting.name, "about": setting.about, "choices": setting.choices, "default": setting.default})
    });
    json!({
        "rule": rule.as_str(), "what": summary, "why": why, "owners": owners(rule), "allowed": allowed,
        "refused": refused, "wayOut": way_out, "breakGlass": break_glass(rule), "settings": settings.collect::<Vec<_>>(),
    })
}

fn rule_text(rule: RuleId) -> String {
    let Specification { summary, why, allowed, refused, way_out, .. } = rule.specification();
    let mut table = table::table(&["setting", "default", "what"]);
    for setting in settings_of(rule) {
        let choices =
            if setting.choices.is_empty() { String::new() } else { format!(" [{}]", setting.choices.join(", ")) };
        table.add_row([
            setting.name,
            setting.default.as_deref().unwrap_or("-"),
            &format!("{}{choices}", setting.about),
        ]);
    }
    format!(
        "{rule}\n{summary}\n\nWhy          {why}\nReleases of  {}\nAllowed      {allowed}\nRefused      {refused}\nWay out      {way_out}\n\
         Break glass  {}\n\n{table}",
        owners(rule).join(", "),
        break_glass(rule)
    )
}

/// The owners whose releases a rule applies to.
fn owners(rule: RuleId) -> Vec<&'static str> {
    rule.specification().owners.to_vec()
}

fn break_glass(rule: RuleId) -> String {
    format!("interlock override NAMESPACE/RELEASE --rule {rule} --for 30m --reason \"...\"")
}

/// A freeze and its origin.
type FreezeWithOrigin<'f> = (LimitedFreeze<'f>, String);

fn freezes_of_files(in_force: &InForce) -> impl Iterator<Item = FreezeWithOrigin<'_>> {
    in_force.freezes.iter().map(|found| (LimitedFreeze::of_policy(&found.freeze), origin(&found.origin)))
}

/// The Freezes of the cluster that the policies allow.
fn limited<'f>(policies: &'f Policies, stored: &'f [Freeze]) -> impl Iterator<Item = FreezeWithOrigin<'f>> {
    let allowed = stored.iter().filter_map(|freeze| policies.of("").team_freezes.limit(freeze));
    allowed.map(|it| (it, format!("created by {}", it.freeze.creator().unwrap_or_default())))
}

fn namespace_json(
    namespace: &str,
    in_force: &InForce,
    freezes: &[FreezeWithOrigin<'_>],
    policy: &str,
    at: Timestamp,
) -> Value {
    let rules = in_force.rules.iter().map(|rule| {
        json!({
            "rule": rule.rule.as_str(), "delegated": rule.delegated, "stricterOfBoth": rule.both,
            "settings": rule.settings.iter().map(setting_json).collect::<Vec<_>>(),
        })
    });
    json!({
        "namespace": namespace, "policy": policy, "hasFile": in_force.has_file, "rules": rules.collect::<Vec<_>>(),
        "freezes": freezes.iter().map(|(it, _)| freezes::state_json(*it, at)).collect::<Vec<_>>(),
        "protected": in_force.protected.iter().map(setting_json).collect::<Vec<_>>(),
        "overrides": in_force.overrides.iter().map(setting_json).collect::<Vec<_>>(),
        "teamFreezes": in_force.team_freezes.iter().map(setting_json).collect::<Vec<_>>(),
        "lists": in_force.lists.iter().map(setting_json).collect::<Vec<_>>(),
    })
}

fn setting_json(setting: &SettingInForce) -> Value {
    let origin = match &setting.origin {
        SettingOrigin::Shipped => "shipped".into(),
        SettingOrigin::File { file, line } => json!({"file": file, "line": line}),
    };
    json!({"name": setting.name, "value": setting.value, "origin": origin})
}

/// What a policy cannot do alone.
const NEEDS_ENTRIES: &str = "  Custom resources and namespaces, and everything while Interlock is down, need the entries of \
                             protectedReleases: see `interlock doctor`.\n";

/// Plain lines instead of a table, because paths and conditions are long and must not be split.
fn namespace_text(
    namespace: &str,
    in_force: &InForce,
    freezes: &[FreezeWithOrigin<'_>],
    policy: &str,
    at: Timestamp,
) -> String {
    let whose = if in_force.has_file { ", which has a file for it" } else { "" };
    let mut text = format!("In force in namespace {namespace}, by {policy}{whose}:\n");
    for rule in &in_force.rules {
        let delegated = if rule.delegated { " (delegated)" } else { "" };
        let both = if rule.both { " (the stricter of both files applies to each request)" } else { "" };
        push_section(&mut text, &format!("{}{delegated}{both}", rule.rule), &rule.settings);
    }
    if !in_force.protected.is_empty() {
        push_section(&mut text, "protected releases", &in_force.protected);
        text.push_str(NEEDS_ENTRIES);
    }
    push_section(&mut text, "overrides", &in_force.overrides);
    push_section(&mut text, "Freezes of the namespace", &in_force.team_freezes);
    push_section(&mut text, "cluster only", &in_force.lists);
    if !freezes.is_empty() {
        text.push_str(&format!("\nfreezes at {at} (UTC)\n"));
    }
    for (it, origin) in freezes {
        let (freeze, state) = (it.freeze, freezes::state(*it, at));
        text.push_str(&format!("  {:<18} {state} ({}) {origin}\n", freeze.name, freeze.reason));
        text.push_str(&format!("  {:<18} {}\n", "", freezes::concerned(freeze)));
    }
    text.trim_end().to_owned()
}

fn push_section(text: &mut String, name: &str, settings: &[SettingInForce]) {
    text.push_str(&format!("\n{name}\n"));
    for setting in settings {
        text.push_str(&format!("  {:<18} {:<18} {}\n", setting.name, setting.value, origin(&setting.origin)));
    }
}

fn origin(origin: &SettingOrigin) -> String {
    match origin {
        SettingOrigin::Shipped => "shipped".to_owned(),
        SettingOrigin::File { file, line } => format!("{}:{line}", file.display()),
    }
}

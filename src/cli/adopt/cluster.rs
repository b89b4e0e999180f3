//! What the cluster itself shows: its platform, its owners, the operations in flight with their holders, the reports of
//! Interlock, and the programs that wrote fields.

use std::collections::{BTreeMap, BTreeSet};

use interlock_engine::owners::{APPLYING, COMMITS, EXTENSIONS, HELM_RELEASES, applied_objects};
use interlock_engine::policy::{DEFAULT_NAMESPACE, Policies};
use interlock_engine::release::ReleaseRef;
use jiff::Timestamp;
use kube::{Client, Error};
use serde::Serialize;

use super::wording::{minute, short};
use crate::cli::cluster::{self, ClusterArguments, server_time};
use crate::inspect::doctor::platform;
use crate::inspect::scan::{FieldManager, Gap, field_managers, gather};
use crate::inspect::status::{OperationSummary, ReleaseSummary, StatusOptions, operations, survey};
use crate::inspect::view::View;
use crate::offline::adopt::{OwnerReport, counted};
use crate::serve::report::openreports::{ReportEntry, reported};
use crate::world::kubernetes::api_error::reason;

/// The declarations that are only counted: their releases have records.
const DECLARATIONS: [(&str, &str); 3] = [HELM_RELEASES, EXTENSIONS, COMMITS];

/// The names in one line.
const MAX_NAMED: usize = 3;

/// The state of a cluster when the log was read.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClusterState {
    server: String,
    platform: Option<&'static str>,
    /// The values file of the chart for the platform.
    preset: Option<&'static str>,
    releases: usize,
    /// The declarations of releases, by kind.
    declarations: BTreeMap<&'static str, usize>,
    /// The objects that apply others without a release.
    pub(super) owners: Vec<OwnerReport>,
    pending: Vec<ReleaseSummary>,
    operations: Vec<OperationSummary>,
    reported: Vec<ReportedRule>,
    /// The programs beside Helm that wrote fields of objects of releases.
    field_managers: Vec<FieldManager>,
    /// What could not be read.
    gaps: Vec<Gap>,
}

/// What Interlock has reported of a rule.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ReportedRule {
    rule: String,
    verdict: String,
    count: u64,
    accounts: BTreeSet<String>,
    last: Timestamp,
}

impl ClusterState {
    /// Reads the state of the named cluster. What the user may not read is a gap.
    ///
    /// # Errors
    /// When the API server cannot be reached.
    pub(super) async fn read(arguments: &ClusterArguments, policies: &Policies) -> anyhow::Result<Self> {
        let config = arguments.infer().await?;
        let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let client = cluster::client(config)?;
        let now = server_time(&client).await?;
        let view = View::open(&client, policies).await;
        let found = platform(&client).await;
        let (operations, mut gaps) = operations(&client, None, policies, now).await;
        let mut pending = Vec::new();
        let mut releases = 0;
        match survey(&view, &StatusOptions::default(), now).await {
            Ok(survey) => {
                releases = survey.rows.len();
                pending.extend(survey.rows.into_iter().filter(ReleaseSummary::is_in_flight));
                gaps.extend(survey.gaps);
            }
            Err(error) => gaps.push(Gap::new("releases", error.to_string())),
        }
        let owners = owners(&client, &mut gaps).await;
        let declarations = declarations(&client, &mut gaps).await;
        let field_managers = known("managedFields", field_managers(&client).await, &mut gaps).unwrap_or_default();
        let entries = known("reports", reported(&client, DEFAULT_NAMESPACE).await, &mut gaps);
        Ok(Self {
            server,
            platform: found.map(|(name, _)| name),
            preset: found.map(|(_, preset)| preset),
            releases,
            declarations,
            owners,
            pending,
            operations,
            reported: by_rule(entries.unwrap_or_default()),
            field_managers,
            gaps,
        })
    }

    /// The state in sentences.
    pub(super) fn sentences(&self) -> Vec<String> {
        let declared = self.declarations.iter().filter(|(_, count)| **count > 0);
        let declared: String = declared.map(|(kind, count)| format!(", {}", counted(*count, kind))).collect();
        let platform = match self.platform.zip(self.preset) {
            Some((name, preset)) => format!("{name} (install the chart with -f {preset})"),
            None => "no platform with a preset".to_owned(),
        };
        let mut sentences =
            vec![format!("{}: {platform}, {}{declared}.", self.server, counted(self.releases, "release"))];
        sentences.extend(self.pending.iter().map(|row| {
            let ReleaseSummary { namespace, release, revision, status, holder, since, .. } = row;
            let what = format!("{namespace}/{release} is {status}, revision {revision}");
            in_flight(&what, holder.as_deref(), *since, row.next.as_deref())
        }));
        sentences.extend(self.operations.iter().map(|operation| {
            let OperationSummary { kind, namespace, name, stage, holder, since, next, .. } = operation;
            in_flight(
                &format!("The sync of {kind} {namespace}/{name} is {stage}"),
                holder.as_deref(),
                *since,
                next.as_deref(),
            )
        }));
        sentences.extend(self.reported.iter().map(ReportedRule::sentence));
        sentences.extend(written_by(&self.field_managers));
        sentences.extend(self.gaps.iter().map(|gap| format!("Not read: {}: {}.", gap.what, gap.why)));
        sentences
    }
}

/// `Fields of releases' objects were written by kubectl-edit (3 objects, last 2026-11-21 10:00 UTC).`
fn written_by(managers: &[FieldManager]) -> Option<String> {
    let shown = managers.iter().take(MAX_NAMED).map(|FieldManager { name, objects, last }| {
        let last = last.map(|last| format!(", last {} UTC", minute(last))).unwrap_or_default();
        format!("{} ({}{last})", short(name), counted(*objects, "object"))
    });
    let shown: Vec<_> = shown.collect();
    let rest = if managers.len() > MAX_NAMED { ", ..." } else { "" };
    (!shown.is_empty()).then(|| format!("Fields of releases' objects were also written by {}{rest}.", shown.join(", ")))
}

fn in_flight(what: &str, holder: Option<&str>, since: Option<Timestamp>, next: Option<&str>) -> String {
    let holder = holder.map(|holder| format!(", held by {}", short(holder))).unwrap_or_default();
    let since = since.map(|since| format!(" since {} UTC", minute(since))).unwrap_or_default();
    let next = next.map(|next| format!(" Next: {next}.")).unwrap_or_default();
    format!("{what}{holder}{since}.{next}")
}

/// The result of a read, or its reason as a gap.
fn known<T>(what: &str, read: Result<T, Error>, gaps: &mut Vec<Gap>) -> Option<T> {
    read.map_err(|error| gaps.push(Gap::new(what, reason(&error)))).ok()
}

async fn owners(client: &Client, gaps: &mut Vec<Gap>) -> Vec<OwnerReport> {
    let mut owners = Vec::new();
    for of_kind in APPLYING {
        let listed = gather::objects(client, of_kind, [None], |ReleaseRef { namespace, name }, text| {
            Some(OwnerReport {
                kind: of_kind.1.to_owned(),
                namespace: namespace.clone(),
                name: name.clone(),
                objects: applied_objects(of_kind.1, text).len(),
                operations: 0,
            })
        });
        owners.extend(known(of_kind.1, listed.await, gaps).unwrap_or_default());
    }
    owners
}

async fn declarations(client: &Client, gaps: &mut Vec<Gap>) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for of_kind in DECLARATIONS {
        counts.extend(known(of_kind.1, gather::count(client, of_kind).await, gaps).map(|count| (of_kind.1, count)));
    }
    counts
}

/// The reported findings by rule and verdict, the most frequent first.
fn by_rule(entries: Vec<ReportEntry>) -> Vec<ReportedRule> {
    let mut rules: BTreeMap<(String, String), ReportedRule> = BTreeMap::new();
    for ReportEntry { check: rule, properties, count, actor, last, .. } in entries {
        let verdict = properties.get("verdict").cloned().unwrap_or_default();
        let known = rules.entry((rule.clone(), verdict.clone()));
        let known = known.or_insert_with(|| ReportedRule { rule, verdict, count: 0, accounts: BTreeSet::new(), last });
        known.count += count;
        known.accounts.extend(actor);
        known.last = known.last.max(last);
    }
    let mut rules: Vec<_> = rules.into_values().collect();
    rules.sort_by_key(|rule| std::cmp::Reverse(rule.count));
    rules
}

impl ReportedRule {
    fn sentence(&self) -> String {
        let Self { rule, verdict, count, accounts, last } = self;
        let names: Vec<_> = accounts.iter().take(MAX_NAMED).map(|account| short(account)).collect();
        let rest = if accounts.len() > MAX_NAMED { ", ..." } else { "" };
        let times = if *count == 1 { "once".to_owned() } else { format!("{count} times") };
        format!(
            "Interlock has reported {rule} as {verdict} {times}, last {} UTC: {}{rest}.",
            minute(*last),
            names.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use interlock_engine::severity::Severity;

    use super::*;
    use crate::serve::report::openreports::ReportOutcome;

    fn entry(actor: &str, count: u64, last: &str) -> ReportEntry {
        let last = last.parse().unwrap();
        ReportEntry {
            release: ReleaseRef::new("shop", "web"),
            check: "manual-edit".to_owned(),
            severity: Severity::High,
            outcome: ReportOutcome::Fail,
            actor: Some(actor.to_owned()),
            object: None,
            message: String::new(),
            first: last,
            last,
            count,
            properties: [("verdict".to_owned(), "would-deny".to_owned())].into(),
        }
    }

    #[test]
    fn the_state_is_a_list_of_sentences() {
        let reported =
            by_rule(vec![entry("bob", 2, "2026-11-21T10:00:00Z"), entry("alice", 1, "2026-11-21T09:00:00Z")]);
        let holder = Some("system:serviceaccount:ci:deployer".to_owned());
        let pending = ReleaseSummary {
            holder,
            next: Some("helm rollback web".to_owned()),
            ..ReleaseSummary::of_web("pending-upgrade")
        };
        let state = ClusterState {
            server: "https://api".to_owned(),
            platform: Some("EKS"),
            preset: Some("eks.yaml"),
            releases: 2,
            declarations: [("HelmRelease", 1), ("ClusterExtension", 0)].into(),
            owners: Vec::new(),
            pending: vec![pending],
            operations: Vec::new(),
            reported,
            field_managers: vec![FieldManager {
                name: "kubectl-edit".to_owned(),
                objects: 3,
                last: Some("2026-11-21T10:00:00Z".parse().unwrap()),
            }],
            gaps: vec![Gap::new("reports", "forbidden".to_owned())],
        };
        assert_eq!(
            state.sentences(),
            [
                "https://api: EKS (install the chart with -f eks.yaml), 2 releases, 1 HelmRelease.",
                "shop/web is pending-upgrade, revision 2, held by ci:deployer. Next: helm rollback web.",
                "Interlock has reported manual-edit as would-deny 3 times, last 2026-11-21 10:00 UTC: alice, bob.",
                "Fields of releases' objects were also written by kubectl-edit (3 objects, last 2026-11-21 10:00 UTC).",
                "Not read: reports: forbidden.",
            ]
        );
    }
}

//! `interlock freeze`: prevents new operations in some namespaces, for a limited time.

mod until;

use clap::ArgGroup;
use interlock_engine::object::{MAX_NAME_LENGTH, is_dns_label, is_dns_subdomain};
use interlock_engine::release_override::CREATED_BY;
use jiff::{SignedDuration, Timestamp, ToSpan, Zoned};
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, PostParams, Preconditions};

use super::cluster::{ClusterArguments, server_time};
use super::duration::some_time;
use super::examples::examples;
use super::exit_status::ExitStatus;
use super::output::{self, ObjectOutput};
use super::own_kinds::OwnKind;
use super::table::printable;
use crate::world::kubernetes::freeze_definition::{Freeze, FreezeSpec};
use until::{Until, written};

const FREEZES: OwnKind = OwnKind { plural: "Freezes", definition: "freezes.yaml" };

/// How long before its creation a Freeze begins, in minutes, because the clocks of the replicas differ by a few seconds.
const HEAD_START_MINUTES: i64 = 1;

/// Stop the line: no upgrade, rollback or uninstall starts in these namespaces until a time. What has started goes on
#[derive(Debug, clap::Args)]
#[command(
    group = ArgGroup::new("when").required(true).args(["until", "freeze_for", "end"])
)]
#[command(after_help = examples(&[
    "interlock freeze shop --until 18:00 --reason 'INC-7: the database is being restored'",
    "interlock freeze shop billing --for 2h --release 'api-*' --reason INC-7",
    "interlock freeze --end shop -o name",
]))]
pub(super) struct Arguments {
    /// NAMESPACE of releases; with --end also NAMESPACE/NAME of one Freeze
    #[arg(value_name = "NAMESPACE", required = true, value_parser = place)]
    places: Vec<Place>,
    /// When the freeze ends: 18:00 of today or tomorrow, or 2026-12-24T18:00, in the time zone of this computer;
    /// 2026-12-24T18:00Z; 2026-12-24T18:00[Europe/Berlin]
    #[arg(long, value_name = "TIME", value_parser = until::parse)]
    until: Option<Until>,
    /// Duration of the freeze, for example 30m or 1h30m
    #[arg(long = "for", id = "freeze_for", value_name = "DURATION", value_parser = some_time)]
    freeze_for: Option<SignedDuration>,
    /// Reason, shown in every refusal: up to 500 characters
    #[arg(long, value_name = "TEXT", required_unless_present = "end", conflicts_with = "end")]
    reason: Option<String>,
    /// Freeze only releases of this name, as a glob; may be repeated [default: every release]
    #[arg(long = "release", value_name = "GLOB", conflicts_with = "end")]
    releases: Vec<String>,
    /// End all Freezes of the namespaces, or those that are named
    #[arg(long)]
    end: bool,
    #[command(flatten)]
    cluster: ClusterArguments,
    /// Let the API server validate the request without changing anything
    #[arg(long)]
    dry_run: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value = "table")]
    output: ObjectOutput,
}

/// A namespace, or one Freeze in it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    namespace: String,
    name: Option<String>,
}

pub(super) async fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let Arguments { places, end, .. } = arguments;
    if let Some(Place { namespace, name: Some(name) }) = places.iter().find(|it| it.name.is_some() && !end) {
        anyhow::bail!("{namespace}/{name} names a Freeze, and only --end takes one; a namespace is frozen by its name");
    }
    let client = arguments.cluster.client().await?;
    let (done, failed) = if *end { arguments.end_all(&client).await } else { arguments.create_all(&client).await? };
    let text = || if *end { arguments.text_of_ended(&done) } else { arguments.text_of_created(&done) };
    arguments.output.print(&done, &done, text)?;
    for error in &failed {
        output::complain(&format!("interlock: {error:#}"));
    }
    match failed.len() {
        0 => Ok(ExitStatus::Success),
        failed => anyhow::bail!("failed in {failed} of {} namespaces", places.len()),
    }
}

impl Arguments {
    /// Creates a Freeze in each namespace. Returns the created Freezes and the failures.
    async fn create_all(&self, client: &Client) -> anyhow::Result<(Vec<Freeze>, Vec<anyhow::Error>)> {
        let now = server_time(client).await?;
        let end = match (&self.until, self.freeze_for) {
            (Some(until), _) => until.after(now)?,
            (None, length) => until::later(now, length.unwrap_or_default())?,
        };
        let parameters = PostParams { dry_run: self.dry_run, ..PostParams::default() };
        let (mut created, mut failed) = (Vec::new(), Vec::new());
        for Place { namespace, .. } in &self.places {
            let api: Api<Freeze> = Api::namespaced(client.clone(), namespace);
            match api.create(&parameters, &self.requested(namespace, now, &end)).await {
                Ok(freeze) => created.push(freeze),
                Err(error) => failed.push(FREEZES.failure(&format!("freeze namespace {namespace}"), error)),
            }
        }
        Ok((created, failed))
    }

    /// The object to create. `now` is by the API server's clock.
    fn requested(&self, namespace: &str, now: Timestamp, end: &Zoned) -> Freeze {
        let (zone, name) = until::named_zone(end);
        let begin = now.saturating_sub(HEAD_START_MINUTES.minutes()).unwrap_or(now).to_zoned(zone.clone());
        let spec = FreezeSpec {
            reason: self.reason.clone().unwrap_or_default(),
            time_zone: name,
            from: Some(written(&begin)),
            to: Some(written(&end.with_time_zone(zone))),
            weekdays: None,
            effect: None,
            releases: (!self.releases.is_empty()).then(|| self.releases.clone()),
            exempt: None,
        };
        let metadata = ObjectMeta {
            generate_name: Some("stop-".to_owned()),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        };
        Freeze { metadata, spec }
    }

    /// Deletes the named Freezes. Returns the deleted Freezes and the failures.
    async fn end_all(&self, client: &Client) -> (Vec<Freeze>, Vec<anyhow::Error>) {
        let (mut ended, mut failed) = (Vec::new(), Vec::new());
        for place in &self.places {
            if let Err(error) = self.end_in(client, place, &mut ended).await {
                failed.push(FREEZES.failure(&format!("end the freeze of {place}"), error));
            }
        }
        (ended, failed)
    }

    async fn end_in(&self, client: &Client, place: &Place, ended: &mut Vec<Freeze>) -> kube::Result<()> {
        let api: Api<Freeze> = Api::namespaced(client.clone(), &place.namespace);
        let found = match &place.name {
            Some(name) => vec![api.get(name).await?],
            None => api.list(&ListParams::default()).await?.items,
        };
        for freeze in found {
            let preconditions = Preconditions { uid: freeze.metadata.uid.clone(), resource_version: None };
            let parameters =
                DeleteParams { dry_run: self.dry_run, preconditions: Some(preconditions), ..DeleteParams::default() };
            match api.delete(freeze.metadata.name.as_deref().unwrap_or_default(), &parameters).await {
                Ok(_) => ended.push(freeze),
                // The Freeze was already deleted.
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn text_of_created(&self, created: &[Freeze]) -> String {
        let said = if self.dry_run { "Dry run, nothing was created. Would freeze" } else { "Froze" };
        let lines = created.iter().map(|freeze| {
            let FreezeSpec { to, time_zone, releases, .. } = &freeze.spec;
            let what =
                releases.as_ref().map_or("every release".to_owned(), |globs| format!("releases {}", globs.join(", ")));
            let namespace = freeze.metadata.namespace.as_deref().unwrap_or_default();
            let until = to.as_deref().unwrap_or_default().replace('T', " ");
            let end = format!("  To end it earlier: interlock freeze --end {}\n", reference(freeze));
            let end = if self.dry_run { String::new() } else { end };
            format!("{said} {what} of namespace {namespace} until {until} {time_zone}.\n{end}")
        });
        lines.collect()
    }

    fn text_of_ended(&self, ended: &[Freeze]) -> String {
        if ended.is_empty() {
            return "There is no such Freeze.\n".to_owned();
        }
        let said = if self.dry_run { "Dry run, nothing was ended. Would end" } else { "Ended" };
        let lines = ended.iter().map(|freeze| {
            let creator = freeze.metadata.annotations.as_ref().and_then(|all| all.get(CREATED_BY));
            let creator = creator.map_or("an unknown user".to_owned(), |user| printable(user));
            format!("{said} {}, created by {creator}: {}\n", reference(freeze), printable(&freeze.spec.reason))
        });
        lines.collect()
    }
}

/// `shop/stop-x7k2p`.
fn reference(freeze: &Freeze) -> String {
    let ObjectMeta { namespace, name, .. } = &freeze.metadata;
    format!("{}/{}", namespace.as_deref().unwrap_or_default(), name.as_deref().unwrap_or_default())
}

/// Parses `NAMESPACE` or `NAMESPACE/NAME`.
fn place(text: &str) -> Result<Place, String> {
    let (namespace, name) = match text.split_once('/') {
        Some((namespace, name)) => (namespace, Some(name)),
        None => (text, None),
    };
    if !is_dns_label(namespace) {
        return Err(format!("{namespace:?} is not a namespace"));
    }
    match name.filter(|name| !is_dns_subdomain(name, MAX_NAME_LENGTH)) {
        Some(name) => Err(format!("{name:?} is not the name of a Freeze, for example stop-x7k2p")),
        None => Ok(Place { namespace: namespace.to_owned(), name: name.map(str::to_owned) }),
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.namespace)?;
        self.name.iter().try_for_each(|name| write!(out, "/{name}"))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use interlock_engine::policy_files::FreezeName;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn parse(line: &[&str]) -> Result<Arguments, String> {
        let line = Line::try_parse_from(["freeze"].iter().chain(line));
        line.map(|line| line.arguments).map_err(|error| error.to_string())
    }

    #[test]
    fn a_freeze_begins_early_and_is_valid_for_the_rules() {
        let arguments =
            parse(&["shop", "--until", "2026-12-24T18:00[Europe/Berlin]", "--reason", "INC-7", "--release=api-*"]);
        let arguments = arguments.unwrap();
        let now: Timestamp = "2026-12-24T10:00:30Z".parse().unwrap();
        let end = arguments.until.as_ref().unwrap().after(now).unwrap();
        let object = serde_json::to_value(arguments.requested("shop", now, &end)).unwrap();
        assert_eq!(
            object,
            serde_json::json!({
                "apiVersion": "interlock.dev/v1alpha1", "kind": "Freeze",
                "metadata": {"namespace": "shop", "generateName": "stop-"},
                "spec": {
                    "reason": "INC-7", "timeZone": "Europe/Berlin", "from": "2026-12-24T10:59:30", "to": "2026-12-24T18:00:00",
                    "releases": ["api-*"],
                },
            })
        );
        let name = FreezeName { namespace: "shop", name: "stop-1" };
        let read = interlock_engine::policy::Freeze::of_spec(name, &object["spec"].to_string()).unwrap();
        assert_eq!(read.scope, "releases api-* in namespace shop");
        let mut created: Freeze = serde_json::from_value(object).unwrap();
        created.metadata.name = Some("stop-1".to_owned());
        assert_eq!(
            arguments.text_of_created(&[created.clone()]),
            "Froze releases api-* of namespace shop until 2026-12-24 18:00:00 Europe/Berlin.\n  To end it earlier: interlock freeze \
             --end shop/stop-1\n"
        );
        let end = parse(&["--end", "shop"]).unwrap();
        assert_eq!(end.text_of_ended(&[created]), "Ended shop/stop-1, created by an unknown user: INC-7\n");
        assert_eq!(end.text_of_ended(&[]), "There is no such Freeze.\n");
    }

    #[test]
    fn the_command_line_requires_namespace_end_and_reason() {
        for (line, wanted) in [
            (&["shop", "billing", "--for", "2h", "--reason", "x"][..], None),
            (&["--end", "shop", "billing/stop-1"], None),
            (&["shop", "--reason", "x"], Some("--until <TIME>|--for <DURATION>|--end")),
            (&["shop", "--for", "2h"], Some("--reason")),
            (&["shop", "--for", "2h", "--until", "18:00", "--reason", "x"], Some("cannot be used with")),
            (&["shop", "--end", "--reason", "x"], Some("cannot be used with")),
            (&["--for", "2h", "--reason", "x"], Some("<NAMESPACE>")),
            (&["Shop", "--for", "2h", "--reason", "x"], Some("\"Shop\" is not a namespace")),
            (&["--end", "shop/Stop"], Some("is not the name of a Freeze")),
            (&["shop", "--for", "soon", "--reason", "x"], Some("is not a duration like 90s")),
            (&["shop", "--until", "soon", "--reason", "x"], Some("is not a time like 18:00")),
        ] {
            let error = parse(line).err();
            match wanted {
                None => assert_eq!(error, None, "{line:?}"),
                Some(wanted) => assert!(error.as_ref().is_some_and(|it| it.contains(wanted)), "{line:?}: {error:?}"),
            }
        }
    }
}

//! `interlock wait`: the step of a pipeline before or after a deployment.

mod carried;
mod report;

use std::pin::pin;
use std::time::Duration;

use anyhow::Context;
use futures_util::StreamExt;
use interlock_engine::policy::Policies;
use interlock_engine::release::{ReleaseRef, Storage};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use tokio::time::{Instant, sleep_until, timeout};

use super::cluster::{self, ClusterArguments, WATCH_READ_TIMEOUT, server_time};
use super::duration::duration;
use super::examples::examples;
use super::exit_status::ExitStatus;
use super::output::Output;
use super::policies_in_force::PoliciesInForce;
use super::progress::WaitLine;
use super::release_argument::{Named, ReleaseArgument};
use super::table::printable;
use crate::inspect::status;
use crate::inspect::view::View;
use crate::inspect::wait::{Goal, Look, Records, Starter, Wait};
use crate::world::kubernetes::clock::ServerClock;
use report::{Outcome, WaitReport};

/// How long one observation may take.
const OBSERVATION_TIMEOUT: Duration = Duration::from_secs(30);

/// The maximum time between two observations, even without an event: a HelmRelease, a policy or an override may have changed, and a
/// laptop may have been suspended.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// The minimum time before the next observation without an event.
const MIN_PAUSE: Duration = Duration::from_secs(1);

/// The pause after a failed observation.
const RETRY: Duration = Duration::from_secs(2);

/// Wait until a release is free, deployed, at a version, or open: a step for pipelines
///
/// Watches the records of the release, and judges it like `interlock status`. An Application of Argo CD, named as -n NAMESPACE app/NAME,
/// is free once no sync runs. If an operation is stuck, the command does not wait for
/// it, and prints the next step. A failed release of Helm does not become deployed by waiting; Flux, Sveltos and OLM try again.
/// Requires the rights to list and watch Secrets and ConfigMaps in the namespace, to get those whose chart is not stamped, and to list
/// HelmReleases if Flux is installed; for --until open also to get the ConfigMaps of the policy.
/// Exits with 0 if the condition holds, with 1 if the release is stuck or has failed, with 2 if this cannot be determined, with 3
/// after the timeout, and with 4 if a freeze lasts longer than the timeout.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "interlock wait shop/web --until deployed",
    "interlock wait -n shop web --until 1.2.3 --timeout 10m",
    "interlock wait -n argocd app/web",
]))]
pub(super) struct Arguments {
    #[command(flatten)]
    release: ReleaseArgument,
    /// What to wait for: free, deployed, open, or the version of a chart
    ///
    /// free: no operation is in flight; so is a release of which there is no record. deployed: free, and the newest revision is
    /// deployed; a release of which there is no record is waited for. VERSION: deployed, with this version of the chart, for example
    /// 1.2.3 or v1.2.3. open: free, and no freeze of the policy stops you; a freeze that ends before the timeout is waited out.
    #[arg(long, value_name = "free|deployed|VERSION|open", default_value = "free")]
    until: Goal,
    /// How long to wait, for example 90s or 1h30m; 0 looks once
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    timeout: SignedDuration,
    #[command(flatten)]
    cluster: ClusterArguments,
    /// Output format
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
    #[command(flatten)]
    policies: PoliciesInForce,
}

pub(super) async fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let config = arguments.cluster.infer().await?;
    if let Named::Object(carrier, place) = arguments.release.stuck(&config.default_namespace)? {
        let client = cluster::client(config)?;
        let clock = ServerClock::read(&client).await?;
        let policies = arguments.policies.read(&client).await?.policies;
        return carried::run(arguments, (carrier, &place), (&client, &clock, &policies)).await;
    }
    let report = wait(arguments).await?;
    arguments.output.print(&report, || report.text())?;
    Ok(report.outcome.exit_status())
}

async fn wait(arguments: &Arguments) -> anyhow::Result<WaitReport> {
    let goal = &arguments.until;
    let mut config = arguments.cluster.infer().await?;
    config.read_timeout = Some(WATCH_READ_TIMEOUT);
    let release = &arguments.release.within(&config.default_namespace)?;
    let client = cluster::client(config)?;
    let clock = ServerClock::read(&client).await?;
    // Freezes need the policy in force. For the other goals the shipped policy is sufficient: it defines when an operation is stuck.
    let found = match goal {
        Goal::Open => arguments.policies.require(&client).await?,
        Goal::Free | Goal::Deployed | Goal::Version(_) => arguments.policies.read(&client).await?,
    };
    let policies = found.policies;
    let mut observer = ReleaseObserver::new(arguments, release, &client, &clock, &policies).await?;
    let last_moment = clock.now().checked_add(arguments.timeout)?;
    let (started, allowed) = (Instant::now(), arguments.timeout.unsigned_abs());
    let mut wait = Wait::new(goal, last_moment);
    let mut changes = pin!(status::changes(&client, release));
    let (mut line, mut is_first, mut refresh) = (WaitLine::default(), true, false);
    loop {
        let observed = timeout(OBSERVATION_TIMEOUT, observer.observe(refresh)).await;
        let observed = observed.unwrap_or_else(|_| Err(anyhow::anyhow!("the API server did not answer in time")));
        let is_over = started.elapsed() >= allowed;
        let report = |outcome, look| WaitReport::new(outcome, goal, release, look, started.elapsed());
        let pause = match observed {
            Ok(look) => {
                let again = match Outcome::of(wait.judge(&look)) {
                    Ok(outcome) => return Ok(report(outcome, look)),
                    Err(_) if is_over => return Ok(report(Outcome::TimedOut, look)),
                    Err(again) => again,
                };
                line.says(report::progress(goal, release, &look));
                pause_until(again, clock.now())
            }
            Err(error) if is_first || is_over => return Err(error),
            // The API server may be restarting.
            Err(error) => {
                line.says(printable(&format!("{error:#}: trying again")));
                RETRY
            }
        };
        is_first = false;
        let wake = Instant::now() + pause.min(allowed.saturating_sub(started.elapsed()));
        tokio::select! {
            Some(change) = changes.next() => {
                change?;
                refresh = false;
            }
            () = sleep_until(wake) => refresh = true,
        }
    }
}

/// Observes one release.
struct ReleaseObserver<'a> {
    arguments: &'a Arguments,
    release: &'a ReleaseRef,
    client: &'a Client,
    clock: &'a ServerClock,
    view: View<'a>,
    /// The user. Only for `--until open`, which depends on freezes.
    starter: Option<Starter>,
}

impl<'a> ReleaseObserver<'a> {
    async fn new(
        arguments: &'a Arguments,
        release: &'a ReleaseRef,
        client: &'a Client,
        clock: &'a ServerClock,
        policies: &'a Policies,
    ) -> anyhow::Result<Self> {
        let starter = match arguments.until {
            Goal::Open => Some(Starter::of(client).await.context("the API server does not say who you are")?),
            Goal::Free | Goal::Deployed | Goal::Version(_) => None,
        };
        Ok(Self { arguments, release, client, clock, view: View::open(client, policies).await, starter })
    }

    /// Reads the release, and the policy if the goal depends on freezes. Reads the HelmReleases only with `refresh`.
    async fn observe(&mut self, refresh: bool) -> anyhow::Result<Look> {
        if refresh {
            self.view.refresh().await;
        }
        let release = self.release;
        let found = self.view.releases(release).await?;
        let now = self.clock.now();
        let mut look = Look { rows: Vec::new(), freeze: None, now };
        for (storage, history) in &found {
            look.rows.extend(status::row(&self.view, release, *storage, history, now).await);
        }
        if let Some(starter) = &self.starter {
            let policies = self.arguments.policies.require(self.client).await?.policies;
            let storage = look.newest().map_or(Storage::Secret, |row| row.storage);
            let history = found.iter().find(|(it, _)| *it == storage).map(|(_, history)| history);
            let of_objects = history.and_then(|history| history.newest()?.stamps.target_namespace());
            let records = Records { storage, of_objects };
            let policy = policies.of(&release.namespace);
            // The webhook judges by the API server's clock, and this machine's clock may be a few seconds fast. The Date of an answer is
            // never ahead of the API server's clock.
            let date = server_time(self.client).await?;
            let frozen =
                starter.frozen(&self.view.world, policy, release, records, date).await.map_err(anyhow::Error::msg);
            look.freeze = frozen.context("it is unknown what is frozen, because the Freezes cannot be read")?;
        }
        Ok(look)
    }
}

fn pause_until(again: Option<Timestamp>, now: Timestamp) -> Duration {
    let left = again.map(|at| Duration::try_from(at.duration_since(now)).unwrap_or_default());
    left.unwrap_or(MAX_PAUSE).clamp(MIN_PAUSE, MAX_PAUSE)
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

    fn parse(line: &[&str]) -> Result<(String, String, i64), String> {
        let line = Line::try_parse_from(["wait"].iter().chain(line)).map_err(|error| error.to_string())?;
        let Arguments { release, until, timeout, .. } = line.arguments;
        let release = release.within("mine").map_err(|error| error.to_string())?;
        Ok((release.to_string(), until.to_string(), timeout.as_secs()))
    }

    #[test]
    fn the_command_line_has_defaults_and_names_invalid_values() {
        for (line, until, seconds) in [
            (&["shop/web"][..], "free", 300),
            (&["shop/web", "--until", "open", "--timeout", "0"], "open", 0),
            (&["shop/web", "--until=v1.2.3", "--timeout=1h30m"], "v1.2.3", 5_400),
            (&["web", "-n", "shop", "--until=deployed", "--timeout=5m0s"], "deployed", 300),
        ] {
            assert_eq!(parse(line), Ok(("shop/web".to_owned(), until.to_owned(), seconds)), "{line:?}");
        }
        for (line, wanted) in [
            (&["Web"][..], "is not a name"),
            (&["shop/web", "--until", "ready"], "\"ready\" is not free, deployed, open, or the version of a chart"),
            (&["shop/web", "--timeout", "soon"], "\"soon\" is not a duration like 90s"),
            (&["shop/web", "--timeout=-5m"], "is not a duration"),
            (&["shop/web", "--timeout", "20000h"], "is longer than a year"),
            (&["shop/web", "--timeout", "5"], "\"5\" is not a duration"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(wanted), "{line:?}: {error}");
        }
    }

    #[test]
    fn the_next_observation_is_within_a_minute() {
        let now: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
        let pause = |seconds: i64| pause_until(now.checked_add(SignedDuration::from_secs(seconds)).ok(), now);
        assert_eq!((pause(30), pause(3_600)), (Duration::from_secs(30), MAX_PAUSE));
        assert_eq!((pause(0), pause(-30)), (MIN_PAUSE, MIN_PAUSE));
        assert_eq!(pause_until(None, now), MAX_PAUSE);
    }
}

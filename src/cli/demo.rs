//! `interlock demo`: five stories, without Interlock and with it.

use std::env;
use std::io::{IsTerminal, stdout};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use interlock_engine::policy::Policy;
use tokio::net::TcpListener;
use tokio::time::sleep;

use super::examples::examples;
use super::exit_status::ExitStatus;
use super::output::print;
use crate::offline::demo::{Act, StoryText, stories};
use crate::offline::replay::Replay;
use crate::serve::report::refusals::LastRefusals;

/// How long a reader has for each line, so that the demo takes about a minute.
const PACE: Duration = Duration::from_millis(450);

/// The width of the text, in characters.
const WIDTH: usize = 96;

/// Show what Interlock prevents: five stories, recorded from real clients, in a minute and without a cluster
///
/// On a terminal it ends with the page of the server, which shows the refusals.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&["interlock demo", "interlock demo --no-page"]))]
pub(super) struct Arguments {
    /// Print at once
    #[arg(long)]
    fast: bool,
    /// Serve the page on this address, also without a terminal. Port 0 is any free port
    #[arg(long, value_name = "ADDRESS", conflicts_with = "no_page")]
    page: Option<SocketAddr>,
    /// End after the stories
    #[arg(long)]
    no_page: bool,
}

impl Arguments {
    fn pace(&self) -> Duration {
        if self.fast || !stdout().is_terminal() { Duration::ZERO } else { PACE }
    }

    fn page(&self) -> Option<SocketAddr> {
        let on_terminal = || (!self.no_page && stdout().is_terminal()).then(|| (Ipv4Addr::LOCALHOST, 0).into());
        self.page.or_else(on_terminal)
    }
}

pub(super) async fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let policy = Policy::shipped()?;
    let refusals = Arc::new(LastRefusals::default());
    let mut replay = Replay::new(policy.clone(), false);
    let stories = stories()?;
    for (index, story) in stories.iter().enumerate() {
        // Two stories are about the same release.
        replay = Replay::new(policy.clone(), false).noting(refusals.clone());
        let acts = story.play(&mut replay).await?;
        let number = format!("{}/{}", index + 1, stories.len());
        let text = told(&number, &story.text, &acts);
        for line in text.lines() {
            print(&format!("{line}\n"))?;
            if !line.is_empty() {
                sleep(arguments.pace()).await;
            }
        }
    }
    print(NEXT)?;
    let Some(address) = arguments.page() else { return Ok(ExitStatus::Success) };
    let socket = TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
    let url = format!("http://{}/", socket.local_addr()?);
    print(&format!("\nThe page of the server, until Ctrl-C: {url}\n"))?;
    if stdout().is_terminal() {
        browse(&url);
    }
    replay.page(refusals).serve(socket).await?;
    Ok(ExitStatus::Success)
}

const NEXT: &str = "\
Next: whom would it refuse in your cluster? `interlock adopt audit.log` answers from its audit log, and
`helm install interlock manifests/chart -n interlock-system --create-namespace --set mode=audit-first`
installs it so that it refuses nothing and records what it would refuse.
";

fn told(number: &str, StoryText { title, setting, without, with }: &StoryText, acts: &[Act]) -> String {
    let mut text = format!("{number}  {title}\n\n{}\n  without Interlock\n", wrapped(setting, 2));
    for Act { caption, .. } in acts.iter().filter(|act| !act.later) {
        text += &format!("    done     {caption}\n");
    }
    text += &format!("{}\n  with Interlock\n", wrapped(&format!("=> {without}"), 4));
    for Act { caption, refusal, .. } in acts {
        match refusal {
            None => text += &format!("    done     {caption}\n"),
            Some(message) => text += &format!("    REFUSED  {caption}\n{}", wrapped(message, 13)),
        }
    }
    text + &wrapped(&format!("=> {with}"), 4) + "\n"
}

/// A paragraph with a margin.
fn wrapped(text: &str, margin: usize) -> String {
    let mut lines = String::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && margin + line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines += &format!("{:margin$}{line}\n", "");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    lines + &format!("{:margin$}{line}\n", "")
}

/// Opens the page where there is a desktop. Where it cannot, the reader has its address.
fn browse(url: &str) {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    if cfg!(target_os = "macos") || env::var_os("DISPLAY").or_else(|| env::var_os("WAYLAND_DISPLAY")).is_some() {
        let _ = Command::new(opener).arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    }
}

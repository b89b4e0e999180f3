//! The transitions in Interlock's own log: the lines that `serve::report::log` writes, as `docs/changes.md` describes them.

use jiff::Timestamp;
use memchr::memmem;
use serde::Deserialize;

use super::tally::FileTally;
use crate::engine::decision::{TransitionKind, TransitionOutcome};
use crate::engine::release::Status;
use crate::inspect::changes::{Change, ChangeSource, ChangedRelease};

/// The message of the lines.
const MESSAGE: &str = "transition";

/// What every such line contains, and hardly another.
const MARK: &[u8] = br#""transition""#;

#[derive(Deserialize)]
struct TransitionLine {
    #[serde(default)]
    message: String,
    #[serde(default)]
    transition: String,
    #[serde(default)]
    outcome: String,
    time: Option<Timestamp>,
    #[serde(default)]
    release: String,
    #[serde(default)]
    revision: u64,
    user: Option<String>,
    groups: Option<String>,
    from: Option<String>,
    to: Option<String>,
    chart: Option<String>,
    seconds: Option<u64>,
    holder: Option<String>,
    #[serde(rename = "override")]
    overridden: Option<String>,
    freeze: Option<String>,
}

/// The change that a line tells, if it is one of a transition. Tools that collect logs put a time or a name before each line.
pub(super) fn change(line: &[u8], tally: &mut FileTally) -> Result<Option<Change>, String> {
    if memmem::find(line, MARK).is_none() {
        return Ok(None);
    }
    let json = line.iter().position(|byte| *byte == b'{').map_or(line, |start| &line[start..]);
    let read: TransitionLine =
        serde_json::from_slice(json).map_err(|error| format!("it is no line of Interlock's log: {error}"))?;
    if read.message != MESSAGE {
        return Ok(None);
    }
    tally.known += 1;
    read.change().map(Some)
}

impl TransitionLine {
    fn change(self) -> Result<Change, String> {
        let (namespace, release) = self.release.split_once('/').ok_or("the transition has no release")?;
        let release =
            ChangedRelease { namespace: namespace.to_owned(), release: release.to_owned(), revision: self.revision };
        let kind: TransitionKind = self.transition.parse().map_err(|error| format!("transition: {error}"))?;
        let outcome = TransitionOutcome::ALL.into_iter().find(|outcome| outcome.as_str() == self.outcome);
        let status = |text: Option<String>| {
            let status = text.map(|text| text.parse::<Status>()).transpose();
            status.map_err(|error| error.to_string())
        };
        let time = self.time.ok_or("the transition has no time")?;
        let groups = self.groups.unwrap_or_default();
        Ok(Change {
            from: status(self.from)?,
            to: status(self.to)?,
            outcome: outcome.ok_or("outcome: expected allowed, warned or refused")?,
            user: self.user,
            groups: groups.split(';').filter(|group| !group.is_empty()).map(str::to_owned).collect(),
            holder: self.holder,
            chart: self.chart,
            seconds: self.seconds,
            overridden: self.overridden,
            freeze: self.freeze,
            ..Change::new(time, release, kind, ChangeSource::Log)
        })
    }
}

//! Five stories from recordings of real clients: what they did without Interlock, and what Interlock would have said.

use std::io::{BufRead, BufReader, Read};

use flate2::read::GzDecoder;
use serde::Deserialize;

use super::replay::{Replay, Replayed};

/// The stories in the order of `interlock demo`: gzip, one JSON line each. A story, the objects of its release, and after each caption the
/// writes of one client.
const STORIES: [&[u8]; 5] = [
    include_bytes!("../../examples/stories/in-progress.jsonl.gz"),
    include_bytes!("../../examples/stories/dropped-charts.jsonl.gz"),
    include_bytes!("../../examples/stories/killed.jsonl.gz"),
    include_bytes!("../../examples/stories/retries.jsonl.gz"),
    include_bytes!("../../examples/stories/by-hand.jsonl.gz"),
];

/// A story with its recording.
#[derive(Debug)]
pub(crate) struct Story {
    pub(crate) text: StoryText,
    /// Lines of JSON.
    recording: String,
}

/// The text before and after the acts of a story.
#[derive(Debug, Deserialize)]
pub(crate) struct StoryText {
    #[serde(rename = "mark")]
    pub(crate) title: String,
    pub(crate) setting: String,
    /// How it ended.
    pub(crate) without: String,
    /// How it ends if the refused writes are missing.
    pub(crate) with: String,
}

/// What one client does in a story.
#[derive(Debug)]
pub(crate) struct Act {
    pub(crate) caption: String,
    /// Whether it happens only where an earlier one was refused.
    pub(crate) later: bool,
    /// The message of the first refusal.
    pub(crate) refusal: Option<String>,
}

#[derive(Deserialize)]
struct Caption {
    mark: Option<String>,
    #[serde(default)]
    later: bool,
}

/// All stories.
///
/// # Errors
/// Not in a build whose tests passed: the recordings are part of the program.
pub(crate) fn stories() -> anyhow::Result<Vec<Story>> {
    STORIES.into_iter().map(Story::read).collect()
}

impl Story {
    fn read(packed: &[u8]) -> anyhow::Result<Self> {
        let mut lines = BufReader::new(GzDecoder::new(packed));
        let (mut text, mut recording) = (String::new(), String::new());
        lines.read_line(&mut text)?;
        lines.read_to_string(&mut recording)?;
        Ok(Self { text: serde_json::from_str(&text)?, recording })
    }

    /// Judges the writes of the story in a world that has no such release. After a refusal, the same client writes no more.
    ///
    /// # Errors
    /// As for [`stories`].
    pub(crate) async fn play(&self, replay: &mut Replay) -> anyhow::Result<Vec<Act>> {
        let mut acts: Vec<Act> = Vec::new();
        for (index, line) in self.recording.lines().enumerate() {
            if let Caption { mark: Some(caption), later } = serde_json::from_str(line)? {
                acts.push(Act { caption, later, refusal: None });
                continue;
            }
            match acts.last_mut() {
                Some(Act { refusal: Some(_), .. }) => {}
                Some(act) => act.refusal = refusal(replay.line(index + 2, line).await?),
                None => drop(replay.line(index + 2, line).await?),
            }
        }
        Ok(acts)
    }
}

fn refusal(replayed: Vec<Replayed>) -> Option<String> {
    let mut violations = replayed.into_iter().flat_map(|review| review.violations);
    violations.find(|violation| violation.refuses).map(|violation| violation.message)
}

#[cfg(test)]
mod tests {
    use interlock_engine::object::ObjectKey;
    use interlock_engine::policy::Policy;
    use serde_json::Value;

    use super::*;

    fn replay(as_recorded: bool) -> Replay {
        Replay::new(Policy::shipped().unwrap(), as_recorded)
    }

    fn statuses(replay: &Replay, namespace: &str, release: &str) -> Vec<(usize, String)> {
        let status = |revision: usize| {
            let name = format!("sh.helm.release.v1.{release}.v{revision}");
            let record = replay.object(&ObjectKey::new("", "Secret", namespace, &name))?;
            let record: Value = serde_json::from_str(&record).unwrap();
            Some((revision, record["metadata"]["labels"]["status"].as_str()?.to_owned()))
        };
        (1..9).filter_map(status).collect()
    }

    #[tokio::test]
    async fn one_client_is_refused_in_each_story() {
        let stories = stories().unwrap();
        for (story, (refused, rule)) in stories.iter().zip([
            ("alice runs `helm rollback b` in another terminal", "[pending-recovery]"),
            ("Sveltos stages no chart, and commits the rest", "[dropped-bundles]"),
            ("alice deletes the pending record two seconds later", "[pending-recovery]"),
            ("bob applies a second HelmRelease for release kill", "[duplicate-release]"),
        ]) {
            let acts = story.play(&mut replay(false)).await.unwrap();
            for Act { caption, refusal, .. } in acts {
                let is_right = refusal.as_ref().is_some_and(|refusal| refusal.contains(rule));
                assert_eq!(refusal.is_some(), caption == refused, "{caption}: {refusal:?}");
                assert_eq!(is_right, caption == refused, "{caption}: {refusal:?}");
            }
        }
        let by_hand = stories[4].play(&mut replay(false)).await.unwrap();
        let refused: Vec<_> = by_hand.iter().map(|act| act.refusal.is_some()).collect();
        assert_eq!(refused, [true, true, false], "{by_hand:?}");
    }

    #[tokio::test]
    async fn the_stories_end_as_they_say() {
        let stories = stories().unwrap();
        let [in_progress, _, killed, retries, _] = stories.as_slice() else { panic!("five stories") };
        let mut without = replay(true);
        for line in in_progress.recording.lines() {
            without.line(1, line).await.unwrap();
        }
        let deployed = |replay: &Replay| {
            let all = statuses(replay, "shop", "b").into_iter();
            all.filter(|(_, status)| status == "deployed").map(|(revision, _)| revision).collect::<Vec<_>>()
        };
        assert_eq!(deployed(&without), [5, 7]);

        let mut with = replay(false);
        for story in [in_progress, killed, retries] {
            story.play(&mut with).await.unwrap();
        }
        assert_eq!(deployed(&with), [5]);
        assert_eq!(statuses(&with, "olmv1-system", "bigext").last().unwrap().0, 3);
        assert_eq!(statuses(&with, "apps", "kill").last().unwrap(), &(3, "deployed".to_owned()));
    }
}

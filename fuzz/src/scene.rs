//! A world and a review, as lines of a recording: the objects that exist, the writes that took place, and the review that is
//! judged, in the last line.

use std::sync::{Arc, LazyLock};

use interlock_engine::object::ObjectKey;
use interlock_engine::policy::{Policies, Policy};
use interlock_engine::release::record::INFLATE_LIMIT;
use interlock_engine::review::Review;
use jiff::Timestamp;
use release_interlock::budget::Budget;
use release_interlock::judge::Judge;
use release_interlock::world::memory::Memory;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;

/// The most bytes of objects in a world.
const MAX_WORLD_BYTES: usize = 64 << 20;

/// The time of a scene that does not say it.
const SOME_TIME: i64 = 1_795_257_000;

static SHIPPED: LazyLock<Policies> = LazyLock::new(|| Policies::from(Policy::shipped().expect("the shipped policy")));

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().enable_time().build().expect("a runtime"));

/// A world, and a review in it.
pub struct Scene<'a> {
    pub memory: Arc<Memory>,
    /// The text of the AdmissionReview. It may be anything.
    pub review: &'a str,
    pub now: Timestamp,
}

/// A line of a recording.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Line<'a> {
    t: Option<f64>,
    #[serde(borrow)]
    review: Option<&'a RawValue>,
    #[serde(borrow)]
    object: Option<&'a RawValue>,
    #[serde(borrow)]
    remove: Option<&'a RawValue>,
}

impl<'a> Scene<'a> {
    /// Reads a scene. Lines that say nothing are left out.
    pub fn read(input: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(input).ok()?.trim_end_matches('\n');
        let (before, last) = text.rsplit_once('\n').unwrap_or(("", text));
        let memory = Memory::new(MAX_WORLD_BYTES);
        before.lines().filter_map(|line| serde_json::from_str(line).ok()).for_each(|line| take_place(&line, &memory));
        let line = serde_json::from_str::<Line<'a>>(last).unwrap_or_default();
        let seconds = line.t.filter(|t| (0.0..1e10).contains(t)).map_or(SOME_TIME, |t| t as i64);
        let now = Timestamp::from_second(seconds).ok()?;
        Some(Self { memory: Arc::new(memory), review: line.review.map_or(last, RawValue::get), now })
    }

    /// A judge over the world with the shipped policy.
    pub fn judge(&self) -> Judge {
        Judge::new(shipped(), self.memory.clone(), Arc::new(Budget::new(2 * INFLATE_LIMIT)))
    }

    /// The shipped policy.
    pub fn policy(&self, namespace: &str) -> &'static Policy {
        SHIPPED.of(namespace)
    }
}

fn take_place(line: &Line<'_>, memory: &Memory) {
    if let Some((key, object)) =
        line.object.and_then(|object| Some((ObjectKey::of_object(object.into()).ok()?, object)))
    {
        memory.put(key, object.get().to_owned());
    }
    if let Some(object) = line.remove {
        let _whatever = memory.remove_object(object.into());
    }
    if let Some(Ok(review)) = line.review.map(|review| Review::parse(review.get().as_bytes())) {
        memory.apply(&review.request);
    }
}

/// The shipped policies.
pub fn shipped() -> Policies {
    SHIPPED.clone()
}

/// Waits for a step of a judge, whose deadlines are far away.
pub fn wait<T>(step: impl Future<Output = T>) -> T {
    RUNTIME.block_on(step)
}

/// A deadline that no review reaches: libFuzzer stops an input that takes too long.
pub fn no_deadline() -> Instant {
    Instant::now() + std::time::Duration::from_secs(3_600)
}

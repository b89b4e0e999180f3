//! Turns without threads: a step "runs" while its granted turn is not dropped.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;

use futures_util::FutureExt;

use super::*;
use crate::budget::Peer;

const LONG: Price = Price(Duration::from_millis(300));
const SHORT: Price = Price(Duration::from_millis(20));

fn cores(running: usize, waiting: usize) -> Cores {
    Cores::new(Limits { running, small: 0, waiting })
}

fn flow(user: &str) -> Flow<'_> {
    Flow::of(Peer::Known, user)
}

/// Takes the turn, if it was granted.
fn comes(turn: &mut Turn<'_>) -> bool {
    let granted = turn.granted.try_recv().is_ok();
    if granted {
        turn.began = Some(Instant::now());
    }
    granted
}

/// Ends a step as if it had taken the time of its price.
fn end(mut turn: Turn<'_>) {
    turn.began = Instant::now().checked_sub(turn.price.0);
}

/// A turn that is granted at once.
fn running<'c>(cores: &'c Cores, user: &str) -> Turn<'c> {
    let mut turn = cores.enter(flow(user), LONG);
    assert!(comes(&mut turn), "{user}");
    turn
}

fn is_empty(cores: &Cores) -> bool {
    cores.lock().steps() == (0, 0, 0)
}

/// The flows in the order of their turns. Each step starts after the step before it.
fn order<'n, 'c>(mut now: Turn<'c>, mut waiting: Vec<(&'n str, Turn<'c>)>) -> Vec<&'n str> {
    let mut order = Vec::new();
    while !waiting.is_empty() {
        end(now);
        let next = waiting.iter_mut().position(|(_, turn)| comes(turn)).unwrap();
        let (name, turn) = waiting.remove(next);
        order.push(name);
        now = turn;
        assert!(!waiting.iter_mut().any(|(_, turn)| comes(turn)), "two at a time");
    }
    order
}

#[test]
fn flows_take_turns_even_if_one_has_many_steps() {
    let cores = cores(1, 100);
    let now = running(&cores, "flood");
    let names = ["flood", "flood", "flood", "bob", "bob", "carol"];
    let waiting = names.map(|user| (user, cores.enter(flow(user), LONG))).into();
    let order = order(now, waiting);
    assert_eq!((&order[..2], &order[4..]), (&["bob", "carol"][..], &["flood", "flood"][..]), "{order:?}");
    assert!(is_empty(&cores));
}

#[test]
fn a_short_step_of_a_quiet_flow_precedes_forty_long_ones() {
    let cores = cores(1, 100);
    let now = running(&cores, "mallory");
    let others: Vec<_> = (0..40).map(|number| format!("mallory-{number}")).collect();
    let mut waiting: Vec<_> = others.iter().map(|name| (name.as_str(), cores.enter(flow(name), LONG))).collect();
    waiting.push(("alice", cores.enter(flow("alice"), SHORT)));
    assert_eq!(order(now, waiting)[0], "alice");
}

#[test]
fn a_flow_that_returns_at_once_owes_the_time_it_used() {
    let cores = cores(1, 100);
    let first = running(&cores, "a");
    let carol = cores.enter(flow("carol"), LONG);
    // Two flows that take turns do not overtake carol twice.
    let mut waiting = vec![("carol", carol), ("b", cores.enter(flow("b"), LONG))];
    end(first);
    waiting.push(("a", cores.enter(flow("a"), LONG)));
    let now = waiting.iter_mut().position(|(_, turn)| comes(turn)).unwrap();
    let (name, now) = waiting.remove(now);
    assert_eq!(name, "carol");
    assert_eq!(order(now, waiting), ["b", "a"]);
}

#[test]
fn a_flow_pays_for_a_step_that_exceeds_its_price() {
    let cores = cores(1, 100);
    let mut liar = cores.enter(flow("liar"), SHORT);
    assert!(comes(&mut liar));
    let waiting = vec![("liar", cores.enter(flow("liar"), SHORT)), ("bob", cores.enter(flow("bob"), LONG))];
    liar.price = SHORT;
    liar.began = Instant::now().checked_sub(Duration::from_secs(1));
    drop(liar);
    let mut waiting = waiting;
    assert!(comes(&mut waiting[1].1) && !comes(&mut waiting[0].1));
}

#[test]
fn a_small_step_does_not_wait_for_the_end_of_large_ones() {
    let cores = Cores::new(Limits { running: 1, small: 1, waiting: 100 });
    let _large = running(&cores, "mallory");
    let mut waits = cores.enter(flow("carol"), LONG);
    let mut small = cores.enter(flow("alice"), SHORT);
    let mut next = cores.enter(flow("bob"), SHORT);
    assert!(comes(&mut small) && !comes(&mut waits) && !comes(&mut next));
    end(small);
    assert!(comes(&mut next) && !comes(&mut waits));
}

#[test]
fn strangers_get_a_quarter_of_the_time_and_all_unused_time() {
    let cores = cores(1, 100);
    let stranger = |user| Flow::of(Peer::Stranger, user);
    let mut now = cores.enter(stranger("s"), LONG);
    assert!(comes(&mut now));
    let names = ["s1", "s2", "s3", "a", "b", "c", "d", "e", "f"];
    let waiting = names.map(|name| {
        let flow = if name.starts_with('s') { stranger(name) } else { flow(name) };
        (name, cores.enter(flow, LONG))
    });
    let order = order(now, waiting.into());
    let strangers: Vec<_> = (0..order.len()).filter(|at| order[*at].starts_with('s')).collect();
    assert_eq!(strangers, [1, 5, 8], "{order:?}");
}

#[test]
fn a_full_queue_drops_the_newest_step_of_the_busiest_flow() {
    let cores = cores(1, 3);
    let busy = running(&cores, "bob");
    let mut flood: Vec<_> = (0..3).map(|_| cores.enter(flow("flood"), LONG)).collect();
    let carol = cores.enter(flow("carol"), LONG);
    let gone = |turn: &mut Turn<'_>| turn.granted.try_recv() == Err(oneshot::error::TryRecvError::Closed);
    assert_eq!(flood.iter_mut().map(gone).collect::<Vec<_>>(), [false, false, true]);
    // A new step is dropped if its flow has the most steps.
    assert!(gone(&mut cores.enter(flow("flood"), LONG)));
    assert_eq!(cores.work(flow("flood"), LONG, || ()).now_or_never(), Some(Err(Busy)));
    assert_eq!(cores.lock().steps().1, 3);
    drop((flood, carol, busy));
    assert!(is_empty(&cores));
}

#[test]
fn a_full_queue_of_many_flows_keeps_the_small_steps() {
    let cores = cores(1, 2);
    let _busy = running(&cores, "bob");
    let mut heavy = ["m1", "m2"].map(|name| cores.enter(flow(name), LONG));
    let mut small = cores.enter(flow("alice"), SHORT);
    let gone = |turn: &mut Turn<'_>| turn.granted.try_recv() == Err(oneshot::error::TryRecvError::Closed);
    assert!(!gone(&mut small) && gone(&mut heavy[1]));
}

#[test]
fn a_cancelled_step_leaves_the_queue_or_passes_its_turn_on() {
    let cores = cores(1, 100);
    let first = running(&cores, "alice");
    let unnoticed = cores.enter(flow("bob"), LONG);
    let waiting = cores.enter(flow("carol"), LONG);
    let mut last = cores.enter(flow("dave"), LONG);
    drop(waiting);
    drop(first);
    assert!(!comes(&mut last));
    drop(unnoticed);
    assert!(comes(&mut last));
    drop(last);
    assert!(is_empty(&cores));
}

#[test]
fn a_panic_gives_the_core_back() {
    let cores = cores(1, 100);
    let work = AssertUnwindSafe(|| cores.work(flow("alice"), LONG, || panic!("as the test asks")).now_or_never());
    assert!(catch_unwind(work).is_err());
    assert!(is_empty(&cores));
    assert_eq!(cores.work(flow("alice"), LONG, || 7).now_or_never(), Some(Ok(7)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_network_goes_on_while_a_step_runs() {
    let cores = cores(2, 100);
    let (done, asked) = mpsc::channel();
    tokio::spawn(async move {
        tokio::task::yield_now().await;
        done.send(()).unwrap();
    });
    // The only worker thread is blocked, and another thread runs the task.
    let inside = tokio::spawn(async move { cores.work(flow("alice"), LONG, move || asked.recv()).await });
    assert_eq!(inside.await.unwrap(), Ok(Ok(())));
}

//! Turns without threads: a step that "runs" is a turn that was granted and is not dropped yet.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;

use futures_util::FutureExt;

use super::*;

/// Takes the turn, if it has come.
fn comes(turn: &mut Turn<'_>) -> bool {
    let granted = turn.granted.try_recv().is_ok();
    turn.runs |= granted;
    granted
}

/// A turn that comes at once.
fn running<'c>(cores: &'c Cores, user: &str) -> Turn<'c> {
    let mut turn = cores.enter(user);
    assert!(comes(&mut turn), "{user}");
    turn
}

fn is_empty(cores: &Cores) -> bool {
    let queue = cores.lock();
    (queue.running, queue.waiting, queue.users.len()) == (0, 0, 0)
}

#[test]
fn users_take_turns_however_many_steps_one_of_them_has() {
    let cores = Cores::new(1, 100);
    let mut now = running(&cores, "flood");
    let mut waiting: Vec<_> =
        ["flood", "flood", "flood", "bob", "bob", "carol"].map(|user| (user, cores.enter(user))).into();
    let mut order = Vec::new();
    while !waiting.is_empty() {
        drop(now);
        let next = waiting.iter_mut().position(|(_, turn)| comes(turn)).unwrap();
        let (user, turn) = waiting.remove(next);
        order.push(user);
        now = turn;
        assert!(!waiting.iter_mut().any(|(_, turn)| comes(turn)), "two at a time");
    }
    assert_eq!(order, ["flood", "bob", "carol", "flood", "bob", "flood"]);
    drop(now);
    assert!(is_empty(&cores));
}

#[test]
fn a_user_who_comes_back_again_and_again_does_not_overtake_one_who_waits() {
    let cores = Cores::new(1, 100);
    let mut first = running(&cores, "a");
    let mut carol = cores.enter("carol");
    for user in ["b", "a", "b"] {
        let next = cores.enter(user);
        drop(first);
        if comes(&mut carol) {
            return;
        }
        first = next;
        assert!(comes(&mut first));
    }
    panic!("carol waits for ever");
}

#[test]
fn a_free_core_is_for_the_user_with_the_fewest() {
    let cores = Cores::new(3, 100);
    let one = running(&cores, "alice");
    let _two = running(&cores, "alice");
    let bob = running(&cores, "bob");
    let mut third = cores.enter("alice");
    let mut carol = cores.enter("carol");
    drop(one);
    // Alice came first and has one running, Carol has none.
    assert!(comes(&mut carol) && !comes(&mut third));
    drop(bob);
    assert!(comes(&mut third));
}

#[test]
fn a_full_queue_drops_the_newest_of_the_user_with_the_most() {
    let cores = Cores::new(1, 3);
    let busy = running(&cores, "bob");
    let mut flood: Vec<_> = (0..3).map(|_| cores.enter("flood")).collect();
    let carol = cores.enter("carol");
    let gone = |turn: &mut Turn<'_>| turn.granted.try_recv() == Err(oneshot::error::TryRecvError::Closed);
    assert_eq!(flood.iter_mut().map(gone).collect::<Vec<_>>(), [false, false, true]);
    // The newcomer, if it is the user with the most.
    assert!(gone(&mut cores.enter("flood")));
    assert_eq!(cores.work("flood", || ()).now_or_never(), Some(Err(Busy)));
    assert_eq!(cores.lock().waiting, 3);
    drop((flood, carol, busy));
    assert!(is_empty(&cores));
}

#[test]
fn a_step_that_nobody_waits_for_leaves_the_queue_or_passes_its_turn_on() {
    let cores = Cores::new(1, 100);
    let first = running(&cores, "alice");
    let unnoticed = cores.enter("bob");
    let waiting = cores.enter("carol");
    let mut last = cores.enter("dave");
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
    let cores = Cores::new(1, 100);
    let work = AssertUnwindSafe(|| cores.work("alice", || panic!("as the test asks")).now_or_never());
    assert!(catch_unwind(work).is_err());
    assert!(is_empty(&cores));
    assert_eq!(cores.work("alice", || 7).now_or_never(), Some(Ok(7)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_network_goes_on_while_a_step_runs() {
    let cores = Cores::new(2, 100);
    let (done, asked) = mpsc::channel();
    tokio::spawn(async move {
        tokio::task::yield_now().await;
        done.send(()).unwrap();
    });
    // The only thread of the runtime works, and another thread runs the task.
    let inside = tokio::spawn(async move { cores.work("alice", move || asked.recv()).await });
    assert_eq!(inside.await.unwrap(), Ok(Ok(())));
}

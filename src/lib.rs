//! Interlock: a Kubernetes admission webhook that enforces safe release transitions: *no edit outside a transition, no
//! foreign edit inside one, and no transition that skips a step.*
//!
//! # The house
//!
//! Two crates: [`interlock_engine`] judges, and this one serves it. Rooms stand on floors, and an import points down only. A test reads
//! the imports, and fails on any other arrow.
//!
//! ```text
//! main.rs              the binary
//! cli/                 one file per subcommand; the wiring of `serve` is two functions: standalone, in_cluster
//! offline/             without a server: replay/ (recordings, audit logs), registration/ (what of them is sent),
//!                      suite/ (policy tests), changes/ (of logs), log/ (lines and audit events, for replay and changes)
//! serve/               the server: https/ webhook.rs report/ pki/ leader/ reload.rs page/ traces/
//! inspect/             looking at a cluster, for people and for the leader: arrival/ scan/ status/ wait/ changes/ unstick/ doctor/
//!                      and diagnosis/, which they share
//! judge.rs             the one place where the engine and a world meet
//! world/               who answers queries: memory.rs (standalone, replay, tests), kubernetes/ (reads, watches, caches)
//! budget.rs cluster_name.rs file_watch.rs log_limit.rs readiness.rs regular_file.rs supported.rs
//!                      the ground: imported by all, imports nothing of ours
//! ------------------------------------------------------------------------------------------------------------------------
//! crates/engine/       pure: the request, the rules, and what they know of those who release
//! ```
//!
//! # The way of a request
//!
//! ```text
//! bytes -> Review -> Facts -> Step::Ask(Query) <-> World -> Step::Done(judged) -> Outcome -> reply
//!          review    facts    decide, rules        world    decide                outcome    reply
//!                                                                                    |
//!                                                                                    +-> Decision -> serve::report
//! ```
//!
//! - [`interlock_engine::review`]: the AdmissionReview, borrowed from the body. Objects stay text until a rule needs them.
//! - [`interlock_engine::facts`]: what the request says by itself: actor, operation, what happens to a record or to a managed object.
//! - [`interlock_engine::decide`]: `decide(facts, policy, evidence, now) -> Step`. Pure: the same arguments give the same step. A rule
//!   that needs to know something of the cluster asks.
//! - [`world`]: who answers. A query without an answer makes a rule undecided, never silently satisfied.
//! - [`interlock_engine::outcome`]: violations under the [`interlock_engine::policy`]'s modes: refused, warned of, or logged.
//! - [`interlock_engine::stamp`]: the mutating half: who started the transition that a record is in.
//! - [`judge`] takes one review through all of these; [`serve::webhook`] does so for the server, [`offline::replay`] for
//!   recordings.
//!
//! # Words
//!
//! - *Record*: a stored release record (Helm's Secret or ConfigMap, OLM's index Secret), and nothing else.
//! - *Release*: the records of one name in one namespace, and the objects that they declare. *Revision*: one of the records,
//!   counted from 1.
//! - *Operation*: an install, upgrade, rollback or uninstall. It is *in flight* while its record is `pending-*` or
//!   `uninstalling`, and *stale*, or stuck, once it is older than the policy's `staleAfter` by the API server's clock.
//! - *Holder*: the user who started the operation in flight, as stamped.
//! - *Declaration*: an object that says what is to be released, before any record does.
//! - *Override*: a ReleaseOverride, which opens some rules over one release for a limited time and for a reason.
//! - *Interrupted*: an operation whose record was deleted or unlocked by another user before it ended.
//! - *Managed object*: an object whose marks lead to a release or to another owner. *Declared*: what the manifest of the
//!   release's newest deployed record, or of the record in flight, says of the object.
//! - *Transition*: the way of a release from one deployed revision to the next, or of a record from one status to another.

pub mod budget;
pub mod cli;
pub(crate) mod cluster_name;
pub(crate) mod file_watch;
pub mod inspect;
pub mod judge;
pub(crate) mod log_limit;
pub mod offline;
pub mod readiness;
pub(crate) mod regular_file;
pub mod serve;
pub mod supported;
pub mod world;

/// Gives memory back after a large request, whichever thread read it. The C library keeps it in an arena for each thread.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

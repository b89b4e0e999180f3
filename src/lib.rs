//! Interlock: a Kubernetes admission webhook that enforces safe release transitions: *no edit outside a transition, no
//! foreign edit inside one, and no transition that skips a step.*
//!
//! # The house
//!
//! Rooms stand on floors. An import points down only, and inside [`engine`] only to what stands earlier in its list. A test reads the
//! folders and the imports, and fails on any other arrow.
//!
//! ```text
//! main.rs              the binary
//! cli/                 one file per subcommand; the wiring of `serve` is two functions: standalone, in_cluster
//! offline/             without a server: replay/ (recordings, audit logs), registration/ (what of them is sent),
//!                      suite/ (policy tests), changes/ (of logs)
//! serve/               the server: https/ webhook.rs report/ pki/ leader/ reload.rs traces/
//! inspect/             looking at a cluster, for people and for the leader: arrival/ scan/ status/ wait/ changes/ unstick/ doctor/
//! judge.rs             the one place where the engine and a world meet
//! world/               who answers queries: memory/ (standalone, replay, tests), kubernetes/ (reads, watches, caches)
//! engine/              pure, in the order of a request:
//!     effort.rs text.rs json/ object.rs severity.rs        what a review may cost; text that is shown; places in JSON, metadata
//!     olm/ release/ flux/ managed/ sveltos/                what others write: Helm's model, marks and declared fields, typed views
//!     review/ rule.rs release_override.rs freeze_resource.rs facts/
//!                                                          the request, and what it says by itself
//!     policy/ evidence.rs violation.rs stamp/              which rules are in force; queries and answers; what is wrong; holders
//!     rules/{records,objects,declarations}/                one rule a file, one row in its family
//!     outcome/ overrides/ decide.rs policy_files/          what becomes of violations, what opens a rule, how policies are read
//!     freezes.rs                                           which Freezes may be stored
//!     decision.rs reply.rs                                 the account of a review, and the answer to it
//! budget.rs file_watch.rs log_limit.rs readiness.rs regular_file.rs supported.rs
//!                                                          the ground: imported by all, imports nothing of ours
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
//! - [`engine::review`]: the AdmissionReview, borrowed from the body. Objects stay text until a rule needs them.
//! - [`engine::facts`]: what the request says by itself: actor, operation, what happens to a record or to a managed object.
//! - [`engine::decide`]: `decide(facts, policy, evidence, now) -> Step`. Pure: the same arguments give the same step. A rule
//!   that needs to know something of the cluster asks.
//! - [`world`]: who answers. A query without an answer makes a rule undecided, never silently satisfied.
//! - [`engine::outcome`]: violations under the [`engine::policy`]'s modes: refused, warned of, or logged.
//! - [`engine::stamp`]: the mutating half: who started the transition that a record is in.
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
pub mod engine;
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

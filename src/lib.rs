//! Interlock: a Kubernetes admission webhook that enforces safe release transitions: *no edit outside a transition, no
//! foreign edit inside one, and no transition that skips a step.*
//!
//! # The way of a request
//!
//! ```text
//! bytes -> Review -> Facts -> Step::Ask(Query) <-> World -> Step::Done(violations) -> Outcome -> reply
//!          review    facts    rules                world    rules                     mode       review::response
//!                                                                                       |
//!                                                                                       +-> Decision -> report
//! ```
//!
//! - [`review`]: the AdmissionReview, borrowed from the body; objects stay text until a rule needs them.
//! - [`facts`]: what the request says by itself: actor, operation, what happens to a record or to a managed object.
//! - [`release`]: Helm's model: names, revisions, statuses and their [transitions](release::status::TRANSITIONS), records
//!   (base64, gzip, JSON) and how they are stored, histories.
//! - [`managed`]: objects of releases: [marks](managed::Marks) of ownership, the [difference](managed::Delta) that a write
//!   makes, what is [declared](managed::Declared), by a document of the manifest or by `managedFields`.
//! - [`sveltos`], [`flux`], [`olm`]: what declares releases: views of ConfigurationGroups, HelmReleases, ClusterExtensions.
//! - [`rules`]: `decide(facts, policy, evidence, now) -> Step`, pure. A rule that needs to know something of the cluster
//!   asks; the same arguments always give the same step.
//! - [`world`]: who answers: [`world::memory`] for standalone, replay and tests, [`world::cluster`] for Kubernetes. What
//!   cannot be learnt makes a rule undecided, never silently satisfied.
//! - [`mode`]: violations times the [`policy`]'s modes give the outcome.
//! - [`stamp`]: the mutating half: who started the transition that a record is in.
//! - [`judge`]: takes one review through all of these; [`webhook`] does so for the [`server`], [`replay`] for recordings.
//! - [`overrides`]: break-glass: what a ReleaseOverride opens, and which may be stored.
//! - [`report`]: one [`Decision`](report::Decision) a review, for the log and the metrics, and for Events and reports of releases
//!   in the cluster, away from the request path.
//! - [`scan`]: what is wrong with the releases of a cluster already, by the rules' own notions and by reads alone; [`status`]:
//!   how each stands, and the next safe step; [`unstick`]: the runbook as a command, by the checks of the rule itself.
//!
//! The pure core (`facts flux managed mode olm overrides policy release review rules stamp sveltos`, and `world::query`) has
//! no async, clock, environment, logging, HTTP or Kubernetes client; a test reads its source for them. The shell moves
//! bytes and holds no opinion: [`budget`] (memory), [`cli`], [`crd`] (the definition of ReleaseOverrides), [`doctor`] (whether
//! an installation works), [`judge`], [`leader`] (what one replica does for all), [`ourselves`] (whom the API server takes us
//! for), [`pki`] (certificates), [`reload`] (policies that change), [`replay`], [`report`], [`scan`] (its judgements apart),
//! [`server`], [`status`], [`suite`] (tests of policies), [`traces`] (spans, for who wants them), [`unstick`], [`webhook`],
//! and who answers in [`world`].
//!
//! # Words
//!
//! - *Record*: a stored release record (Helm's Secret or ConfigMap, OLM's index Secret), and nothing else.
//! - *Release*: what one name in one namespace of records stands for; *revision*: one of its records, counted from 1.
//! - *Operation*: an install, upgrade, rollback or uninstall; *in flight* while its record is `pending-*` or
//!   `uninstalling`; *stale*, or stuck, once it is older than the policy's `staleAfter` by the API server's clock.
//! - *Holder*: the user who started the operation in flight, as stamped.
//! - *Declaration*: an object that says what is to be released, before any record does.
//! - *Override*: a ReleaseOverride, which opens some rules over one release for a while and for a reason.
//! - *Interrupted*: an operation whose record was deleted or unlocked by somebody else before it ended.
//! - *Managed object*: one whose marks lead to a release (or to another owner); *declared*: what the manifest of the release's
//!   newest deployed record, or of the one in flight, says of it.
//! - *Transition*: the way of a release from one deployed revision to the next, or of a record from one status to another.

pub mod budget;
pub mod cli;
pub mod engine;
pub mod file_watch;
pub mod inspect;
pub mod judge;
pub mod offline;
pub mod readiness;
pub mod serve;
pub mod world;

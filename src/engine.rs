//! The engine: pure, in the order of a request. A room imports only what stands before it in this list:
//!
//! | room | holds |
//! |---|---|
//! | [`effort`], [`text`], [`json`], [`yaml`], [`object`], [`severity`] | what a review may cost; text that is shown; JSON as text, places in it; YAML as Go reads it; metadata and keys of objects; how much a finding matters |
//! | [`olm`], [`release`], [`flux`], [`managed`], [`sveltos`] | what others write: Helm's model, marks of ownership, declared fields, typed views |
//! | [`review`], [`rule`], [`release_override`], [`freeze_resource`] | the request; what a rule is; what a ReleaseOverride holds; the names of the resource Freeze |
//! | [`facts`], [`policy`], [`evidence`] | what a request says by itself; which rules are in force; queries and answers |
//! | [`violation`], [`stamp`], [`rules`] | what is wrong; who holds an operation; one rule a file |
//! | [`outcome`], [`overrides`], [`decide`] | violations under modes; what opens a rule; the decision over all of them |
//! | [`policy_files`], [`freezes`], [`decision`], [`reply`] | how YAML becomes a policy; which Freezes may be stored; the account of a review; the answer to it |

pub mod decide;
pub mod decision;
pub mod effort;
pub mod evidence;
pub mod facts;
pub(crate) mod flux;
pub(crate) mod freeze_resource;
pub(crate) mod freezes;
pub use flux::pattern;
pub mod json;
pub mod managed;
pub mod object;
pub(crate) mod olm;
pub mod outcome;
pub(crate) mod overrides;
pub mod policy;
pub mod policy_files;
pub mod release;
pub(crate) mod release_override;
pub mod reply;
pub mod review;
pub mod rule;
pub mod rules;
pub(crate) mod severity;
pub(crate) mod stamp;
pub(crate) mod sveltos;
pub(crate) mod text;
pub mod violation;
pub mod yaml;

//! The engine: pure, in the order of a request.

pub mod decide;
pub mod decision;
pub mod evidence;
pub mod facts;
pub mod flux;
pub mod json;
pub mod managed;
pub mod object;
pub mod olm;
pub mod outcome;
pub mod overrides;
pub mod policy;
pub mod policy_files;
pub mod release;
pub mod release_override;
pub mod reply;
pub mod review;
pub mod rule;
pub mod rules;
pub mod stamp;
pub mod sveltos;
pub mod violation;

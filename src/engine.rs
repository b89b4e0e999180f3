//! The engine: pure, in the order of a request.

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
pub mod release;
pub mod reply;
pub mod review;
pub mod rules;
pub mod severity;
pub mod stamp;
pub mod sveltos;

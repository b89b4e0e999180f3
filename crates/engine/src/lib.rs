//! The engine of Interlock: what a request says, which rules judge it, and what becomes of it. Pure: the same arguments give the same
//! result, and time is an argument. A rule that needs to know something of the cluster asks, and is called again with the answer.
//!
//! A room imports only what stands before it. A test compares the imports with the same order, room by room.
//!
//! ```text
//! effort text/ json/ yaml/ object severity losses what a review may cost; text that is shown; JSON and places in it; YAML as Go reads
//! ways_out/                                       it; metadata and keys of objects; how much a finding matters; what an object
//!                                                 has lost of its children; what a refused user can do
//! release/ managed/                               Helm's records; declared fields, and who an object can belong to
//! owners/{olm,flux,sveltos,helm}/                 one folder for each program that owns releases or objects: its objects as types, its
//!                                                 marks and words. Its own rules stand there too, on the floor of the rules
//! review/ rule release_override freeze_resource   the request; what a rule is; Interlock's own resources
//! facts/                                          what the request says by itself
//! policy/ evidence                                which rules are in force, and how; queries and their answers
//! violation stamp/ rules/                         what is wrong; who holds an operation; one rule a file
//! outcome/ overrides/ decide/                     violations under modes; what opens a rule; the decision over all rules
//! policy_files/                                   from the text of policies to a policy, with the place of every error
//! answers/ memory/                                what stored objects say in answer to a query; a world in memory
//! freezes decision/ reply                         which Freezes may be stored; the account of a review; the answer to it
//! ```

pub mod answers;
pub mod decide;
pub mod decision;
pub mod effort;
pub mod evidence;
pub mod facts;
pub mod freeze_resource;
pub mod freezes;
pub mod json;
pub mod losses;
pub mod managed;
pub mod memory;
pub mod object;
pub mod outcome;
pub mod overrides;
pub mod owners;
pub mod policy;
pub mod policy_files;
pub mod release;
pub mod release_override;
pub mod reply;
pub mod review;
pub mod rule;
pub mod rules;
pub mod severity;
pub mod stamp;
pub mod text;
pub mod violation;
pub mod ways_out;
pub mod yaml;

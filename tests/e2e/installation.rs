//! Interlock in a cluster: installed, upgraded, cut off, attacked, and removed.

mod callers;
mod certificates;
mod doctor;
mod failure;
mod hard_mode;
mod image;
mod installed;
mod manifests;
mod outage;
mod proof;
mod restarts;
mod rights;
mod storm;

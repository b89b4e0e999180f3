//! Helm's release records: written, deleted, forged, raced for, interrupted, and recovered.

mod clock;
mod dead_between;
mod deletion;
mod detours;
mod elsewhere;
mod encryption;
mod finish_uninstall;
mod foreign_uninstall;
mod hidden;
mod interrupted;
mod kill;
mod left_over;
mod life;
mod padding;
mod pipelines;
mod races;
mod recovery;
mod smoke;
mod tampering;
mod unreadable;

//! Helm's release records: written, deleted, forged, raced for, interrupted, and recovered.

mod deletion;
mod interrupted;
mod kill;
mod life;
mod padding;
mod races;
mod recovery;
mod smoke;
mod tampering;

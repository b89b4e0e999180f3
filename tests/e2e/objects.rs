//! The objects of a release: who may change, scale and delete them, and when.

mod adoption;
mod bystanders;
mod declared_comparison;
mod drift;
mod exceptions;
mod hooks;
mod in_transition;
mod large_chart;
mod leftovers;
mod manual_deletes;
mod manual_edits;
mod more_kinds;
mod moving;
mod odd_spellings;
mod platforms;
mod scaling;
mod whole_values;

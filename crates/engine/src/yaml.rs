//! YAML as `sigs.k8s.io/yaml` 1.6 parses it, and with it Helm, kubectl and Flux.
//!
//! This is YAML 1.1 as libyaml parses it, with the types of go-yaml. Parsers of YAML 1.2 find other objects in the same
//! text: here U+0085 and U+2028 end a line, a quoted text may continue at the margin, `on` is a key `true`, and a merge
//! key overrides the members before it. No crate does, and none can charge a review for each byte: this is why the
//! module is kept. It is a port of go-yaml's reader, scanner and parser (`go.yaml.in/yaml/v2` 2.4.4), function by
//! function. `NOTICE` has its licences, and `tests/readers` compares it with the original.

mod characters;
mod nodes;
mod number;
mod parser;
mod scalar;
mod scanner;
mod timestamp;
mod token;
mod tree;

pub(crate) use nodes::NodeId;
pub(crate) use scalar::Resolved;
pub(crate) use tree::Document;
pub use tree::parse;

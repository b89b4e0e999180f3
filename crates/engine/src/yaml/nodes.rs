//! The nodes of a document, as it is written: aliases are not expanded, and scalars have no types yet.

use std::collections::HashMap;

use super::scalar::Scalar;
use crate::effort::{Effort, NODE_BYTES};

/// The index of a node.
pub(crate) type NodeId = usize;

pub(super) enum Node<'t> {
    Scalar(Scalar<'t>),
    Sequence(Vec<NodeId>),
    /// Keys and values in turns.
    Mapping(Vec<NodeId>),
    Alias(NodeId),
}

/// The nodes found so far. The first one is the root.
pub(super) struct Nodes<'t, 'e> {
    effort: &'e Effort,
    nodes: Vec<Node<'t>>,
    anchors: HashMap<&'t str, NodeId>,
    /// The collections that are not complete.
    open: Vec<NodeId>,
}

impl<'t, 'e> Nodes<'t, 'e> {
    pub(super) fn new(effort: &'e Effort) -> Self {
        Self { effort, nodes: Vec::new(), anchors: HashMap::new(), open: Vec::new() }
    }

    /// Adds a node to the innermost collection. A collection stays open until [`Self::close`].
    pub(super) fn add(&mut self, node: Node<'t>, anchor: Option<&'t str>) -> Result<(), String> {
        self.effort.take_tree(NODE_BYTES)?;
        let id = self.nodes.len();
        if let Some(Node::Sequence(items) | Node::Mapping(items)) =
            self.open.last().and_then(|open| self.nodes.get_mut(*open))
        {
            items.push(id);
        }
        if matches!(node, Node::Sequence(_) | Node::Mapping(_)) {
            self.open.push(id);
        }
        if let Some(anchor) = anchor {
            self.anchors.insert(anchor, id);
        }
        self.nodes.push(node);
        Ok(())
    }

    pub(super) fn add_alias(&mut self, name: &str) -> Result<(), String> {
        let target = self.anchors.get(name).copied().ok_or("a document has an alias without an anchor")?;
        self.add(Node::Alias(target), None)
    }

    /// Completes the innermost collection.
    pub(super) fn close(&mut self) {
        self.open.pop();
    }

    pub(super) fn into_vec(self) -> Vec<Node<'t>> {
        self.nodes
    }
}

//! The path of a field: with the names of list items for people, and as a JSON pointer for machines.

use std::fmt;

use jsonptr::{PointerBuf, Token};

/// The path of a field in an object.
#[derive(Debug, Clone, PartialEq, Eq, Default, PartialOrd, Ord)]
pub struct FieldPath(Vec<Segment>);

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Segment {
    /// A member of an object.
    Field(String),
    /// An item of a list.
    Item {
        index: usize,
        /// The name of the item, such as `web` or `80/TCP`, if the items of the list have names. It is shown to people.
        key: Option<String>,
    },
}

impl FieldPath {
    /// A path without list items.
    #[must_use]
    pub fn of<'f>(fields: impl IntoIterator<Item = &'f str>) -> Self {
        Self(fields.into_iter().map(|field| Segment::Field(field.to_owned())).collect())
    }

    /// This path with another segment.
    #[must_use]
    pub fn then(&self, segment: Segment) -> Self {
        Self(self.0.iter().cloned().chain([segment]).collect())
    }

    /// This path with another member.
    #[must_use]
    pub fn field(&self, name: &str) -> Self {
        self.then(Segment::Field(name.to_owned()))
    }

    /// The members on the path, without list items.
    #[must_use]
    pub fn fields(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.iter().filter_map(|segment| match segment {
            Segment::Field(name) => Some(name.as_str()),
            Segment::Item { .. } => None,
        })
    }

    /// This path as a JSON pointer.
    #[must_use]
    pub fn pointer(&self) -> PointerBuf {
        PointerBuf::from_tokens(self.0.iter().map(|segment| match segment {
            Segment::Field(name) => Token::new(name.as_str()),
            Segment::Item { index, .. } => Token::from(*index),
        }))
    }
}

/// `spec.template.spec.containers[web].image`, `metadata.annotations[example.com/team]`, `the whole object`.
impl fmt::Display for FieldPath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return out.write_str("the whole object");
        }
        for (position, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Field(name) if name.contains(['.', '/', '[', ' ']) => write!(out, "[{name}]")?,
                Segment::Field(name) if position == 0 => out.write_str(name)?,
                Segment::Field(name) => write!(out, ".{name}")?,
                Segment::Item { key: Some(key), .. } => write!(out, "[{key}]")?,
                Segment::Item { index, key: None } => write!(out, "[{index}]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_show_names_and_pointers_use_indices() {
        let item = Segment::Item { index: 2, key: Some("web".into()) };
        let path = FieldPath::of(["spec", "containers"]).then(item).field("image");
        assert_eq!(path.to_string(), "spec.containers[web].image");
        assert_eq!(path.pointer().as_str(), "/spec/containers/2/image");
        let path = FieldPath::of(["metadata", "annotations", "example.com/a~b"]);
        assert_eq!(path.to_string(), "metadata.annotations[example.com/a~b]");
        assert_eq!(path.pointer().as_str(), "/metadata/annotations/example.com~1a~0b");
        let path = FieldPath::of(["spec", "args"]).then(Segment::Item { index: 1, key: None });
        assert_eq!(path.to_string(), "spec.args[1]");
        assert_eq!(FieldPath::default().to_string(), "the whole object");
    }
}

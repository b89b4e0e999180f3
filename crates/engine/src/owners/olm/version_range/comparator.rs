//! One comparator of a range, with the semantics of Masterminds.

use std::cmp::Ordering;

use semver::Version;

/// How a version is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    /// The same minor version, or the same major version if the minor version is open.
    Tilde,
    /// The same leftmost part that is not zero.
    Caret,
}

impl Operator {
    pub(super) fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "" | "=" => Self::Equal,
            "!=" => Self::NotEqual,
            ">" => Self::Greater,
            ">=" | "=>" => Self::GreaterOrEqual,
            "<" => Self::Less,
            "<=" | "=<" => Self::LessOrEqual,
            "~" | "~>" => Self::Tilde,
            "^" => Self::Caret,
            _ => return None,
        })
    }
}

/// The parts of a version that a comparator leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Open {
    Nothing,
    Patch,
    /// The minor version and the patch.
    Minor,
    Everything,
}

/// A comparator. The open parts of its version are zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Comparator {
    operator: Operator,
    version: Version,
    open: Open,
}

impl Comparator {
    pub(super) fn new(operator: Operator, version: Version, open: Open) -> Self {
        Self { operator, version, open }
    }

    pub(super) fn version(&self) -> &Version {
        &self.version
    }

    pub(super) fn is_of_pre_release(&self) -> bool {
        !self.version.pre.is_empty()
    }

    /// Whether a version matches this comparator. The whole alternative decides whether pre-releases are excluded.
    pub(super) fn admits(&self, version: &Version) -> bool {
        let order = version.cmp_precedence(&self.version);
        let exact = self.open == Open::Nothing;
        match self.operator {
            Operator::Equal if exact => order.is_eq(),
            Operator::Equal | Operator::Tilde => order.is_ge() && self.shares_minor(version),
            Operator::NotEqual if exact => order.is_ne(),
            Operator::NotEqual => !self.is_within(version),
            Operator::Greater if exact => order.is_gt(),
            Operator::Greater => self.is_above(version),
            Operator::GreaterOrEqual => order.is_ge(),
            Operator::Less => order.is_lt(),
            Operator::LessOrEqual if exact => order.is_le(),
            // `<= *` means `<= 0`.
            Operator::LessOrEqual => self.cmp_closed(version).is_le(),
            Operator::Caret => order.is_ge() && self.shares_leading(version),
        }
    }

    /// Compares the parts that are not open.
    fn cmp_closed(&self, version: &Version) -> Ordering {
        let major = version.major.cmp(&self.version.major);
        if self.open == Open::Minor { major } else { major.then(version.minor.cmp(&self.version.minor)) }
    }

    /// `~0.0.0` and `*` admit all higher versions.
    fn shares_minor(&self, version: &Version) -> bool {
        let Version { major, minor, patch, .. } = self.version;
        let is_zero = (major, minor, patch) == (0, 0, 0) && matches!(self.open, Open::Nothing | Open::Everything);
        is_zero || self.cmp_closed(version).is_eq()
    }

    /// Whether a version is one that the open parts stand for. `!=` with an open major version compares with 0.0.0.
    fn is_within(&self, version: &Version) -> bool {
        let same_pre = version.pre == self.version.pre;
        match self.open {
            Open::Minor => version.major == self.version.major,
            Open::Patch => self.cmp_closed(version).is_eq() && same_pre,
            Open::Nothing | Open::Everything => version.cmp_precedence(&self.version).is_eq(),
        }
    }

    /// Whether a version is above all versions that the open parts stand for.
    fn is_above(&self, version: &Version) -> bool {
        match self.open {
            Open::Minor | Open::Patch => self.cmp_closed(version).is_gt(),
            Open::Nothing | Open::Everything => version.cmp_precedence(&self.version).is_gt(),
        }
    }

    fn shares_leading(&self, version: &Version) -> bool {
        let Version { major, minor, patch, .. } = self.version;
        let same_major = version.major == major;
        let same_minor = same_major && version.minor == minor;
        match self.open {
            Open::Minor => same_major,
            _ if major > 0 => same_major,
            Open::Patch => same_minor,
            _ if minor > 0 => same_minor,
            Open::Nothing | Open::Everything => same_minor && version.patch == patch,
        }
    }
}

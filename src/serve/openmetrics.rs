//! Names for label values.

/// Enums that have names of their own already.
macro_rules! as_str {
    ($($name:ty),+) => {
        $(impl prometheus_client::encoding::EncodeLabelValue for $name {
            fn encode(
                &self,
                encoder: &mut prometheus_client::encoding::LabelValueEncoder<'_>,
            ) -> Result<(), std::fmt::Error> {
                self.as_str().encode(encoder)
            }
        })+
    };
}

/// Names the variants of closed enums.
macro_rules! named {
    ($name:ty { $($variant:ident => $value:literal),+ $(,)? }) => {
        impl prometheus_client::encoding::EncodeLabelValue for $name {
            fn encode(
                &self,
                encoder: &mut prometheus_client::encoding::LabelValueEncoder<'_>,
            ) -> Result<(), std::fmt::Error> {
                match self { $(Self::$variant => $value),+ }.encode(encoder)
            }
        }
    };
}

pub(super) use {as_str, named};

//! Parses the head of a body as strictly as Go parses it loosely.
//!
//! Go ignores the case of keys and takes the last of several: of `"manifest"` and a later `"Manifest"` Helm would act
//! on the latter. No client writes such keys, so a body with one is refused.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::{Record, RecordInfo};
use crate::engine::json::Text;

/// The members of a body that Helm knows.
const KNOWN_KEYS: [&str; 10] =
    ["name", "info", "chart", "config", "manifest", "hooks", "version", "namespace", "apply_method", "labels"];
/// The members of `info` that this crate reads.
const KNOWN_INFO_KEYS: [&str; 3] = ["status", "last_deployed", "description"];

/// Fails on a key that Go takes for a known one and serde does not.
fn reject_case_variant<E: Error>(key: &str, known: &[&str]) -> Result<(), E> {
    let folded =
        |text: &str| text.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect::<String>();
    // Exact keys never get here. No longer key folds to a known one.
    let alike = key.chars().count() <= 16 && {
        let key = folded(key);
        known.iter().any(|known| folded(known) == key)
    };
    if alike {
        Err(E::custom(format_args!("a key that differs from a known one only in case: {key:?}")))
    } else {
        Ok(())
    }
}

/// Sets a value that must not be set yet.
fn set_once<T, E: Error>(slot: &mut Option<T>, field: &'static str, value: T) -> Result<(), E> {
    if slot.replace(value).is_some() { Err(E::duplicate_field(field)) } else { Ok(()) }
}

impl<'de: 'b, 'b> Deserialize<'de> for Record<'b> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Body;
        impl<'de> Visitor<'de> for Body {
            type Value = Record<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a release")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Record<'de>, A::Error> {
                let (mut name, mut version, mut info, mut namespace) = (None, None, None, None);
                let (mut chart, mut config, mut manifest, mut labels) = (None, None, None, None);
                let mut hooks = None;
                while let Some(key) = members.next_key::<Cow<'de, str>>()? {
                    match key.as_ref() {
                        "name" => set_once(&mut name, "name", members.next_value::<Text<'de>>()?.0)?,
                        "version" => set_once(&mut version, "version", members.next_value()?)?,
                        "info" => set_once(&mut info, "info", members.next_value()?)?,
                        "namespace" => set_once(&mut namespace, "namespace", members.next_value::<Text<'de>>()?.0)?,
                        "chart" => set_once(&mut chart, "chart", members.next_value()?)?,
                        "config" => set_once(&mut config, "config", members.next_value()?)?,
                        "manifest" => set_once(&mut manifest, "manifest", members.next_value()?)?,
                        "labels" => set_once(&mut labels, "labels", members.next_value()?)?,
                        "hooks" => hooks = Some(members.next_value()?),
                        "apply_method" => _ = members.next_value::<IgnoredAny>()?,
                        other => {
                            reject_case_variant(other, &KNOWN_KEYS)?;
                            members.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(Record {
                    name: name.ok_or_else(|| A::Error::missing_field("name"))?,
                    version: version.ok_or_else(|| A::Error::missing_field("version"))?,
                    info: info.ok_or_else(|| A::Error::missing_field("info"))?,
                    namespace: namespace.unwrap_or_default(),
                    chart,
                    config,
                    manifest,
                    hooks,
                    labels,
                })
            }
        }
        deserializer.deserialize_map(Body)
    }
}

impl<'de: 'b, 'b> Deserialize<'de> for RecordInfo<'b> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = RecordInfo<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("the info of a release")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<RecordInfo<'de>, A::Error> {
                let (mut status, mut last_deployed, mut description) = (None, None, None);
                while let Some(key) = members.next_key::<Cow<'de, str>>()? {
                    match key.as_ref() {
                        "status" => set_once(&mut status, "status", members.next_value::<Text<'de>>()?.0)?,
                        "last_deployed" => {
                            set_once(&mut last_deployed, "last_deployed", members.next_value::<Text<'de>>()?.0)?;
                        }
                        "description" => {
                            set_once(&mut description, "description", members.next_value::<Text<'de>>()?.0)?
                        }
                        other => {
                            reject_case_variant(other, &KNOWN_INFO_KEYS)?;
                            members.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(RecordInfo {
                    status: status.ok_or_else(|| A::Error::missing_field("status"))?,
                    last_deployed: last_deployed.unwrap_or_default(),
                    description: description.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_map(Members)
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::effort::Effort;
    use crate::engine::release::record::{DecodeError, Record};

    #[test]
    fn a_key_that_go_takes_for_a_known_one_is_an_error() {
        let body = |more: &str| format!(r#"{{"name":"a","version":1,"info":{{"status":"failed"{more}}}{more}}}"#);
        assert!(Record::read(body(r#","later":1"#).as_bytes(), &Effort::of_review()).is_ok());
        for key in ["Manifest", "VERSION", "hoo\\u212As", "ver\\u017Fion", "Status", "\\u017Ftatus"] {
            let read = Record::read(body(&format!(r#","{key}":1"#)).as_bytes(), &Effort::of_review()).map(|_| ());
            assert!(matches!(&read, Err(DecodeError::Json(why)) if why.contains("only in case")), "{key}: {read:?}");
        }
    }
}

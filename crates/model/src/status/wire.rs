//! How the fields of a Status are read and written where that is not what serde does by itself.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{Outcome, Reason};
use crate::ResourceVersion;

/// The text `Status`. There is no Status of another kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Kind;

/// The text `v1`. Its long form, which some clients write, reads as the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ApiVersion;

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("Status")
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "Status" => Ok(Self),
            other => Err(refused(other, &"kind `Status`")),
        }
    }
}

impl Serialize for ApiVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("v1")
    }
}

impl<'de> Deserialize<'de> for ApiVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "v1" | "meta.k8s.io/v1" => Ok(Self),
            other => Err(refused(other, &"apiVersion `v1` of a Status")),
        }
    }
}

fn refused<E: de::Error>(found: &str, expected: &dyn de::Expected) -> E {
    E::invalid_value(de::Unexpected::Str(found), expected)
}

impl<'de> Deserialize<'de> for Outcome {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let success = String::deserialize(deserializer)? == "Success";
        Ok(if success { Self::Success } else { Self::Failure })
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Reason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(String::deserialize(deserializer)?.as_str().into())
    }
}

/// `null` is the same as absent.
pub(super) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

pub(super) fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ResourceVersion, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(ResourceVersion::UNSET))
}

/// What does not fit, or is no number, is the same as absent.
pub(super) fn number<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64> + Default,
{
    let number = serde_json::Value::deserialize(deserializer)?.as_u64();
    Ok(number.and_then(|number| number.try_into().ok()).unwrap_or_default())
}

pub(super) fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

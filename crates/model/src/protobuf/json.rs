//! The JSON text of whatever a deserializer reads, written as it is read.

use std::fmt;

use serde::{
    Deserializer,
    de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor},
};

/// Writes a value behind what is there.
pub(super) struct Text<'w>(pub(super) &'w mut Vec<u8>);

impl<'de> DeserializeSeed<'de> for Text<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Text<'_> {
    fn write<E: de::Error>(self, value: impl serde::Serialize) -> Result<(), E> {
        serde_json::to_writer(self.0, &value).map_err(E::custom)
    }
}

impl<'de> Visitor<'de> for Text<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that JSON has")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<(), E> {
        self.write(value)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<(), E> {
        self.write(value)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<(), E> {
        self.write(value)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<(), E> {
        self.write(value)
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<(), E> {
        self.write(value)
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        self.0.extend_from_slice(b"null");
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.0.push(b'[');
        let empty = self.0.len();
        loop {
            let comma = self.0.len() > empty;
            if items.next_element_seed(After { comma, text: Text(self.0) })?.is_none() {
                break;
            }
        }
        self.0.push(b']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        self.0.push(b'{');
        let empty = self.0.len();
        loop {
            let comma = self.0.len() > empty;
            if entries.next_key_seed(After { comma, text: Text(self.0) })?.is_none() {
                break;
            }
            self.0.push(b':');
            entries.next_value_seed(Text(self.0))?;
        }
        self.0.push(b'}');
        Ok(())
    }
}

/// Writes a value behind a comma, if there is a value.
struct After<'w> {
    comma: bool,
    text: Text<'w>,
}

impl<'de> DeserializeSeed<'de> for After<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.comma {
            self.text.0.push(b',');
        }
        self.text.deserialize(deserializer)
    }
}

//! Random objects of every kind, to protobuf and back.

use informer_testing::histories;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::{
    decode_protobuf,
    protobuf::{
        schema::{Absent, Count, Form, Message},
        text::{base64, rfc3339},
    },
};

/// Chance from a seed.
struct Chance(u64);

impl Chance {
    /// A number below a limit.
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    fn of<'a>(&mut self, values: &[&'a str]) -> &'a str {
        values[self.below(values.len() as u64) as usize]
    }

    fn text(&mut self) -> String {
        self.of(&["", "a", "web", "snow \u{2603}", "a \"b\"\n", "long enough for a length of two bytes: 0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890"]).to_owned()
    }

    fn integer(&mut self, least: i64, most: i64) -> Value {
        match self.below(4) {
            0 => 0.into(),
            1 => least.into(),
            2 => most.into(),
            _ => (self.below(1000) as i64 - 500).into(),
        }
    }

    fn time(&mut self, with_micros: bool) -> Value {
        let seconds = [-62_135_596_799, -1, 0, 1_709_251_199, 253_402_300_799][self.below(5) as usize];
        rfc3339(seconds, with_micros.then(|| self.below(1_000_000) as i64)).into()
    }

    fn json(&mut self, depth: usize) -> Value {
        match self.below(if depth > 3 { 4 } else { 6 }) {
            0 => self.text().into(),
            1 => self.integer(i64::MIN, i64::MAX),
            2 => 0.5.into(),
            3 => true.into(),
            4 => (0..self.below(3)).map(|_| self.json(depth + 1)).collect(),
            _ => json!({ "f:a": self.json(depth + 1), "b": null }),
        }
    }

    /// The fields of a message as a server shows them; those that it may leave out are there by chance.
    fn fields(&mut self, message: &Message, depth: usize, object: &mut Map<String, Value>) {
        for field in SCHEMA.fields(message) {
            if let (Count::Embedded, Type::Message(id)) = (field.count, field.r#type) {
                self.fields(SCHEMA.message(id), depth + 1, object);
                continue;
            }
            let there = self.below(depth as u64 / 2 + 2) == 0 && depth < 12;
            let value = match (field.count, field.absent) {
                (Count::List, Absent::EmptyList) if !there => json!([]),
                (Count::List, _) if there => {
                    (0..=self.below(2)).map(|_| self.value(field.r#type, depth)).collect()
                }
                (Count::Map, _) if there => {
                    let keys = (0..=self.below(2)).map(|_| self.text()).collect::<Vec<_>>();
                    keys.into_iter().map(|key| (key, self.value(field.r#type, depth))).collect()
                }
                (Count::One, Absent::Zero) => self.value(field.r#type, depth),
                (Count::One, _) if there => {
                    let value = self.value(field.r#type, depth);
                    // What stands for none is not shown where it can be left out.
                    let zero = value.is_null() || [json!(0), json!(false), json!("")].contains(&value);
                    if value.is_null() && field.absent == Absent::Nothing || zero && field.omits_zero {
                        continue;
                    }
                    value
                }
                (_, Absent::Nothing) => continue,
                _ => Value::Null,
            };
            object.insert(field.name.to_owned(), value);
        }
    }

    fn value(&mut self, r#type: Type, depth: usize) -> Value {
        match r#type {
            Type::Bool => (self.below(2) == 1).into(),
            Type::Int32 => self.integer(i32::MIN.into(), i32::MAX.into()),
            Type::Int64 => self.integer(i64::MIN, i64::MAX),
            Type::Double => [json!(0), json!(-3), json!(0.25), json!(1e300)][self.below(4) as usize].clone(),
            Type::Text => self.text().into(),
            Type::Bytes => base64(self.text().as_bytes()).into(),
            Type::Texts => (0..self.below(3)).map(|_| self.text()).collect(),
            Type::Message(id) => {
                let message = SCHEMA.message(id);
                match message.form {
                    Form::Object => {
                        let mut object = Map::new();
                        self.fields(message, depth + 1, &mut object);
                        object.into()
                    }
                    Form::Quantity => self.of(&["0", "500m", "1.5Gi", "-1"]).into(),
                    Form::IntOrString if self.below(2) == 0 => self.text().into(),
                    Form::IntOrString => self.integer(i32::MIN.into(), i32::MAX.into()),
                    Form::Time | Form::MicroTime | Form::RawJson | Form::RawExtension
                        if self.below(4) == 0 =>
                    {
                        Value::Null
                    }
                    form @ (Form::Time | Form::MicroTime) => self.time(form == Form::MicroTime),
                    Form::RawJson | Form::RawExtension => self.json(0),
                    form @ (Form::ListOrField | Form::FieldOrBool) => {
                        let [first, second] = SCHEMA.fields(message) else { panic!("a union of two") };
                        match (form, self.below(2)) {
                            (_, 0) => self.value(first.r#type, depth),
                            (Form::FieldOrBool, _) => self.value(second.r#type, depth),
                            _ => json!([self.value(second.r#type, depth)]),
                        }
                    }
                }
            }
        }
    }

    /// An object of a kind.
    fn object(&mut self, &(api_version, kind, id): &(&str, &str, MessageId)) -> Value {
        let mut object = Map::new();
        self.fields(SCHEMA.message(id), 0, &mut object);
        object.insert("apiVersion".to_owned(), if api_version == "*" { "v1" } else { api_version }.into());
        object.insert("kind".to_owned(), kind.into());
        object.into()
    }
}

fn check(object: &Value) {
    let bytes = encode_protobuf(object).unwrap_or_else(|error| panic!("{error}\n{object:#}"));
    let decoded = decode_protobuf(&bytes).unwrap_or_else(|error| panic!("{error}\n{object:#}"));
    assert_eq!(&decoded, object);
    let text = object.to_string();
    let from_text =
        ProtobufKind::of(object).and_then(|kind| kind.encode(&mut serde_json::Deserializer::from_str(&text)));
    assert_eq!(from_text.as_ref(), Ok(&bytes), "a value and its text");
}

#[test]
fn an_object_of_every_kind_comes_back_as_it_was() {
    for kind in SCHEMA.kinds() {
        (0..5).for_each(|seed| check(&Chance(seed).object(kind)));
    }
}

#[test]
fn random_objects_come_back_as_they_were() {
    histories(&(0..SCHEMA.kinds().len(), any::<u64>()), |(kind, seed)| {
        check(&Chance(seed).object(&SCHEMA.kinds()[kind]));
    });
}

#[test]
fn fields_that_a_kind_does_not_have_are_left_out() {
    for kind in SCHEMA.kinds() {
        let mut object = Chance(7).object(kind);
        let bytes = encode_protobuf(&object);
        object["aa"] = json!([{ "unknown": 1 }]);
        object["zz"] = Value::Null;
        if let Some(metadata) = object.get_mut("metadata") {
            metadata["unknown"] = json!({});
        }
        assert_eq!(encode_protobuf(&object), bytes, "{} {}", kind.0, kind.1);
    }
}

#[test]
fn no_field_of_an_embedded_message_has_the_name_of_another() {
    fn names(message: &Message, found: &mut Vec<&'static str>) {
        for field in SCHEMA.fields(message) {
            match (field.count, field.r#type) {
                (Count::Embedded, Type::Message(id)) => names(SCHEMA.message(id), found),
                _ => found.push(field.name),
            }
        }
    }
    for message in SCHEMA.messages() {
        let mut found = Vec::new();
        names(message, &mut found);
        let count = found.len();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), count, "{}", message.full_name());
    }
}

#[test]
fn every_list_kind_is_metadata_and_items() {
    for (api_version, kind, _) in SCHEMA.kinds().iter().filter(|(_, kind, _)| kind.ends_with("List")) {
        let is_list = !matches!(*kind, "APIGroupList" | "APIResourceList");
        assert_eq!(ProtobufList::new(api_version, kind).is_ok(), is_list, "{api_version} {kind}");
    }
}

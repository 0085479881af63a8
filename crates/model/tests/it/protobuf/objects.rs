//! Objects as Kubernetes' own types encode them.

use serde::Deserialize;
use serde_json::Value;

/// One object, both ways.
pub(crate) struct Object {
    pub(crate) name: String,
    pub(crate) protobuf: Vec<u8>,
    pub(crate) json: Value,
}

#[derive(Deserialize)]
struct Line {
    name: String,
    protobuf: String,
    json: Value,
}

pub(crate) fn objects() -> Vec<Object> {
    let lines: Vec<Line> = serde_json::from_str(include_str!("objects.json")).expect("a list of objects");
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).expect("ASCII");
        u8::from_str_radix(pair, 16).expect("hex")
    };
    let object = |line: Line| Object {
        protobuf: line.protobuf.as_bytes().chunks(2).map(byte).collect(),
        name: line.name,
        json: line.json,
    };
    lines.into_iter().map(object).collect()
}

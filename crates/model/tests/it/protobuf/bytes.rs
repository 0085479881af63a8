//! Any bytes at all are an object or an error.

use informer_model::decode_protobuf;
use informer_testing::histories;
use proptest::{collection::vec, prelude::*};

use super::{message, objects::objects};

/// A change to a body, at a place that is taken modulo its length.
#[derive(Debug, Clone)]
enum Change {
    Flip(usize, u8),
    Insert(usize, u8),
    Remove(usize),
    Truncate(usize),
    /// A piece of another object.
    Splice {
        at: usize,
        other: usize,
        from: usize,
        length: usize,
    },
}

fn any_change() -> impl Strategy<Value = Change> {
    let place = || any::<usize>();
    prop_oneof![
        4 => (place(), 0..8u32).prop_map(|(at, bit)| Change::Flip(at, 1 << bit)),
        2 => (place(), any::<u8>()).prop_map(|(at, byte)| Change::Insert(at, byte)),
        2 => place().prop_map(Change::Remove),
        1 => place().prop_map(Change::Truncate),
        1 => (place(), place(), place(), 0..40usize)
            .prop_map(|(at, other, from, length)| Change::Splice { at, other, from, length }),
    ]
}

fn apply(body: &mut Vec<u8>, change: &Change, corpus: &[Vec<u8>]) {
    let within = |at: usize, length: usize| if length == 0 { 0 } else { at % length };
    match *change {
        Change::Insert(at, byte) => body.insert(within(at, body.len() + 1), byte),
        Change::Truncate(at) => body.truncate(within(at, body.len())),
        Change::Splice { at, other, from, length } => {
            let other = &corpus[within(other, corpus.len())];
            let from = within(from, other.len());
            let piece = other[from..].iter().take(length).copied();
            let at = within(at, body.len());
            body.splice(at..at, piece);
        }
        Change::Flip(at, bits) => {
            let at = within(at, body.len());
            body.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= bits);
        }
        Change::Remove(at) => {
            let at = within(at, body.len());
            body.drain(at..body.len().min(at + 1));
        }
    }
}

/// An error points into the body, and an object is one.
fn check(body: &[u8]) {
    match decode_protobuf(body) {
        Ok(value) => assert!(value.is_object()),
        Err(error) => assert!(error.position <= body.len() && !error.to_string().is_empty(), "{error:?}"),
    }
}

#[test]
fn random_bytes_do_no_harm() {
    let kinds = ["Pod", "DeleteOptions", "PodList", "WatchEvent", "Gear"];
    let body = (0..kinds.len(), vec(prop_oneof![any::<u8>(), 0..0x30u8], 0..60));
    histories(&body, |(kind, bytes)| {
        check(&bytes);
        check(&message().raw(&bytes).envelope("v1", kinds[kind]));
    });
}

#[test]
fn changed_objects_do_no_harm() {
    let corpus: Vec<Vec<u8>> = objects().into_iter().map(|object| object.protobuf).collect();
    histories(&(0..corpus.len(), vec(any_change(), 1..5)), |(object, changes)| {
        let mut body = corpus[object].clone();
        changes.iter().for_each(|change| apply(&mut body, change, &corpus));
        check(&body);
    });
}

#[test]
fn every_beginning_of_an_object_is_an_error_or_an_object() {
    for object in objects() {
        (0..object.protobuf.len()).for_each(|length| check(&object.protobuf[..length]));
    }
}

//! Random streams, cut at random: what goes in as messages comes out as the same messages.

use std::io::Write;

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use informer_model::{FrameDecoder, FrameError, Framing};
use informer_testing::histories;
use proptest::{collection::vec, prelude::*};
use serde_json::Value;

/// How a stream gets from one side to the other.
#[derive(Debug, Clone)]
struct Transport {
    /// The lengths of the chunks, over and over.
    chunks: Vec<usize>,
    /// The lengths of the gzip members, over and over; not compressed when there are none.
    members: Vec<usize>,
}

fn any_transport() -> impl Strategy<Value = Transport> {
    let sizes = || prop_oneof![1..4usize, 1..100usize];
    (vec(sizes(), 1..5), vec(sizes(), 0..3)).prop_map(|(chunks, members)| Transport { chunks, members })
}

fn cut<'a>(mut rest: &'a [u8], sizes: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    sizes.iter().cycle().map_while(move |size| {
        let (head, tail) = rest.split_at(rest.len().min(*size));
        rest = tail;
        (!head.is_empty()).then_some(head)
    })
}

impl Transport {
    fn is_gzip(&self) -> bool {
        !self.members.is_empty()
    }

    fn pack(&self, plain: &[u8]) -> Vec<u8> {
        if !self.is_gzip() {
            return plain.to_vec();
        }
        let mut packed = Vec::new();
        for part in cut(plain, &self.members) {
            let mut encoder = GzEncoder::new(&mut packed, Compression::fast());
            encoder.write_all(part).unwrap();
            encoder.finish().unwrap();
        }
        packed
    }

    /// Sends a stream as it is, packed or not.
    fn send(&self, framing: Framing, limit: usize, stream: &[u8]) -> (Vec<Bytes>, Result<(), FrameError>) {
        let mut decoder = FrameDecoder::new(framing).with_limit(limit);
        if self.is_gzip() {
            decoder = decoder.gzip();
        }
        let mut frames = Vec::new();
        let mut run = || {
            for chunk in cut(stream, &self.chunks) {
                decoder.push(Bytes::copy_from_slice(chunk));
                while let Some(frame) = decoder.next_frame()? {
                    frames.push(frame);
                }
                assert!(decoder.buffered() <= limit);
            }
            while let Some(frame) = decoder.finish()? {
                frames.push(frame);
            }
            Ok(())
        };
        let end = run();
        (frames, end)
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let text = "[a-z\"\\\\{}\\[\\]\n☃]{0,8}";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i16>().prop_map(|n| Value::from(f64::from(n) / 8.0)),
        text.prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((text, inner), 0..4).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

#[test]
fn values_come_out_as_they_went_in() {
    let gap = prop_oneof![Just(""), Just("\n"), Just(" \r\n\t")];
    let values = vec((any_value(), any::<bool>(), gap), 0..6);
    histories(&(values, any_transport()), |(values, transport)| {
        let mut stream = Vec::new();
        for (value, pretty, gap) in &values {
            let write = if *pretty { serde_json::to_vec_pretty } else { serde_json::to_vec };
            stream.extend(write(value).unwrap());
            // Two numbers need something between them.
            let gap = if value.is_number() && gap.is_empty() { " " } else { gap };
            stream.extend_from_slice(gap.as_bytes());
        }
        let (frames, end) = transport.send(Framing::Json, 10_000, &transport.pack(&stream));
        assert_eq!(end, Ok(()));
        let read: Vec<Value> = frames.iter().map(|frame| serde_json::from_slice(frame).unwrap()).collect();
        assert_eq!(read, values.into_iter().map(|(value, ..)| value).collect::<Vec<_>>());
        assert!(frames.iter().all(|frame| frame.trim_ascii() == frame), "no space around a frame");
    });
}

#[test]
fn messages_come_out_as_they_went_in() {
    histories(&(vec(vec(any::<u8>(), 0..40), 0..8), any_transport()), |(messages, transport)| {
        let stream: Vec<u8> = messages
            .iter()
            .flat_map(|message| [&(message.len() as u32).to_be_bytes(), message.as_slice()].concat())
            .collect();
        let (frames, end) = transport.send(Framing::LengthDelimited, 40, &transport.pack(&stream));
        assert_eq!((frames, end), (messages.into_iter().map(Bytes::from).collect(), Ok(())));
    });
}

/// Mostly what a scanner takes notice of.
fn any_noise() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        8 => proptest::sample::select(&b"{}[]\"\\ \n1-truefalsn"[..]),
        1 => any::<u8>(),
        1 => 0..6u8,
    ];
    vec(byte, 0..60)
}

#[test]
fn noise_fails_the_same_way_however_it_is_cut() {
    let framing = prop_oneof![Just(Framing::Json), Just(Framing::LengthDelimited)];
    histories(&(any_noise(), 0..20usize, framing, any_transport()), |(noise, limit, framing, transport)| {
        let whole = Transport { chunks: vec![usize::MAX], members: vec![] };
        let plain = whole.send(framing, limit, &noise);
        assert!(plain.0.iter().all(|frame| frame.len() <= limit));
        assert_eq!(transport.send(framing, limit, &transport.pack(&noise)), plain);
        if let (Framing::Json, Err(error)) = (framing, plain.1) {
            let valid =
                serde_json::Deserializer::from_slice(&noise).into_iter::<Value>().all(|value| value.is_ok());
            assert!(!valid || matches!(error, FrameError::TooLarge { .. }), "{error} in a valid stream");
        }
    });
}

#[test]
fn noise_that_is_no_gzip_or_damaged_gzip_never_panics() {
    let damage = vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    histories(&(any_noise(), damage, any_transport()), |(noise, damage, transport)| {
        let transport = Transport { members: vec![50], ..transport };
        let mut stream = transport.pack(&noise);
        for (at, byte) in damage.into_iter().filter(|_| !noise.is_empty()) {
            let at = at.index(stream.len());
            stream[at] = byte;
        }
        let whole = Transport { chunks: vec![usize::MAX], ..transport.clone() };
        for stream in [&stream, &noise] {
            let (frames, end) = whole.send(Framing::Json, 10_000, stream);
            let (other_frames, other_end) = transport.send(Framing::Json, 10_000, stream);
            assert_eq!(frames, other_frames);
            let kind = |end: Result<(), FrameError>| end.map_err(|error| std::mem::discriminant(&error));
            assert_eq!(kind(end), kind(other_end));
        }
    });
}

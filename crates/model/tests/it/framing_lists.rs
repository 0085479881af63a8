//! A list comes out item by item, the same however it is cut, and its envelope last.

use bytes::Bytes;
use informer_model::{FrameDecoder, FrameError, Framing};
use informer_testing::histories;
use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};

/// What came out: items, skipped items with the beginning of their reason, and the envelope.
#[derive(Debug, Clone, PartialEq)]
enum Part {
    Item(Bytes),
    Skipped(Bytes, FrameError),
    Envelope(Bytes),
}

fn decode<'a>(
    mut decoder: FrameDecoder,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Part>, Result<(), FrameError>) {
    let mut parts = Vec::new();
    let mut drain = |decoder: &mut FrameDecoder, ended: bool| loop {
        match if ended { decoder.finish() } else { decoder.next_frame() } {
            Ok(None) => return Ok(()),
            Ok(Some(frame)) if decoder.is_envelope() => parts.push(Part::Envelope(frame)),
            Ok(Some(frame)) => parts.push(Part::Item(frame)),
            Err(FrameError::Skipped { beginning, reason }) => parts.push(Part::Skipped(beginning, *reason)),
            Err(error) => return Err(error),
        }
    };
    for chunk in chunks {
        decoder.push(Bytes::copy_from_slice(chunk));
        if let Err(error) = drain(&mut decoder, false) {
            assert_eq!(decoder.buffered(), 0, "a failed decoder holds nothing");
            return (parts, Err(error));
        }
    }
    let end = drain(&mut decoder, true);
    (parts, end)
}

fn mk_decoder() -> FrameDecoder {
    FrameDecoder::new(Framing::JsonList).skipping()
}

fn list(text: &str) -> (Vec<Part>, Result<(), FrameError>) {
    decode(mk_decoder(), [text.as_bytes()])
}

fn item(text: &str) -> Part {
    Part::Item(Bytes::copy_from_slice(text.as_bytes()))
}

fn envelope(text: &str) -> Part {
    Part::Envelope(Bytes::copy_from_slice(text.as_bytes()))
}

#[test]
fn items_come_one_by_one_and_the_envelope_last_wherever_its_members_stand() {
    for (text, parts) in [
        ("{}", vec![envelope("{}")]),
        (r#" {"items":null} "#, vec![envelope(r#"{"items":null}"#)]),
        (r#"{"a":{"items":[1]},"items":[ ]}"#, vec![envelope(r#"{"a":{"items":[1]},"items":[]}"#)]),
        (
            "{\"items\": [ {\"items\":[7]} ,\n 2, \"]\",[] ] , \"kind\":\"L\"}\n",
            vec![
                item("{\"items\":[7]}"),
                item("2"),
                item("\"]\""),
                item("[]"),
                envelope(r#"{"items": [] , "kind":"L"}"#),
            ],
        ),
        (
            r#"{"it\u0065ms":[1],"items\\":[2]}"#,
            vec![item("1"), envelope(r#"{"it\u0065ms":[],"items\\":[2]}"#)],
        ),
    ] {
        for at in 0..=text.len() {
            let (head, tail) = text.as_bytes().split_at(at);
            assert_eq!(decode(mk_decoder(), [head, tail]), (parts.clone(), Ok(())), "{text} split at {at}");
        }
    }
}

#[test]
fn what_is_no_list_is_an_error_that_names_the_byte() {
    for (text, offset, expected) in [
        ("[]", 0, "`{`, with which a list begins"),
        ("<html>", 0, "`{`, with which a list begins"),
        (r#"{"a":1,}"#, 7, "the name of a member"),
        (r#"{"a" 1}"#, 5, "`:`"),
        (r#"{"a":}"#, 5, "a JSON value"),
        (r#"{"items":[1 2]}"#, 12, "`,` or `]`"),
        (r#"{"items":[1,]}"#, 12, "a JSON value"),
        (r#"{"items":[]]"#, 11, "`,` or `}`"),
        ("{} {}", 3, "nothing after the list"),
    ] {
        let found = text.as_bytes()[offset];
        let error = FrameError::Unexpected { offset: offset as u64, found, expected };
        assert_eq!(list(text).1, Err(error), "{text}");
    }
}

#[test]
fn f14_an_item_that_is_too_deep_is_skipped_whole_and_its_neighbours_stay() {
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let text = format!(r#"{{"items":[1,{},{},3]}}"#, deep(10_001), deep(10_000));
    let reason = FrameError::TooDeep { offset: 10_012, limit: 10_000 };
    let expected = vec![
        item("1"),
        Part::Skipped(deep(10_001).into(), reason),
        item(&deep(10_000)),
        item("3"),
        envelope(r#"{"items":[]}"#),
    ];
    assert_eq!(list(&text), (expected.clone(), Ok(())));
    assert_eq!(decode(mk_decoder(), text.as_bytes().chunks(7)), (expected, Ok(())));
    let strict = decode(FrameDecoder::new(Framing::JsonList), [text.as_bytes()]);
    assert!(matches!(strict.1, Err(FrameError::TooDeep { .. })), "only who asks for it skips");
    let envelope = format!(r#"{{"items":[],"metadata":{}}}"#, deep(10_001));
    assert!(matches!(list(&envelope).1, Err(FrameError::TooDeep { .. })), "the envelope is never skipped");
}

#[test]
fn f15_an_item_over_the_limit_is_skipped_and_never_held() {
    let text = format!(r#"{{"items":["a","{}","c"],"kind":"L"}}"#, "b".repeat(1_000));
    for size in [1, 3, 50, 5_000] {
        let decoder = mk_decoder().with_limit(100);
        let (parts, end) = decode(decoder, text.as_bytes().chunks(size));
        assert_eq!((parts.len(), end), (4, Ok(())), "{parts:?}");
        let Part::Skipped(beginning, reason) = &parts[1] else { panic!("{parts:?}") };
        assert_eq!((beginning.len(), &beginning[..3]), (100, &b"\"bb"[..]));
        assert_eq!(*reason, FrameError::TooLarge { offset: 14, limit: 100, announced: None });
    }
    let long = format!(r#"{{"items":[],"kind":"{}"}}"#, "b".repeat(100));
    let error = decode(mk_decoder().with_limit(100), [long.as_bytes()]).1;
    assert_eq!(error, Err(FrameError::TooLarge { offset: 0, limit: 100, announced: None }));
}

#[test]
fn a_stream_of_messages_can_skip_too() {
    let text = format!("1 \"{}\" 3", "x".repeat(200));
    let (parts, end) =
        decode(FrameDecoder::new(Framing::Json).skipping().with_limit(10), text.as_bytes().chunks(3));
    assert_eq!((parts.len(), end), (3, Ok(())));
    assert!(matches!(&parts[1], Part::Skipped(beginning, _) if beginning.len() == 10));
    let frames = [&[0, 0, 0, 20][..], &[b'a'; 20], &[0, 0, 0, 1], b"b"].concat();
    let decoder = FrameDecoder::new(Framing::LengthDelimited).skipping().with_limit(10);
    let (parts, end) = decode(decoder, frames.chunks(3));
    assert_eq!((parts.len(), &parts[1], end), (2, &item("b"), Ok(())));
    let cut = decode(FrameDecoder::new(Framing::Json).skipping().with_limit(10), [&text.as_bytes()[..100]]);
    assert_eq!(cut.1, Err(FrameError::Truncated { offset: 2, pending: 98 }));
}

fn any_value() -> impl Strategy<Value = Value> {
    let text = "[a-z\"\\\\{}\\[\\],:☃]{0,6}";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, move |inner| {
        let name = prop_oneof![text.prop_map(String::from), Just("items".to_owned())];
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((name, inner), 0..4).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

#[test]
fn any_list_cut_anywhere_gives_the_same_items_and_is_truncated_before_its_end() {
    let members = vec(("[a-z]{1,3}", any_value()), 0..3);
    let shape = (
        members,
        vec(any_value(), 0..5),
        0..4usize,
        any::<bool>(),
        vec(1..40usize, 1..4),
        any::<prop::sample::Index>(),
    );
    histories(&shape, |(members, items, place, pretty, sizes, cut)| {
        let write = |value: &Value| {
            if pretty { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) }.unwrap()
        };
        let mut fields: Vec<String> =
            members.iter().map(|(name, value)| format!("{}:{}", json!(name), write(value))).collect();
        fields.insert(place.min(fields.len()), format!("\"items\":{}", write(&json!(items))));
        let text = format!("{{{}}}", fields.join(","));

        let mut rest = text.as_bytes();
        let chunks = sizes.iter().cycle().map_while(|size| {
            let (head, tail) = rest.split_at(rest.len().min(*size));
            rest = tail;
            (!head.is_empty()).then_some(head)
        });
        let (parts, end) = decode(mk_decoder(), chunks);
        assert_eq!(end, Ok(()));
        assert_eq!(list(&text).0, parts);
        let seen: Vec<Value> = parts
            .iter()
            .filter_map(|part| match part {
                Part::Item(frame) => Some(serde_json::from_slice(frame).unwrap()),
                _ => None,
            })
            .collect();
        assert_eq!(seen, items);
        let Some(Part::Envelope(envelope)) = parts.last() else { panic!("{parts:?}") };
        let mut whole: Value = serde_json::from_str(&text).unwrap();
        whole["items"] = json!([]);
        assert_eq!(serde_json::from_slice::<Value>(envelope).unwrap(), whole);

        let (before, end) = list(&text[..floor(&text, cut.index(text.len()))]);
        assert!(end.is_err_and(|error| error.is_truncated()));
        assert_eq!(before, parts[..before.len()]);
    });
}

/// The nearest place before `at` where a text can be cut.
fn floor(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[test]
fn noise_fails_the_same_way_however_it_is_cut() {
    let byte = proptest::sample::select(&b"{}[]\"\\,: 1items"[..]);
    let noise = (vec(byte, 0..40), 1..5usize, any::<bool>());
    histories(&noise, |(noise, size, begun)| {
        let noise = [if begun { &b"{\"items\":["[..] } else { b"" }, &noise].concat();
        let mk = || mk_decoder().with_limit(8);
        assert_eq!(decode(mk(), noise.chunks(size)), decode(mk(), [&noise[..]]));
    });
}

/// A list in protobuf: its items, and what stands around them.
fn protobuf_list(items: &[Vec<u8>], metadata: &[u8], after: &[u8]) -> Vec<u8> {
    let mut list = field(1, metadata);
    items.iter().for_each(|item| list.extend(field(2, item)));
    [b"k8s\0", &field(1, b"types")[..], &field(2, &list), after].concat()
}

fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    [&out[..], &[length as u8], bytes].concat()
}

#[test]
fn any_list_in_protobuf_cut_anywhere_gives_the_same_items_and_is_truncated_before_its_end() {
    let item = || vec(any::<u8>(), 0..200);
    let after = prop_oneof![Just(vec![]), Just(vec![0x1a, 0, 0x22, 0]), Just(vec![0x28, 0x80, 1])];
    let shape = (vec(item(), 0..6), item(), after, 1..40usize, any::<prop::sample::Index>());
    histories(&shape, |(items, metadata, after, size, cut)| {
        let whole = protobuf_list(&items, &metadata, &after);
        let decoder = || FrameDecoder::new(Framing::ProtobufList).skipping();
        let (parts, end) = decode(decoder(), whole.chunks(size));
        assert_eq!(end, Ok(()));
        let envelope = [b"k8s\0", &field(1, b"types")[..], &after, &field(2, &field(1, &metadata))].concat();
        let expected = items.iter().map(|item| Part::Item(item.clone().into()));
        assert_eq!(parts, expected.chain([Part::Envelope(envelope.into())]).collect::<Vec<_>>());

        let end_of_list = whole.len() - after.len();
        let cut = cut.index(end_of_list);
        let (parts, end) = decode(decoder(), [&whole[..cut]]);
        assert!(end.is_err_and(|error| error.is_truncated()), "cut at {cut} of {}", whole.len());
        assert!(parts.iter().all(|part| matches!(part, Part::Item(item) if items.contains(&item.to_vec()))));

        let mut damaged = whole;
        damaged[cut] ^= 0x5a;
        assert_eq!(decode(decoder(), damaged.chunks(size)), decode(decoder(), [&damaged[..]]));
    });
}

#[test]
fn a_number_of_fixed_size_that_is_longer_than_the_list_fails_the_same_way_however_it_is_cut() {
    for (tag, size) in [(0x19, 8), (0x1d, 4)] {
        for left in 0..size {
            let list = field(2, &[vec![tag], vec![0; left]].concat());
            let bytes = [b"k8s\0", &list[..], &[0; 8]].concat();
            let whole = decode(FrameDecoder::new(Framing::ProtobufList), [&bytes[..]]);
            assert!(matches!(whole.1, Err(FrameError::Unexpected { offset: 6, .. })), "{whole:?}");
            for cut in 1..bytes.len() {
                assert_eq!(decode(FrameDecoder::new(Framing::ProtobufList), bytes.chunks(cut)), whole);
            }
        }
    }
}

#[test]
fn f15_an_item_in_protobuf_over_the_limit_is_skipped_and_never_held() {
    let list = protobuf_list(&[b"a".to_vec(), vec![b'b'; 1_000], b"c".to_vec()], b"m", b"");
    let (parts, end) =
        decode(FrameDecoder::new(Framing::ProtobufList).skipping().with_limit(100), list.chunks(7));
    assert_eq!((parts.len(), end), (4, Ok(())), "{parts:?}");
    assert!(matches!(&parts[1], Part::Skipped(beginning, _) if beginning.len() == 100));
    let strict = decode(FrameDecoder::new(Framing::ProtobufList).with_limit(100), [&list[..]]).1;
    assert!(matches!(strict, Err(FrameError::TooLarge { .. })), "{strict:?}");
}

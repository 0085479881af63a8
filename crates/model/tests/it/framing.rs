//! A watch stream comes out the same however it is cut, packed or damaged.

use std::io::Write;

use bytes::Bytes;
use flate2::{Compression, Crc, Decompress, FlushDecompress, GzBuilder, write::GzEncoder};
use informer_model::{FrameDecoder, FrameError, Framing};

/// Values of every kind, close together and far apart, with every trap that strings have.
const VALUES: &[&str] = &[
    r#"{"type":"ADDED","object":{"a":[1,{"b":null}],"c":{}}}"#,
    "{}",
    "[]",
    r#"{"a":"}{][","b":"\"","c":"\\","d":"\\\"}","e":"\u005c\u0022"}"#,
    r#""\\""#,
    r#""\"[{""#,
    r#""""#,
    "true",
    "false",
    "null",
    "{\n  \"pretty\": [\n    1,\n    \"☃\"\n  ]\n}",
    r#"[[[[{"deep":[{}]}]]]]"#,
];

fn mk_json() -> Vec<u8> {
    VALUES.iter().zip(["", "", "\n", "\r\n", "\n\n\n \t", ""].iter().cycle()).fold(
        Vec::new(),
        |mut all, (value, gap)| {
            all.extend_from_slice(value.as_bytes());
            all.extend_from_slice(gap.as_bytes());
            all
        },
    )
}

fn mk_lengths(frames: &[&[u8]]) -> Vec<u8> {
    frames
        .iter()
        .flat_map(|frame| [&u32::try_from(frame.len()).unwrap().to_be_bytes(), *frame].concat())
        .collect()
}

fn mk_member(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

/// The stream as members of so many bytes, with an empty member after each.
fn mk_members(plain: &[u8], size: usize) -> Vec<Vec<u8>> {
    plain.chunks(size).flat_map(|part| [mk_member(part), mk_member(b"")]).collect()
}

/// Everything that comes out of a stream that arrives in these chunks, and how it ends.
fn decode<'a>(
    mut decoder: FrameDecoder,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Bytes>, Result<(), FrameError>) {
    let mut frames = Vec::new();
    let run = || {
        for chunk in chunks {
            decoder.push(Bytes::copy_from_slice(chunk));
            while let Some(frame) = decoder.next_frame()? {
                frames.push(frame);
            }
        }
        while let Some(frame) = decoder.finish()? {
            frames.push(frame);
        }
        Ok(())
    };
    let end: Result<(), FrameError> = run();
    if let Err(error) = &end {
        decoder.push("{}");
        assert_eq!((decoder.next_frame(), decoder.buffered()), (Err(error.clone()), 0), "it stays failed");
        assert_eq!(decoder.finish(), Err(error.clone()));
    }
    (frames, end)
}

fn json(text: impl AsRef<[u8]>) -> (Vec<Bytes>, Result<(), FrameError>) {
    decode(FrameDecoder::new(Framing::Json), [text.as_ref()])
}

/// Checks all ways to cut a stream in two, and the one into single bytes.
fn assert_every_split(mk_decoder: impl Fn() -> FrameDecoder, stream: &[u8], frames: &[&[u8]]) {
    let expected = (frames.iter().map(|frame| Bytes::copy_from_slice(frame)).collect(), Ok(()));
    for at in 0..=stream.len() {
        let (head, tail) = stream.split_at(at);
        assert_eq!(decode(mk_decoder(), [head, tail]), expected, "split at {at}");
    }
    assert_eq!(decode(mk_decoder(), stream.chunks(1)), expected, "byte by byte");
}

#[test]
fn every_split_of_a_stream_gives_the_same_frames() {
    let lengths: &[&[u8]] = &[b"k8s\0one", b"", b"\0\0\0\x05", b"", &[0xff; 300]];
    let values: Vec<&[u8]> = VALUES.iter().map(|value| value.as_bytes()).collect();
    for (framing, plain, frames) in
        [(Framing::Json, mk_json(), &values[..]), (Framing::LengthDelimited, mk_lengths(lengths), lengths)]
    {
        assert_every_split(|| FrameDecoder::new(framing), &plain, frames);
        for packed in [mk_member(&plain), mk_members(&plain, 9).concat(), mk_members(&plain, 100).concat()] {
            assert_every_split(|| FrameDecoder::new(framing).gzip(), &packed, frames);
        }
    }
}

#[test]
fn a_stream_cut_anywhere_gives_the_frames_before_the_cut_and_says_where_the_next_began() {
    let stream = mk_json();
    let mut ends = Vec::new();
    for value in VALUES {
        let from = ends.last().map_or(0, |&(_, end)| end);
        let space = stream[from..].iter().position(|b| !b.is_ascii_whitespace()).unwrap();
        ends.push((from + space, from + space + value.len()));
    }
    let lengths = mk_lengths(&[b"abc", b"", b"defgh"]);
    for (framing, stream, ends) in
        [(Framing::Json, stream, ends), (Framing::LengthDelimited, lengths, vec![(0, 7), (7, 11), (11, 20)])]
    {
        for cut in 0..=stream.len() {
            let (frames, end) = decode(FrameDecoder::new(framing), [&stream[..cut]]);
            assert_eq!(frames.len(), ends.iter().filter(|(_, end)| *end <= cut).count(), "cut at {cut}");
            let expected = match ends.iter().find(|(start, end)| (start + 1..*end).contains(&cut)) {
                Some(&(start, _)) => {
                    Err(FrameError::Truncated { offset: start as u64, pending: cut - start })
                }
                None => Ok(()),
            };
            assert_eq!(end, expected, "cut at {cut}");
        }
    }
}

#[test]
fn a_gzip_stream_ends_well_only_between_two_members() {
    // Each member is one event, except for the last two, which have a half each.
    let members = [r#"{"a":1}"#, r#"{"b":2}"#, "", r#"{"c""#, ":3}\n"].map(|part| mk_member(part.as_bytes()));
    let starts: Vec<usize> =
        members.iter().scan(0, |at, m| Some(std::mem::replace(at, *at + m.len()))).collect();
    let stream = members.concat();
    for cut in 0..=stream.len() {
        let (frames, end) = decode(FrameDecoder::new(Framing::Json).gzip(), [&stream[..cut]]);
        assert!(
            frames
                .iter()
                .zip([r#"{"a":1}"#, r#"{"b":2}"#, r#"{"c":3}"#])
                .all(|(frame, event)| frame == event)
        );
        let whole =
            starts.iter().position(|start| *start == cut).unwrap_or(if cut == stream.len() { 5 } else { 9 });
        match whole {
            // The trailer of a member brings no data, so a frame may be there before its member is whole.
            9 => assert!(end.is_err_and(|error| error.is_truncated()), "cut at {cut}"),
            4 => assert_eq!(end, Err(FrameError::Truncated { offset: 14, pending: 4 })),
            whole => assert_eq!((frames.len(), end), ([0, 1, 2, 2, 0, 3][whole], Ok(())), "cut at {cut}"),
        }
    }
    let cut = stream[..starts[1] + 5].to_vec();
    let expected = FrameError::TruncatedGzip { offset: starts[1] as u64, pending: 5 };
    assert_eq!(decode(FrameDecoder::new(Framing::Json).gzip(), [&cut[..]]).1, Err(expected));
}

#[test]
fn a_number_is_not_ended_by_the_cut_of_its_member() {
    let member = mk_member(b"12");
    for cut in 1..member.len() {
        let (frames, end) = decode(FrameDecoder::new(Framing::Json).gzip(), [&member[..cut]]);
        assert!(frames.is_empty() && end.is_err_and(|error| error.is_truncated()), "cut at {cut}");
    }
    assert_every_split(|| FrameDecoder::new(Framing::Json).gzip(), &member, &[b"12"]);
}

#[test]
fn numbers_end_at_the_next_byte_or_with_the_stream() {
    for (text, frames) in [
        ("1 2", &["1", "2"][..]),
        ("12", &["12"]),
        ("-1.5e+3\n", &["-1.5e+3"]),
        ("1true2{}3\"4\"5[6]", &["1", "true", "2", "{}", "3", "\"4\"", "5", "[6]"]),
        ("true false", &["true", "false"]),
        ("truefalsenull", &["true", "false", "null"]),
        ("", &[]),
        ("\n\n \t\r\n", &[]),
        ("\n{}\n\n\n{}\n", &["{}", "{}"]),
    ] {
        let frames: Vec<&[u8]> = frames.iter().map(|frame| frame.as_bytes()).collect();
        assert_every_split(|| FrameDecoder::new(Framing::Json), text.as_bytes(), &frames);
    }
    for text in ["-", "1.", "2e", "3e+", "tru"] {
        let pending = text.len();
        assert_eq!(json(text).1, Err(FrameError::Truncated { offset: 0, pending }), "{text}");
    }
}

#[test]
fn what_begins_no_value_is_an_error_at_once_that_names_the_byte() {
    let unexpected = |offset, found, expected| Err(FrameError::Unexpected { offset, found, expected });
    let value = "a JSON value";
    for (text, frames, end) in [
        (&b"<html><body>502</body></html>"[..], 0, unexpected(0, b'<', value)),
        (b"{}\n Bad Gateway", 1, unexpected(4, b'B', value)),
        (b"\xef\xbb\xbf{}", 0, unexpected(0, 0xef, value)),
        (b"{}\0\0", 1, unexpected(2, 0, value)),
        (b"{},{}", 1, unexpected(2, b',', value)),
        (b"{}}", 1, unexpected(2, b'}', value)),
        (b"\x1f\x8b\x08", 0, unexpected(0, 0x1f, value)),
        (b"k8s\0", 0, unexpected(0, b'k', value)),
        (b"truE", 0, unexpected(3, b'E', "the rest of `true`")),
        (b"fals\n", 0, unexpected(4, b'\n', "the rest of `false`")),
        (b"nil", 0, unexpected(1, b'i', "the rest of `null`")),
        (b"[{]", 0, Err(FrameError::Mismatched { offset: 2, found: ']', expected: '}' })),
        (b" [\"]\"}", 0, Err(FrameError::Mismatched { offset: 5, found: '}', expected: ']' })),
    ] {
        let outcome = json(text);
        assert_eq!((outcome.0.len(), &outcome.1), (frames, &end), "{}", text.escape_ascii());
        assert_eq!(decode(FrameDecoder::new(Framing::Json), text.chunks(1)), outcome);
    }
    let said = json("<html>").1.unwrap_err().to_string();
    assert_eq!(said, "unexpected `<` at byte 0 of the stream; expected a JSON value");
}

#[test]
fn values_nest_10000_deep_and_no_deeper() {
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
        let deep = |depth: usize| open.repeat(depth) + "1" + &close.repeat(depth);
        assert_eq!(json(deep(10_000)), (vec![Bytes::from(deep(10_000))], Ok(())));
        let offset = (10_000 * open.len()) as u64;
        assert_eq!(json(deep(10_001)), (vec![], Err(FrameError::TooDeep { offset, limit: 10_000 })));
    }
}

#[test]
fn a_frame_at_the_limit_passes_and_one_byte_more_does_not() {
    let json = || FrameDecoder::new(Framing::Json).with_limit(8);
    for text in ["[1,2,34]", "\"123456\"", "12345678", "{      }"] {
        let stream = format!(" {text}\n{text} ");
        assert_every_split(json, stream.as_bytes(), &[text.as_bytes(); 2]);
    }
    for text in ["[1,2,345]", "\"1234567\"", "123456789", "[[[[[[[[[[[[[[}", "\"12345\\\"\""] {
        let stream = format!(" {{}}{text}");
        let expected =
            (vec![Bytes::from("{}")], Err(FrameError::TooLarge { offset: 3, limit: 8, announced: None }));
        for at in 0..=stream.len() {
            let (head, tail) = stream.as_bytes().split_at(at);
            assert_eq!(decode(json(), [head, tail]), expected, "{stream} split at {at}");
        }
    }
    let lengths = || FrameDecoder::new(Framing::LengthDelimited).with_limit(8);
    assert_every_split(lengths, &mk_lengths(&[b"12345678", b""]), &[b"12345678", b""]);
    let mut decoder = lengths();
    decoder.push([&mk_lengths(&[b"one"])[..], &[0xff; 4]].concat());
    assert_eq!(decoder.next_frame().unwrap().unwrap(), "one");
    let error = decoder.next_frame().unwrap_err();
    assert_eq!(error, FrameError::TooLarge { offset: 7, limit: 8, announced: Some(u32::MAX) });
    let said = "the message at byte 7 of the stream is over the limit of 8 bytes: it announces 4294967295";
    assert_eq!(error.to_string(), said);
    assert_eq!(decode(FrameDecoder::new(Framing::Json).with_limit(0), [&b" \n"[..]]).1, Ok(()));
}

#[test]
fn no_byte_is_looked_at_twice() {
    // With anything quadratic this test would not end.
    let frame = format!("{{\"a\":\"{}\"}}", "x\\\"".repeat(350_000));
    let (frames, end) = decode(FrameDecoder::new(Framing::Json), frame.as_bytes().chunks(1));
    assert_eq!((frames, end), (vec![Bytes::from(frame)], Ok(())));
}

#[test]
fn a_frame_keeps_no_chunk_alive() {
    let chunk = Bytes::from("{}\n".repeat(10_000) + "[");
    let mut decoder = FrameDecoder::new(Framing::Json);
    decoder.push(chunk.clone());
    let frames: Vec<Bytes> = std::iter::from_fn(|| decoder.next_frame().unwrap()).collect();
    assert_eq!((frames.len(), decoder.buffered()), (10_000, 1));
    assert!(chunk.is_unique());
}

#[test]
fn chunks_that_were_not_drained_wait_in_order() {
    let mut decoder = FrameDecoder::new(Framing::Json);
    for part in ["[1", "", "][2]", "\"x", "y\"", "3"] {
        decoder.push(part);
    }
    assert_eq!(decoder.buffered(), 11);
    let frames: Vec<Bytes> = std::iter::from_fn(|| decoder.finish().unwrap()).collect();
    assert_eq!(frames, ["[1]", "[2]", "\"xy\"", "3"]);
    decoder.push("4 ");
    assert_eq!(decoder.next_frame().unwrap().unwrap(), "4", "the end was not held against it");
}

#[test]
fn what_was_flushed_comes_out_without_the_end_of_its_member() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let mut decoder = FrameDecoder::new(Framing::Json).gzip();
    // The longest packs so well that its last bytes of input hold many steps of output.
    for size in [1, 100, 5_000_000, 10] {
        let event = format!("[\"{}\"]", "x".repeat(size));
        encoder.write_all(event.as_bytes()).unwrap();
        encoder.flush().unwrap();
        decoder.push(std::mem::take(encoder.get_mut()));
        assert_eq!(decoder.next_frame().unwrap().unwrap(), event);
        assert_eq!(decoder.next_frame(), Ok(None));
    }
    assert!(matches!(decoder.finish(), Err(FrameError::TruncatedGzip { offset: 0, .. })));
}

#[test]
fn a_step_that_was_too_small_goes_on_without_more_input() {
    let packed = mk_member(format!("[\"{}", "x".repeat(1 << 20)).as_bytes());
    let mut room = vec![0; 2 << 20];
    for cut in 0..packed.len() {
        let mut inflate = Decompress::new_gzip(15);
        inflate.decompress(&packed[..cut], &mut room, FlushDecompress::None).unwrap();
        let mut decoder = FrameDecoder::new(Framing::Json).gzip();
        decoder.push(packed[..cut].to_vec());
        assert_eq!(decoder.next_frame(), Ok(None));
        assert_eq!(decoder.buffered() as u64, inflate.total_out(), "cut at {cut}");
    }
}

#[test]
fn a_bomb_is_never_held() {
    const CHUNK: usize = 1_000;
    let limit = 100_000;
    let big = format!("[\"{}", "x".repeat(30 << 20));
    for (plain, ends_well) in [(big, false), ("{}".repeat(2_000_000), true), ("\n".repeat(30 << 20), true)] {
        let mut decoder = FrameDecoder::new(Framing::Json).gzip().with_limit(limit);
        let mut end = Ok(None);
        for chunk in mk_member(plain.as_bytes()).chunks(CHUNK) {
            decoder.push(chunk.to_vec());
            loop {
                end = decoder.next_frame();
                assert!(decoder.buffered() <= limit + CHUNK + (16 << 10), "{decoder:?}");
                if !matches!(end, Ok(Some(_))) {
                    break;
                }
            }
        }
        let too_large = Err(FrameError::TooLarge { offset: 0, limit, announced: None });
        assert_eq!(end, if ends_well { Ok(None) } else { too_large });
    }
}

#[test]
fn members_may_have_every_header_field() {
    let mut stream = Vec::new();
    let mut full = GzBuilder::new()
        .filename("f")
        .comment("c")
        .extra(&b"extra"[..])
        .mtime(7)
        .write(&mut stream, Compression::fast());
    full.write_all(b"[1").unwrap();
    full.finish().unwrap();
    // A header with its own checksum, which no encoder at hand writes.
    let mut header = vec![0x1f, 0x8b, 8, 2, 0, 0, 0, 0, 0, 255];
    let mut crc = Crc::new();
    crc.update(&header);
    header.extend_from_slice(&crc.sum().to_le_bytes()[..2]);
    stream.extend_from_slice(&header);
    stream.extend_from_slice(&mk_member(b"]")[10..]);
    assert_every_split(|| FrameDecoder::new(Framing::Json).gzip(), &stream, &[b"[1]"]);
}

#[test]
fn damaged_gzip_is_an_error_that_names_the_compressed_byte() {
    let gzip = |stream: &[u8]| decode(FrameDecoder::new(Framing::Json).gzip(), [stream]);
    let (one, two) = (mk_member(b"{}"), mk_member(b"[]"));
    for garbage in [&b"<html>"[..], b"\0\0\0\0", b"{}"] {
        let (frames, end) = gzip(&[&one, garbage].concat());
        let Err(FrameError::Gzip { offset, problem }) = end else { panic!("{end:?}") };
        assert_eq!((frames.len(), offset), (1, one.len() as u64));
        assert!(problem.contains(&garbage[..1].escape_ascii().to_string()), "{problem}");
    }
    // The checksum is the first half of the last 8 bytes, the length the second.
    for at in [one.len() - 8, one.len() - 1] {
        let mut stream = [&one[..], &two].concat();
        stream[at] ^= 1;
        let (frames, end) = gzip(&stream);
        assert_eq!(frames, ["{}"], "it came before its checksum");
        assert!(matches!(end, Err(FrameError::Gzip { offset, .. }) if offset <= one.len() as u64), "{end:?}");
    }
    let mut wrong_header = two;
    wrong_header[2] = 7;
    assert!(matches!(gzip(&wrong_header).1, Err(FrameError::Gzip { offset: 0..=10, .. })));
}

#[test]
fn no_single_changed_byte_of_a_gzip_stream_changes_what_it_says_unnoticed() {
    let good = mk_json();
    let stream = [mk_member(&good[..100]), mk_member(&good[100..])].concat();
    let (expected, _) = decode(FrameDecoder::new(Framing::Json).gzip(), [&stream[..]]);
    let mut harmless = 0;
    for at in 0..stream.len() {
        for change in [1, 0x10, 0x80, 0xff] {
            let mut stream = stream.clone();
            stream[at] ^= change;
            let (frames, end) = decode(FrameDecoder::new(Framing::Json).gzip(), [&stream[..]]);
            assert!(end.is_err() || frames == expected, "byte {at} changed by {change}: {frames:?}");
            harmless += usize::from(end.is_ok());
        }
    }
    // Of each member: six bytes of the header, one flag, and what fills up the last byte of the data.
    assert!((2 * 25..=2 * 28).contains(&harmless), "{harmless} changes are harmless");
}

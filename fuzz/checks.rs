//! What must hold for any bytes: one function for each fuzz target.
//!
//! `cargo fuzz` drives them with libFuzzer; `crates/model/tests/it/fuzz_corpus.rs` drives them on stable Rust
//! with the seeds in `fuzz/seeds` and random mutations of them.

use informer_model::{
    FieldSelector, FrameDecoder, FrameError, Framing, GroupVersionKind, GroupVersionResource, Labels,
    ObjectKey, ProtobufObject, ResourceArg, Selector, decode_protobuf,
};

/// A label selector is refused at a position in the text, or reads the same after it was printed.
pub(crate) fn selector(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Selector::parse(text) {
        Ok(selector) => {
            assert_eq!(Selector::parse(&selector.to_string()).as_ref(), Ok(&selector));
            let labels: Labels = text.split(',').filter_map(|pair| pair.split_once('=')).collect();
            assert!(!selector.is_nothing() || !selector.matches(&labels));
        }
        Err(error) => assert!(text.is_char_boundary(error.position), "{error}"),
    }
}

/// The same for a field selector in either grammar, which also must cope with any object. The extended grammar
/// reads what the other reads, as the same.
pub(crate) fn field_selector(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let extended = FieldSelector::parse_extended(text);
    match &extended {
        Ok(selector) => {
            assert_eq!(FieldSelector::parse_extended(&selector.to_string()).as_ref(), Ok(selector));
            selector.matches(&serde_json::json!({"a": [{"b": 1}, null], "metadata": {"name": text}}));
        }
        Err(error) => assert!(text.is_char_boundary(error.position), "{error}"),
    }
    match FieldSelector::parse(text) {
        Ok(selector) => {
            assert_eq!(FieldSelector::parse(&selector.to_string()).as_ref(), Ok(&selector));
            assert_eq!(extended, Ok(selector));
        }
        Err(error) => assert!(text.is_char_boundary(error.position), "{error}"),
    }
}

/// Names: object keys, resources and kinds.
pub(crate) fn key(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(key) = text.parse::<ObjectKey>() {
        assert_eq!(key.as_str(), text);
        assert_eq!(ObjectKey::new(key.namespace(), key.name()).as_ref(), Ok(&key));
    }
    if let Ok(arg) = text.parse::<ResourceArg>() {
        assert_eq!(arg.to_string().parse().as_ref(), Ok(&arg));
    }
    if let Ok(resource) = text.parse::<GroupVersionResource>() {
        assert_eq!(resource.to_string().parse().as_ref(), Ok(&resource));
    }
    if let Ok(kind) = text.parse::<GroupVersionKind>() {
        assert_eq!(kind.to_string().parse().as_ref(), Ok(&kind));
    }
}

/// Frames: the first two bytes choose framing, limit and chunks, the rest is the stream. However it is cut,
/// the same frames come out, none over the limit.
pub(crate) fn framing(data: &[u8]) {
    let [mode, chunk, stream @ ..] = data else { return };
    let framing = match (mode & 1, mode & 8) {
        (0, 0) => Framing::Json,
        (0, _) => Framing::JsonList,
        (_, 0) => Framing::LengthDelimited,
        (_, _) => Framing::ProtobufList,
    };
    let limit = if mode & 4 == 0 { 64 } else { 4096 };
    let decode = |chunk: usize| {
        let mut decoder = FrameDecoder::new(framing).with_limit(limit);
        if mode & 2 != 0 {
            decoder = decoder.gzip();
        }
        let mut frames = Vec::new();
        for bytes in stream.chunks(chunk) {
            decoder.push(bytes.to_vec());
            while let Some(frame) = decoder.next_frame()? {
                assert!(frame.len() <= limit);
                frames.push(frame);
            }
        }
        while let Some(frame) = decoder.finish()? {
            frames.push(frame);
        }
        Ok::<_, FrameError>(frames)
    };
    let (whole, pieces) = (decode(usize::MAX), decode(usize::from(*chunk).max(1)));
    match (&whole, &pieces) {
        (Err(FrameError::Gzip { .. }), Err(FrameError::Gzip { .. })) => {}
        _ => assert_eq!(whole, pieces),
    }
}

/// Objects in protobuf: the first byte chooses the kind. Any bytes are an object or an error; what is read as a value
/// is what its JSON text says.
pub(crate) fn protobuf(data: &[u8]) {
    let [kind, body @ ..] = data else { return };
    let kinds = [
        ("v1", "Pod"),
        ("v1", "Service"),
        ("v1", "PodList"),
        ("v1", "Event"),
        ("apps/v1", "Deployment"),
        ("apps/v1", "ControllerRevision"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("authorization.k8s.io/v1", "SubjectAccessReview"),
        ("v1", "WatchEvent"),
    ];
    let (api_version, kind) = kinds[usize::from(*kind) % kinds.len()];
    let item = ProtobufObject::item(api_version, kind, body);
    let value = item.decode::<serde_json::Value>();
    let _ = (item.head(), ProtobufObject::new(body).and_then(|object| object.head()));
    let _ = (decode_protobuf(body), ProtobufObject::watch_event(body));
    if let Ok(value) = value {
        let typed = item.with_types().keep_managed_fields().decode::<serde_json::Value>();
        assert!(typed.is_err() || value["metadata"]["name"] == typed.unwrap_or_default()["metadata"]["name"]);
    }
}

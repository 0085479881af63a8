//! The fuzz targets on stable Rust: every seed, and random mutations of them.

#[path = "../../../../fuzz/checks.rs"]
mod checks;

use informer_testing::fuzz;

/// Signs of the grammars, and bytes that are none.
const PIECES: &[&str] = &[
    ",", "=", "==", "!=", "!", "(", ")", "<", ">", " in (", " notin (", "\\", "/", ".", "[", "]", "*", "'",
    "\"", " ", "{", "}", ":", "0", "a", "z", "\n", "\0", "\u{1f}", "\u{e9}",
];
const INPUTS: u64 = 100_000;

#[test]
fn selector() {
    fuzz("selector", PIECES, INPUTS, checks::selector);
}

#[test]
fn field_selector() {
    fuzz("field_selector", PIECES, INPUTS, checks::field_selector);
}

#[test]
fn key() {
    fuzz("key", PIECES, INPUTS, checks::key);
}

#[test]
fn framing() {
    fuzz("framing", PIECES, INPUTS, checks::framing);
}

#[test]
fn protobuf() {
    fuzz(
        "protobuf",
        &["\n\u{2}", "\u{12}", "\u{8}\u{1}", "k8s\0", "{}", "\u{1a}", "\0"],
        INPUTS,
        checks::protobuf,
    );
}

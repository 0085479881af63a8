//! The fuzz target of the wire on stable Rust: every seed, and random mutations of them.

#[path = "../../../../fuzz/wire_checks.rs"]
mod wire_checks;

/// Pieces of answers: put anywhere, they make more sense than single bytes.
const PIECES: &[&str] = &[
    "{\"type\":\"ADDED\",\"object\":",
    "{\"type\":\"ERROR\",\"object\":",
    "\"items\":[",
    "\"metadata\":{\"name\":\"a\"}",
    "\"managedFields\":[{}]",
    "\"labels\":{\"a\":\"b\"}",
    "\"resourceVersion\":\"7\"",
    "\\u0061",
    "\\ud800",
    "\"",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "null",
    "\n",
    "k8s\0",
    "\n\u{2}",
    "\u{12}\u{3}",
    "\0\0\0\u{8}",
    "\u{1f}\u{8b}",
    "\u{7f}",
];

#[test]
fn wire() {
    informer_testing::fuzz("wire", PIECES, 20_000, wire_checks::wire);
}

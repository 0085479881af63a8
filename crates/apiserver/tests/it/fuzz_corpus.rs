//! The fuzz target of the server on stable Rust: every seed, and random mutations of them.

#[path = "../../../../fuzz/request_checks.rs"]
mod request_checks;

/// Pieces of requests: put anywhere, they make more sense than single bytes.
const PIECES: &[&str] = &[
    "watch=true",
    "limit=1",
    "continue=$t",
    "resourceVersion=$v",
    "resourceVersion=0",
    "dryRun=All",
    "&",
    "?",
    "/",
    "/status",
    "/scale",
    "..",
    "%2f",
    "%00",
    "null",
    "{}",
    "[]",
    "[{",
    "\"",
    "-1",
    "9223372036854775807",
    "1e400",
    "\"metadata\":{",
    "\"name\":",
    "\"finalizers\":[\"a/b\"]",
    "\"labels\":{\"a\":\"b\"}",
    "labelSelector=a",
    "fieldSelector=metadata.name%3Da",
    "DELETE ",
    "GET ",
    "PATCH ",
    "PUT ",
    "POST ",
    "v2",
    "$u",
    "\n\n",
    "\u{1e}",
    "\u{e9}",
    "\0",
    "timeoutSeconds=",
    "\naccept: application/vnd.kubernetes.protobuf",
    "\naccept-encoding: gzip",
];

#[test]
fn requests() {
    informer_testing::fuzz("requests", PIECES, 2_000, request_checks::requests);
}

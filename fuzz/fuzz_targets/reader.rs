#![no_main]

#[path = "../reader_checks.rs"]
mod reader_checks;

/// The reader itself, as the gateway compiles it.
#[allow(dead_code, unused_imports, reason = "the target uses a part of it")]
#[path = "."]
mod query {
    #[path = "../../crates/gateway/src/query/reader/mod.rs"]
    pub(crate) mod reader;
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| reader_checks::reader(data));

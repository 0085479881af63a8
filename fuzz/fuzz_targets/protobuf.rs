#![no_main]

#[allow(dead_code, reason = "each target runs one of the checks")]
#[path = "../checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::protobuf(data));

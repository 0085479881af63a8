#![no_main]

#[path = "../request_checks.rs"]
mod request_checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| request_checks::requests(data));

#![no_main]

#[path = "../router_checks.rs"]
mod router_checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| router_checks::router(data));

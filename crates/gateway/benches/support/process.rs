//! What this process has used.

use std::time::Duration;

/// CPU time of all its threads, which the kernel counts in hundredths of a second.
pub(crate) fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let after_name = stat.rsplit(')').next().expect("a name");
    let ticks =
        after_name.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().expect("ticks"));
    Duration::from_millis(ticks.sum::<u64>() * 10)
}

/// A line of `/proc/self/status` in kB, as MB.
pub(crate) fn memory(line: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let value = status.lines().find_map(|text| text.strip_prefix(line)?.strip_prefix(':'));
    let kilobytes: f64 =
        value.and_then(|value| value.split_whitespace().next()?.parse().ok()).expect("a number");
    kilobytes / 1024.0
}

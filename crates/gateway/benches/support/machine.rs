//! What the machine did meanwhile, and the most memory that this process had.

use std::time::Duration;

/// For how long the processors have been busy, and for how long there were any: of all processors together, whoever used them.
pub(crate) fn machine_time() -> [Duration; 2] {
    let stat = std::fs::read_to_string("/proc/stat").expect("Linux");
    // user, nice, system, idle, waiting for a disk, interrupts, and what other machines took of these processors
    let ticks = stat.lines().next().into_iter().flat_map(|line| line.split_whitespace().skip(1).take(8));
    let ticks: Vec<u64> = ticks.map(|ticks| ticks.parse().expect("ticks")).collect();
    let all: u64 = ticks.iter().sum();
    let idle: u64 = ticks.iter().skip(3).take(2).sum();
    [all - idle, all].map(|ticks| Duration::from_millis(ticks * 10))
}

/// From here on the most memory that this process had is counted anew. Whether that is possible.
pub(crate) fn forget_peak() -> bool {
    std::fs::write("/proc/self/clear_refs", "5").is_ok()
}

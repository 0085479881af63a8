//! How much memory the process has, and whether there is room for one more resource.

use std::fs;

/// What this process has in memory, in bytes. None where the system does not tell it in a file.
pub(crate) fn resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_has_more_than_a_mebibyte_and_less_than_a_tebibyte() {
        let resident = resident().unwrap();
        assert!((1 << 20..1 << 40).contains(&resident), "{resident}");
    }
}

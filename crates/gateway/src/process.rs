//! What the system says about this process: for Prometheus, and to know whether there is room for one more resource.

use std::{fmt, fs};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};

/// The kernel counts times of processes in hundredths of a second.
const TICKS_PER_SECOND: f64 = 100.0;

/// What this process has in memory, in bytes. None where the system does not tell it in a file.
pub(crate) fn resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// The fields of `/proc/self/stat` after the name of the program, which may be anything.
fn stat() -> Option<Vec<f64>> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    Some(fields.split_whitespace().map(|field| field.parse().unwrap_or_default()).collect())
}

fn started() -> Option<f64> {
    let after_boot = *stat()?.get(19)? / TICKS_PER_SECOND;
    let system = fs::read_to_string("/proc/stat").ok()?;
    let boot: f64 = system.lines().find_map(|line| line.strip_prefix("btime "))?.parse().ok()?;
    Some(boot + after_boot)
}

fn open_files_limit() -> Option<f64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

/// The series that every Prometheus client has, under their usual names. What the system does not tell is left out.
#[derive(Debug)]
pub(crate) struct ProcessMetrics;

impl Collector for ProcessMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let cpu = stat().and_then(|stat| Some((stat.get(11)? + stat.get(12)?) / TICKS_PER_SECOND));
        if let Some(seconds) = cpu {
            let help = "CPU time of this process, in user and in kernel mode";
            let metric = encoder.encode_descriptor("process_cpu_seconds", help, None, MetricType::Counter)?;
            ConstCounter::new(seconds).encode(metric)?;
        }
        let files = fs::read_dir("/proc/self/fd").ok().map(|files| files.count() as f64);
        for (name, help, value) in [
            ("process_resident_memory_bytes", "What is in memory", resident().map(|bytes| bytes as f64)),
            ("process_open_fds", "Open files: each connection is one", files),
            ("process_max_fds", "How many files may be open", open_files_limit()),
            ("process_start_time_seconds", "When it was started, in seconds since 1970", started()),
        ] {
            if let Some(value) = value {
                let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
                ConstGauge::new(value).encode(metric)?;
            }
        }
        Ok(())
    }
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

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_was_started_before_now_and_not_long_ago() {
        let now = jiff::Timestamp::now().as_second() as f64;
        let started = started().unwrap();
        assert!((now - 86_400.0..=now + 1.0).contains(&started), "{started} and {now}");
    }
}

//! Metrics of this process, under the names that every Prometheus client uses. Each scrape reads them from `/proc`. Systems without `/proc`
//! have only the start time.

use std::fmt;
use std::fs;

use jiff::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use super::openmetrics::PREFIX;

/// Metrics of this process.
#[derive(Debug)]
struct Process {
    /// Seconds since 1970.
    started: f64,
}

/// Adds the metrics of a process that starts now. The registry must have no prefix.
pub fn register(registry: &mut Registry) {
    registry.register_collector(Box::new(Process { started: Timestamp::now().as_duration().as_secs_f64() }));
    let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
    registry.sub_registry_with_prefix(PREFIX).register("build", "The version that is running", version);
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut encode = |name: &str, help: &str, unit: Option<&Unit>, value: &dyn EncodeMetric| {
            value.encode(encoder.encode_descriptor(name, help, unit, value.metric_type())?)
        };
        let started = ConstGauge::new(self.started);
        encode(
            "process_start_time",
            "Start time of this process, in seconds since 1970",
            Some(&Unit::Seconds),
            &started,
        )?;
        if let Some(bytes) = resident_bytes() {
            let help = "Resident memory of this process";
            encode("process_resident_memory", help, Some(&Unit::Bytes), &ConstGauge::new(bytes))?;
        }
        if let Some(seconds) = cpu_seconds() {
            let help = "CPU time of this process, user and system";
            encode("process_cpu", help, Some(&Unit::Seconds), &ConstCounter::new(seconds))?;
        }
        if let Some(open) = open_files() {
            encode("process_open_fds", "Open file descriptors", None, &ConstGauge::new(open))?;
        }
        if let Some(limit) = rustix::process::getrlimit(rustix::process::Resource::Nofile).current {
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            encode("process_max_fds", "Limit of open file descriptors", None, &ConstGauge::new(limit))?;
        }
        Ok(())
    }
}

/// Parses a line like `VmRSS:     53248 kB`.
fn resident_bytes() -> Option<i64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim_end().parse::<i64>().ok()? * 1024)
}

/// User and system time: the 14th and 15th field. The second field is a name in parentheses and may contain any characters.
fn cpu_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u32>().ok();
    let ticks = f64::from(ticks()?) + f64::from(ticks()?);
    let per_second = u32::try_from(rustix::param::clock_ticks_per_second()).ok()?;
    Some(ticks / f64::from(per_second))
}

/// The open files, without the descriptor that is used to count them.
fn open_files() -> Option<i64> {
    let open = fs::read_dir("/proc/self/fd").ok()?.count();
    i64::try_from(open).ok().map(|open| open - 1)
}

#[cfg(test)]
mod tests {
    use prometheus_client::registry::Registry;

    use crate::serve::openmetrics;

    fn value(text: &str, name: &str) -> f64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in\n{text}")).parse().unwrap()
    }

    #[test]
    fn a_process_has_metrics_under_the_usual_names() {
        let now = jiff::Timestamp::now().as_duration().as_secs_f64();
        let mut registry = Registry::default();
        super::register(&mut registry);
        let text = openmetrics::render(&registry).unwrap();
        assert!(text.contains("interlock_build_info{version="), "{text}");
        let started = value(&text, "process_start_time_seconds");
        assert!((now..now + 60.0).contains(&started), "{started}");
        // Every process that runs these tests takes between 1 MB and 64 GiB.
        let resident = value(&text, "process_resident_memory_bytes");
        assert!((1e6..7e10).contains(&resident), "{resident}");
        assert!(value(&text, "process_cpu_seconds_total") >= 0.0);
        let (open, most) = (value(&text, "process_open_fds"), value(&text, "process_max_fds"));
        assert!(open >= 1.0 && open < most, "{open} of {most}");
    }
}

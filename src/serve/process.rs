//! What the kernel says of this process, under the names that every Prometheus client uses; read at each scrape, from
//! `/proc`. Where there is none, there are no such metrics but the start.

use std::fmt;
use std::fs;

use jiff::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

/// This process.
#[derive(Debug)]
pub(super) struct Process {
    started: f64,
}

impl Process {
    /// It has just started.
    pub(super) fn starting() -> Self {
        Self { started: Timestamp::now().as_duration().as_secs_f64() }
    }
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut tell = |name: &str, help: &str, unit: Option<&Unit>, value: &dyn EncodeMetric| {
            value.encode(encoder.encode_descriptor(name, help, unit, value.metric_type())?)
        };
        let started = ConstGauge::new(self.started);
        tell("process_start_time", "When this process started, since 1970", Some(&Unit::Seconds), &started)?;
        if let Some(bytes) = resident_bytes() {
            let help = "Memory of this process that is in RAM";
            tell("process_resident_memory", help, Some(&Unit::Bytes), &ConstGauge::new(bytes))?;
        }
        if let Some(seconds) = cpu_seconds() {
            let help = "Processor time that this process has taken";
            tell("process_cpu", help, Some(&Unit::Seconds), &ConstCounter::new(seconds))?;
        }
        if let Some(open) = open_files() {
            tell("process_open_fds", "Files and sockets that are open", None, &ConstGauge::new(open))?;
        }
        if let Some(most) = rustix::process::getrlimit(rustix::process::Resource::Nofile).current {
            let most = i64::try_from(most).unwrap_or(i64::MAX);
            tell("process_max_fds", "Files and sockets that may be open", None, &ConstGauge::new(most))?;
        }
        Ok(())
    }
}

/// From a line like `VmRSS:     53248 kB`.
fn resident_bytes() -> Option<i64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim_end().parse::<i64>().ok()? * 1024)
}

/// In user mode and in the kernel, from the 14th and 15th field; the second one may hold anything, in parentheses.
fn cpu_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u32>().ok();
    let ticks = f64::from(ticks()?) + f64::from(ticks()?);
    let per_second = u32::try_from(rustix::param::clock_ticks_per_second()).ok()?;
    Some(ticks / f64::from(per_second))
}

/// Without the one by which they are counted.
fn open_files() -> Option<i64> {
    let open = fs::read_dir("/proc/self/fd").ok()?.count();
    i64::try_from(open).ok().map(|open| open - 1)
}

#[cfg(test)]
mod tests {
    use crate::serve::report::metrics::Metrics;

    fn value(text: &str, name: &str) -> f64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in\n{text}")).parse().unwrap()
    }

    #[test]
    fn a_process_is_told_of_under_the_usual_names() {
        let now = jiff::Timestamp::now().as_duration().as_secs_f64();
        let metrics = Metrics::new();
        let text = metrics.render().unwrap();
        let started = value(&text, "process_start_time_seconds");
        assert!((now..now + 60.0).contains(&started), "{started}");
        // Nothing that runs these tests takes less than a MB, or more than 64 GiB.
        let resident = value(&text, "process_resident_memory_bytes");
        assert!((1e6..7e10).contains(&resident), "{resident}");
        assert!(value(&text, "process_cpu_seconds_total") >= 0.0);
        let (open, most) = (value(&text, "process_open_fds"), value(&text, "process_max_fds"));
        assert!(open >= 1.0 && open < most, "{open} of {most}");
    }
}

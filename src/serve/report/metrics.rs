//! Metrics of decisions, and of the sinks that receive them later.

use interlock_engine::decision::Decision;
use interlock_engine::outcome::Verdict;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use crate::serve::openmetrics::{Label, from_zero, label, metrics};

/// Bounds of the decode histogram, in seconds. An ordinary record takes a fraction of a millisecond, the largest possible record some
/// tens of milliseconds.
const DECODE_BUCKETS: [f64; 11] = [0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1];

/// Bounds of the effort histogram, in steps. Most objects take none, an ordinary record two million, and no review more than 800 million.
const EFFORT_BUCKETS: [f64; 9] = [0.0, 1e5, 1e6, 1e7, 5e7, 1e8, 2e8, 4e8, 8e8];

metrics! {
    /// Metrics of decisions and sinks.
    pub struct ReportMetrics {
        /// Reviews by the most severe verdict; dry runs and repeats are not counted
        decisions: Family<[Label; 2], Counter>;
        /// Broken and undecided rules by verdict; dry runs and repeats are not counted
        findings: Family<[Label; 3], Counter>;
        /// Rules that could not be decided, by reason
        undecided: Family<[Label; 1], Counter>;
        /// Changes of the status of a record, by the most severe verdict; dry runs and repeats are not counted
        transitions: Family<[Label; 2], Counter>;
        /// Reviews that the API server sent again
        repeats: Counter;
        /// Time to inflate and parse the bodies of the records in a review
        decode_duration: Histogram = Histogram::new(DECODE_BUCKETS), Seconds;
        /// Steps that a review took; a step is about a nanosecond of a core
        review_effort_steps: Histogram = Histogram::new(EFFORT_BUCKETS);
        /// Reviews in which something was not done because it would have taken more steps than a review may take
        reviews_over_budget: Counter;
        /// Findings that an override allowed
        overrides_used: Family<[Label; 1], Counter>;
        /// Overrides that have not expired
        overrides_in_force: Gauge;
        /// Findings, or reports of releases, that wait to be written to a sink
        report_queue: Family<Sink, Gauge>;
        /// Findings that a sink will never receive
        report_drops: Family<Sink, Counter> = from_zero([Sink::Events, Sink::Reports]);
        /// Writes of a sink to the API server
        report_writes: Family<(Sink, Write), Counter> =
            from_zero([(Sink::Events, Write::Failed), (Sink::Reports, Write::Failed)]);
    }
}

label! {
    /// A destination of findings that is written after the reply.
    pub enum Sink: "sink" {
        /// Kubernetes Events.
        Events => "events",
        /// Reports of releases.
        Reports => "reports",
    }
}

label! {
    /// A write of a sink to the API server.
    pub enum Write: "write" {
        /// A new object.
        Created => "created",
        /// A change of an object.
        Updated => "updated",
        /// A deletion.
        Deleted => "deleted",
        /// A write that the API server rejected or did not answer.
        Failed => "failed",
    }
}

impl ReportMetrics {
    /// Counts a review and its findings. A review that the API server sends again is not counted again.
    pub fn decided(&self, decision: &Decision, repeated: bool) {
        self.review_effort_steps.observe(decision.effort as f64);
        if decision.over_budget {
            self.reviews_over_budget.inc();
        }
        if let Some(decoded) = decision.decoded {
            self.decode_duration.observe(decoded.as_secs_f64());
        }
        if repeated {
            self.repeats.inc();
        }
        if decision.dry_run || repeated {
            return;
        }
        let verdict = ("verdict", decision.verdict().as_str());
        self.decisions.get_or_create(&[("operation", decision.operation.as_str()), verdict]).inc();
        if let Some(transition) = &decision.transition {
            self.transitions.get_or_create(&[("transition", transition.kind.as_str()), verdict]).inc();
        }
        for finding in &decision.findings {
            let (rule, mode) = (("rule", finding.rule.as_str()), ("mode", finding.mode.as_str()));
            self.findings.get_or_create(&[rule, mode, ("verdict", finding.verdict().as_str())]).inc();
            if finding.is_undecided() {
                self.undecided.get_or_create(&[("reason", finding.kind.as_str())]).inc();
            }
            if finding.verdict() == Verdict::Overridden {
                self.overrides_used.get_or_create(&[rule]).inc();
            }
        }
    }

    /// Sets the number of findings, or of reports, that wait to be written to a sink.
    pub fn waiting(&self, sink: Sink, count: usize) {
        self.report_queue.get_or_create(&sink).set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Counts findings that a sink will never receive.
    pub fn dropped(&self, sink: Sink, count: u64) {
        self.report_drops.get_or_create(&sink).inc_by(count);
    }

    /// Counts a write of a sink.
    pub fn wrote(&self, sink: Sink, write: Write) {
        self.report_writes.get_or_create(&(sink, write)).inc();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use interlock_engine::decision::DecisionFinding;
    use interlock_engine::decision::fixtures::{decision, finding};
    use interlock_engine::rule::{Mode, RuleId};
    use interlock_engine::violation::ViolationKind as Kind;

    use super::*;
    use crate::serve::openmetrics;

    fn counted(decisions: &[Decision]) -> String {
        let metrics = ReportMetrics::default();
        decisions.iter().for_each(|decision| metrics.decided(decision, false));
        openmetrics::rendered(|registry| metrics.register(registry))
    }

    #[track_caller]
    fn expect(text: &str, line: &str) {
        assert!(text.lines().any(|counted| counted == format!("interlock_{line}")), "{line}\n{text}");
    }

    #[test]
    fn would_deny_is_counted_apart_from_denied() {
        let of = |mode| decision(vec![finding(RuleId::known("manual-edit"), mode)]);
        let text = counted(&[of(Mode::Enforce), of(Mode::Warn), of(Mode::Audit), of(Mode::Audit), decision(vec![])]);
        for (mode, verdict, count) in [("enforce", "denied", 1), ("warn", "warned", 1), ("audit", "would-deny", 2)] {
            let labels = format!(r#"rule="manual-edit",mode="{mode}",verdict="{verdict}""#);
            expect(&text, &format!("findings_total{{{labels}}} {count}"));
            expect(&text, &format!(r#"decisions_total{{operation="UPDATE",verdict="{verdict}"}} {count}"#));
        }
        expect(&text, r#"decisions_total{operation="UPDATE",verdict="allowed"} 1"#);
    }

    #[test]
    fn dry_runs_and_repeats_are_not_counted() {
        let real = decision(vec![finding(RuleId::known("manual-edit"), Mode::Enforce)]);
        let metrics = ReportMetrics::default();
        metrics.decided(&Decision { dry_run: true, ..real.clone() }, false);
        metrics.decided(&Decision { decoded: Some(Duration::from_micros(80)), ..real }, true);
        let text = openmetrics::rendered(|registry| metrics.register(registry));
        assert!(!text.contains("decisions_total{") && !text.contains("findings_total{"), "{text}");
        expect(&text, "repeats_total 1");
        expect(&text, "decode_duration_seconds_count 1");
        expect(&text, r#"decode_duration_seconds_bucket{le="0.0001"} 1"#);
    }

    #[test]
    fn undecided_reasons_and_used_overrides_are_counted() {
        let found = finding(RuleId::known("manual-edit"), Mode::Audit);
        let overridden = DecisionFinding { overridden: Some("shop/fix".into()), ..found.clone() };
        let undecided = |kind| DecisionFinding { kind, ..found.clone() };
        let kinds = [Kind::Unavailable, Kind::Late, Kind::Overloaded, Kind::Unclear];
        let all = kinds.map(undecided).into_iter().chain([overridden]).collect();
        let text = counted(&[decision(all)]);
        for reason in ["unavailable", "late", "overloaded", "unclear"] {
            expect(&text, &format!(r#"undecided_total{{reason="{reason}"}} 1"#));
        }
        expect(&text, r#"overrides_used_total{rule="manual-edit"} 1"#);
        expect(&text, r#"findings_total{rule="manual-edit",mode="audit",verdict="undecided"} 4"#);
        expect(&text, r#"decisions_total{operation="UPDATE",verdict="overridden"} 1"#);
    }
}

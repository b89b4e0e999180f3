//! Metrics of decisions, and of the sinks that receive them later.

use interlock_engine::decision::Decision;
use interlock_engine::outcome::Verdict;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::serve::openmetrics;

/// Bounds of the decode histogram, in seconds. An ordinary record takes a fraction of a millisecond, the largest possible record some
/// tens of milliseconds.
const DECODE_BUCKETS: [f64; 11] = [0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1];

/// Bounds of the effort histogram, in steps. Most objects take none, an ordinary record two million, and no review more than 800 million.
const EFFORT_BUCKETS: [f64; 9] = [0.0, 1e5, 1e6, 1e7, 5e7, 1e8, 2e8, 4e8, 8e8];

/// Metrics of decisions and sinks.
#[derive(Debug)]
pub struct ReportMetrics {
    decisions: Family<DecisionLabels, Counter>,
    findings: Family<FindingLabels, Counter>,
    undecided: Family<UndecidedLabels, Counter>,
    transitions: Family<TransitionLabels, Counter>,
    repeats: Counter,
    decodes: Histogram,
    effort: Histogram,
    over_budget: Counter,
    overrides_used: Family<RuleLabels, Counter>,
    overrides_in_force: Gauge,
    waiting: Family<SinkLabels, Gauge>,
    drops: Family<SinkLabels, Counter>,
    writes: Family<WriteLabels, Counter>,
}

/// A destination of findings that is written after the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sink {
    /// Kubernetes Events.
    Events,
    /// Reports of releases.
    Reports,
}

/// A write of a sink to the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Write {
    /// A new object.
    Created,
    /// A change of an object.
    Updated,
    /// A deletion.
    Deleted,
    /// A write that the API server rejected or did not answer.
    Failed,
}

impl ReportMetrics {
    /// Metrics that are all zero.
    #[must_use]
    pub fn new() -> Self {
        let metrics = Self {
            decisions: Family::default(),
            findings: Family::default(),
            undecided: Family::default(),
            transitions: Family::default(),
            repeats: Counter::default(),
            decodes: Histogram::new(DECODE_BUCKETS),
            effort: Histogram::new(EFFORT_BUCKETS),
            over_budget: Counter::default(),
            overrides_used: Family::default(),
            overrides_in_force: Gauge::default(),
            waiting: Family::default(),
            drops: Family::default(),
            writes: Family::default(),
        };
        // An alert on the first failure needs a series that was zero before.
        for sink in [Sink::Events, Sink::Reports] {
            metrics.drops.get_or_create(&SinkLabels { sink }).inc_by(0);
            metrics.writes.get_or_create(&WriteLabels { sink, write: Write::Failed }).inc_by(0);
        }
        metrics
    }

    /// Adds the metrics to a registry.
    pub fn register(&self, registry: &mut Registry) {
        let help = "Reviews by the most severe verdict; dry runs and repeats are not counted";
        registry.register("decisions", help, self.decisions.clone());
        let help = "Broken and undecided rules by verdict; dry runs and repeats are not counted";
        registry.register("findings", help, self.findings.clone());
        registry.register("undecided", "Rules that could not be decided, by reason", self.undecided.clone());
        let help =
            "Changes of the status of a record, by the most severe verdict; dry runs and repeats are not counted";
        registry.register("transitions", help, self.transitions.clone());
        registry.register("repeats", "Reviews that the API server sent again", self.repeats.clone());
        let help = "Time to inflate and parse the bodies of the records in a review";
        registry.register_with_unit("decode_duration", help, Unit::Seconds, self.decodes.clone());
        let help = "Steps that a review took; a step is about a nanosecond of a core";
        registry.register("review_effort_steps", help, self.effort.clone());
        let help =
            "Reviews in which something was not done because it would have taken more steps than a review may take";
        registry.register("reviews_over_budget", help, self.over_budget.clone());
        registry.register("overrides_used", "Findings that an override allowed", self.overrides_used.clone());
        registry.register("overrides_in_force", "Overrides that have not expired", self.overrides_in_force.clone());
        let help = "Findings, or reports of releases, that wait to be written to a sink";
        registry.register("report_queue", help, self.waiting.clone());
        registry.register("report_drops", "Findings that a sink will never receive", self.drops.clone());
        registry.register("report_writes", "Writes of a sink to the API server", self.writes.clone());
    }

    /// Counts a review and its findings. A review that the API server sends again is not counted again.
    pub fn decided(&self, decision: &Decision) {
        self.effort.observe(decision.effort as f64);
        if decision.over_budget {
            self.over_budget.inc();
        }
        if let Some(decoded) = decision.decoded {
            self.decodes.observe(decoded.as_secs_f64());
        }
        if decision.repeated {
            self.repeats.inc();
        }
        if decision.dry_run || decision.repeated {
            return;
        }
        let (operation, verdict) = (decision.operation.as_str(), decision.verdict().as_str());
        self.decisions.get_or_create(&DecisionLabels { operation, verdict }).inc();
        if let Some(transition) = &decision.transition {
            self.transitions.get_or_create(&TransitionLabels { transition: transition.kind.as_str(), verdict }).inc();
        }
        for finding in &decision.findings {
            let (rule, mode) = (finding.rule.as_str(), finding.mode.as_str());
            let verdict = finding.verdict().as_str();
            self.findings.get_or_create(&FindingLabels { rule, mode, verdict }).inc();
            if finding.is_undecided() {
                self.undecided.get_or_create(&UndecidedLabels { reason: finding.kind.as_str() }).inc();
            }
            if finding.verdict() == Verdict::Overridden {
                self.overrides_used.get_or_create(&RuleLabels { rule }).inc();
            }
        }
    }

    /// Sets the number of overrides that have not expired.
    pub fn overrides_in_force(&self, count: usize) {
        self.overrides_in_force.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Sets the number of findings, or of reports, that wait to be written to a sink.
    pub fn waiting(&self, sink: Sink, count: usize) {
        self.waiting.get_or_create(&SinkLabels { sink }).set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Counts findings that a sink will never receive.
    pub fn dropped(&self, sink: Sink, count: u64) {
        self.drops.get_or_create(&SinkLabels { sink }).inc_by(count);
    }

    /// Counts a write of a sink.
    pub fn wrote(&self, sink: Sink, write: Write) {
        self.writes.get_or_create(&WriteLabels { sink, write }).inc();
    }
}

impl Default for ReportMetrics {
    fn default() -> Self {
        Self::new()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DecisionLabels {
    operation: &'static str,
    verdict: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TransitionLabels {
    transition: &'static str,
    verdict: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FindingLabels {
    rule: &'static str,
    mode: &'static str,
    verdict: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct UndecidedLabels {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RuleLabels {
    rule: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SinkLabels {
    sink: Sink,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WriteLabels {
    sink: Sink,
    write: Write,
}

openmetrics::named!(Sink { Events => "events", Reports => "reports" });
openmetrics::named!(Write { Created => "created", Updated => "updated", Deleted => "deleted", Failed => "failed" });

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use interlock_engine::decision::DecisionFinding;
    use interlock_engine::decision::fixtures::{decision, finding};
    use interlock_engine::rule::{Mode, RuleId};
    use interlock_engine::violation::ViolationKind as Kind;

    use super::*;

    fn counted(decisions: &[Decision]) -> String {
        let metrics = ReportMetrics::new();
        decisions.iter().for_each(|decision| metrics.decided(decision));
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
        let text = counted(&[
            Decision { dry_run: true, ..real.clone() },
            Decision { repeated: true, decoded: Some(Duration::from_micros(80)), ..real },
        ]);
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

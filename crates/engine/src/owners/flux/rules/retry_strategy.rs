//! The rule `retry-strategy`.
//!
//! Only warns: some risks depend on Flux's flags, and a fix of the spec must never be blocked. Each risk has its own warning,
//! which only the write that introduces it shows. Deleting a suspended HelmRelease keeps its objects and records. Deleting one
//! during an upgrade uninstalls a release that is only partly applied.

use jiff::SignedDuration;

use crate::owners::flux;
use crate::owners::flux::HELM_RELEASE;
use crate::owners::flux::{FailureStrategy, HelmRelease, HelmReleaseSpec, InstalledRelease, Remediation};
use crate::review::Operation;
use crate::rule::{FORBIDDEN, FailsClosed, Mode, Requests, Specification};
use crate::rules::check::{Check, Checked, CheckedAll, Refusal, Rule, Step, WaysOut};
use crate::rules::declarations::case::DeclarationCase;
use crate::rules::wording;

/// The rule `retry-strategy`.
pub(crate) static RULE: Rule = Rule {
    specification: Specification {
        id: "retry-strategy",
        owners: &[flux::NAME],
        mode: Mode::Warn,
        status_code: FORBIDDEN,
        fails_closed: FailsClosed::Never,
        requests: Requests {
            operations: &[Operation::Create, Operation::Update, Operation::Delete],
            kinds: &[HELM_RELEASE],
        },
        summary: "A HelmRelease does not stall, repeat forever or destroy when something fails.",
        why: "Some settings of install, upgrade and remediation stop forever after a failure, repeat it without end, or \
              uninstall a release that still worked.",
        allowed: "RetryOnFailure for install and upgrade; a bounded number of retries with rollback.",
        refused: "The strategy uninstall for failed upgrades; retries without bound.",
        way_out: "Use RetryOnFailure, or set a number of retries. The warning names the field.",
        settings: &[],
    },
    checks: &[Check::Declaration(check)],
};

/// With a shorter interval, a failing release keeps Helm busy without a pause, and runs its hooks each time.
const MIN_RETRY_INTERVAL: SignedDuration = SignedDuration::from_secs(30);

/// One possible problem.
struct Risk {
    /// Whether a spec has the risk.
    holds: fn(&HelmReleaseSpec) -> bool,
    pointer: &'static str,
    what: &'static str,
    way_out: &'static str,
}

const RISKS: [Risk; 13] = [
    Risk {
        holds: |spec| spec.install.strategy.retries() && !spec.upgrade.strategy.retries(),
        pointer: "/spec/upgrade/strategy",
        what: "sets RetryOnFailure for only one of install and upgrade: a failed first install is retried as an upgrade, so \
               the release stalls",
        way_out: "Set RetryOnFailure in upgrade.strategy too.",
    },
    Risk {
        // With a remediation of the install, a failed one is tried again.
        holds: |spec| {
            let remedied = spec.install.remediation.as_ref().is_some_and(|remedy| remedy.retries != 0);
            spec.upgrade.strategy.retries() && !spec.install.strategy.retries() && !remedied
        },
        pointer: "/spec/install/strategy",
        what: "sets RetryOnFailure for upgrades only: a failed first install is not tried again, so the release stalls",
        way_out: "Set RetryOnFailure in install.strategy too.",
    },
    Risk {
        // A failed install is upgraded from then on, and has no revision to roll back to.
        holds: |spec| {
            let remedy = in_use(&spec.upgrade.strategy, &spec.upgrade.remediation);
            spec.install.strategy.retries()
                && remedy.is_some_and(|remedy| remedy.acts() && remedy.strategy != "uninstall")
        },
        pointer: "/spec/upgrade/remediation",
        what: "rolls back failed upgrades, and retries a failed first install as an upgrade: then there is no revision to \
               roll back to, and the release stalls",
        way_out: "Set RetryOnFailure in upgrade.strategy too.",
    },
    Risk {
        // Unlimited retries are what RetryOnFailure does anyway, so they cause no harm.
        holds: |spec| {
            let is_bounded = |remedy: &Option<Remediation>| {
                remedy.as_ref().is_some_and(|remedy| remedy.retries >= 0 || remedy.is_more_than_retries())
            };
            (spec.install.strategy.retries() && is_bounded(&spec.install.remediation))
                || (spec.upgrade.strategy.retries() && is_bounded(&spec.upgrade.remediation))
        },
        pointer: "/spec/upgrade/remediation",
        what: "sets a remediation together with RetryOnFailure: nothing is rolled back or uninstalled, but its retries still count, \
               and after as many failures Flux neither installs a release without records nor upgrades one that is out of sync",
        way_out: "Remove the strategy, or set retries to -1 and remove the rest of the remediation.",
    },
    Risk {
        holds: |spec| {
            let endless = |remedy: &Option<Remediation>| remedy.as_ref().is_some_and(|remedy| remedy.retries < 0);
            spec.max_history == Some(0)
                && (spec.install.strategy.retries()
                    || spec.upgrade.strategy.retries()
                    || endless(&spec.install.remediation)
                    || endless(&spec.upgrade.remediation))
        },
        pointer: "/spec/maxHistory",
        what: "keeps every record and retries without limit: each try leaves one more Secret behind",
        way_out: "Set maxHistory to a positive number.",
    },
    Risk {
        holds: |spec| {
            let strategies = [&spec.install.strategy, &spec.upgrade.strategy];
            strategies
                .iter()
                .any(|it| it.retries() && it.retry_interval.is_some_and(|pause| pause < MIN_RETRY_INTERVAL))
        },
        pointer: "/spec/upgrade/strategy/retryInterval",
        what: "retries after less than 30 s: a failing release keeps Helm busy, and its hooks run each time",
        way_out: "Set retryInterval to a minute or more.",
    },
    Risk {
        holds: |spec| {
            let remedy = in_use(&spec.upgrade.strategy, &spec.upgrade.remediation);
            remedy.is_some_and(|remedy| remedy.acts() && remedy.strategy == "uninstall")
        },
        pointer: "/spec/upgrade/remediation/strategy",
        what: "uninstalls the running release when an upgrade fails",
        way_out: "Use the strategy rollback, or RetryOnFailure.",
    },
    Risk {
        holds: |spec| {
            let remedy = in_use(&spec.install.strategy, &spec.install.remediation);
            remedy.is_some_and(|remedy| remedy.retries < 0)
        },
        pointer: "/spec/install/remediation/retries",
        what: "uninstalls a failed install and installs again without limit",
        way_out: "Limit install.remediation.retries, or use RetryOnFailure.",
    },
    Risk {
        holds: |spec| {
            let remedy = in_use(&spec.upgrade.strategy, &spec.upgrade.remediation);
            remedy.is_some_and(|remedy| remedy.retries < 0)
        },
        pointer: "/spec/upgrade/remediation/retries",
        what: "remediates a failed upgrade and upgrades again without limit",
        way_out: "Limit upgrade.remediation.retries, or use RetryOnFailure.",
    },
    Risk {
        holds: |spec| spec.upgrade.force || spec.rollback.force,
        pointer: "/spec/upgrade/force",
        what: "sets force: with client-side apply objects are deleted and created again, with server-side apply it has no effect",
        way_out: "Remove force.",
    },
    Risk {
        holds: |spec| spec.upgrade.preserve_values,
        pointer: "/spec/upgrade/preserveValues",
        what: "preserves the values of earlier revisions: the HelmRelease no longer describes what is released",
        way_out: "Write the values into the HelmRelease.",
    },
    Risk {
        holds: |spec| {
            let retries = spec.install.remediation.as_ref().is_some_and(|remedy| remedy.retries != 0);
            spec.uninstall.keep_history && !spec.install.replace && retries
        },
        pointer: "/spec/uninstall/keepHistory",
        what: "keeps the records of an uninstalled release without install.replace: an install after a remediation fails, \
               because the name is in use",
        way_out: "Set install.replace, or remove uninstall.keepHistory.",
    },
    Risk {
        holds: |spec| spec.rollback.recreate || (spec.install.create_namespace && spec.target_namespace.is_empty()),
        pointer: "/spec",
        what: "sets a field that has no effect: rollback.recreate, or install.createNamespace without a targetNamespace",
        way_out: "Remove the field.",
    },
];

/// The remediation that Flux runs; `None` with RetryOnFailure.
fn in_use<'s>(strategy: &FailureStrategy, remediation: &'s Option<Remediation>) -> Option<&'s Remediation> {
    remediation.as_ref().filter(|_| !strategy.retries())
}

pub(crate) fn check(case: &DeclarationCase<'_>) -> CheckedAll {
    let Some(written) = case.helm_release()? else {
        return Ok(Vec::new());
    };
    match (&written.before, &written.after) {
        (Some(before), None) => Ok(deletion(case, before)?.into_iter().collect()),
        (before, Some(after)) if !written.same_spec && after.metadata.deletion_timestamp.is_none() => {
            let before = before.as_ref();
            let brought_in = |holds: &dyn Fn(&HelmRelease) -> bool| holds(after) && !before.is_some_and(holds);
            let risks = RISKS.iter().filter(|risk| brought_in(&|read| (risk.holds)(&read.spec)));
            let mut found: Vec<_> = risks.map(|risk| risk.refusal(case)).collect();
            let stale_after = case.policy.recovery.stale_after;
            if brought_in(&|read| read.longest_timeout() > stale_after) {
                found.push(long_timeout(case, after.longest_timeout()));
            }
            Ok(found)
        }
        _ => Ok(Vec::new()),
    }
}

impl Risk {
    fn refusal(&self, case: &DeclarationCase<'_>) -> Refusal {
        Refusal::new(format!("{} {}.", case.subject(), self.what), self.way_out).at(self.pointer)
    }
}

fn long_timeout(case: &DeclarationCase<'_>, timeout: SignedDuration) -> Refusal {
    let (timeout, stale) = (wording::span(timeout), wording::span(case.policy.recovery.stale_after));
    let sentence = format!(
        "{} has a timeout of {timeout}: a dead operation of its release counts as stuck only after that time, not after \
         {stale}, and Flux itself waits at most 10 min when it is restarted.",
        case.subject()
    );
    Refusal::new(sentence, "Shorten the timeout if you can.").at("/spec/timeout")
}

/// The warning about what a deletion keeps, or interrupts.
fn deletion(case: &DeclarationCase<'_>, before: &HelmRelease) -> Checked {
    if before.metadata.deletion_timestamp.is_some() {
        return Ok(None);
    }
    if before.spec.suspend {
        let sentence = format!(
            "{} is suspended: deleting it leaves the objects and records of its release behind.",
            case.subject()
        );
        let resume = WaysOut::default().when("to uninstall the release", "resume the HelmRelease first");
        return Ok(Some(Refusal::new(sentence, resume)));
    }
    // The records of a release on another cluster are on that cluster.
    if before.spec.kube_config.is_some() {
        return Ok(None);
    }
    let release = before.installed().map_or_else(|| before.release(), InstalledRelease::release);
    let history = case.history(&release)?;
    let Some(newest) = history.newest().filter(|newest| newest.status.is_pending()) else {
        return Ok(None);
    };
    let state = wording::state(newest.status, newest.revision, newest.stamps.holder(), newest.started(), case.now);
    let sentence = format!(
        "{} is deleted while release {}/{} is {state}: Flux uninstalls a release that is only partly applied.",
        case.subject(),
        release.namespace,
        release.name
    );
    Ok(Some(Refusal::new(sentence, Step::wait("wait until the operation ends"))))
}

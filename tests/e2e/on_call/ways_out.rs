//! Every refusal names a way out. Here each of them is followed step by step, and ends in a deployed release or in none.
//!
//! Which rules there are, and whose releases each of them judges, says the binary: a rule without a case for one of its owners
//! fails.

mod applications;
mod declarations;
mod freezes;
mod objects;
mod owners;
mod protected;
mod records;
mod records_of_olm;
mod scene;
mod steps;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use interlock_engine::rule::{Mode, RuleId};
use interlock_engine::rules;

use crate::harness::applications as argo;
use crate::harness::controllers::establish_kinds;
use crate::harness::helm_releases::define;
use crate::harness::kustomizations;
use crate::harness::plane::Plane;
use crate::harness::process::run;
use crate::harness::rendered::kustomize;
use scene::Scene;

/// A request that a rule refuses.
struct Case {
    rule: &'static str,
    /// Whose release it is, as `interlock explain` calls it.
    owner: &'static str,
    /// Makes the request and returns what was printed, with everything that its way out can ask for.
    arrange: fn() -> Scene,
}

/// How many cases run at a time. Most of their time is waiting for clients and controllers.
const AT_A_TIME: usize = 4;

/// A plane where every rule refuses, and an operation counts as stuck after a time that a refusal fits in.
fn plane() -> &'static Plane {
    static PLANE: OnceLock<Plane> = OnceLock::new();
    PLANE.get_or_init(|| {
        let shipped = include_str!("../../../policies/cluster.yaml");
        // Advice about a HelmRelease stays advice: most of them would be refused for one reason or another.
        let advises = |rule: &RuleId| rule.specification().mode == Mode::Warn && rule.as_str() != "retry-strategy";
        let enforced: String =
            rules::all().filter(advises).map(|rule| format!("  {rule}: {{mode: enforce}}\n")).collect();
        let strict = format!("rules:\n{enforced}  pending-recovery: {{staleAfter: 30s}}\n");
        let plane = Plane::start(&format!("{shipped}{strict}{}\n{}", freezes::in_turn(), protected::POLICY));
        establish_kinds(&plane);
        define(&plane);
        kustomizations::define(&plane);
        argo::define(&plane);
        plane.define("manifests/base/releaseoverrides.yaml");
        // As an installation has it: `interlock unstick` goes by the policy in force.
        let file = format!("--from-file={}", plane.dir().join("policies/cluster.yaml").display());
        let admin = plane.kubectl(&plane.admin());
        admin.ok(&["create", "configmap", "interlock-policies", "-n", "interlock-system", &file]);
        plane.webhook().register_by(&plane, &kustomize("overlays/protected-releases")).unwrap();
        plane
    })
}

fn all() -> impl Iterator<Item = &'static Case> {
    [
        freezes::CASES,
        protected::CASES,
        records::CASES,
        records_of_olm::CASES,
        objects::CASES,
        declarations::CASES,
        applications::CASES,
    ]
    .into_iter()
    .flatten()
}

#[test]
fn every_rule_has_a_way_out_for_each_of_its_owners() {
    let listed = run(plane().interlock(&plane().admin(), &["explain", "-o", "json"]), Duration::from_secs(60));
    let rules = listed.expect_success().json();
    let mut missing = Vec::new();
    for rule in rules.as_array().unwrap() {
        let name = rule["rule"].as_str().unwrap();
        for owner in rule["owners"].as_array().unwrap() {
            if !all().any(|case| case.rule == name && *owner == case.owner) {
                missing.push(format!("{name} of {owner}"));
            }
        }
    }
    assert!(missing.is_empty(), "nothing follows the way out of {}", missing.join(", "));
}

#[test]
fn the_ways_out_of_refusals_about_records_end_well() {
    follow(records::CASES);
}

#[test]
fn the_ways_out_of_freezes_end_well() {
    follow(freezes::CASES);
}

#[test]
fn the_ways_out_of_protected_releases_end_well() {
    follow(protected::CASES);
}

#[test]
fn the_ways_out_of_refusals_about_records_of_olm_end_well() {
    follow(records_of_olm::CASES);
}

#[test]
fn the_ways_out_of_refusals_about_objects_end_well() {
    follow(objects::CASES);
}

#[test]
fn the_ways_out_of_refusals_about_applications_end_well() {
    follow(applications::CASES);
}

#[test]
fn the_ways_out_of_refusals_about_declarations_end_well() {
    follow(declarations::CASES);
}

/// Follows every way out of these cases, and reports all that fail.
#[track_caller]
fn follow(cases: &[Case]) {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(why) = catch_unwind(AssertUnwindSafe(|| follow_one(case))) {
                        let text = why.downcast_ref::<String>().map(String::as_str);
                        let why = text.or(why.downcast_ref::<&str>().copied()).unwrap_or("a panic");
                        let named = format!("{} of {}: {why}", case.rule, case.owner);
                        failed.lock().unwrap_or_else(PoisonError::into_inner).push(named);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

/// A refusal may name several ways. Each is followed from the start.
fn follow_one(case: &Case) {
    let (mut number, mut of) = (0, 1);
    while number < of {
        let scene = (case.arrange)();
        let message = scene.message.as_str();
        let mut ways = steps::ways(plane(), message, case.rule);
        of = ways.len();
        let way = ways.swap_remove(number);
        for step in &way {
            if let Err(why) = scene.take(step) {
                panic!("{step:?} of {way:?} in {message:?}: {why}");
            }
        }
        if let Err(why) = (scene.end)(&scene) {
            panic!("after {way:?} of {message:?}: {why}");
        }
        number += 1;
    }
}

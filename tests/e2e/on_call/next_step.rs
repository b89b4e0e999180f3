//! `status`, `scan`, `wait` and `unstick` say the same of a release that is broken, and the printed step heals it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::controllers::{failed, reached};
use crate::harness::eventually::eventually;
use crate::harness::extension::{CHUNK, Extension, large, noise};
use crate::harness::in_flight::{impatient, killed, policy};
use crate::harness::namespace::Namespace;
use crate::harness::process::{Output, run};
use crate::harness::records;

const DEADLINE: Duration = Duration::from_secs(90);

/// No release needs more steps.
const MOST_STEPS: usize = 6;

/// Bob on call, whose policy counts an operation as stuck after three seconds.
struct OnCall<'n> {
    namespace: &'n Namespace<'n>,
    release: String,
    policies: tempfile::TempDir,
}

impl<'n> OnCall<'n> {
    fn new(namespace: &'n Namespace<'n>, release: &str) -> Self {
        let policies = tempfile::tempdir().unwrap();
        std::fs::write(policies.path().join("cluster.yaml"), policy("staleAfter: 3s")).unwrap();
        Self { namespace, release: release.to_owned(), policies }
    }

    fn named(&self) -> String {
        format!("{}/{}", self.namespace.name(), self.release)
    }

    #[track_caller]
    fn run(&self, args: &[&str]) -> Output {
        let plane = self.namespace.plane();
        let args = [args, &["--policies", self.policies.path().to_str().unwrap()]].concat();
        run(plane.interlock(&plane.person("bob"), &args), DEADLINE)
    }

    /// The release in the output of `status`, of all releases and of this one: both must say the same.
    #[track_caller]
    fn status(&self) -> Value {
        // An operation may begin to count as stuck between the two.
        eventually(DEADLINE, "both say the same", || {
            let listed = self.run(&["status", "-n", self.namespace.name(), "-o", "json"]).json();
            let rows = listed["releases"].as_array().unwrap();
            let listed = rows.iter().find(|row| row["release"] == self.release.as_str()).cloned().unwrap_or_default();
            // All of its records are gone.
            if listed.is_null() {
                return Ok(listed);
            }
            let alone = self.run(&["status", &self.named(), "-o", "json"]).json()["releases"][0].clone();
            let differs = ["stuck", "problems", "next", "why"].into_iter().find(|it| listed[it] != alone[it]);
            differs.map_or(Ok(listed.clone()), |member| Err(format!("{member}\n{listed:#}\n{alone:#}")))
        })
    }

    /// Waits until the release is stuck. From then on, every command says the same.
    #[track_caller]
    fn agreed(&self, checks: &[&str]) -> String {
        let row = eventually(DEADLINE, "the release is stuck", || {
            let row = self.status();
            if row["stuck"] == "yes" { Ok(row) } else { Err(format!("{row:#}")) }
        });
        let next = row["next"].as_str().unwrap().to_owned();
        let found: Vec<_> =
            row["problems"].as_array().unwrap().iter().map(|it| it["check"].as_str().unwrap()).collect();
        assert_eq!(found, checks, "{row:#}");
        let scanned = self.run(&["scan", "-n", self.namespace.name(), "--bodies=questioned", "-o=json"]).json();
        for check in checks {
            let findings = scanned["findings"].as_array().unwrap();
            let finding = findings.iter().find(|it| it["check"] == *check).unwrap_or_else(|| panic!("{scanned:#}"));
            assert!(finding["wayOut"].as_str().unwrap().contains(&format!("`{next}`")), "{finding:#}");
        }
        let waited = self.run(&["wait", &self.named(), "--until=deployed", "--timeout=20s"]);
        let ends = format!("\nNext: {next}\n");
        assert!(waited.status.code() == Some(1) && waited.stdout.ends_with(&ends), "{ends}: {waited}");
        let tried = self.run(&["unstick", &self.named(), "--dry-run"]);
        let says = tried.stdout.ends_with(&ends) || next.starts_with("interlock unstick ") && tried.success();
        assert!(says, "{next}: {tried}");
        next
    }

    /// Pastes a command. A shell of a test has no terminal, so it does not ask.
    fn paste(&self, command: &str) -> Result<(), String> {
        let words = shlex::split(command).unwrap();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            ["interlock", ref args @ ..] => self.run(&[args, &["--yes"]].concat()).into_result(),
            ["kubectl", ref args @ ..] => self.namespace.kubectl("bob").run(args).into_result(),
            ["helm", ref args @ ..] => {
                self.namespace.helm(HelmVersion::V4, Driver::Secret, "bob").run(args).into_result()
            }
            _ => Err(format!("no program for {command}")),
        }
        .map(|_| ())
    }
}

#[test]
fn a_record_of_olm_without_its_parts_is_named_by_all_and_healed_by_the_printed_steps() {
    let broken = ["stuck-operation", "broken-record"];
    // Before the parts of revision 1 are written again, before the index is, and before the parts of revision 2 are, which is deployed.
    let cases = [("olm-step-4", 4, &broken[..]), ("olm-step-5", 5, &broken), ("olm-step-8", 8, &broken[1..])];
    std::thread::scope(|scope| {
        let cases = cases.map(|(name, step, checks)| scope.spawn(move || healed(name, step, checks)));
        cases.into_iter().for_each(|case| case.join().unwrap());
    });
}

/// Kills an upgrade before its n-th write of records, and takes the printed steps until nothing is wrong.
fn healed(name: &str, step: usize, checks: &[&str]) {
    let extension = Extension::new(impatient(), name);
    extension.ask_for(&extension.system.kubectl("bob"), "1.0.0").expect_success();
    let olm = extension.olm.clone().chunk_size(CHUNK * 3);
    let chart = Chart::new("demo");
    reached(olm.reconcile(&chart, &json!({"note": noise()})), "install 1 deployed");
    extension.objects.await_available(&extension.name);
    extension.kill_before(&olm, &chart, &large("two"), step);
    failed(olm.reconcile(&chart, &large("two")), "", &["not found"]);
    let on_call = OnCall::new(&extension.system, &extension.name);
    on_call.agreed(checks);
    for _ in 0..MOST_STEPS {
        let row = on_call.status();
        let Some(next) = row["next"].as_str() else { break };
        if next.starts_with("wait ") {
            eventually(DEADLINE, "the wait is over", || {
                let row = on_call.status();
                if row["next"].as_str().is_some_and(|next| next.starts_with("wait ")) {
                    Err(row.to_string())
                } else {
                    Ok(())
                }
            });
            continue;
        }
        // OLM goes on by itself.
        if next.starts_with("interlock wait ") {
            olm.reconcile(&chart, &large("two")).expect_success();
            continue;
        }
        on_call.paste(next).unwrap_or_else(|why| panic!("{row:#}\n{why}"));
        if next.starts_with("kubectl patch clusterextension ") || on_call.status().is_null() {
            olm.reconcile(&chart, &large("two")).expect_success();
        }
    }
    let row = on_call.status();
    assert_eq!((&row["status"], &row["next"]), (&json!("deployed"), &Value::Null), "{row:#}");
    on_call.run(&["wait", &on_call.named(), "--until=1.0.0", "--timeout=20s"]).expect_success();
    reached(olm.reconcile(&chart, &large("two")), "");
}

#[test]
fn a_stuck_upgrade_with_unhealthy_pods_goes_back_as_everything_says() {
    let namespace = killed(impatient(), "step-unhealthy", HelmVersion::V4, Driver::Secret, false);
    let on_call = OnCall::new(&namespace, "demo");
    let next = on_call.agreed(&["stuck-operation"]);
    assert_eq!(next, format!("helm rollback demo 1 -n {}", namespace.name()));
    let refused = namespace.kubectl("bob").run(&["delete", "secret", records::V2]);
    refused.expect_failure(&[&format!("Roll back with `{next}`.")]);
    on_call.paste(&next).unwrap();
    let row = on_call.status();
    assert_eq!((&row["status"], &row["next"]), (&json!("deployed"), &Value::Null), "{row:#}");
}

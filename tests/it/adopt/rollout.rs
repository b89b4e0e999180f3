//! From the first policy to every rule enforced, one step at a time, each on the same log.

use std::fs;

use super::adopted;
use super::log::{API, CART, DEPLOYMENT, Log, WEB};

use crate::harness::binary::{interlock, stderr, stdout};
use serde_json::json;

const DAY: i64 = 86_400;

/// Two weeks: a pipeline and a tool of the platform work every day, people break something now and then.
fn fortnight() -> String {
    let pipeline = "deployer@shop-prod.iam.gserviceaccount.com";
    let mut log = Log::new();
    for day in 0..14 {
        log.after(DAY).upgrade(pipeline, WEB, 2 + day).set_image(pipeline, "shop/web", &format!("shop/app:day-{day}"));
        log.edit("eks:addon-manager", DEPLOYMENT, "shop/api", "/spec/replicas", json!(3 + day));
        if day % 5 == 0 {
            log.set_image("alice", "shop/api", &format!("shop/app:hotfix-{day}"));
        }
    }
    log.start("alice", API, 2).after(60).delete_record("bob", API, 2).delete_record("alice", CART, 1);
    log.text()
}

#[test]
fn each_step_enforces_one_more_rule_and_refuses_no_honest_work() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("audit.log");
    fs::write(&file, fortnight()).unwrap();
    let policies = dir.path().join("policies");
    let (policies, log) = (policies.to_str().unwrap(), file.to_str().unwrap());
    let first = adopted(&file, &["--write", policies]);
    assert_eq!((first.count("incidents"), first.count("disturbed")), (5, 28), "{}", first.report);
    let (mut enforced, mut refused) = (Vec::new(), Vec::new());
    loop {
        let step = adopted(&file, &["--policies", policies, "--write", policies]);
        assert!(step.refused("disturbed").is_empty(), "{}", step.report);
        let next = &step.report["next"];
        let Some(rule) = next["rule"].as_str() else {
            assert!(next["what"].as_str().unwrap().contains("nothing left to enforce"), "{next}");
            break;
        };
        assert!(next["since"].is_string() && next["diff"].as_str().unwrap().contains('-'), "{next}");
        enforced.push(rule.to_owned());
        assert!(enforced.len() < 40, "{enforced:?}");
        let checked = interlock(&["policy", "check", policies]);
        assert_eq!(checked.status.code(), Some(0), "{}", stderr(&checked));
        let replayed = interlock(&["replay", "--as-recorded", "--policies", policies, "-o", "json", log]);
        refused.push(stdout(&replayed).lines().filter(|line| line.contains("\"allowed\":false")).count());
    }
    // The rules that catch the most come first, and at the end every incident is refused, and no other write.
    assert_eq!(enforced[0], "manual-edit");
    assert_eq!(refused.last(), Some(&first.count("incidents")), "{refused:?}");
    assert!(refused[0] >= 3 && refused.is_sorted(), "{refused:?}");
}

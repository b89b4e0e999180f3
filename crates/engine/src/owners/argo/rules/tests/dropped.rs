//! Applications that an ApplicationSet loses.

use serde_json::{Value, json};

use super::{CONTROLLER, refused};
use crate::object::ALLOW_REMOVAL;
use crate::rules::tests::scenario::{Cluster, Verdict};

const GENERATOR: &str = "system:serviceaccount:argocd:argocd-applicationset-controller";

fn set(applications: &[&str], changes: &Value) -> Value {
    let resources: Vec<_> = applications.iter().map(|name| json!({"kind": "Application", "name": name})).collect();
    let condition = json!({"type": "ErrorOccurred", "status": "False", "reason": "ApplicationSetUpToDate"});
    let mut set = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
        "metadata": {
            "name": "shops", "namespace": "argocd", "annotations": {},
            "managedFields": [{
                "manager": "kubectl", "operation": "Update", "time": "2026-11-20T10:00:00Z", "fieldsV1": {"f:spec": {}},
            }],
        },
        "status": {"resources": resources, "resourcesCount": applications.len(), "conditions": [condition]},
    });
    for (pointer, value) in changes.as_object().unwrap() {
        *set.pointer_mut(pointer).unwrap() = value.clone();
    }
    set
}

fn generated(name: &str) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {
            "name": name, "namespace": "argocd", "finalizers": ["resources-finalizer.argocd.argoproj.io"],
            "ownerReferences": [{"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "shops"}],
        },
    })
}

/// An ApplicationSet and its controller, which asks for deletions in rounds.
struct Generator {
    cluster: Cluster,
    applications: Vec<&'static str>,
}

impl Generator {
    fn of(applications: &[&'static str]) -> Self {
        Self::under("", applications)
    }

    fn under(policy: &str, applications: &[&'static str]) -> Self {
        let mut cluster = Cluster::with_policy(policy);
        cluster.given(set(applications, &json!({})));
        Self { cluster, applications: applications.to_vec() }
    }

    fn change(&mut self, changes: &Value) {
        self.cluster.given(set(&self.applications, changes));
    }

    fn delete(&mut self, name: &str) -> Verdict {
        self.cluster.delete_object(GENERATOR, generated(name))
    }

    /// One round, in which the controller wants these gone.
    fn round(&mut self, unwanted: &[&'static str]) -> Vec<Verdict> {
        let asked: Vec<_> = unwanted.iter().copied().filter(|name| self.applications.contains(name)).collect();
        let verdicts: Vec<_> = asked.iter().map(|name| self.delete(name)).collect();
        let gone = |name: &&str| asked.iter().zip(&verdicts).any(|(asked, verdict)| asked == name && verdict.is_ok());
        self.applications.retain(|name| !gone(name));
        verdicts
    }

    /// As many rounds as until nothing changes. Returns the Applications that are left.
    fn settled(&mut self, unwanted: &[&'static str]) -> &[&'static str] {
        for seconds in [0, 1, 5, 10, 60] {
            self.cluster.later(seconds);
            self.change(&json!({}));
            self.round(unwanted);
        }
        self.change(&json!({}));
        &self.applications
    }

    fn message(&mut self, name: &str) -> String {
        self.cluster.findings(GENERATOR, Some(generated(name)), None).concat()
    }
}

#[test]
fn nothing_goes_before_the_whole_set_is_known() {
    let mut generator = Generator::of(&["a", "b", "c", "d"]);
    assert_eq!(generator.round(&["a"]), [refused("dropped-applications")]);
    let message = generator.message("a");
    assert!(message.contains("until it is known what else would go"), "{message}");
    generator.cluster.later(5);
    assert_eq!(generator.round(&["a"]), [Ok(())]);
    // The next one settles anew, and together they are half.
    assert_eq!(generator.settled(&["b"]), ["c", "d"]);
    assert_eq!(generator.settled(&["c"]), ["c", "d"], "no set bleeds away");
    generator.cluster.later(25 * 3_600);
    assert_eq!(generator.settled(&["c"]), ["d"]);
}

#[test]
fn a_generator_that_loses_its_elements_loses_no_application() {
    for all in [&["a", "b", "c", "d"][..], &["a", "b"], &["a"]] {
        let mut generator = Generator::of(all);
        assert_eq!(generator.settled(all), all);
        let message = generator.message("a");
        let mut sorted = all.to_vec();
        sorted.rotate_left(1);
        let command = format!(
            "kubectl annotate applicationset shops -n argocd --overwrite interlock.dev/allow-removal={}",
            sorted.join(",")
        );
        assert!(message.replace('\'', "").contains(&command), "{message}");
        assert!(message.contains("Its status says ErrorOccurred=False (ApplicationSetUpToDate)."), "{message}");
        // It finds them again, but for one.
        let unwanted = if all.len() > 1 { &all[..1] } else { &[] };
        generator.cluster.later(60);
        assert_eq!(generator.settled(unwanted).len(), all.len() - unwanted.len());
    }
}

#[test]
fn what_the_annotation_names_goes_at_once_and_counts_no_more() {
    let mut generator = Generator::of(&["a", "b", "c", "d"]);
    generator.settled(&["a", "b", "c"]);
    generator.change(&json!({"/metadata/annotations": {ALLOW_REMOVAL: "a, b,c"}}));
    for name in ["a", "b", "c"] {
        assert_eq!(generator.delete(name), Ok(()));
    }
    generator.applications = vec!["d", "e", "f"];
    assert_eq!(generator.settled(&["e"]), ["d", "f"], "of the four, three were meant");
}

#[test]
fn a_change_of_the_spec_explains_all_but_the_last() {
    let changed = |generator: &mut Generator| {
        let now = generator.cluster.now.to_string();
        generator.change(&json!({"/metadata/managedFields/0/time": now}));
    };
    let mut generator = Generator::of(&["a", "b", "c", "d"]);
    let unwanted = ["a", "b", "c"];
    for verdict in [refused("dropped-applications"), Ok(())] {
        changed(&mut generator);
        assert_eq!(generator.round(&unwanted), vec![verdict; 3]);
        generator.cluster.later(5);
    }
    for _ in 0..3 {
        changed(&mut generator);
        assert_eq!(generator.round(&["d"]), [refused("dropped-applications")]);
        generator.cluster.later(5);
    }
}

#[test]
fn others_delete_what_they_want() {
    let mut generator = Generator::of(&["a", "b"]);
    for user in ["alice", CONTROLLER, "system:serviceaccount:kube-system:generic-garbage-collector"] {
        assert_eq!(generator.cluster.delete_object(user, generated("a")), Ok(()), "{user}");
    }
    let mut alone = generated("a");
    alone["metadata"]["ownerReferences"] = json!([]);
    assert_eq!(generator.cluster.delete_object(GENERATOR, alone), Ok(()));
    // It asks again for what is being deleted.
    let mut going = generated("a");
    going["metadata"]["deletionTimestamp"] = "2026-11-20T10:00:00Z".into();
    assert_eq!(generator.cluster.delete_object(GENERATOR, going), Ok(()));
    assert_eq!(Cluster::new().delete_object(GENERATOR, generated("a")), Ok(()), "the ApplicationSet is gone");
    assert_eq!(Generator::of(&[]).delete("a"), Ok(()), "an earlier version lists nothing");
}

#[test]
fn the_share_and_the_mode_are_settings() {
    let all = ["a", "b", "c", "d"];
    let left = |share: &str, unwanted: &[&'static str]| {
        let policy = format!("rules:\n  dropped-applications: {{mayLose: {share}}}");
        Generator::under(&policy, &all).settled(unwanted).len()
    };
    assert_eq!((left("75%", &["a", "b", "c"]), left("25%", &["a", "b"]), left("0%", &["a"])), (1, 4, 3));
    assert_eq!(left("100%", &all), 4, "never the last");
    let mut audited = Generator::under("rules:\n  dropped-applications: {mode: audit}", &all);
    assert_eq!(audited.message("a"), "", "one of four is nothing to tell");
    assert_eq!(audited.round(&all), [Ok(()), Ok(()), Ok(()), Ok(())]);
}

#[test]
fn neither_slow_rounds_nor_a_clock_nor_days_open_the_share() {
    let all = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let mut generator = Generator::of(&all);
    for _ in 0..5 * 96 {
        generator.change(&json!({}));
        generator.round(&all);
        generator.cluster.later(900);
    }
    assert_eq!(generator.applications, all, "all of them are wanted, for days");

    let mut generator = Generator::of(&all);
    generator.round(&all);
    generator.cluster.later(-7_200);
    assert_eq!(generator.settled(&all), all, "the clock went back");

    let mut generator = Generator::of(&all);
    for name in all {
        for _ in 0..2 {
            generator.change(&json!({}));
            generator.round(&[name]);
            generator.cluster.later(6);
        }
        generator.cluster.later(3_600);
    }
    assert_eq!(generator.applications.len(), 4, "one by one");

    let of_an_operator = "system:serviceaccount:openshift-gitops:openshift-gitops-applicationset-controller";
    assert!(Generator::of(&all).cluster.delete_object(of_an_operator, generated("a")).is_err());
}

//! Logs with the accounts of platforms.

use serde_json::json;

use super::log::{API, CART, CONFIG, DEPLOYMENT, INGRESS, Log, RELEASES, WEB};
use super::{round_trip_of, wrong};

/// What a person does once: another image, and a deletion of the record of a release.
fn incidents(log: &mut Log, person: &str) {
    log.after(60).set_image(person, "shop/web", "shop/app:hotfix").after(60).delete_record(person, CART, 1);
}

#[test]
fn gke() {
    let (deployer, person) = ("deployer@shop-prod.iam.gserviceaccount.com", "alice@example.com");
    let mut log = Log::new();
    for (path, revision) in [("shop/web", 2), ("shop/api", 2)] {
        log.edit(
            "system:controller:glbc",
            INGRESS,
            path,
            "/metadata/annotations/ingress.kubernetes.io~1backends",
            json!("{}"),
        );
        log.scale("system:vpa-recommender", path, 5);
        let release = if path == "shop/web" { WEB } else { API };
        log.upgrade(deployer, release, revision).set_image(deployer, path, "shop/app:2");
    }
    incidents(&mut log, person);
    let (first, policy) = round_trip_of(&log.text());
    let wanted = [
        ("system:controller:glbc", "platform"),
        ("system:vpa-recommender", "platform"),
        (deployer, "pipeline"),
        (person, "person"),
    ];
    assert_eq!(wrong(&first, &wanted), Vec::<String>::new());
    assert_eq!(first.refused("incidents").len(), 2, "{:?}", first.refused("incidents"));
    assert_eq!(first.refused("disturbed").len(), 1, "{:?}", first.refused("disturbed"));
    let entry = format!("  - {{name: deployer-adopted, users: ['{deployer}']}}\n");
    assert!(policy.contains(&entry) && !policy.contains(person), "{policy}");
}

#[test]
fn eks() {
    let role = "arn:aws:sts::123456789012:assumed-role";
    let person = format!("{role}/Admin/alice");
    let mut log = Log::new();
    for (number, release) in [WEB, API, CART].into_iter().enumerate() {
        let job = format!("{role}/deploy/job-{}", 1001 + number);
        log.upgrade(&job, release, 2).scale(&job, &format!("{}/{}", release.1, release.0), 4);
        log.edit("eks:addon-manager", DEPLOYMENT, &format!("{}/{}", release.1, release.0), "/spec/replicas", json!(3));
    }
    // A job dies, and the next one deletes its record before the operation is stale.
    log.start(&format!("{role}/deploy/job-1004"), WEB, 3).after(60);
    log.delete_record(&format!("{role}/deploy/job-1005"), WEB, 3);
    log.after(60).set_image(&person, "shop/web", "shop/app:hotfix").after(60).delete_record(&person, CART, 2);
    let (first, policy) = round_trip_of(&log.text());
    let jobs = format!("{role}/deploy/*");
    let wanted = [("eks:addon-manager", "platform"), (jobs.as_str(), "pipeline"), (person.as_str(), "person")];
    assert_eq!(wrong(&first, &wanted), Vec::<String>::new());
    assert_eq!(first.refused("incidents").len(), 2, "{:?}", first.refused("incidents"));
    // What three jobs did is one finding.
    assert_eq!(
        (first.count("disturbed"), first.findings("disturbed").len()),
        (6, 2),
        "{:?}",
        first.findings("disturbed")
    );
    let [question] = first.findings("decisions").as_slice() else { panic!("{:?}", first.findings("decisions")) };
    assert!(question["then"].as_str().unwrap().contains("set `holder` of the pipeline"), "{question}");
    assert!(policy.contains("platform:\n") && policy.contains("  - 'eks:addon-manager'\n"), "{policy}");
    assert!(policy.contains(&format!("  - {{name: deploy-adopted, users: ['{jobs}']}}\n")), "{policy}");
    assert!(!policy.contains("eks:*") && !policy.contains("Admin"), "{policy}");
}

#[test]
fn aks() {
    let principal = "7f0e0d5c-1111-2222-3333-444455556666";
    let mut log = Log::new();
    log.edit("aksService", DEPLOYMENT, "shop/web", "/spec/replicas", json!(3));
    log.upgrade(principal, API, 2).set_image(principal, "shop/api", "shop/app:2");
    incidents(&mut log, "masterclient");
    let (first, policy) = round_trip_of(&log.text());
    let wanted = [("aksService", "platform"), (principal, "pipeline"), ("masterclient", "person")];
    assert_eq!(wrong(&first, &wanted), Vec::<String>::new());
    assert_eq!(first.refused("incidents").len(), 2, "{:?}", first.refused("incidents"));
    assert!(policy.contains("  - 'aksService'\n") && !policy.contains("masterclient"), "{policy}");
}

#[test]
fn openshift() {
    let account = |name: &str| format!("system:serviceaccount:{name}");
    let [velero, ca, gitops] = [
        "openshift-adp:velero",
        "openshift-service-ca:service-ca",
        "openshift-gitops:openshift-gitops-argocd-application-controller",
    ]
    .map(account);
    let mut log = Log::new();
    log.restore(&velero, ("old", "shop"), 4, "superseded").restore(&velero, ("old", "shop"), 3, "deployed");
    for (release, namespace) in RELEASES {
        log.edit(&ca, CONFIG, &format!("{namespace}/{release}"), "/data/ca", json!("Qg=="));
    }
    log.edit(&gitops, DEPLOYMENT, "shop/api", "/spec/replicas", json!(3));
    incidents(&mut log, "system:admin");
    let (first, policy) = round_trip_of(&log.text());
    let wanted = [(velero.as_str(), "tool"), (&ca, "platform"), (&gitops, "manager"), ("system:admin", "person")];
    assert_eq!(wrong(&first, &wanted), Vec::<String>::new());
    assert_eq!(first.refused("incidents").len(), 2, "{:?}", first.refused("incidents"));
    for (list, user) in [("tools", &velero), ("platform", &ca), ("managers", &gitops)] {
        assert!(policy.contains(&format!("{list}:\n")) && policy.contains(&format!("  - '{user}'\n")), "{policy}");
    }
}

#[test]
fn rancher_and_ci_systems() {
    let job = "repo:acme/shop:ref:refs/heads/main";
    let mut log = Log::new();
    log.upgrade("helm-installer", WEB, 2).upgrade("gitlab:ci_job:4711", API, 2).upgrade("gitlab:ci_job:4712", API, 3);
    log.upgrade(job, CART, 2)
        .set_image(job, "bank/cart", "shop/app:2")
        .upgrade("jenkins", WEB, 3)
        .scale("jenkins", "shop/web", 3);
    log.after(60).set_image("u-b4qkhsnliz", "shop/web", "shop/app:hotfix");
    let (first, policy) = round_trip_of(&log.text());
    let wanted = [
        ("pipeline rancher", "pipeline"),
        ("pipeline gitlab", "pipeline"),
        (job, "pipeline"),
        ("jenkins", "pipeline"),
        ("u-b4qkhsnliz", "person"),
    ];
    assert_eq!(wrong(&first, &wanted), Vec::<String>::new());
    assert_eq!(first.refused("incidents").len(), 1, "{:?}", first.refused("incidents"));
    assert!(policy.contains("name: jenkins-adopted, users: ['jenkins']") && !policy.contains("u-b4"), "{policy}");
}

/// On k3s, kubeadm and k0s, people share the kubeconfig that the installation wrote.
#[test]
fn the_administrator_of_k3s_and_of_kubeadm_is_a_person() {
    let (k3s, kubeadm) = ("system:admin", "kubernetes-admin");
    let mut log = Log::new();
    log.upgrade(k3s, WEB, 2).upgrade(kubeadm, API, 2);
    log.after(60).set_image(k3s, "shop/web", "shop/app:hotfix").after(60).delete_record(kubeadm, CART, 1);
    let (first, policy) = round_trip_of(&log.text());
    assert_eq!(wrong(&first, &[(k3s, "person"), (kubeadm, "person")]), Vec::<String>::new());
    assert_eq!(first.refused("incidents").len(), 2, "{:?}", first.refused("incidents"));
    assert!(!policy.contains(k3s) && !policy.contains(kubeadm), "{policy}");
}

#[test]
fn tools_are_known_by_what_they_do_again_and_again() {
    let account = |name: &str| format!("system:serviceaccount:{name}");
    let [injector, scaler, restores, once, flux] =
        ["certs:cainjector", "scaling:night", "backup:restore", "team:thing", "gitops:helm-controller"].map(account);
    let mut log = Log::new();
    for round in 0..2 {
        for (release, namespace) in RELEASES {
            let bundle = if round == 0 { "Qg==" } else { "Qw==" };
            log.edit(&injector, CONFIG, &format!("{namespace}/{release}"), "/data/ca", json!(bundle));
            log.scale(&scaler, &format!("{namespace}/{release}"), 4 + round);
        }
    }
    log.restore(&restores, ("old", "shop"), 4, "superseded").restore(&restores, ("old", "shop"), 3, "deployed");
    log.edit(&once, DEPLOYMENT, "shop/web", "/spec/replicas", json!(9));
    log.upgrade(&flux, API, 2);
    log.edit(&flux, DEPLOYMENT, "shop/api", "/spec/replicas", json!(2));
    incidents(&mut log, "bob");
    let (first, policy) = round_trip_of(&log.text());
    let wanted = [
        (injector.as_str(), "controller"),
        (&scaler, "controller"),
        (&restores, "tool"),
        (&once, "controller"),
        (&flux, "manager"),
        ("bob", "person"),
    ];
    assert_eq!(wrong(&first, &wanted), Vec::<String>::new());
    let case = |name: &str, kind: &str| {
        format!("- {{when: {{serviceAccounts: ['{name}'], kinds: ['{kind}']}}, mode: \"off\"}}\n")
    };
    assert!(policy.contains(&case("certs:cainjector", "ConfigMap")), "{policy}");
    assert!(policy.contains(&case("scaling:night", "Deployment")), "{policy}");
    assert!(policy.contains("# 6 writes") && !policy.contains("team:thing"), "{policy}");
    // One write of an unknown account is a question.
    let asked: Vec<_> = first.findings("decisions").iter().map(|it| it["account"].as_str().unwrap()).collect();
    assert_eq!(asked, [once.as_str()]);
}

#[test]
fn numbers_of_employees_open_nothing() {
    let mut log = Log::new();
    for (number, release) in RELEASES.into_iter().enumerate() {
        let person = format!("oidc:e10{number}7");
        log.upgrade(&person, release, 2).set_image(&person, &format!("{}/{}", release.1, release.0), "shop/app:hotfix");
    }
    let (first, policy) = round_trip_of(&log.text());
    assert!(first.classes().values().all(|class| class == "person"), "{:?}", first.classes());
    assert_eq!((first.refused("incidents").len(), first.refused("disturbed").len()), (3, 0));
    assert!(!policy.contains("oidc"), "{policy}");
}

#[test]
fn a_habit_of_people_is_a_question() {
    let mut log = Log::new();
    for day in 0..5 {
        log.after(86_400).scale("carol", "shop/web", 3 + day);
    }
    let (first, policy) = round_trip_of(&log.text());
    assert!(first.refused("incidents").is_empty() && first.refused("disturbed").is_empty());
    let [question] = first.findings("decisions").as_slice() else { panic!("{:?}", first.findings("decisions")) };
    assert!(question["then"].as_str().unwrap().contains("5 times on 5 days"), "{question}");
    assert!(!policy.contains("carol"), "{policy}");
}

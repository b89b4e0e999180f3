//! Refusals about the objects of releases: of each owner, and each kind of change.

use std::cell::RefCell;
use std::time::Duration;

use serde_json::{Value, json};

use super::owners::{deployed_by_flux, deployed_by_olm, ends, extension_ended, upgrade_in_hook};
use super::scene::{Act, End, Scene, kept, place};
use super::{Case, plane};
use crate::harness::applications::{Application, Sync};
use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::controllers::account;
use crate::harness::kustomizations::{self, Kustomization};
use crate::harness::namespace::Namespace;
use crate::harness::process::{Output, Running};

const WHILE: Duration = Duration::from_secs(60);

pub(super) const CASES: &[Case] = &[
    Case { rule: "manual-edit", owner: "Helm", arrange: || of_helm("way-helm-edit").refused(EDIT) },
    Case { rule: "manual-edit", owner: "Flux", arrange: || of_flux("way-flux-edit").refused(EDIT) },
    Case { rule: "manual-edit", owner: "OLM", arrange: || of_olm("way-olm-edit").refused(EDIT) },
    Case { rule: "manual-edit", owner: "Sveltos", arrange: || of_sveltos("way-sveltos-edit").refused(EDIT) },
    Case { rule: "manual-edit", owner: "Kustomization", arrange: || of_source("way-source-edit").refused(EDIT) },
    Case { rule: "manual-delete", owner: "Kustomization", arrange: || of_source("way-source-delete").refused(DELETE) },
    Case { rule: "manual-scale", owner: "Kustomization", arrange: || of_source("way-source-scale").refused(SCALE) },
    Case { rule: "manual-edit", owner: "Argo CD", arrange: || of_application("way-argo-edit").refused(EDIT) },
    Case { rule: "manual-delete", owner: "Argo CD", arrange: || of_application("way-argo-delete").refused(DELETE) },
    Case { rule: "manual-scale", owner: "Argo CD", arrange: || of_application("way-argo-scale").refused(SCALE) },
    Case { rule: "manual-delete", owner: "Helm", arrange: || of_helm("way-helm-delete").refused(DELETE) },
    Case { rule: "manual-delete", owner: "Flux", arrange: || of_flux("way-flux-delete").refused(DELETE) },
    Case { rule: "manual-delete", owner: "OLM", arrange: || of_olm("way-olm-delete").refused(DELETE) },
    Case { rule: "manual-delete", owner: "Sveltos", arrange: || of_sveltos("way-sveltos-delete").refused(DELETE) },
    Case { rule: "manual-scale", owner: "Helm", arrange: || of_helm("way-helm-scale").refused(SCALE) },
    Case { rule: "manual-scale", owner: "Flux", arrange: || of_flux("way-flux-scale").refused(SCALE) },
    Case { rule: "manual-scale", owner: "OLM", arrange: || of_olm("way-olm-scale").refused(SCALE) },
    Case { rule: "manual-scale", owner: "Sveltos", arrange: || of_sveltos("way-sveltos-scale").refused(SCALE) },
    Case {
        rule: "foreign-edit-in-transition",
        owner: "Helm",
        arrange: || of_helm("way-helm-meanwhile").in_transition().refused(EDIT),
    },
    Case {
        rule: "foreign-edit-in-transition",
        owner: "Flux",
        arrange: || of_flux("way-flux-meanwhile").in_transition().refused(EDIT),
    },
    Case {
        rule: "foreign-edit-in-transition",
        owner: "OLM",
        arrange: || of_olm("way-olm-meanwhile").in_transition().refused(EDIT),
    },
];

/// What bob does with a Deployment.
const EDIT: &[&str] = &["set", "image", "DEPLOYMENT", "app=bob:1"];
const DELETE: &[&str] = &["delete", "DEPLOYMENT"];
const SCALE: &[&str] = &["scale", "DEPLOYMENT", "--replicas=3"];

type Start = Box<dyn Fn(&Namespace<'static>, &Chart) -> Running>;

/// A Deployment that belongs to somebody's release.
struct Owned {
    namespace: &'static Namespace<'static>,
    deployment: String,
    chart: Chart,
    /// The owner's name in a way out, and what a change through it is; none if it is a command.
    through: Option<(&'static str, Act)>,
    /// Starts an operation that waits for pods, and returns once its record says so.
    start: Start,
    running: Option<Running>,
    end: End,
}

impl Owned {
    /// The owner's operation is in flight.
    fn in_transition(mut self) -> Self {
        self.namespace.hang_pods();
        self.running = Some((self.start)(self.namespace, &self.chart));
        self
    }

    /// What bob does is refused.
    fn refused(self, act: &'static [&'static str]) -> Scene {
        let Self { namespace, deployment, chart, through, running, end, .. } = self;
        let act = move |namespace: &Namespace<'_>| {
            let deployment = format!("deployment/{deployment}");
            let words: Vec<_> = act.iter().map(|word| word.replace("DEPLOYMENT", &deployment)).collect();
            namespace.kubectl("bob").run(&words.iter().map(String::as_str).collect::<Vec<_>>())
        };
        let refused = act(namespace);
        let mut scene = Scene::new(namespace, chart, "bob", refused).retry(move |scene| act(scene.namespace));
        scene.acts.extend(through);
        let finish = ends(namespace, kept(RefCell::new(running)));
        scene.wait(finish).end(move |scene| {
            // An override does not wait for the operation.
            finish();
            end(scene)
        })
    }
}

fn of_helm(test: &str) -> Owned {
    let (namespace, chart) = (place(test), Chart::new("demo"));
    let alice = namespace.helm(HelmVersion::V4, Driver::Secret, "alice");
    alice.ok(&["install", "demo", chart.path()]);
    Owned {
        namespace,
        deployment: "demo".to_owned(),
        chart,
        through: None,
        start: Box::new(move |namespace, chart| {
            let upgrade = alice.spawn(&["upgrade", "demo", chart.path(), "--set=image=two", "--wait", "--timeout=2m"]);
            namespace.await_image("demo", "two");
            upgrade
        }),
        running: None,
        end: Box::new(|scene| scene.release_ended(Driver::Secret)),
    }
}

fn of_flux(test: &str) -> Owned {
    let (namespace, chart, flux) = deployed_by_flux(test);
    let started = flux.clone();
    let change = move |scene: &Scene| {
        let patch = r#"{"spec":{"values":{"note":"two"}}}"#;
        scene.namespace.kubectl("bob").ok(&["patch", "helmrelease/demo", "--type=merge", "-p", patch]);
        flux.reconcile(&scene.chart, &json!({"note": "two"}))
    };
    Owned {
        namespace,
        deployment: "demo".to_owned(),
        chart,
        through: Some(("it through HelmRelease", Box::new(change))),
        start: Box::new(move |namespace, chart| {
            let upgrade = started.clone().waiting(WHILE * 2).spawn(chart, &json!({"image": "two"}));
            namespace.await_image("demo", "two");
            upgrade
        }),
        running: None,
        end: Box::new(|scene| scene.release_ended(Driver::Secret)),
    }
}

fn of_olm(test: &str) -> Owned {
    let (extension, chart) = deployed_by_olm(test);
    let bob = extension.system.kubectl("bob");
    let change = move |scene: &Scene| {
        let inline = json!({"spec": {"config": {"configType": "Inline", "inline": {"note": "two"}}}}).to_string();
        bob.ok(&["patch", "clusterextension", &extension.name, "--type=merge", "-p", &inline]);
        extension.olm.reconcile(&scene.chart, &json!({"note": "two"}))
    };
    Owned {
        namespace: &extension.objects,
        deployment: extension.name.clone(),
        chart,
        through: Some(("it through ClusterExtension", Box::new(change))),
        start: Box::new(move |_, chart| upgrade_in_hook(extension, chart, &json!({"image": "two"}))),
        running: None,
        end: Box::new(move |_| extension_ended(extension)),
    }
}

fn of_sveltos(test: &str) -> Owned {
    let namespace = place(test);
    apply_as_agent(namespace, 1).expect_success();
    Owned {
        namespace,
        deployment: "demo".to_owned(),
        chart: Chart::new("demo"),
        through: Some((
            "it through the Sveltos ClusterProfile prod",
            Box::new(|scene| apply_as_agent(scene.namespace, 2)),
        )),
        start: Box::new(|_, _| panic!("a profile has no operations")),
        running: None,
        end: Box::new(whole_or_gone),
    }
}

/// The Deployment is whole, or nothing of it is left.
fn whole_or_gone(scene: &Scene) -> Result<(), String> {
    match scene.namespace.kubectl("admin").find(&["deployment/demo"]) {
        Some(object) if !object["metadata"]["deletionTimestamp"].is_null() => Err(object.to_string()),
        _ => Ok(()),
    }
}

fn of_application(test: &str) -> Owned {
    let shop = kept(Application::new(place(test), json!({}), Sync::Server));
    let owned = applied(shop.namespace(), "it through the source of Application", move |object| shop.apply(object));
    shop.list(&[("apps", "Deployment", "demo")]);
    owned
}

fn of_source(test: &str) -> Owned {
    let namespace = place(test);
    let shop = kept(Kustomization::new(namespace, json!({})));
    let owned = applied(namespace, "it through the source of Kustomization", move |object| shop.apply(object));
    shop.list(&[("apps", "Deployment", "demo")]);
    owned
}

/// A Deployment of an owner without releases.
fn applied(
    namespace: &'static Namespace<'static>,
    through: &'static str,
    apply: impl Fn(&Value) -> Output + 'static,
) -> Owned {
    apply(&kustomizations::deployment("one", 1)).expect_success();
    Owned {
        namespace,
        deployment: "demo".to_owned(),
        chart: Chart::new("demo"),
        through: Some((through, Box::new(move |_| apply(&kustomizations::deployment("two", 2))))),
        start: Box::new(|_, _| panic!("the owner has no operations on releases")),
        running: None,
        end: Box::new(whole_or_gone),
    }
}

/// A Deployment with the marks of a profile.
fn profiled(replicas: u32) -> Value {
    let marks = json!({
        "name": "demo", "labels": {"projectsveltos.io/reason": "Resources"},
        "annotations": {
            "projectsveltos.io/owner-kind": "ClusterProfile", "projectsveltos.io/owner-name": "prod",
            "projectsveltos.io/owner-tier": "100",
        },
    });
    let pod = json!({"containers": [{"name": "app", "image": "one"}]});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": marks,
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": "demo"}},
            "template": {"metadata": {"labels": {"app": "demo"}}, "spec": pod},
        },
    })
}

/// What the agent of Sveltos deploys.
fn apply_as_agent(namespace: &Namespace<'_>, replicas: u32) -> Output {
    let applier = account(plane(), "projectsveltos", "sveltos-applier-manager");
    let agent = ["--server-side", "--field-manager=application/apply-patch", "--force-conflicts"];
    namespace.kubectl_as(&applier).apply(&profiled(replicas), &agent)
}

//! Certificates that Interlock manages: two replicas, each behind every other entry of the webhook configurations.

use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use serde_json::{Value, json};

use crate::harness::assets::interlock;
use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, Helm, HelmVersion, Kubectl};
use crate::harness::eventually::eventually;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::process::{Output, run};
use crate::harness::rendered::manifests;
use crate::harness::tls_client;
use crate::harness::webhook::{Webhook, register_at, wait_until_called};

/// Settings with which a rotation ends within seconds.
const QUICK: &[&str] = &["--certificate-name=127.0.0.1", "--leaf-lifetime=9", "--ca-settle=2"];

/// How long a phase may take on a busy machine, including a change of leaders.
const PHASE: Duration = Duration::from_secs(90);

const CONFIGURATIONS: [&str; 2] =
    ["validatingwebhookconfiguration/interlock", "mutatingwebhookconfiguration/interlock"];

/// A plane with two replicas of the webhook, and a user who works there.
struct Scene<'p> {
    plane: &'p Plane,
    replicas: [Webhook; 2],
    admin: Kubectl,
    alice: Kubectl,
    helm: Helm,
    chart: Chart,
}

impl Scene<'_> {
    fn logs(&self) -> String {
        self.replicas.iter().map(Webhook::log).collect()
    }

    /// `interlock certs ARGS`.
    fn certs(&self, args: &[&str]) -> Output {
        let mut command = std::process::Command::new(interlock().unwrap());
        command.arg("certs").args(args).arg("--kubeconfig").arg(self.plane.admin().kubeconfig());
        run(command, PHASE)
    }

    /// The output of `interlock certs status`. Its exit code is 1 if there are findings.
    fn status(&self) -> Value {
        self.certs(&["status", "-o", "json"]).json()
    }

    /// An allowed act passes, and a rule refuses a forbidden one: the API server trusts and reaches both replicas.
    #[track_caller]
    fn guards(&self) {
        self.helm.ok(&["upgrade", "demo", self.chart.path()]);
        let newest = self.admin.get(&["secret", "-l", "owner=helm,status=deployed", "-A"]);
        let name = newest["items"][0]["metadata"]["name"].as_str().unwrap().to_owned();
        self.alice.fails(&["delete", "secret", &name], &["[record-deletion]"]);
        self.alice.fails(&["scale", "deployment", "demo", "--replicas=7"], &["[manual-scale]"]);
    }

    /// Waits until the Secret and every caBundle have the same single CA.
    #[track_caller]
    fn comes_to_rest(&self) -> String {
        eventually(PHASE, "one CA that every entry trusts, and no other", || {
            let status = self.status();
            let current = &status["current"];
            let alone = |trusted: &Value| trusted.as_array().is_some_and(|all| all.len() == 1 && all[0] == *current);
            let entries = status["entries"].as_array().cloned().unwrap_or_default();
            if alone(&status["bundle"]) && !entries.is_empty() && entries.iter().all(|entry| alone(&entry["trusts"])) {
                Ok(current["id"].as_str().unwrap_or_default().to_owned())
            } else {
                Err(format!("{status}\n{}", self.logs()))
            }
        })
    }

    /// The API server's counts of failed webhook calls, at entries that fail open and closed.
    fn failures(&self) -> Vec<String> {
        let metrics = self.admin.ok(&["get", "--raw", "/metrics"]).stdout;
        let failed = |line: &&str| {
            line.starts_with("apiserver_admission_webhook_fail_open_count{")
                || line.starts_with("apiserver_admission_webhook_rejection_count{")
                    && line.contains("calling_webhook_error")
        };
        metrics.lines().filter(failed).map(str::to_owned).collect()
    }
}

#[test]
fn certificates_look_after_themselves() {
    let clients = Clients::new();
    let plane = Plane::with_api_server("certificates", &[clients.flag()]);
    let policies = Path::new(env!("CARGO_MANIFEST_DIR")).join("policies");
    let start = |name, arguments| {
        Webhook::managed(&plane, &policies, name, arguments).unwrap_or_else(|error| panic!("{error}"))
    };
    // The first replica answers only the API server.
    let choosy: Vec<_> = QUICK.iter().copied().chain(clients.arguments()).collect();
    let replicas = [start("first", choosy.leak()), start("second", QUICK)];
    // A replica is not ready before its CA is published, and says what it waits for.
    for replica in &replicas {
        eventually(PHASE, "a leaf is served", || {
            let (code, said) = replica.admin("/readyz?verbose");
            let waits = code == 503 && said.contains("[+] a serving certificate");
            if waits && said.contains("there is no webhook configuration named interlock") { Ok(()) } else { Err(said) }
        });
    }
    let url = |number: usize| format!("https://{}", replicas[number % 2].listen());
    register_at(&plane, &url, None).unwrap();
    for replica in &replicas {
        replica.await_ready();
    }
    wait_until_called(&plane, || replicas[0].log()).unwrap();

    let namespace = Namespace::new(&plane, "certificates");
    let scene = Scene {
        plane: &plane,
        admin: plane.kubectl(&plane.admin()),
        alice: namespace.kubectl("alice"),
        helm: namespace.helm(HelmVersion::V3, Driver::Secret, "alice"),
        chart: Chart::new("demo"),
        replicas,
    };
    scene.helm.ok(&["install", "demo", scene.chart.path()]);
    scene.guards();
    only_the_api_server_is_answered(&scene);
    a_rotation_is_noticed_by_nobody(&scene);
    a_rotation_outlives_its_leader(&scene);
    wiped_and_foreign_ca_bundles_are_healed(&scene);
    an_entry_that_an_installer_drops_is_gone(&scene);
    a_deleted_secret_is_made_again_of_the_same_ca(&scene);
    a_corrupt_secret_stops_nobody_and_keeps_nobody_down(&scene);
}

fn only_the_api_server_is_answered(scene: &Scene<'_>) {
    let configuration = scene.admin.get(&[CONFIGURATIONS[0]]);
    let bundle = configuration["webhooks"][0]["clientConfig"]["caBundle"].as_str().unwrap();
    let ask = |replica: &Webhook| ask(replica.listen(), &STANDARD.decode(bundle).unwrap());
    let answer = ask(&scene.replicas[1]).unwrap();
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    let error = ask(&scene.replicas[0]).unwrap_err().to_string();
    assert!(error.contains("CertificateRequired"), "{error}");
}

/// A GET request by a client without a certificate.
fn ask(address: &str, ca: &[u8]) -> std::io::Result<String> {
    let mut stream = tls_client::connect(address, &tls_client::trusting(ca))?;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// The API server's client certificate for webhooks, with its configuration files.
struct Clients {
    dir: tempfile::TempDir,
}

impl Clients {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        let mut ca = CertificateParams::default();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.distinguished_name.push(DnType::CommonName, "clients of webhooks");
        let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate().unwrap()).unwrap();
        let mut client = CertificateParams::default();
        client.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        write("ca.crt", &ca.pem());
        write("client.crt", &client.signed_by(&key, &ca).unwrap().pem());
        write("client.key", &key.serialize_pem());
        // The files of docs/shared-clusters.md. This plane calls the webhook by an address, so the user is the default one.
        let here = dir.path().display().to_string();
        for name in ["admission.yaml", "kubeconfig.yaml"] {
            let shipped = std::fs::read_to_string(manifests("shared-cluster").join(name)).unwrap();
            let ours = shipped.replace("/etc/kubernetes/interlock", &here);
            write(name, &ours.replace("name: interlock.interlock-system.svc", "name: '*'"));
        }
        Self { dir }
    }

    /// The flag of the API server.
    fn flag(&self) -> String {
        format!("--admission-control-config-file={}", self.dir.path().join("admission.yaml").display())
    }

    /// The arguments of a replica that answers only this client.
    fn arguments(&self) -> [&'static str; 2] {
        [
            format!("--client-ca-file={}", self.dir.path().join("ca.crt").display()).leak(),
            "--client-name=another,kube-apiserver",
        ]
    }
}

fn a_rotation_is_noticed_by_nobody(scene: &Scene<'_>) {
    let (before, failures) = (scene.comes_to_rest(), scene.failures());
    scene.certs(&["rotate"]).expect_success();
    eventually(PHASE, "another CA signs and the old one is gone", || {
        scene.guards();
        let status = scene.status();
        let over = status["current"]["id"] != *before && status["bundle"].as_array().is_some_and(|all| all.len() == 1);
        if over { Ok(()) } else { Err(format!("{status}\n{}", scene.logs())) }
    });
    assert_ne!(scene.comes_to_rest(), before);
    scene.guards();
    assert_eq!(scene.failures(), failures, "a call of the webhook failed:\n{}", scene.logs());
}

fn a_rotation_outlives_its_leader(scene: &Scene<'_>) {
    let before = scene.comes_to_rest();
    let holder = scene.admin.get(&["lease", "interlock-leader", "-n", "interlock-system"]);
    let holder = holder["spec"]["holderIdentity"].as_str().unwrap().to_owned();
    let leader = scene.replicas.iter().find(|replica| replica.log().contains(&holder)).unwrap();
    scene.certs(&["rotate"]).expect_success();
    eventually(PHASE, "the rotation has begun", || {
        let status = scene.status();
        if status["next"].is_null() { Err(status.to_string()) } else { Ok(()) }
    });
    leader.kill();
    leader.restart();
    leader.await_ready();
    scene.guards();
    assert_ne!(scene.comes_to_rest(), before, "it goes on where it was");
    scene.guards();
}

fn wiped_and_foreign_ca_bundles_are_healed(scene: &Scene<'_>) {
    let current = scene.comes_to_rest();
    let foreign = base64(&std::fs::read(scene.plane.ca()).unwrap());
    for bundle in [Value::Null, json!(foreign), json!(base64(b"junk"))] {
        for configuration in CONFIGURATIONS {
            let entries = scene.admin.get(&[configuration])["webhooks"].as_array().unwrap().len();
            let patch: Vec<_> = (0..entries)
                .map(|entry| {
                    let path = format!("/webhooks/{entry}/clientConfig/caBundle");
                    if bundle.is_null() {
                        json!({"op": "remove", "path": path})
                    } else {
                        json!({"op": "replace", "path": path, "value": bundle})
                    }
                })
                .collect();
            let patch = serde_json::to_string(&patch).unwrap();
            scene.admin.ok(&["patch", configuration, "--type=json", "-p", &patch]);
        }
        eventually(PHASE, "every entry trusts the CA again", || {
            let status = scene.certs(&["status", "-o", "json"]);
            if status.success() { Ok(()) } else { Err(format!("{status}\n{}", scene.logs())) }
        });
        // The API server watches its configurations, so changes take effect later.
        eventually(PHASE, "reviews are answered again", || {
            scene.helm.run(&["upgrade", "demo", scene.chart.path()]).into_result()
        });
        scene.guards();
    }
    assert_eq!(scene.comes_to_rest(), current, "strangers go, and no CA was made");
}

/// As in an upgrade by helm 4, or by `kubectl apply --server-side`.
fn an_entry_that_an_installer_drops_is_gone(scene: &Scene<'_>) {
    let live = scene.admin.get(&[CONFIGURATIONS[0]]);
    let mut entries = live["webhooks"].as_array().unwrap().clone();
    entries.iter_mut().for_each(|entry| _ = entry["clientConfig"].as_object_mut().unwrap().remove("caBundle"));
    let apply = |entries: &[Value]| {
        let [api, kind] = ["apiVersion", "kind"].map(|key| &live[key]);
        let object = json!({"apiVersion": api, "kind": kind, "metadata": {"name": "interlock"}, "webhooks": entries});
        scene.admin.apply(&object, &["--server-side", "--force-conflicts", "--field-manager=installer"])
    };
    let mut more = entries.clone();
    more.push(entries[0].clone());
    more.last_mut().unwrap()["name"] = json!("former.interlock.dev");
    apply(&more).expect_success();
    eventually(PHASE, "the further entry is trusted", || {
        let status = scene.certs(&["status", "-o", "json"]);
        if status.success() { Ok(()) } else { Err(format!("{status}\n{}", scene.logs())) }
    });
    // Some moments later no field manager owns the caBundle.
    eventually(PHASE, "the configuration without it is accepted", || apply(&entries).into_result());
    let left = scene.admin.get(&[CONFIGURATIONS[0]]);
    let names = |of: &Value| of.as_array().unwrap().iter().map(|entry| entry["name"].clone()).collect::<Vec<_>>();
    assert_eq!(names(&left["webhooks"]), names(&live["webhooks"]));
    assert!(left["webhooks"][0]["clientConfig"]["caBundle"].is_string(), "what stays keeps its caBundle");
    scene.guards();
}

fn a_deleted_secret_is_made_again_of_the_same_ca(scene: &Scene<'_>) {
    let (before, failures) = (scene.comes_to_rest(), scene.failures());
    let uid = || {
        scene.admin.find(&["secret", "interlock-ca", "-n", "interlock-system"]).map(|it| it["metadata"]["uid"].clone())
    };
    let old = uid();
    scene.admin.ok(&["delete", "secret", "interlock-ca", "-n", "interlock-system"]);
    eventually(PHASE, "the Secret is made again", || match uid() {
        Some(new) if Some(&new) != old.as_ref() => Ok(()),
        other => Err(format!("{other:?}\n{}", scene.logs())),
    });
    scene.guards();
    assert_eq!(scene.comes_to_rest(), before);
    assert_eq!(scene.failures(), failures);
}

fn a_corrupt_secret_stops_nobody_and_keeps_nobody_down(scene: &Scene<'_>) {
    let (before, failures) = (scene.comes_to_rest(), scene.failures());
    let patch = json!({"data": {"current.key": base64(b"junk")}}).to_string();
    scene.admin.ok(&["patch", "secret", "interlock-ca", "-n", "interlock-system", "--type=merge", "-p", &patch]);
    eventually(PHASE, "both replicas say what is wrong and what to do", || {
        let message = |replica: &Webhook| replica.log().contains("delete the Secret to create a new one");
        if scene.replicas.iter().all(message) { Ok(()) } else { Err(scene.logs()) }
    });
    let output = scene.certs(&["status"]);
    assert!(output.status.code() == Some(1) && output.stdout.contains("current.crt cannot be used"), "{output}");
    scene.guards();
    assert_eq!(scene.failures(), failures);
    // A replica starts and has no certificate to serve.
    scene.replicas[0].stop();
    scene.replicas[0].restart();
    scene.replicas[0].await_ready();
    scene.guards();
    assert_ne!(scene.comes_to_rest(), before);
    scene.guards();
}

fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

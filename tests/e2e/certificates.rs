//! Certificates that look after themselves: two replicas, each behind some of the entries.

use std::path::Path;
use std::time::Duration;

use crate::chart::Chart;
use crate::clients::{Driver, HelmVersion};
use crate::eventually::eventually;
use crate::namespace::Namespace;
use crate::plane::Plane;
use crate::webhook::{Webhook, register_at, wait_until_called};

/// Times that let a rotation end within seconds.
const QUICK: &[&str] = &["--certificate-name=127.0.0.1", "--leaf-lifetime=9", "--ca-settle=2"];

/// How long a phase may take on a busy machine.
const PHASE: Duration = Duration::from_secs(60);

#[test]
fn certificates_look_after_themselves() {
    let plane = Plane::alone();
    let policies = Path::new(env!("CARGO_MANIFEST_DIR")).join("policies");
    let start = |name| Webhook::managed(&plane, &policies, name, QUICK).unwrap_or_else(|error| panic!("{error}"));
    let replicas = [start("first"), start("second")];
    // Nobody is ready before somebody can trust it, and says what for.
    for replica in &replicas {
        eventually(PHASE, "a leaf is served", || {
            let (code, said) = replica.admin("/readyz?verbose");
            let waits = code == 503 && said.contains("[+] a serving certificate");
            if waits && said.contains("there is no webhook configuration called interlock") {
                Ok(())
            } else {
                Err(said)
            }
        });
    }
    let url = |number: usize| format!("https://{}", replicas[number % 2].listen());
    register_at(&plane, &url, None).unwrap();
    for replica in &replicas {
        eventually(PHASE, "ready", || match replica.admin("/readyz?verbose") {
            (200, _) => Ok(()),
            (_, said) => Err(format!("{said}\n{}", replica.log())),
        });
    }
    wait_until_called(&plane, || replicas[0].log()).unwrap();

    let namespace = Namespace::new(&plane, "certificates");
    let chart = Chart::new("demo");
    let helm = namespace.helm(HelmVersion::V3, Driver::Secret, "alice");
    helm.ok(&["install", "demo", chart.path()]);
}

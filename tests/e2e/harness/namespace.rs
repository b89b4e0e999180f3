//! A namespace of the test's own.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::harness::clients::{Driver, Helm, HelmVersion, Identity, Kubectl};
use crate::harness::eventually::eventually;
use crate::harness::plane::Plane;
use crate::harness::records::{self, Record};

/// How long a controller may take to react on a busy machine.
const CONTROLLERS: Duration = Duration::from_secs(60);

/// The label by which the control plane's stand-in for the kubelet leaves a namespace's new pods Pending.
const PODS_HANG: &str = "controlplane/pods=hang";

/// The objects of the plain chart as release `demo`.
pub(crate) const ALL_OF_DEMO: [&str; 3] = ["configmap/demo", "service/demo", "deployment/demo"];

/// A namespace that no other test uses. It stays until the plane ends, so that a failure can be looked at.
pub(crate) struct Namespace<'a> {
    plane: &'a Plane,
    name: String,
}

impl<'a> Namespace<'a> {
    /// Creates a namespace whose name starts with the test's. Pods in it become ready.
    #[track_caller]
    pub(crate) fn new(plane: &'a Plane, test: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        // A name has at most 63 characters, and its end must differ between tests.
        let test: String = test.replace(['_', '.'], "-").chars().take(50).collect();
        let namespace = Self::existing(plane, &format!("{test}-{count}"));
        let admin = plane.kubectl(&plane.admin());
        admin.ok(&["create", "namespace", &namespace.name]);
        eventually(CONTROLLERS, "the namespace gets its default service account", || {
            admin.run(&["get", "serviceaccount", "default", "-n", &namespace.name]).into_result()
        });
        namespace
    }

    /// One that is there, or will be.
    pub(crate) fn existing(plane: &'a Plane, name: &str) -> Self {
        Self { plane, name: name.to_owned() }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn plane(&self) -> &'a Plane {
        self.plane
    }

    #[track_caller]
    pub(crate) fn helm(&self, version: HelmVersion, driver: Driver, person: &str) -> Helm {
        self.helm_as(version, driver, &self.plane.person(person))
    }

    /// helm as a person or service account.
    pub(crate) fn helm_as(&self, version: HelmVersion, driver: Driver, who: &Identity) -> Helm {
        Helm::new(version, driver, who, &self.name, self.plane.dir())
    }

    #[track_caller]
    pub(crate) fn kubectl(&self, person: &str) -> Kubectl {
        self.kubectl_as(&self.plane.person(person))
    }

    /// kubectl as a person or service account.
    pub(crate) fn kubectl_as(&self, who: &Identity) -> Kubectl {
        Kubectl::new(who, Some(&self.name), self.plane.dir())
    }

    /// A service account of this namespace, which may do everything.
    #[track_caller]
    pub(crate) fn service_account(&self, name: &str) -> Identity {
        self.plane.service_account(&self.name, name)
    }

    /// From now on new pods here stay Pending, so that `--wait` waits.
    #[track_caller]
    pub(crate) fn hang_pods(&self) {
        self.label(PODS_HANG);
    }

    /// From now on pods here become ready, those that hang too.
    #[track_caller]
    pub(crate) fn ready_pods(&self) {
        self.label("controlplane/pods-");
    }

    #[track_caller]
    fn label(&self, label: &str) {
        self.plane.kubectl(&self.plane.admin()).ok(&["label", "namespace", &self.name, "--overwrite", label]);
    }

    /// The records of a release, by revision.
    #[track_caller]
    pub(crate) fn records(&self, driver: Driver, release: &str) -> Vec<Record> {
        records::read(&self.kubectl("admin"), driver, release)
    }

    /// Waits until the newest record of a release has this status, and returns all of them.
    #[track_caller]
    pub(crate) fn await_status(&self, driver: Driver, release: &str, revision: u32, status: &str) -> Vec<Record> {
        let expected = format!("{release} has revision {revision} with status {status}");
        eventually(CONTROLLERS, &expected, || {
            let records = self.records(driver, release);
            match records.last() {
                Some(newest) if newest.revision == revision && newest.body_status == status => Ok(records),
                _ => Err(records::summary(&records)),
            }
        })
    }

    /// The objects of the plain chart that exist, as release `demo`.
    #[track_caller]
    pub(crate) fn objects_of_demo(&self) -> Vec<&'static str> {
        let admin = self.kubectl("admin");
        let exists = |object: &&str| {
            // An object that is being deleted counts as gone.
            admin.find(&[object]).is_some_and(|object| object["metadata"]["deletionTimestamp"].is_null())
        };
        ALL_OF_DEMO.into_iter().filter(exists).collect()
    }

    /// The image of the Deployment's first container.
    #[track_caller]
    pub(crate) fn image(&self, deployment: &str) -> String {
        self.image_if_any(deployment).unwrap_or_else(|error| panic!("{error}"))
    }

    fn image_if_any(&self, deployment: &str) -> Result<String, String> {
        let object = self.kubectl("admin").find(&["deployment", deployment]).ok_or("it does not exist")?;
        Ok(object["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap_or_default().to_owned())
    }

    /// Waits until an install or an upgrade has written this image into the Deployment.
    #[track_caller]
    pub(crate) fn await_image(&self, deployment: &str, image: &str) {
        eventually(CONTROLLERS, &format!("{deployment} has the image {image}"), || {
            let current = self.image_if_any(deployment)?;
            if current == image { Ok(()) } else { Err(current) }
        });
    }

    /// Waits until an object exists, for example `ingress/demo`. kubectl before 1.31 has no `wait --for=create`.
    #[track_caller]
    pub(crate) fn await_existence(&self, object: &str) {
        let kubectl = self.kubectl("admin");
        eventually(CONTROLLERS, &format!("{object} exists"), || {
            let got = kubectl.run(&["get", object]);
            if got.success() { Ok(()) } else { Err(got.stderr) }
        });
    }

    /// Waits until the Deployment has all its replicas available, or none of the newest template.
    #[track_caller]
    pub(crate) fn await_available(&self, deployment: &str) {
        let kubectl = self.kubectl("admin");
        eventually(CONTROLLERS, &format!("{deployment} is available"), || {
            let object = kubectl.get(&["deployment", deployment]);
            let (wanted, status) = (&object["spec"]["replicas"], &object["status"]);
            let current = status["observedGeneration"] == object["metadata"]["generation"];
            if current && status["updatedReplicas"] == *wanted && status["availableReplicas"] == *wanted {
                Ok(())
            } else {
                Err(status.to_string())
            }
        });
    }
}

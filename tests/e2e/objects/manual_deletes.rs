//! Objects of a release deleted by hand.

use crate::harness::acts::{Act, Target, Verdict};
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::origins::Origin;

use Verdict::{Deletes, Passes};

const DELETES: &[Act] = &[
    ("one", &["delete", "deployment/demo"], Deletes),
    ("one of another kind", &["delete", "configmap", "demo"], Deletes),
    ("now", &["delete", "service/demo", "--force", "--grace-period=0"], Deletes),
    ("without its dependants", &["delete", "deployment/demo", "--cascade=orphan"], Deletes),
    ("all", &["delete", "deployments", "--all"], Deletes),
    ("all by label", &["delete", "services", "-l", "app.kubernetes.io/managed-by=Helm"], Deletes),
    ("a collection", &["delete", "--raw", "/apis/apps/v1/namespaces/NAMESPACE/deployments"], Deletes),
    ("a collection of another kind", &["delete", "--raw", "/api/v1/namespaces/NAMESPACE/services"], Deletes),
    ("a dry run", &["delete", "deployment/demo", "--dry-run=server"], Deletes),
    ("what the Deployment made", &["delete", "pods", "-l", "app=demo", "--wait=false"], Passes),
];

#[test]
fn a_declared_object_cannot_be_deleted_by_hand_whichever_helm_wrote_it() {
    Origin::everywhere(|origin| {
        let (namespace, revision) = origin.release("delete");
        let kubectl = namespace.kubectl("bob");
        let uids = || -> Vec<_> {
            ["deployment/demo", "configmap/demo", "service/demo"]
                .into_iter()
                .map(|object| kubectl.get(&[object])["metadata"]["uid"].clone())
                .collect()
        };
        let before = uids();
        Target::deployed(&namespace, "demo", revision).expect_all(&kubectl, DELETES);
        assert_eq!(uids(), before, "{origin:?}");
        // The allowed neighbour: `helm uninstall`, which deletes all objects.
        namespace.helm(HelmVersion::V4, Driver::Secret, "bob").ok(&["uninstall", "demo"]);
    });
}

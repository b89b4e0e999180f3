//! The rules over what declares releases: Sveltos, Flux, OLM.

use super::Documentation;

pub(super) const DROPPED_BUNDLES: Documentation = Documentation {
    what: "A commit of Sveltos leaves out nothing that was delivered and is still wanted.",
    why: "The agent removes what a commit no longer names, and addon-controller up to 1.8.0 commits what it has when a chart \
          fails to stage.",
    allowed: "An upgrade to fewer bundles; a chart that was taken out of the profile.",
    refused: "A ConfigurationGroup without any item after the first chart failed.",
    way_out: "Repair what failed to stage; where a chart renders to nothing on purpose, name its release in \
              interlock.dev/may-render-nothing.",
};

pub(super) const DANGLING_BUNDLE: Documentation = Documentation {
    what: "A commit of Sveltos names only bundles that exist.",
    why: "The agent cannot fetch what is not there, so the rollout stalls, or is whole for less than was meant.",
    allowed: "A ConfigurationGroup over bundles that are there.",
    refused: "A Ready group with a reference to a bundle that was deleted meanwhile, or never written.",
    way_out: "Write the bundles first; Sveltos does, and tries again with new ones within a minute.",
};

pub(super) const REMOVE_WHILE_LIVE: Documentation = Documentation {
    what: "Sveltos' agent is told to remove everything only once the ClusterSummary is being deleted.",
    why: "The action Remove takes every release off the managed cluster while the profile still wants them there.",
    allowed: "The action Remove with sourceStatus Deleted, after the ClusterSummary is gone or while it goes.",
    refused: "The action Remove of a profile that still selects the cluster; Sveltos never does this.",
    way_out: "Delete the profile, or let it no longer select the cluster; Sveltos then removes what it deployed.",
};

pub(super) const DUPLICATE_RELEASE: Documentation = Documentation {
    what: "One HelmRelease drives a release.",
    why: "Two of them take one another's revisions for their own, upgrade over one another for ever, and the deletion of \
          either uninstalls the release of both.",
    allowed: "A second HelmRelease whose records lie in another namespace, or one that is suspended.",
    refused: "HelmRelease shop/two with `releaseName: web` beside HelmRelease shop/web.",
    way_out: "Give it another releaseName or storageNamespace, or remove the other HelmRelease first.",
};

pub(super) const RETARGET: Documentation = Documentation {
    what: "An edit of a HelmRelease does not uninstall what it has installed.",
    why: "Flux uninstalls the release and installs it anew when its name, namespace or storage changes; volumes and data of \
          it can go with it.",
    allowed: "Another chart version, other values; the same edit before anything is installed.",
    refused: "Another releaseName, targetNamespace or storageNamespace while the release is deployed.",
    way_out: "Who means it says so on the HelmRelease, in the annotation interlock.dev/allow-retarget; the refusal names its \
              value.",
};

pub(super) const RETRY_STRATEGY: Documentation = Documentation {
    what: "A HelmRelease does not stall or destroy when something fails.",
    why: "Some settings of install, upgrade and remediation stop for ever after a failure, repeat it without end, or \
          uninstall what still worked.",
    allowed: "RetryOnFailure for install and upgrade; a bounded number of retries with rollback.",
    refused: "The strategy uninstall for failed upgrades; retries without bound.",
    way_out: "Use RetryOnFailure, or bound the retries; the warning names the field.",
};

pub(super) const EXTENSION_CHANGE_WHILE_PENDING: Documentation = Documentation {
    what: "A ClusterExtension keeps its version and channels while an operation on it is in flight.",
    why: "OLM resolves the next bundle from the last deployed one, so a step that died half-way would be jumped over.",
    allowed: "A change while the newest record is deployed or failed; pinning the version that is pending.",
    refused: "`version: 3.0.0` while the upgrade to 2.0.0 is pending-upgrade.",
    way_out: "Pin the version that is pending until it is installed, then change to the next one.",
};

pub(super) const EXTENSION_SAFETY: Documentation = Documentation {
    what: "A ClusterExtension keeps to what loses no data, and its revisions are left to OLM.",
    why: "SelfCertified upgrades pass over the catalog's graph, and an unchecked CRD can drop the versions of stored objects.",
    allowed: "A ClusterExtension that follows its catalog's upgrade graph; operator-controller archiving a revision.",
    refused: "`upgradeConstraintPolicy: SelfCertified`; a person deleting the ClusterObjectSet that is in use.",
    way_out: "Use CatalogProvided and Strict, and leave ClusterObjectSets to operator-controller.",
};

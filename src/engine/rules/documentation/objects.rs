//! The rules over the objects of releases.

use super::Documentation;

pub(super) const FOREIGN_EDIT_IN_TRANSITION: Documentation = Documentation {
    what: "While an operation is in flight, only its holder changes what the release declares.",
    why: "An edit in the middle of an upgrade is half overwritten, and --wait waits for what nobody meant.",
    allowed: "What helm writes for alice during alice's upgrade; a manager's drift correction.",
    refused: "bob's `kubectl set image`, `scale` or `delete` meanwhile.",
    way_out: "Wait until the operation ends; then change it through the release.",
};

pub(super) const MANUAL_EDIT: Documentation = Documentation {
    what: "A field that a release declares changes through the release.",
    why: "The next upgrade reverts half of an edit by hand, and the chart no longer tells what runs.",
    allowed: "`kubectl rollout restart`; a label `team`; an injected sidecar; whatever the chart does not declare.",
    refused: "`kubectl set image` of a container of the chart.",
    way_out: "Change the chart's values and upgrade; fields that belong to others go into the policy's `ignore`.",
};

pub(super) const MANUAL_DELETE: Documentation = Documentation {
    what: "An object that a release declares goes through the release.",
    why: "The release says that it is deployed, and the next upgrade brings the object back, or fails without it.",
    allowed: "`helm uninstall`; deleting what an uninstall kept, or what a newer revision has left behind.",
    refused: "`kubectl delete deployment` of a live release.",
    way_out: "Take it out of the chart and upgrade, or uninstall the release.",
};

pub(super) const MANUAL_SCALE: Documentation = Documentation {
    what: "A number of replicas that a release declares changes through the release.",
    why: "The next upgrade scales back to what the chart says, which is seldom the moment for it.",
    allowed: "Scaling where the chart leaves the number to others; an autoscaler's scaling.",
    refused: "`kubectl scale` of a Deployment whose chart says how many.",
    way_out: "Change the number in the chart's values, or take it out of the chart and let an autoscaler have it.",
};

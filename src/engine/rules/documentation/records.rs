//! The rules over release records.

use super::Documentation;

pub(super) const CONCURRENT_OPERATION: Documentation = Documentation {
    what: "No install or upgrade starts while another operation holds the release.",
    why: "Helm looks for a running operation only in `upgrade`, and only in its own process; two at once leave two records \
          deployed.",
    allowed: "An upgrade to revision 6 while revision 5 is deployed or failed.",
    refused: "The same while revision 5 is pending-upgrade or uninstalling, however old.",
    way_out: "Wait for the operation that holds the release, or recover from it if it is dead; see pending-recovery.",
};

pub(super) const PENDING_RECOVERY: Documentation = Documentation {
    what: "An operation in flight is ended only in a way that is open: unlock, delete or rollback.",
    why: "What looks stuck may be alive: to unlock or delete the record of a live operation, or to roll back over it, leaves \
          two records deployed.",
    allowed: "A rollback over what has been pending for longer than staleAfter.",
    refused: "`helm rollback` over an upgrade that started 12 s ago; `kubectl delete secret` of its record.",
    way_out: "Wait until the operation ends, or is older than staleAfter by the API server's clock.",
};

pub(super) const RESUME_INTERRUPTED: Documentation = Documentation {
    what: "An operation that was interrupted is finished before the next version is tried.",
    why: "A version whose upgrade died half-way may have migrated data half-way; the next one presumes that it was whole.",
    allowed: "The interrupted version again; any version once that is deployed.",
    refused: "An upgrade to version 3 after that to version 2 was killed and its record deleted or unlocked.",
    way_out: "Upgrade to the interrupted version first, then to the next one.",
};

pub(super) const REVISION_ORDER: Documentation = Documentation {
    what: "A new record has a higher revision than every other one of its release.",
    why: "Helm takes the highest revision for the newest; a lower one is computed from a history that has moved on.",
    allowed: "Revision 7 after revisions 3 to 6, or 9 where 7 and 8 were pruned.",
    refused: "Revision 5 while revision 6 is there.",
    way_out: "Start the operation again, so that it reads the history as it is now.",
};

pub(super) const UNUSUAL_CREATE: Documentation = Documentation {
    what: "A record comes to be in a pending status, by somebody who may start operations.",
    why: "A record that is born deployed was made by no operation, so nothing shows that its objects are there.",
    allowed: "What helm and Flux create; what a tool listed in `tools` restores; what mapkubeapis writes.",
    refused: "`kubectl create` of a record that says deployed; with `startedBy: managers` a person's `helm upgrade`.",
    way_out: "Install or upgrade with helm, or where only managers may through them; name the account of a restore tool in \
              the policy's `tools`.",
};

pub(super) const ILLEGAL_TRANSITION: Documentation = Documentation {
    what: "The status of a record changes only along edges that some client makes.",
    why: "The failure path of an upgrade that was overtaken writes its old copy back: superseded becomes deployed again.",
    allowed: "From pending-upgrade to deployed on the newest record, from failed to superseded.",
    refused: "From superseded to deployed; from pending-upgrade to deployed under a higher revision.",
    way_out: "Look at `helm history`; to change the release, start a new upgrade or rollback.",
};

pub(super) const RECORD_INTEGRITY: Documentation = Documentation {
    what: "The name, labels and body of a record say the same.",
    why: "Helm finds a record by its labels, orders records by their bodies and creates them under their names; where these \
          disagree it acts on a release that does not exist.",
    allowed: "Helm's own writes; an update that repairs a disagreement, or leaves one as it is.",
    refused: "`kubectl label secret ... status=deployed --overwrite` on a superseded record; a body that does not decode.",
    way_out: "Leave records to helm; `helm history` shows the state of the release.",
};

pub(super) const RECORD_TAMPERING: Documentation = Documentation {
    what: "What a record says of its release never changes once it is stored.",
    why: "A rollback installs what the record says, and nobody reviews that again.",
    allowed: "A new status or description; Helm 3 rewriting a record of Helm 4.",
    refused: "Another manifest, chart, name, revision or other values in a stored record.",
    way_out: "A record is history; start a new upgrade to change the release.",
};

pub(super) const RECORD_DELETION: Documentation = Documentation {
    what: "The newest deployed record of a live release stays.",
    why: "Without it helm says that there are no deployed releases, and the next upgrade is an install over live objects.",
    allowed: "Pruning of superseded records; everything while the release is uninstalling or uninstalled.",
    refused: "`kubectl delete secret` of the newest deployed record; of many records at once by a person.",
    way_out: "Use `helm uninstall` to remove the release, or name one superseded or failed record.",
};

pub(super) const FORGED_STAMP: Documentation = Documentation {
    what: "The holder stamps on a record are those that Interlock wrote.",
    why: "Who holds an operation may end it and write its objects; a stamp that could be chosen would open both.",
    allowed: "A record without stamps, as helm writes it.",
    refused: "The CREATE of a record that names another user as the holder, while the mutating half is out of service.",
    way_out: "Leave the annotations of interlock.dev alone; the webhook writes them.",
};

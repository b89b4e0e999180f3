#!/usr/bin/env python3
"""Writes the recordings in tests/recordings/written: what further clients do to release records and objects.

These are not recorded. Each sequence follows the source code of its client, with the bodies, labels and accounts that
the client writes; the README next to this file says which. Run it again after a change here:

    python3 tests/recordings/clients.py

It needs Python 3 and its standard library, and writes the same bytes each time for one version of zlib: times are fixed
and no compressed text has a date. A recording has its legitimate sequence, and beside it acts of strangers that must be
refused. `--as-recorded` applies a refused act too, so `{"object"}` and `{"remove"}` lines take each of them back. The
objects that are put back have the stamps that Interlock had given them; nothing else has stamps.
"""

import base64
import copy
import datetime
import gzip
import hashlib
import json
import pathlib

WRITTEN = pathlib.Path(__file__).parent / "written"

# 2026-11-21T10:00:00Z
START = 1795255200
MINUTE = 60
# Longer than `staleAfter` as shipped.
STALE = 16 * MINUTE

ALICE, BOB, ADMIN = "alice", "bob", "kubernetes-admin"
FLEET = "system:serviceaccount:cattle-fleet-system:fleet-agent"
FLEET_LOCAL = "system:serviceaccount:cattle-fleet-local-system:fleet-agent"
KLIPPER = "system:serviceaccount:shop:helm-web"
KLIPPER_OTHER = "system:serviceaccount:shop:helm-api"
WERF = "system:serviceaccount:ci:werf"
SVELTOS = "system:serviceaccount:projectsveltos:addon-controller"
CROSSPLANE = "system:serviceaccount:crossplane-system:provider-helm-1a2b3c"
VELERO = "system:serviceaccount:velero:velero-server"
OLM = "system:serviceaccount:olmv1-system:operator-controller-controller-manager"
CI, OTHER_CI = "system:serviceaccount:ci:deploy-4711", "system:serviceaccount:ci:deploy-4712"
CONTROLLER = "system:serviceaccount:kube-system:deployment-controller"
FLUX = "system:serviceaccount:flux-system:helm-controller"
CLEANER = "system:serviceaccount:shop:cleaner"
# The accounts that a HelmRelease names, one after the other, and one that it never named.
DEPLOYER, NEXT_DEPLOYER, NEIGHBOUR = (f"system:serviceaccount:shop:{name}" for name in ("flux", "flux-next", "other"))

# What the user agent makes of a client's name in managedFields of records.
MANAGERS = {
    FLEET: "fleetagent", FLEET_LOCAL: "fleetagent", WERF: "nelm", SVELTOS: "addon-controller", CROSSPLANE: "provider",
    VELERO: "velero-server", OLM: "operator-controller", ADMIN: "kubectl-replace",
}

# The rules that may refuse a stranger's act at each door.
ENDS = ["pending-recovery", "illegal-transition", "record-tampering"]
DELETES = ["pending-recovery", "record-deletion"]
STARTS = ["concurrent-operation", "pending-recovery", "revision-order", "unusual-create"]
EDGE = ["illegal-transition"]
OBJECT = ["foreign-edit-in-transition", "manual-delete", "manual-edit"]

PLURALS = {
    "Secret": "secrets", "ConfigMap": "configmaps", "Deployment": "deployments", "StatefulSet": "statefulsets",
    "HelmRelease": "helmreleases",
}
GROUPS = {"Deployment": ("apps", "v1"), "StatefulSet": ("apps", "v1"), "HelmRelease": ("helm.toolkit.fluxcd.io", "v2")}
DESCRIPTIONS = {
    "pending-install": "Initial install underway", "pending-upgrade": "Preparing upgrade",
    "pending-rollback": "Rollback to 1", "uninstalling": "Deletion in progress (or silently failed)",
}


def stamp(seconds):
    """A time as Kubernetes writes it."""
    return datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def precise(seconds):
    """A time as Go writes it."""
    moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f") + "148Z"


def packed(text):
    return gzip.compress(text.encode(), compresslevel=9, mtime=0)


def base(data):
    return base64.b64encode(data).decode()


def user_info(user):
    """`NAME`, or `NAME on POD` for the token of a pod."""
    user, _, pod = user.partition(" on ")
    if user.startswith("system:serviceaccount:"):
        namespace = user.split(":")[2]
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
        token = "JTI=" + hashlib.sha256(user.encode()).hexdigest()[:32]
        extra = {"authentication.kubernetes.io/credential-id": [token]}
        if pod:
            extra["authentication.kubernetes.io/pod-name"] = [pod]
            extra["authentication.kubernetes.io/pod-uid"] = [unique("pod", pod)]
        return {"username": user, "uid": unique(user), "groups": groups, "extra": extra}
    if user == ADMIN:
        return {"username": user, "groups": ["kubeadm:cluster-admins", "system:authenticated"]}
    return {"username": user, "uid": f"{user}-uid", "groups": ["devs", "system:authenticated"]}


def unique(*parts):
    """A uid that depends on these parts alone."""
    digest = hashlib.sha256("/".join(map(str, parts)).encode()).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-a{digest[17:20]}-{digest[20:32]}"


class Recording:
    """The lines of one file, the verdicts on them, and the objects of the cluster without stamps."""

    def __init__(self, name):
        self.name, self.lines, self.deny, self.any = name, [], {}, []
        self.now, self.version, self.count = START, 300, 0
        self.objects, self.stamps = {}, {}

    def mark(self, text):
        self.lines.append({"mark": text})

    def wait(self, seconds):
        self.now = int(self.now) + seconds

    def uid(self, *parts):
        self.count += 1
        return unique(self.name, self.count, *parts)

    @staticmethod
    def key(stored):
        return stored["kind"], stored["metadata"]["namespace"], stored["metadata"]["name"]

    def given(self, stored):
        """An object that is there."""
        self.version += 1
        stored["metadata"].setdefault("uid", self.uid(stored["metadata"]["name"]))
        stored["metadata"].setdefault("creationTimestamp", stamp(self.now))
        stored["metadata"]["resourceVersion"] = str(self.version)
        self.objects[self.key(stored)] = stored
        self.lines.append({"object": copy.deepcopy(stored)})

    def restored(self, key):
        """Puts back what a refused act has changed."""
        stored = copy.deepcopy(self.objects[key])
        if self.stamps.get(key):
            stored["metadata"]["annotations"] = {**stored["metadata"].get("annotations", {}), **self.stamps[key]}
        self.lines.append({"object": stored})

    def review(self, user, operation, key, old, new, deny, either):
        kind, namespace, name = key
        group, version = GROUPS.get(kind, ("", "v1"))
        which = {"group": group, "version": version, "kind": kind}
        resource = {"group": group, "version": version, "resource": PLURALS[kind]}
        self.now = round(self.now + 0.2, 1)
        request = {
            "uid": self.uid("review"), "kind": which, "resource": resource, "requestKind": which,
            "requestResource": resource, "name": name, "namespace": namespace, "operation": operation,
            "userInfo": user_info(user), "object": new, "oldObject": old, "dryRun": False,
            "options": {"kind": operation.capitalize() + "Options", "apiVersion": "meta.k8s.io/v1"},
        }
        review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
        self.lines.append({"t": self.now, "review": copy.deepcopy(review)})
        if deny:
            self.deny[len(self.lines)] = sorted(deny)
        if either:
            self.any.append(len(self.lines))

    def create(self, user, stored, deny=None, either=False):
        """A creation. A refused one is taken back."""
        stored["metadata"].setdefault("uid", self.uid(stored["metadata"]["name"]))
        stored["metadata"]["creationTimestamp"] = stamp(self.now + 0.2)
        key = self.key(stored)
        self.review(user, "CREATE", key, None, stored, deny, either)
        if deny or either:
            names = {field: stored["metadata"][field] for field in ("name", "namespace")}
            self.lines.append({"remove": {"apiVersion": stored["apiVersion"], "kind": key[0], "metadata": names}})
            return
        self.version += 1
        stored["metadata"]["resourceVersion"] = str(self.version)
        self.objects[key] = stored

    def update(self, user, new, deny=None, either=False):
        """An update to an object that is there. A refused one is taken back."""
        key = self.key(new)
        self.review(user, "UPDATE", key, self.objects[key], new, deny, either)
        if deny or either:
            self.restored(key)
            return
        self.version += 1
        new["metadata"]["resourceVersion"] = str(self.version)
        self.objects[key] = new

    def delete(self, user, key, deny=None, either=False):
        self.review(user, "DELETE", key, self.objects[key], None, deny, either)
        if deny or either:
            self.restored(key)
        else:
            del self.objects[key]

    def write(self):
        text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in self.lines)
        WRITTEN.mkdir(exist_ok=True)
        (WRITTEN / f"{self.name}.jsonl.gz").write_bytes(packed(text))
        expected = json.dumps({"deny": self.deny, "any": self.any}, indent=1)
        (WRITTEN / f"{self.name}.expect.json").write_text(expected + "\n")
        reviews = sum("review" in line for line in self.lines)
        print(f"{self.name}: {reviews} reviews, {len(self.deny)} to be refused, {len(self.any)} either")


def manifest(release, image="nginx:1.27", ingress=None):
    text = (
        f"---\n# Source: shop/templates/all.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {release}-cfg}}\n"
        f"data: {{mode: \"{image}\"}}\n---\n# Source: shop/templates/all.yaml\napiVersion: apps/v1\nkind: Deployment\n"
        f"metadata: {{name: {release}}}\nspec:\n  replicas: 2\n  selector: {{matchLabels: {{app: {release}}}}}\n"
        f"  template:\n    metadata: {{labels: {{app: {release}}}}}\n    spec:\n      containers:\n"
        f"      - name: web\n        image: {image}\n"
    )
    if ingress:
        text += f"---\n# Source: shop/templates/ingress.yaml\napiVersion: {ingress}\nkind: Ingress\n"
        text += f"metadata: {{name: {release}}}\nspec: {{ingressClassName: nginx}}\n"
    return text


HOOK = {
    "name": "web-test", "kind": "ConfigMap", "path": "shop/templates/hook.yaml",
    "manifest": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web-test\n  annotations: {helm.sh/hook: test}\n",
    "events": ["test"], "last_run": {"started_at": "", "completed_at": "", "phase": ""},
}


class Release:
    """The records of a release, written as Helm's SDK writes them."""

    def __init__(self, recording, name="web", namespace="shop", driver="Secret"):
        self.it, self.name, self.namespace, self.driver = recording, name, namespace, driver
        self.bodies, self.first = {}, None
        # The further Secrets of a record of OLM, and the HelmRelease that an operation starts for.
        self.parts, self.driver_stamp = {}, None

    def key(self, revision):
        kind = "ConfigMap" if self.driver == "ConfigMap" else "Secret"
        return kind, self.namespace, f"sh.helm.release.v1.{self.name}.v{revision}"

    def body(self, revision, status, image="nginx:1.27", version="0.1.0", ingress=None):
        now = precise(self.it.now)
        self.first = self.first or now
        return {
            "name": self.name,
            "info": {
                "first_deployed": self.first, "last_deployed": now, "deleted": "",
                "description": DESCRIPTIONS.get(status, "Install complete"), "status": status,
            },
            "chart": {
                "metadata": {"name": "shop", "version": version, "apiVersion": "v2"}, "lock": None,
                "templates": [{"name": "templates/all.yaml", "data": base(b"apiVersion: v1\n")}],
                "values": {"image": "nginx:1.27", "replicas": 2}, "schema": None, "files": None,
            },
            "config": {"image": image}, "manifest": manifest(self.name, image, ingress), "hooks": [HOOK],
            "version": revision, "namespace": self.namespace,
        }

    def stored(self, user, body, labels):
        text = json.dumps(body, separators=(",", ":"))
        kind, namespace, name = self.key(body["version"])
        own = {"name": self.name, "owner": "helm", "status": body["info"]["status"], "version": str(body["version"])}
        if self.driver == "OLM":
            own = {**own, "owner": "operator-controller", "type": "index", "key": name}
            parts = json.dumps(self.parts.get(body["version"], []))
            data = {"chunk": base(packed(text)), "extraChunks": base(parts.encode())}
        else:
            inner = base(packed(text))
            data = {"release": inner if kind == "ConfigMap" else base(inner.encode())}
        fields = {"f:data": {".": {}, **{f"f:{field}": {} for field in data}}}
        managed = {
            "manager": MANAGERS.get(user, "Helm"), "operation": "Update", "apiVersion": "v1",
            "time": stamp(self.it.now), "fieldsType": "FieldsV1", "fieldsV1": fields,
        }
        metadata = {
            "name": name, "namespace": namespace, "labels": dict(sorted({**labels, **own}.items())),
            "managedFields": [managed],
        }
        record = {"kind": kind, "apiVersion": "v1", "metadata": metadata, "data": data}
        if self.driver == "OLM":
            metadata["ownerReferences"] = [{
                "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "name": self.name,
                "uid": unique("extension", self.name), "controller": True, "blockOwnerDeletion": True,
            }]
            record["immutable"] = False
        if kind == "Secret":
            record["type"] = "operatorframework.io/index.v1" if self.driver == "OLM" else "helm.sh/release.v1"
        return record

    def stamped(self, user, body):
        """The stamps that Interlock gives a record when an operation starts."""
        chart = body["chart"]["metadata"]
        self.it.stamps[self.key(body["version"])] = {
            "interlock.dev/holder": user, "interlock.dev/started": stamp(self.it.now),
            "interlock.dev/chart": f"{chart['name']}-{chart['version']}",
            "interlock.dev/target-namespace": self.namespace,
            **({"interlock.dev/driver": self.driver_stamp} if self.driver_stamp else {}),
        }

    def create(self, user, revision, status, change=None, deny=None, either=False, labels=None, **settings):
        """A new record, with `change` made to its body."""
        body = self.body(revision, status, **settings)
        if change:
            change(body)
        labels = {"createdAt": str(int(self.it.now)), **(labels or {})}
        self.it.create(user, self.stored(user, body, labels), deny, either)
        if not (deny or either):
            self.bodies[revision] = body
            if status.startswith("pending-"):
                self.stamped(user, body)

    def update(self, user, revision, status=None, change=None, deny=None, either=False, starts=False):
        """A PUT of a record with a new status, and with `change` made to its body. `starts`: a new holder's."""
        old = self.bodies[revision]
        body = copy.deepcopy(old)
        body["info"]["status"] = status or old["info"]["status"]
        if status and status != old["info"]["status"]:
            body["info"]["description"] = DESCRIPTIONS.get(status, f"Release {status}")
        if change:
            change(body)
        if body["info"]["status"] == "uninstalling":
            body["info"]["deleted"] = precise(self.it.now)
        new = self.stored(user, body, {"modifiedAt": str(int(self.it.now))})
        before = self.it.objects[self.key(revision)]["metadata"]
        for field in ("uid", "creationTimestamp", "resourceVersion"):
            new["metadata"][field] = before[field]
        self.it.update(user, new, deny, either)
        if deny or either:
            return
        self.bodies[revision] = body
        if starts or (status == "uninstalling" and old["info"]["status"] != "uninstalling"):
            self.stamped(user, body)

    def delete(self, user, revision, deny=None, either=False):
        self.it.delete(user, self.key(revision), deny, either)
        if not (deny or either):
            del self.bodies[revision]

    def installed(self, user, **settings):
        """A whole install."""
        self.create(user, 1, "pending-install", **settings)
        self.update(user, 1, "deployed")

    def upgraded(self, user, revision, before, **settings):
        """A whole upgrade over the record `before`."""
        self.create(user, revision, "pending-upgrade", **settings)
        self.update(user, before, "superseded")
        self.update(user, revision, "deployed")

    def marks(self):
        return {
            "labels": {"app.kubernetes.io/managed-by": "Helm"},
            "annotations": {
                "meta.helm.sh/release-name": self.name, "meta.helm.sh/release-namespace": self.namespace,
            },
        }

    def objects(self, image="nginx:1.27", healthy=True):
        """The ConfigMap and the Deployment of the manifest, as they are in the cluster."""
        self.it.given({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"mode": image},
            "metadata": {"name": f"{self.name}-cfg", "namespace": self.namespace, **self.marks()},
        })
        ready = 2 if healthy else 0
        available = "True" if healthy else "False"
        self.it.given({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": self.name, "namespace": self.namespace, "generation": 1, **self.marks()},
            "spec": {
                "replicas": 2, "selector": {"matchLabels": {"app": self.name}},
                "template": {
                    "metadata": {"labels": {"app": self.name}},
                    "spec": {"containers": [{"name": "web", "image": image}]},
                },
                "progressDeadlineSeconds": 600,
            },
            "status": {
                "observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": ready,
                "availableReplicas": ready,
                "conditions": [
                    {"type": "Available", "status": available, "reason": "MinimumReplicas"},
                    {"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated"},
                ],
            },
        })

    @property
    def deployment(self):
        return "Deployment", self.namespace, self.name

    @property
    def config(self):
        return "ConfigMap", self.namespace, f"{self.name}-cfg"


def fleet_rollback(name, agent):
    it = Recording(name)
    web = Release(it)
    it.mark("a bundle is installed")
    web.installed(agent)
    it.mark("an upgrade fails, and the next one succeeds")
    it.wait(MINUTE)
    web.create(agent, 2, "pending-upgrade", image="nginx:broken")
    web.update(agent, 1)
    web.update(agent, 2, "failed")
    it.wait(MINUTE)
    web.upgraded(agent, 3, 1, image="nginx:1.28")
    it.mark("drift: the agent rolls back, which fails")
    it.wait(MINUTE)
    web.create(agent, 4, "pending-rollback", image="nginx:1.28")
    it.wait(5)
    web.update(BOB, 4, "failed", deny=ENDS)
    web.delete(BOB, 4, deny=DELETES)
    web.create(BOB, 5, "pending-upgrade", deny=STARTS)
    web.update(agent, 3, "superseded")
    web.update(agent, 4, "failed")
    it.mark("the agent removes the failed record: nothing is deployed now, and the newest record is superseded")
    web.delete(agent, 4)
    web.delete(BOB, 3, deny=DELETES)
    it.mark("the agent makes it the deployed one again")
    web.update(agent, 3, "deployed")
    web.update(BOB, 1, "deployed", deny=EDGE)
    web.update(agent, 1, "deployed", deny=EDGE)
    it.mark("the next change of the bundle")
    it.wait(MINUTE)
    web.upgraded(agent, 4, 3, image="nginx:1.29")
    return it


def fleet_keep_resources():
    it = Recording("fleet-keep-resources")
    web = Release(it)
    web.installed(FLEET)
    web.objects(image="nginx:1.28")
    web.upgraded(FLEET, 2, 1, image="nginx:1.28")
    it.wait(MINUTE)
    it.mark("people may not do what the agent is about to do")
    web.delete(ALICE, 2, deny=DELETES)
    it.delete(ALICE, web.deployment, deny=OBJECT)
    it.mark("the bundle with keepResources is deleted: every record goes, and the objects stay")
    web.delete(FLEET, 1)
    web.delete(FLEET, 2)
    it.mark("the objects belong to nobody now")
    it.delete(ALICE, web.config)
    it.mark("the bundle comes back and adopts what is there")
    web.installed(FLEET, image="nginx:1.28")
    return it


def redated(it):
    """What `helm set-status` changes beside the status."""
    def change(body):
        body["info"]["last_deployed"] = precise(it.now)
        body["info"]["description"] = "set status failed"
    return change


def klipper():
    it = Recording("klipper")
    web = Release(it)
    web.installed(KLIPPER)
    it.mark("the Job of an uninstall is interrupted")
    it.wait(MINUTE)
    web.update(KLIPPER, 1, "uninstalling")
    it.wait(20)
    web.update(BOB, 1, "failed", change=redated(it), deny=ENDS)
    web.update(KLIPPER_OTHER, 1, "failed", change=redated(it), deny=ENDS)
    it.mark("the next Job: set-status failed over its own uninstalling record, then an upgrade")
    web.update(KLIPPER, 1, "failed", change=redated(it))
    web.upgraded(KLIPPER, 2, 1, image="nginx:1.28")
    it.mark("the Job of an upgrade is interrupted; set-status failed over its own pending record")
    it.wait(MINUTE)
    web.create(KLIPPER, 3, "pending-upgrade", image="nginx:1.29")
    it.wait(20)
    web.update(BOB, 3, "failed", change=redated(it), deny=ENDS)
    web.update(KLIPPER_OTHER, 3, "failed", change=redated(it), deny=ENDS)
    web.update(KLIPPER, 3, "failed", change=redated(it))
    web.upgraded(KLIPPER, 4, 2, image="nginx:1.29")
    it.mark("a Job dies between superseded and deployed; its pending record is deleted once it is stale")
    it.wait(MINUTE)
    web.create(KLIPPER, 5, "pending-upgrade", image="nginx:1.30")
    web.objects(image="nginx:1.30")
    web.update(KLIPPER, 4, "superseded")
    it.wait(STALE)
    web.delete(KLIPPER, 5)
    it.mark("set-status failed over the newest record, which is superseded, then an upgrade")
    web.update(KLIPPER, 4, "failed", change=redated(it))
    web.upgraded(KLIPPER, 5, 4, image="nginx:1.30")
    return it


def lease(it, namespace, holder, expires):
    """The lock of lockgate: one annotation a lock, in a ConfigMap of the namespace."""
    lock = "lockgate.io/" + hashlib.sha3_224(b"release/web").hexdigest()
    value = {
        "UUID": unique("lease", holder), "AcquirerId": holder, "IsShared": False, "SharedHoldersCount": 0,
        "ExpireAtTimestamp": int(expires), "LockName": "release/web",
    }
    annotations = {lock: json.dumps(value, separators=(",", ":"))}
    return {
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "werf-synchronization", "namespace": namespace, "annotations": annotations},
    }


def locked(it, user, seconds=10, first=False):
    """Takes or renews the lease."""
    new = lease(it, "shop", user, it.now + seconds)
    if first:
        it.create(user, new)
        return
    before = it.objects[Recording.key(new)]["metadata"]
    for field in ("uid", "creationTimestamp", "resourceVersion"):
        new["metadata"][field] = before[field]
    it.update(user, new)


def nelm():
    it = Recording("nelm")
    web = Release(it)
    it.mark("an install under its lease")
    locked(it, WERF, first=True)
    web.installed(WERF)
    it.mark("an uninstall whose plan fails, 8 s after its start, with a renewed lease")
    it.wait(MINUTE)
    locked(it, WERF)
    web.update(WERF, 1, "uninstalling")
    it.wait(3)
    locked(it, WERF)
    it.wait(5)
    web.update(WERF, 1, "failed")
    it.mark("an uninstall by alice with nelm; the lease is hers")
    it.wait(MINUTE)
    locked(it, ALICE)
    web.update(ALICE, 1, "uninstalling")
    it.wait(4)
    web.update(ALICE, 1, "failed")
    it.mark("alice's upgrade dies, and its lease expires; without a lease nobody goes on")
    it.wait(MINUTE)
    web.upgraded(ALICE, 2, 1, image="nginx:1.28")
    it.wait(MINUTE)
    locked(it, ALICE)
    web.create(ALICE, 3, "pending-upgrade", image="nginx:1.29")
    it.wait(MINUTE)
    web.create(BOB, 4, "pending-upgrade", deny=STARTS)
    it.mark("a lease for ten years is no lease")
    locked(it, BOB, seconds=10 * 365 * 24 * 3600)
    web.create(BOB, 4, "pending-upgrade", deny=STARTS)
    web.update(BOB, 3, "failed", deny=ENDS)
    it.mark("the pipeline takes the lease, and upgrades over the pending record")
    locked(it, WERF)
    it.wait(1)
    web.create(WERF, 4, "pending-upgrade", image="nginx:1.29")
    it.wait(3)
    locked(it, WERF)
    web.update(WERF, 2, "superseded")
    web.update(WERF, 4, "deployed")
    return it


def sveltos_push():
    it = Recording("sveltos-push")
    web = Release(it)
    it.mark("a first install is interrupted; recoverRelease deletes its own pending record")
    web.create(SVELTOS, 1, "pending-install")
    web.objects(healthy=False)
    it.wait(10)
    web.delete(ALICE, 1, deny=DELETES)
    web.update(ALICE, 1, "failed", deny=ENDS)
    web.delete(SVELTOS, 1)
    web.installed(SVELTOS)
    it.mark("an upgrade is interrupted, its workload is not healthy")
    it.wait(MINUTE)
    web.create(SVELTOS, 2, "pending-upgrade", image="nginx:1.28")
    web.objects(image="nginx:1.28", healthy=False)
    it.wait(10)
    web.delete(ALICE, 2, deny=DELETES)
    web.delete(SVELTOS, 2)
    web.delete(ALICE, 1, deny=DELETES)
    web.upgraded(SVELTOS, 2, 1, image="nginx:1.28")
    return it


def crossplane():
    it = Recording("crossplane")
    web = Release(it)
    web.installed(CROSSPLANE)
    it.wait(MINUTE)
    it.mark("the provider restarts in mid-upgrade")
    web.create(CROSSPLANE, 2, "pending-upgrade", image="nginx:1.28")
    it.wait(20)
    web.create(BOB, 3, "pending-rollback", deny=STARTS)
    web.create(OTHER_CI, 3, "pending-rollback", deny=STARTS)
    it.mark("it rolls back over its own pending record")
    web.create(CROSSPLANE, 3, "pending-rollback")
    web.update(BOB, 3, "failed", deny=ENDS)
    web.update(CROSSPLANE, 1, "superseded")
    web.update(CROSSPLANE, 3, "deployed")
    it.mark("and upgrades again")
    it.wait(MINUTE)
    web.upgraded(CROSSPLANE, 4, 3, image="nginx:1.28")
    return it


def velero():
    it = Recording("velero")
    restored = {"velero.io/backup-name": "nightly", "velero.io/restore-name": "nightly-20261121"}
    web, api = Release(it), Release(it, "api", driver="ConfigMap")
    it.mark("people create no record by hand")
    for status in ("superseded", "deployed", "failed", "uninstalling"):
        web.create(ALICE, 2, status, deny=STARTS)
    it.mark("a restore: by name, so v10 comes before v9, in whatever status each record was")
    for revision, status in (
        (10, "superseded"), (11, "pending-upgrade"), (5, "failed"), (6, "pending-upgrade"), (7, "superseded"),
        (9, "deployed"),
    ):
        web.create(VELERO, revision, status, labels=restored, image=f"nginx:1.{20 + revision}")
    it.mark("a release that was being uninstalled, in ConfigMaps")
    for revision, status in ((2, "uninstalling"), (1, "superseded")):
        api.create(VELERO, revision, status, labels=restored)
    kept = Release(it, "kept")
    kept.create(VELERO, 3, "uninstalled", labels=restored)
    web.create(ALICE, 8, "superseded", deny=STARTS)
    return it


def helm_crash_between():
    it = Recording("helm-crash-between")
    web = Release(it)
    web.installed(ALICE)
    it.wait(MINUTE)
    it.mark("alice's helm dies between superseded and deployed")
    web.create(ALICE, 2, "pending-upgrade", image="nginx:1.28")
    web.objects(image="nginx:1.28")
    web.update(ALICE, 1, "superseded")
    it.wait(MINUTE)
    web.delete(BOB, 2, deny=DELETES)
    # Opinions differ: helm would go on from it only if the record above it is deleted.
    web.delete(BOB, 1, either=True)
    web.create(BOB, 3, "pending-upgrade", deny=STARTS)
    it.mark("once it is stale, bob deletes only the record of the dead upgrade")
    it.wait(STALE)
    web.delete(BOB, 2)
    web.delete(BOB, 1, deny=DELETES)
    it.mark("helm upgrade goes on from the newest record, which is superseded")
    web.create(BOB, 2, "pending-upgrade", image="nginx:1.28")
    web.update(BOB, 1)
    web.update(BOB, 2, "deployed")

    it.mark("alice's first install dies; bob deletes its record once it is stale, and installs anew")
    api = Release(it, "api", driver="ConfigMap")
    api.create(ALICE, 1, "pending-install")
    api.objects()
    it.wait(MINUTE)
    api.delete(BOB, 1, deny=DELETES)
    it.wait(STALE)
    api.delete(BOB, 1)
    api.installed(BOB)
    return it


def olm_crash_between():
    it = Recording("olm-crash-between")
    shop = Release(it, "shopext", "olmv1-system", "OLM")
    it.mark("the first install of an extension dies; a person deletes its index once it is stale")
    shop.create(OLM, 1, "pending-install")
    shop.objects()
    it.wait(MINUTE)
    shop.delete(ALICE, 1, deny=DELETES)
    it.wait(STALE)
    shop.delete(ALICE, 1)
    shop.installed(OLM)
    it.mark("OLM dies between superseded and deployed; a person deletes the index of the dead upgrade")
    it.wait(MINUTE)
    shop.create(OLM, 2, "pending-upgrade", image="nginx:1.28", version="0.2.0")
    shop.objects(image="nginx:1.28")
    shop.update(OLM, 1, "superseded")
    it.wait(MINUTE)
    shop.delete(ALICE, 2, deny=DELETES)
    it.wait(STALE)
    shop.delete(ALICE, 2)
    shop.delete(ALICE, 1, deny=DELETES)
    it.mark("OLM repeats the upgrade to the same version")
    shop.create(OLM, 2, "pending-upgrade", image="nginx:1.28", version="0.2.0")
    shop.update(OLM, 1)
    shop.update(OLM, 2, "deployed")
    return it


def helm_finish_uninstall():
    it = Recording("helm-finish-uninstall")
    for name, first, second in (("web", ALICE, BOB), ("api", CI, OTHER_CI)):
        web = Release(it, name)
        web.installed(first)
        web.upgraded(first, 2, 1, image="nginx:1.28")
        web.objects(image="nginx:1.28")
        it.wait(MINUTE)
        it.mark(f"an uninstall by {first} is killed, and {second} comes too early")
        web.update(first, 2, "uninstalling")
        it.wait(MINUTE)
        web.update(second, 2, "uninstalling", deny=ENDS)
        web.update(second, 2, "failed", deny=ENDS)
        # A policy audits service accounts over objects, or refuses them too.
        person = second == BOB
        it.delete(second, web.deployment, deny=OBJECT if person else None, either=not person)
        it.delete(second, web.config, deny=OBJECT if person else None, either=not person)
        web.delete(second, 2, deny=DELETES)
        it.mark(f"once it is stale, {second} finishes it")
        it.wait(STALE)
        web.update(second, 2, "uninstalling", starts=True)
        web.delete(CI if person else ALICE, 2, deny=DELETES)
        it.delete(second, web.deployment)
        it.delete(second, web.config)
        web.delete(second, 1)
        web.delete(second, 2)
    it.mark("the name is free again")
    Release(it, "web").installed(BOB)
    return it


def helm_history_max():
    it = Recording("helm-history-max")
    web = Release(it)
    web.installed(ALICE)
    it.wait(MINUTE)
    it.mark("alice's upgrade is killed")
    web.create(ALICE, 2, "pending-upgrade", image="nginx:broken")
    web.objects(image="nginx:broken", healthy=False)
    it.wait(MINUTE)
    web.delete(BOB, 2, deny=DELETES)
    web.create(BOB, 3, "pending-rollback", deny=STARTS)
    it.wait(STALE)
    it.mark("helm rollback 1 --history-max 2: helm prunes the stuck record before it writes its own")
    web.delete(ALICE, 2)
    web.create(ALICE, 3, "pending-rollback")
    web.update(ALICE, 1, "superseded")
    web.update(ALICE, 3, "deployed")
    return it


def encryption():
    it = Recording("encryption")
    web, api, old, ext = Release(it), Release(it, "api"), Release(it, "old"), Release(it, "ext", "olmv1-system", "OLM")
    web.installed(ALICE)
    web.upgraded(ALICE, 2, 1, image="nginx:1.28")
    web.create(ALICE, 3, "pending-upgrade", image="nginx:broken")
    web.update(ALICE, 3, "failed")
    web.create(ALICE, 4, "pending-upgrade", image="nginx:1.29")
    api.installed(BOB)
    api.update(BOB, 1, "uninstalling")
    old.installed(BOB)
    old.update(BOB, 1, "uninstalling")
    old.update(BOB, 1, "uninstalled")
    ext.installed(OLM)
    plain = {
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": {"password": base(b"not a secret")},
        "metadata": {"name": "database", "namespace": "shop"},
    }
    it.given(plain)
    it.wait(MINUTE)
    it.mark("after a change of the encryption configuration every Secret is read and replaced unchanged")
    everything = sorted(key for key in it.objects if key[0] == "Secret")
    for key in everything:
        new = copy.deepcopy(it.objects[key])
        touched = {
            "manager": "kubectl-replace", "operation": "Update", "apiVersion": "v1", "time": stamp(it.now),
            "fieldsType": "FieldsV1", "fieldsV1": {"f:type": {}},
        }
        new["metadata"].setdefault("managedFields", []).append(touched)
        it.update(ADMIN, new)
    it.mark("what is changed on the way is judged as ever")
    web.update(ADMIN, 4, "failed", deny=ENDS)
    web.update(ADMIN, 2, change=lambda body: body.update(manifest="---\n"), deny=["record-tampering"])
    api.update(ADMIN, 1, "deployed", deny=ENDS)
    it.mark("every operation goes on as if nothing had happened")
    web.update(ALICE, 2, "superseded")
    web.update(ALICE, 4, "deployed")
    api.delete(BOB, 1)
    old.delete(BOB, 1)
    return it


def helm_force_pending():
    it = Recording("helm-force-pending")
    web = Release(it)
    web.installed(ALICE)
    it.wait(MINUTE)
    it.mark("alice's upgrade is killed")
    web.create(ALICE, 2, "pending-upgrade", image="nginx:1.28")
    it.wait(MINUTE)
    web.update(BOB, 2, "failed", deny=ENDS)
    web.create(BOB, 3, "pending-upgrade", deny=STARTS)
    it.wait(STALE)
    it.mark("alice runs it again with --force-pending, as proposed for helm 4")
    web.update(ALICE, 2, "failed")
    web.upgraded(ALICE, 3, 1, image="nginx:1.28")
    return it


def mapkubeapis_copies():
    it = Recording("mapkubeapis-copies")
    old, new = "extensions/v1beta1", "networking.k8s.io/v1"
    web = Release(it)
    web.installed(ALICE, ingress=old)
    it.wait(MINUTE)

    def mapped(body, **wrong):
        body["info"].update(status="deployed", description="Kubernetes deprecated API upgrade - DO NOT rollback")
        body.update(wrong)

    it.mark("only the newest record may be mapped, and only after it was superseded")
    web.create(ALICE, 2, "deployed", change=mapped, ingress=new, deny=STARTS)
    web.update(ALICE, 1, "superseded")
    it.mark("copies that differ in more than apiVersion and kind")
    different = manifest("web", "attacker:1", new)
    web.create(ALICE, 2, "deployed", change=lambda body: mapped(body, manifest=different), deny=STARTS)
    fewer = manifest("web")
    web.create(ALICE, 2, "deployed", change=lambda body: mapped(body, manifest=fewer), deny=STARTS)
    hook = {**HOOK, "events": ["pre-delete"]}
    web.create(ALICE, 2, "deployed", change=lambda body: mapped(body, hooks=[hook]), ingress=new, deny=STARTS)
    web.create(ALICE, 2, "deployed", change=lambda body: mapped(body, hooks=[]), ingress=new, deny=STARTS)
    web.create(ALICE, 2, "deployed", change=lambda body: mapped(body, config={"x": 1}), ingress=new, deny=STARTS)
    web.create(ALICE, 3, "deployed", change=mapped, ingress=new, deny=STARTS)
    it.mark("the mapped copy, and the life that goes on")
    web.create(ALICE, 2, "deployed", change=mapped, ingress=new)
    it.wait(MINUTE)
    web.upgraded(ALICE, 3, 2, image="nginx:1.28", ingress=new)
    return it


def hook_job(name):
    text = f"apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {name}\n  annotations: {{helm.sh/hook: pre-upgrade}}\n"
    return {
        "name": name, "kind": "Job", "path": "shop/templates/clean.yaml", "manifest": text, "events": ["pre-upgrade"],
        "last_run": {"started_at": "", "completed_at": "", "phase": ""},
    }


def pod_of(it, pod, job):
    """A Job and its pod, in which a token is mounted."""
    uid = unique("job", job)
    it.given({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": job, "namespace": "shop", "uid": uid}})
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": uid, "controller": True}
    metadata = {"name": pod, "namespace": "shop", "uid": unique("pod", pod), "ownerReferences": [owner]}
    it.given({"apiVersion": "v1", "kind": "Pod", "metadata": metadata})


def helm_hook_deletes():
    it = Recording("helm-hook-deletes")
    web = Release(it)
    web.installed(CI)
    web.objects()
    pod_of(it, "nightly-x", "nightly")
    it.wait(MINUTE)
    it.mark("an upgrade, whose pre-upgrade hook deletes what the chart declares")
    web.create(CI, 2, "pending-upgrade", image="nginx:1.28", change=lambda body: body["hooks"].append(hook_job("clean")))
    pod_of(it, "clean-x", "clean")
    it.mark("other pods of the hook's account, and its token without a pod")
    for stranger in (f"{CLEANER} on nightly-x", f"{CLEANER} on gone", CLEANER, BOB):
        it.delete(stranger, web.config, deny=OBJECT)
    it.delete(f"{CLEANER} on clean-x", web.config)
    it.mark("helm goes on, and creates it again")
    web.update(CI, 2)
    it.create(CI, {
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"mode": "nginx:1.28"},
        "metadata": {"name": "web-cfg", "namespace": "shop", **web.marks()},
    })
    web.update(CI, 1, "superseded")
    web.update(CI, 2, "deployed")
    it.mark("the operation has ended, and with it the rights of its hook: a policy audits service accounts, or refuses them")
    it.delete(f"{CLEANER} on clean-x", web.config, either=True)
    return it


def helm_recreate_statefulset():
    it = Recording("helm-recreate-statefulset")
    web = Release(it)
    text = (
        "---\n# Source: shop/templates/db.yaml\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: web-db}\n"
        "spec:\n  serviceName: {0}\n  replicas: 1\n  selector: {matchLabels: {app: db}}\n"
        "  template:\n    metadata: {labels: {app: db}}\n    spec:\n      containers:\n      - {name: db, image: db}\n"
    )

    def declaring(service):
        return lambda body: body.update(manifest=text.replace("{0}", service))

    def stateful(service):
        return {
            "apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": "web-db", "namespace": "shop", **web.marks()},
            "spec": {
                "serviceName": service, "replicas": 1, "selector": {"matchLabels": {"app": "db"}},
                "template": {
                    "metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "db", "image": "db"}]},
                },
            },
        }

    web.create(CI, 1, "pending-install", change=declaring("old"))
    it.create(CI, stateful("old"))
    web.update(CI, 1, "deployed")
    it.wait(MINUTE)
    it.mark("serviceName cannot be changed: the pipeline deletes the StatefulSet and leaves its pods, and upgrades")
    key = ("StatefulSet", "shop", "web-db")
    it.delete(BOB, key, deny=OBJECT)
    it.delete(CI, key)
    web.create(CI, 2, "pending-upgrade", change=declaring("new"))
    it.create(CI, stateful("new"))
    web.update(CI, 1, "superseded")
    web.update(CI, 2, "deployed")
    it.delete(BOB, key, deny=OBJECT)
    return it


def helm_release(account, generation):
    return {
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {"name": "web", "namespace": "shop", "uid": unique("helmrelease"), "generation": generation},
        "spec": {
            "interval": "10m", "serviceAccountName": account, "timeout": "5m",
            "chart": {"spec": {"chart": "shop", "sourceRef": {"kind": "HelmRepository", "name": "shop"}}},
        },
    }


def driven(web, generation):
    web.driver_stamp = f"HelmRelease/shop/web/{unique('helmrelease')}/{generation}"


def flux_account_changes():
    it = Recording("flux-account-changes")
    web = Release(it)
    it.given(helm_release("flux", 1))
    driven(web, 1)
    web.installed(DEPLOYER)
    web.objects()
    it.wait(MINUTE)
    it.mark("Flux is killed in an upgrade under the account of the HelmRelease")
    web.create(DEPLOYER, 2, "pending-upgrade", image="nginx:1.28")
    it.mark("the HelmRelease gets another account, for which Flux goes on")
    before = it.objects["HelmRelease", "shop", "web"]["metadata"]
    it.update(ALICE, {**helm_release("flux-next", 2), "metadata": {**before, "generation": 2}})
    it.wait(20)
    web.update(NEIGHBOUR, 2, "failed", deny=ENDS)
    web.delete(NEIGHBOUR, 2, deny=DELETES)
    web.update(BOB, 2, "failed", deny=ENDS)

    def unlocked(body):
        body["info"]["description"] = "Release unlocked from stale 'pending-upgrade' state"

    web.update(NEXT_DEPLOYER, 2, "failed", change=unlocked)
    driven(web, 2)
    web.upgraded(NEXT_DEPLOYER, 3, 1, image="nginx:1.28")
    return it


def velero_driver():
    it = Recording("velero-driver")
    web = Release(it)
    it.mark("a backup of a release of Flux is restored: the HelmRelease has another uid, and the record its old stamps")
    it.given(helm_release("flux", 1))
    old = {"interlock.dev/driver": f"HelmRelease/shop/web/{unique('backup')}/7", "interlock.dev/holder": DEPLOYER}

    body = web.body(1, "deployed")

    def restored(user, deny=None):
        record = web.stored(user, body, {"createdAt": str(int(it.now))})
        record["metadata"]["annotations"] = dict(old)
        it.create(user, record, deny)

    restored(ALICE, deny=STARTS)
    restored(VELERO)
    web.bodies[1] = body
    it.wait(MINUTE)
    it.mark("Flux upgrades the restored release")
    driven(web, 1)
    web.create(DEPLOYER, 2, "pending-upgrade", image="nginx:1.28")
    it.wait(20)
    web.update(NEIGHBOUR, 2, "failed", deny=ENDS)
    web.update(DEPLOYER, 1, "superseded")
    web.update(DEPLOYER, 2, "deployed")
    return it


def olm_killed_between_parts():
    it = Recording("olm-killed-between-parts")
    shop = Release(it, "shopext", "olmv1-system", "OLM")
    shop.installed(OLM)
    shop.objects()
    it.wait(MINUTE)
    it.mark("OLM is killed after the index of a record, and before its second part")
    shop.parts[2] = ["sh.helm.release.v1.shopext.v2-abcdefghijk16"]
    shop.create(OLM, 2, "pending-upgrade", image="nginx:1.28", version="0.2.0")
    it.wait(MINUTE)
    shop.delete(ALICE, 2, deny=DELETES)
    shop.delete(ALICE, 1, deny=DELETES)
    it.wait(STALE)
    it.mark("nobody can read it, so that OLM does nothing: a person deletes the index, and OLM upgrades to that version")
    shop.delete(ALICE, 2)
    del shop.parts[2]
    shop.upgraded(OLM, 2, 1, image="nginx:1.28", version="0.2.0")
    return it


if __name__ == "__main__":
    for recording in (
        fleet_rollback("fleet-rollback", FLEET), fleet_rollback("fleet-local-rollback", FLEET_LOCAL),
        fleet_keep_resources(), klipper(), nelm(), sveltos_push(), crossplane(), velero(), helm_crash_between(),
        olm_crash_between(), helm_finish_uninstall(), helm_history_max(), encryption(), helm_force_pending(),
        mapkubeapis_copies(), helm_hook_deletes(), helm_recreate_statefulset(), flux_account_changes(), velero_driver(),
        olm_killed_between_parts(),
    ):
        recording.write()

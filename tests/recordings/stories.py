"""Cuts the stories of `interlock demo` out of the recordings: python3 tests/recordings/stories.py

Each story begins with its text, and the objects of its release as they were then. After each caption ({"mark"}) come the writes of one client. Three
writes are written and not recorded: a deletion is repeated an hour later, a HelmRelease is copied under another name, and the end of an
upgrade is shown over a record that no rollback has changed. Acts with `later` happen only where an earlier one was refused.
"""

import copy
import gzip
import json
from pathlib import Path

HERE = Path(__file__).parent
STORIES = HERE.parent.parent / "examples" / "stories"


def recording(name):
    with gzip.open(HERE / f"{name}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


def key(given):
    metadata = given["metadata"]
    return given["apiVersion"], given["kind"], metadata.get("namespace", ""), metadata["name"]


def state(lines, belongs):
    """The objects after these lines, those whose names belong to the story."""
    known = {}
    for line in lines:
        request = line.get("review", {}).get("request", {})
        if "object" in line:
            known[key(line["object"])] = line["object"]
        elif "remove" in line:
            known.pop(key(line["remove"]), None)
        elif request.get("subResource"):
            continue
        elif request.get("operation") == "DELETE":
            if request.get("oldObject"):
                known.pop(key(request["oldObject"]), None)
        elif request.get("object"):
            known[key(request["object"])] = request["object"]
    return [{"object": found} for found in known.values() if belongs(found["metadata"]["name"])]


def story(name, text, lines, first, belongs, acts):
    told = [text] + state(lines[: first - 1], belongs)
    for caption, writes in acts:
        told.append(caption if isinstance(caption, dict) else {"mark": caption})
        told += [lines[write - 1] if isinstance(write, int) else write for write in writes]
    written = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in told)
    # Without a time, so that the file stays the same.
    (STORIES / f"{name}.jsonl.gz").write_bytes(gzip.compress(written.encode(), mtime=0))


def later(line):
    written = copy.deepcopy(line)
    written["t"] += 3600
    written["review"]["request"]["uid"] += "-later"
    return written


def over(line, stored):
    """The write as it would have been if the stored object were this one."""
    written = copy.deepcopy(line)
    written["review"]["request"]["oldObject"] = stored["review"]["request"]["object"]
    return written


def second_declaration(line, t):
    written = copy.deepcopy(line)
    request = written["review"]["request"]
    written["t"] = t
    request["uid"] += "-second"
    request["name"] = request["object"]["metadata"]["name"] = "kill-copy"
    request["object"]["spec"]["releaseName"] = "kill"
    request["object"]["metadata"]["annotations"].pop("kubectl.kubernetes.io/last-applied-configuration", None)
    return written


def main():
    STORIES.mkdir(parents=True, exist_ok=True)
    helm, sveltos, olm, flux = (recording(name) for name in ("helm", "sveltos-v1.7.0", "olm", "flux"))
    of_b = lambda name: name in ("b", "b-cfg", "b-hook") or ".b.v" in name
    story("in-progress", {
        "mark": "another operation (install/upgrade/rollback) is in progress",
        "setting": "An upgrade of release b hangs in one terminal. Helm tells another terminal that an operation is in progress, so somebody rolls back: helm does not stop that.",
        "without": "`helm history b` shows two deployed revisions, 5 and 7, and the upgrade that ran is lost.",
        "with": "Revision 5 is deployed, and nothing else is.",
    }, helm, 109, of_b, [
        ("alice runs `helm upgrade b`", range(109, 112)),
        ("alice runs `helm rollback b` in another terminal", range(112, 117)),
        ("The upgrade times out, and writes back what it remembers", [over(helm[116], helm[106]), 118]),
    ])
    story("dropped-charts", {
        "mark": "a commit that drops what runs",
        "setting": "Sveltos delivers charts web, cache and db to cluster prod, which pulls them. A wrong value keeps one chart from being rendered.",
        "without": "The commit is empty. The agent of the cluster deletes all three releases.",
        "with": "Nothing changes in the cluster, and Sveltos tries again until the value is right.",
    }, sveltos, 45, lambda name: True, [
        ("admin commits values of chart web that break its schema", [45, 46, 47]),
        ("Sveltos stages no chart, and commits the rest", [48, 49]),
    ])
    story("killed", {
        "mark": "a controller that dies during an upgrade",
        "setting": "OLM keeps a release in several Secrets. A pending record blocks every further upgrade, until somebody deletes it.",
        "without": "The record went two seconds after the upgrade had begun, whether or not anything was still at work on it.",
        "with": "The record stays until the operation counts as stuck, and goes then.",
    }, olm, 78, lambda name: "bigext" in name, [
        ("OLM upgrades bigext, and is killed in a hook", range(78, 87)),
        ("alice deletes the pending record two seconds later", [89]),
        ({"mark": "alice deletes it an hour later", "later": True}, [later(olm[88])]),
    ])
    story("retries", {
        "mark": "controllers that try again and again",
        "setting": "Flux unlocks what it left behind itself, and must not be stopped. Two HelmReleases for one release are another matter.",
        "without": "Each of the two undoes the upgrade of the other at every interval.",
        "with": "Flux has recovered by itself, and one HelmRelease manages the release.",
    }, flux, 168, lambda name: name.startswith("kill") or ".kill." in name, [
        ("Flux upgrades kill, and is killed", range(168, 177)),
        ("Flux starts again, unlocks its own record and upgrades", [178, *range(180, 188)]),
        ("bob applies a second HelmRelease for release kill", [second_declaration(flux[158], flux[189]["t"])]),
    ])
    story("by-hand", {
        "mark": "a change by hand",
        "setting": "kubectl changes what the chart declares.",
        "without": "The release says one thing and the cluster another. The next upgrade takes back a part of it.",
        "with": "What the chart declares changes through helm. A restart passes, because no chart declares it.",
    }, helm, 109, of_b, [
        ("alice runs `kubectl set image deployment/b`", [123]),
        ("alice runs `kubectl edit configmap/b-cfg`", [136]),
        ("alice runs `kubectl rollout restart deployment/b`", [134]),
    ])


main()

// Runs a standalone server whose page has something in every section, until its standard input ends or Ctrl-C.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import https from "node:https";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { gzipSync } from "node:zlib";

const [program, port = "0"] = process.argv.slice(2);
assert(program, "usage: node example.mjs PATH/TO/interlock [ADMIN PORT]");
const minutes = (count) => new Date(Date.now() + count * 60_000).toISOString().slice(0, 19);
const dir = mkdtempSync(path.join(tmpdir(), "interlock-page-"));

mkdirSync(path.join(dir, "policies"));
const day = 24 * 60;
writeFileSync(
  path.join(dir, "policies", "cluster.yaml"),
  `apiVersion: interlock.dev/v1alpha1
kind: ClusterPolicy
freezes:
  - {name: year-end, reason: stock-taking and closing, timeZone: Europe/Berlin, namespaces: [billing, "erp-*"],
     from: ${minutes(-2 * day)}, to: ${minutes(12 * day).slice(0, 10)}T06:00}
  - {name: weekend, reason: nobody is in the office, timeZone: Europe/Berlin, weekdays: [${weekday(2)}, ${weekday(3)}],
     exempt: {groups: [on-call]}}
rules:
  manual-edit: {mode: enforce}
managers:
  - system:serviceaccount:flux-system:helm-controller
`,
);
writeFileSync(
  path.join(dir, "overrides.yaml"),
  `apiVersion: interlock.dev/v1alpha1
kind: ReleaseOverride
metadata:
  name: ledger-x7k2p
  namespace: payments
  creationTimestamp: ${minutes(-5)}Z
  annotations: {interlock.dev/created-by: carol}
spec:
  release: ledger
  rules: [manual-edit]
  users: [carol]
  reason: more database connections until the fix is released
  ticket: INC-2481
  expiresAt: ${minutes(55)}Z
`,
);

function weekday(ahead) {
  const date = new Date(Date.now() + ahead * day * 60_000);
  return date.toLocaleDateString("en", { weekday: "long", timeZone: "UTC" }).toLowerCase();
}

const flags = ["--page", "--cluster-name", "prod-eu", "--policies", "policies", "--overrides", "overrides.yaml", "--listen", "127.0.0.1:0"];
const server = spawn(path.resolve(program), ["serve", ...flags, "--admin-listen", `127.0.0.1:${port}`], {
  cwd: dir,
  stdio: ["ignore", "pipe", "inherit"],
  env: { INTERLOCK_LOG: "error" },
});
server.on("exit", () => (rmSync(dir, { recursive: true, force: true }), process.exit()));
const [line] = await new Promise((resolve) => createInterface(server.stdout).once("line", (text) => resolve([text])));
const ready = JSON.parse(line);
const ca = readFileSync(path.resolve(dir, ready.ca));

/** One review, like the API server's: the stamps are added, then the object is judged. Returns the answer. */
async function write(user, operation, kind, object, oldObject) {
  const [group, version] = object.apiVersion.includes("/") ? object.apiVersion.split("/") : ["", object.apiVersion];
  const request = {
    uid: "u", operation, name: object.metadata.name, namespace: object.metadata.namespace, oldObject,
    kind: { group, version, kind: object.kind }, resource: { group, version, resource: kind },
    userInfo: { username: user, groups: ["system:authenticated"] },
  };
  const stamped = await post("/mutate", { ...request, object });
  const patch = JSON.parse(Buffer.from(stamped.patch ?? "W10=", "base64"));
  for (const { path: at, value } of patch) set(object, at.slice(1).split("/"), value);
  return post("/validate", { ...request, object });
}

function set(object, [key, ...rest], value) {
  const name = key.replaceAll("~1", "/").replaceAll("~0", "~");
  if (rest.length === 0) object[name] = value;
  else set((object[name] ??= {}), rest, value);
}

function post(where, request) {
  const body = JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request });
  const [host, to] = ready.listen.split(":");
  const headers = { "content-type": "application/json" };
  const options = { host, port: to, path: where, method: "POST", ca, headers, checkServerIdentity: () => undefined };
  return new Promise((resolve, reject) => {
    const sent = https.request(options, async (answer) => {
      let text = "";
      for await (const part of answer) text += part;
      resolve(JSON.parse(text).response);
    });
    sent.on("error", reject).end(body);
  });
}

function record(namespace, release, revision, status, age, manifest = "") {
  const chart = { metadata: { name: release, version: `${revision}.0.0` } };
  const content = { name: release, version: revision, namespace, manifest, info: { status }, chart };
  const packed = gzipSync(JSON.stringify(content)).toString("base64");
  return {
    apiVersion: "v1", kind: "Secret", type: "helm.sh/release.v1",
    data: { release: Buffer.from(packed).toString("base64") },
    metadata: {
      name: `sh.helm.release.v1.${release}.v${revision}`, namespace, creationTimestamp: `${minutes(-age)}Z`,
      uid: `${namespace}-${release}-${revision}`,
      labels: { name: release, owner: "helm", status, version: `${revision}` },
    },
  };
}

const deployer = "system:serviceaccount:ci:deployer";
const start = (user, ...record_of) => write(user, "CREATE", "secrets", record(...record_of));
async function deployed(user, namespace, release, revision, age, manifest) {
  const [before, after] = ["pending-install", "deployed"].map((it) => record(namespace, release, revision, it, age, manifest));
  assert((await write(user, "CREATE", "secrets", before)).allowed);
  after.metadata.annotations = before.metadata.annotations;
  assert((await write(user, "UPDATE", "secrets", after, before)).allowed);
}

const config = (name, value) => `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}}\ndata: {replicas: "${value}"}\n`;
await deployed("alice", "shop", "checkout", 1, 9_000, config("checkout", 3));
await deployed(deployer, "payments", "ledger", 1, 9_000);
await deployed("system:serviceaccount:flux-system:helm-controller", "monitoring", "prometheus", 1, 9_000);
await write("alice", "CREATE", "helmreleases", {
  apiVersion: "helm.toolkit.fluxcd.io/v2", kind: "HelmRelease",
  metadata: { name: "prometheus", namespace: "monitoring" }, spec: { timeout: "10m" },
});
const owned = (value) => ({
  apiVersion: "v1", kind: "ConfigMap", data: { replicas: value },
  metadata: {
    name: "checkout", namespace: "shop", uid: "c", labels: { "app.kubernetes.io/managed-by": "Helm" },
    annotations: { "meta.helm.sh/release-name": "checkout", "meta.helm.sh/release-namespace": "shop" },
  },
});
const edited = await write("mallory", "UPDATE", "configmaps", owned("30"), owned("3"));
const answers = [
  await start(deployer, "payments", "ledger", 2, "pending-upgrade", 134),
  await start("dave", "data", "kafka", 1, "pending-install", 48),
  await start("system:serviceaccount:flux-system:helm-controller", "monitoring", "prometheus", 2, "pending-upgrade", 3),
  await start("alice", "shop", "checkout", 2, "pending-upgrade", 1),
];
assert(answers.every((answer) => answer.allowed), JSON.stringify(answers));

const refused = [
  edited,
  await start("bob", "erp-stock", "scanner", 1, "pending-install", 0),
];
assert(refused.every((answer) => !answer.allowed), JSON.stringify(refused));
console.log(`http://localhost:${ready.admin.split(":").pop()}/`);
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => server.kill());
process.stdin.on("end", () => server.kill()).resume();

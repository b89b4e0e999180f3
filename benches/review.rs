#![allow(clippy::unwrap_used, missing_docs)] // A bench has no caller to report an error to.

//! What a review costs, against two references in the same run: the floor, which does with the same libraries only what
//! nobody can avoid, and the naive way, which reads everything into `serde_json::Value`.
//!
//! The three take turns, so that a machine that slows down slows all of them; the figures to keep are the ratios.

use std::borrow::Cow;
use std::hint::black_box;
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use release_interlock::budget::Budget;
use release_interlock::judge::Judge;
use release_interlock::policy::Policy;
use release_interlock::review::{self, Review};
use release_interlock::world::memory::Memory;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

const ROUNDS: usize = 41;

fn main() {
    println!("{:<34}{:>12}{:>12}{:>12}{:>10}{:>10}", "review", "floor", "interlock", "naive", "x floor", "x naive");
    for (name, size) in [("record CREATE, 0.4 MiB JSON", 400 << 10), ("record CREATE, 8 MiB JSON", 8 << 20)] {
        let body = record_review(size);
        let sizes = format!("{name} ({:.2} MiB body)", body.len() as f64 / 1048576.0);
        compare(&sizes, &body, |body| floor(body), naive);
    }
    let body = deployment_review();
    compare(&format!("ordinary object ({} KiB)", body.len() / 1024), &body, envelope, naive_object);
}

/// Times the three ways on one body and prints medians and ratios.
fn compare(name: &str, body: &[u8], floor: impl Fn(&[u8]), naive: impl Fn(&[u8])) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let budget = Arc::new(Budget::new(256 << 20));
    let judge = Judge::new(Policy::shipped().unwrap(), Arc::new(Memory::new(1 << 20)), budget);
    let ours = |body: &[u8]| {
        let review = Review::parse(body).unwrap();
        let now = "2026-11-21T10:00:00Z".parse().unwrap();
        let deadline = tokio::time::Instant::now() + Duration::from_secs(3);
        let verdict = runtime.block_on(judge.validate(&review.request, now, deadline)).unwrap();
        assert!(verdict.outcome.allowed, "{}", verdict.outcome.message);
        black_box(review::answer(&review.request.uid, &verdict.outcome));
    };
    // Small bodies are repeated until a sample is long enough to be timed.
    let repeat = (400_000 / body.len()).max(1);
    let sample = |way: &dyn Fn(&[u8])| {
        let start = Instant::now();
        for _ in 0..repeat {
            way(black_box(body));
        }
        start.elapsed() / u32::try_from(repeat).unwrap()
    };
    let mut samples: [Vec<Duration>; 3] = Default::default();
    for _ in 0..ROUNDS {
        samples[0].push(sample(&floor));
        samples[1].push(sample(&ours));
        samples[2].push(sample(&naive));
    }
    let [floor, ours, naive] = samples.map(|mut all| {
        all.sort();
        all[all.len() / 2]
    });
    let ratio = |a: Duration, b: Duration| a.as_secs_f64() / b.as_secs_f64();
    println!(
        "{name:<34}{:>12}{:>12}{:>12}{:>10.2}{:>10.2}",
        micros(floor),
        micros(ours),
        micros(naive),
        ratio(ours, floor),
        ratio(naive, ours)
    );
}

fn micros(duration: Duration) -> String {
    format!("{:.1} us", duration.as_secs_f64() * 1e6)
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    request: EnvelopeRequest<'a>,
}

#[derive(Deserialize)]
struct EnvelopeRequest<'a> {
    #[serde(borrow)]
    uid: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Secret<'a> {
    #[serde(borrow)]
    data: SecretData<'a>,
}

#[derive(Deserialize)]
struct SecretData<'a> {
    #[serde(borrow)]
    release: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    info: HeadInfo<'a>,
    version: u64,
    #[serde(borrow)]
    namespace: Cow<'a, str>,
}

#[derive(Deserialize)]
struct HeadInfo<'a> {
    #[serde(borrow)]
    status: Cow<'a, str>,
}

/// The borrowed envelope alone.
fn envelope(body: &[u8]) {
    let envelope: Envelope<'_> = serde_json::from_slice(body).unwrap();
    black_box((envelope.request.uid, envelope.request.object));
}

/// Borrowed envelope and object, base64 twice, inflate into a buffer of the right size, borrowed head.
fn floor(body: &[u8]) {
    let envelope: Envelope<'_> = serde_json::from_slice(body).unwrap();
    let secret: Secret<'_> = serde_json::from_str(envelope.request.object.get()).unwrap();
    let gzip = STANDARD.decode(STANDARD.decode(secret.data.release.as_bytes()).unwrap()).unwrap();
    let size = u32::from_le_bytes(*gzip.last_chunk::<4>().unwrap()) as usize;
    let mut json = Vec::with_capacity(size + 1);
    GzDecoder::new(gzip.as_slice()).read_to_end(&mut json).unwrap();
    let head: Head<'_> = serde_json::from_slice(&json).unwrap();
    black_box((head.name, head.info.status, head.version, head.namespace));
}

fn naive(body: &[u8]) {
    let review: Value = serde_json::from_slice(body).unwrap();
    let release = review["request"]["object"]["data"]["release"].as_str().unwrap();
    let gzip = STANDARD.decode(STANDARD.decode(release).unwrap()).unwrap();
    let mut json = Vec::new();
    GzDecoder::new(gzip.as_slice()).read_to_end(&mut json).unwrap();
    let record: Value = serde_json::from_slice(&json).unwrap();
    black_box((&record["name"], &record["info"]["status"], &record["version"], &record["namespace"]));
}

fn naive_object(body: &[u8]) {
    let review: Value = serde_json::from_slice(body).unwrap();
    black_box(&review["request"]["object"]["metadata"]["labels"]);
}

/// A review of a new record whose JSON has about so many bytes and compresses about ten to one.
fn record_review(size: usize) -> Vec<u8> {
    let (manifest, templates) = (text(size * 4 / 10, 1), text(size * 3 / 10, 2));
    let templates: Vec<_> = templates
        .as_bytes()
        .chunks(8192)
        .enumerate()
        .map(|(index, chunk)| json!({"name": format!("templates/{index}.yaml"), "data": STANDARD.encode(chunk)}))
        .collect();
    // The members in the order in which Go writes them.
    let json = format!(
        r#"{{"name":"web","info":{{"status":"pending-upgrade","last_deployed":"2026-11-21T10:00:00Z"}},"chart":{{"metadata":{{"name":"shop","version":"1.0.0"}},"templates":{},"values":{{}}}},"config":{{}},"manifest":{},"hooks":[],"version":7,"namespace":"shop"}}"#,
        Value::from(templates),
        Value::from(manifest),
    );
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(json.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    eprintln!("record: {:.2} MiB JSON, {:.2} MiB gzip", json.len() as f64 / 1048576.0, gzip.len() as f64 / 1048576.0);
    let object = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
        "data": {"release": STANDARD.encode(STANDARD.encode(gzip))},
        "metadata": {
            "name": "sh.helm.release.v1.web.v7", "namespace": "shop", "creationTimestamp": "2026-11-21T10:00:00Z",
            "labels": {"name": "web", "owner": "helm", "status": "pending-upgrade", "version": "7"},
            "annotations": {
                "interlock.dev/holder": "alice", "interlock.dev/started": "2026-11-21T10:00:00Z",
                "interlock.dev/chart": "shop-1.0.0", "interlock.dev/target-namespace": "shop",
            },
        },
    });
    review_of("Secret", "secrets", "", "sh.helm.release.v1.web.v7", object)
}

/// A review of a Deployment of ordinary size.
fn deployment_review() -> Vec<u8> {
    let containers: Vec<_> = (0..12)
        .map(|index| {
            let env: Vec<_> = (0..20).map(|key| json!({"name": format!("KEY_{key}"), "value": "value"})).collect();
            json!({"name": format!("c{index}"), "image": "registry/image:tag", "env": env})
        })
        .collect();
    let object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"replicas": 3, "template": {"spec": {"containers": containers}}},
    });
    review_of("Deployment", "deployments", "apps", "web", object)
}

fn review_of(kind: &str, resource: &str, group: &str, name: &str, object: Value) -> Vec<u8> {
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "982091d3-5492-4b45-910b-75f83be21125", "operation": "CREATE", "name": name, "namespace": "shop",
            "kind": {"group": group, "version": "v1", "kind": kind},
            "resource": {"group": group, "version": "v1", "resource": resource},
            "userInfo": {"username": "alice", "groups": ["devs", "system:authenticated"]}, "object": object,
        },
    });
    serde_json::to_vec(&review).unwrap()
}

/// Text that looks like manifests and compresses about ten to one.
fn text(size: usize, seed: u64) -> String {
    let mut state = seed;
    let mut next = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        state >> 33
    };
    let mut text = String::with_capacity(size + 512);
    while text.len() < size {
        text.push_str(&format!(
            "---\n# Source: shop/templates/part.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: part-{:x}\n  \
             labels:\n    app.kubernetes.io/name: shop\n    app.kubernetes.io/part-of: \"shop\"\ndata:\n  key: \"{:016x}{:016x}\"\n",
            next() % 65536,
            next(),
            next()
        ));
    }
    text
}

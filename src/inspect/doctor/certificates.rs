//! The caBundles with which the API server verifies Interlock. The probe shows whether they match the serving
//! certificate.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use interlock_engine::severity::Severity::{High, Medium};
use jiff::{SignedDuration, Timestamp};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::Value;
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::time::ASN1Time;

use super::diagnosis::{Diagnosis, DiagnosisState};
use super::selector::each;
use super::snapshot::Snapshot;

/// The minimum remaining lifetime of a CA. Managed CAs are renewed earlier, when a third of their lifetime is left.
const EXPIRY_WARNING: SignedDuration = SignedDuration::from_hours(14 * 24);

/// The check of the registration reports a missing configuration.
pub(super) fn diagnose(snapshot: &Snapshot) -> Vec<Diagnosis> {
    let both = [&snapshot.validating, &snapshot.mutating].map(|fetched| fetched.named("interlock").ok().flatten());
    let entries = both.into_iter().flatten().flat_map(|configuration| each(&configuration["webhooks"]));
    let bundles: Vec<_> = entries.map(|it| (text(&it["name"]), text(&it["clientConfig"]["caBundle"]))).collect();
    diagnose_bundles(&bundles, snapshot.clocks.0, &snapshot.namespace)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// `entries`: the name of each entry and its bundle.
fn diagnose_bundles(entries: &[(&str, &str)], now: Timestamp, namespace: &str) -> Vec<Diagnosis> {
    let mut bundles: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, bundle) in entries {
        bundles.entry(bundle).or_default().push(name);
    }
    let others_are_good = bundles.keys().any(|bundle| valid_until(bundle, now).is_ok());
    let mut checks = Vec::new();
    let mut until = None;
    for (bundle, names) in &bundles {
        let of = match names.as_slice() {
            all if all.len() == entries.len() => "all entries".to_owned(),
            [first, rest @ ..] if rest.len() > 2 => format!("{first} and {} more", rest.len()),
            names => names.join(", "),
        };
        match valid_until(bundle, now) {
            Ok(last) => {
                until = until.min(Some(last)).or(Some(last));
                if last.duration_since(now) < EXPIRY_WARNING {
                    let evidence = format!("{of}: the last CA in the caBundle expires at {last}");
                    checks.push(Diagnosis::found(Medium, evidence, restart_command(namespace)));
                }
            }
            Err(why) => {
                let evidence = format!("{of}: the caBundle {why}. The API server cannot verify Interlock");
                let fix = if others_are_good { copy_command(namespace) } else { restart_command(namespace) };
                checks.push(Diagnosis::found(High, evidence, fix));
            }
        }
    }
    if !checks.iter().any(|check| check.state == DiagnosisState::Finding(High)) && bundles.len() > 1 {
        let count = bundles.len();
        let evidence = format!("the entries have {count} different caBundles. A rotation may be in progress");
        checks.push(Diagnosis::note(evidence));
    }
    if let (true, Some(until)) = (checks.is_empty(), until) {
        checks.push(Diagnosis::ok(format!("every entry has a CA that is valid at least until {until}")));
    }
    checks
}

/// The command that copies the caBundle of other entries.
fn copy_command(namespace: &str) -> String {
    format!("interlock doctor -n {namespace} --registration | kubectl apply --server-side --force-conflicts -f -")
}

fn restart_command(namespace: &str) -> String {
    format!(
        "replicas with managed certificates restore the caBundle by themselves. If they do not:\nkubectl -n \
         {namespace} rollout restart deployment/interlock\n(with cert-manager: check its Certificate and cainjector)"
    )
}

/// When the last valid CA of the bundle expires, or why none is valid.
fn valid_until(bundle: &str, now: Timestamp) -> Result<Timestamp, String> {
    if bundle.is_empty() {
        return Err("is empty".to_owned());
    }
    let pem = STANDARD.decode(bundle).map_err(|_| "is not valid base64")?;
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&pem).filter_map(Result::ok).collect();
    let all: Vec<_> = certificates.iter().filter_map(validity).collect();
    let newest = all.iter().map(|(_, until)| *until).max().ok_or("contains no certificate")?;
    let valid = all.iter().filter(|(from, until)| *from <= now && now < *until).map(|(_, until)| *until).max();
    valid.ok_or_else(|| format!("contains no CA that is valid now; the last one is valid until {newest}"))
}

/// The start and the end of the validity of a certificate; `None` if it cannot be parsed.
fn validity(der: &CertificateDer<'_>) -> Option<(Timestamp, Timestamp)> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let validity = certificate.validity();
    Some((timestamp(validity.not_before)?, timestamp(validity.not_after)?))
}

fn timestamp(time: ASN1Time) -> Option<Timestamp> {
    Timestamp::from_second(time.timestamp()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::pki::authority::Authority;

    fn states(bundles: &[&str], now: Timestamp) -> Vec<(&'static str, String)> {
        let entries: Vec<_> = bundles.iter().enumerate().map(|(at, bundle)| (format!("e{at}"), *bundle)).collect();
        let entries: Vec<_> = entries.iter().map(|(name, bundle)| (name.as_str(), *bundle)).collect();
        diagnose_bundles(&entries, now, "guard")
            .into_iter()
            .map(|check| (check.state.as_str(), check.evidence))
            .collect()
    }

    #[test]
    fn bundles_are_valid_wiped_garbage_expired_or_about_to_be() {
        let start: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
        let days = |days: i64| start + SignedDuration::from_hours(24 * days);
        let ca = Authority::generate("test", start, SignedDuration::from_hours(24 * 365)).unwrap();
        let good = STANDARD.encode(ca.certificate_pem());
        let one = |now, bundles: &[&str]| {
            let mut all = states(bundles, now);
            assert_eq!(all.len(), 1, "{all:?}");
            all.remove(0)
        };
        assert_eq!(one(start, &[&good, &good]).0, "ok");
        assert_eq!(one(days(360), &[&good]).0, "medium");
        let expired = one(days(400), &[&good]);
        assert!(
            expired.0 == "high" && expired.1.contains("all entries: the caBundle contains no CA that is valid"),
            "{expired:?}"
        );
        let wiped = one(start, &[&good, ""]);
        assert_eq!(wiped, ("high", "e1: the caBundle is empty. The API server cannot verify Interlock".to_owned()));
        assert!(one(start, &["Z2FyYmFnZQ=="]).1.contains("no certificate"));
        let other = Authority::generate("other", start, SignedDuration::from_hours(24 * 365)).unwrap();
        assert_eq!(one(start, &[&good, &STANDARD.encode(other.certificate_pem())]).0, "note");
    }
}

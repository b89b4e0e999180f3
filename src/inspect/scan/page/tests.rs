use std::collections::BTreeMap;

use interlock_engine::release::ReleaseRef;
use interlock_engine::text::MAX_MESSAGE_BYTES;

use super::*;
use crate::inspect::scan::FindingKind;

fn finding(check: FindingKind, namespace: &str, name: &str, message: &str) -> Finding {
    let release = Some(ReleaseRef::new(namespace, name));
    Finding {
        kind: check,
        release,
        object: None,
        message: message.to_owned(),
        way_out: "Run `helm x` again.".to_owned(),
    }
}

fn report(findings: Vec<Finding>) -> ScanReport {
    let mut report = ScanReport {
        cluster: "https://10.0.0.1".to_owned(),
        policy: "ConfigMap interlock-system/interlock-policies".to_owned(),
        time: "2026-11-21T10:00:00Z".parse().unwrap(),
        namespace: None,
        releases: 2,
        records: 5,
        bodies: 1,
        objects: 0,
        calls: 9,
        took_seconds: 0.25,
        peak_memory_bytes: None,
        looked_at: vec!["records in Secrets".to_owned()],
        not_looked_at: Vec::new(),
        counts: BTreeMap::new(),
        findings: Vec::new(),
        left_out: 0,
    };
    report.take(findings);
    report
}

fn rows(html: &str) -> Vec<&str> {
    html.lines().filter(|line| line.starts_with("<tr class=")).collect()
}

#[test]
fn a_row_for_each_finding_with_the_keys_that_it_is_sorted_by() {
    let html = page(&report(vec![
        finding(FindingKind::Drift, "shop", "web", "It differs."),
        finding(FindingKind::StuckOperation, "bank", "api", "It hangs."),
    ]));
    let rows = rows(&html);
    assert_eq!(rows.len(), 2);
    assert!(rows[0].starts_with("<tr class=\"high\"><td data-key=\"0\">"), "{}", rows[0]);
    assert!(rows[0].contains("<td>bank</td><td>api</td>") && rows[0].contains(">stuck-operation</td>"), "{}", rows[0]);
    assert!(rows[0].contains("<p>It hangs.</p>") && rows[0].contains("Run <code>helm x</code> again."), "{}", rows[0]);
    assert!(rows[1].starts_with("<tr class=\"low\"><td data-key=\"2\">"), "{}", rows[1]);
    assert_eq!(html.matches("<th scope=\"col\"").count(), 5);
    assert!(html.contains("<option>bank</option><option>shop</option>"));
    for count in ["<li class=\"high\"><b>1</b>", "<li class=\"low\"><b>1</b>", "<li class=\"medium none\"><b>0</b>"] {
        assert!(html.contains(count), "{count}");
    }
}

#[test]
fn nothing_that_the_cluster_says_becomes_markup() {
    let hostile = "<img src=x onerror=alert(1)>\"'&</td><script>alert(2)</script>\u{202e}\u{0}";
    let mut report = report(vec![Finding {
        way_out: format!("`{hostile}`"),
        ..finding(FindingKind::InconsistentRecord, hostile, hostile, hostile)
    }]);
    report.cluster = hostile.to_owned();
    report.namespace = Some(hostile.to_owned());
    report.looked_at = vec![hostile.to_owned()];
    report.not_looked_at = vec![Gap { what: hostile.to_owned(), times: 2, why: hostile.to_owned() }];
    let html = page(&report);
    // The page's own script, and no other.
    assert_eq!(html.matches("<script").count(), 1);
    assert_eq!(html.matches("</script").count(), 1);
    assert!(!html.contains("<img") && !html.contains('\u{202e}') && !html.contains('\u{0}'));
    let escaped = "&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;&lt;/td&gt;";
    assert_eq!(html.matches(escaped).count(), 11, "in the title, the head, the row, the filter and the footer");
    assert_eq!(rows(&html).len(), 1);
}

#[test]
fn a_cell_is_printable_and_bounded() {
    let hostile = format!("a\nb\u{1b}[2J\u{9b}\u{200b}{}", "<".repeat(1 << 20));
    let html = page(&report(vec![finding(FindingKind::InconsistentRecord, "shop", &hostile, &hostile)]));
    let row = rows(&html)[0];
    assert!(row.contains("a b\u{fffd}[2J\u{fffd}\u{fffd}&lt;") && row.contains("&lt;…<"), "{row}");
    // Each `<` takes four characters.
    assert!(row.len() < 2 * 4 * MAX_MESSAGE_BYTES + 1_000, "{} bytes", row.len());
}

#[test]
fn the_page_is_self_contained_and_restricts_itself() {
    let html = page(&report(Vec::new()));
    assert!(html.contains("No problems found") && !html.contains("<table"));
    assert!(html.contains("default-src 'none'; style-src 'sha256-") && !html.contains("unsafe"));
    for part in ["src=", "href=", "url(", "@import", "style=\"", " onclick"] {
        assert!(!html.contains(part), "{part}");
    }
    // A browser computes the digest of the text between the tags.
    let between = |start: &str, end: &str| html.split_once(start).unwrap().1.split_once(end).unwrap().0;
    for text in [between("<style>", "</style>"), between("<script>", "</script>")] {
        assert!(html.contains(&format!("'sha256-{}'", digest(text))));
    }
}

#[test]
fn large_numbers_read_well() {
    for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (30_000, "30,000"), (1_234_567, "1,234,567")] {
        assert_eq!(grouped(number), text);
    }
}

#[test]
fn gaps_are_listed() {
    let mut report = report(Vec::new());
    report.not_looked_at = vec![Gap { what: "HelmReleases".into(), times: 1, why: "forbidden".into() }];
    assert!(page(&report).contains("<li><b>HelmReleases</b>: forbidden</li>"));
}

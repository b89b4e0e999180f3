use interlock_engine::owners::ReleaseOwner;
use interlock_engine::release::ReleaseRef;
use interlock_engine::release_override::OverrideSpec;

use interlock_engine::release_override::Override;
use interlock_engine::rule::RuleId;

use super::*;
use crate::inspect::diagnosis::Stuck;
use crate::inspect::scan::Gap;
use crate::inspect::status::{OperationSummary, ReleaseSummary};
use crate::serve::page::carried::CarriedOperations;
use crate::serve::page::replicas::{Replica, ReplicaState};
use crate::serve::page::snapshot::ShownFreeze;
use crate::serve::report::refusals::Refusal;

const NOW: &str = "2026-11-21T10:00:00Z";

fn operation_of(text: &str) -> ReleaseSummary {
    ReleaseSummary {
        release: text.to_owned(),
        record: text.to_owned(),
        since: Some("2026-11-21T09:00:00Z".parse().unwrap()),
        holder: Some(text.to_owned()),
        chart: Some(text.to_owned()),
        owner: ReleaseOwner::Flux(text.to_owned()),
        stuck: Stuck::Yes,
        next: Some(text.to_owned()),
        why: Some(text.to_owned()),
        ..ReleaseSummary::of_web("pending-upgrade")
    }
}

fn carried_by(text: &str) -> CarriedOperations {
    let row = OperationSummary {
        cluster: None,
        kind: "Application",
        namespace: "argocd".to_owned(),
        name: text.to_owned(),
        stage: "interrupted",
        since: Some("2026-11-21T09:20:00Z".parse().unwrap()),
        holder: Some(text.to_owned()),
        stuck: Stuck::Yes,
        stuck_from: None,
        next: Some(text.to_owned()),
    };
    CarriedOperations { rows: vec![row], total: 301, gaps: vec![] }
}

fn replica_of(text: &str) -> Replica {
    let [pod, node] = [text, text].map(str::to_owned);
    Replica { pod, node, state: ReplicaState::Ready, leads: true, is_this: true }
}

fn snapshot(text: &str) -> Snapshot {
    let spec = OverrideSpec {
        release: text.to_owned(),
        rules: vec![RuleId::known("manual-edit")],
        users: Some(vec![text.to_owned()]),
        reason: text.to_owned(),
        ticket: Some(text.to_owned()),
        expires_at: NOW.parse().unwrap(),
    };
    let (namespace, name, created_by) = (text.to_owned(), text.to_owned(), Some(text.to_owned()));
    let refusal = Refusal {
        at: NOW.parse().unwrap(),
        user: text.to_owned(),
        operation: "UPDATE".to_owned(),
        namespace: text.to_owned(),
        release: Some(ReleaseRef::new(text, text)),
        object: text.to_owned(),
        rules: vec!["manual-edit".to_owned()],
        sentences: vec![text.to_owned()],
        commands: vec![text.to_owned()],
        times: 3,
    };
    let freeze = |in_force: bool, when: &str| {
        let [name, reason, scope] = [text, text, text].map(str::to_owned);
        let creator = in_force.then(|| text.to_owned());
        ShownFreeze { name, reason, scope, creator, in_force, when: when.to_owned() }
    };
    Snapshot {
        time: NOW.parse().unwrap(),
        operations: vec![operation_of(text)],
        in_flight: 1_201,
        in_sync: true,
        carried: carried_by(text),
        freezes: vec![freeze(true, "until 2027-01-02 06:00 Europe/Berlin"), freeze(false, "from 2027-04-01 00:00 UTC")],
        freezes_in_force: 1,
        freezes_to_come: 1,
        overrides: Some(vec![(Override { namespace, name, created: None, created_by, is_void: false, spec }, None)]),
        overrides_in_force: 1,
        refusals: vec![refusal],
        unreported: None,
        replicas: Some(Ok(vec![replica_of(text)])),
        cluster: "prod-eu".parse().ok(),
    }
}

#[test]
fn nothing_that_users_choose_becomes_markup() {
    let html = page(&snapshot("<img src=x onerror=alert(1)>\"'&</p><script>alert(2)</script>\u{202e}\u{0}"));
    assert_eq!((html.matches("<script").count(), html.matches("</script").count()), (1, 1));
    assert!(!html.contains("<img") && !html.contains('\u{202e}') && !html.contains('\u{0}'));
    // Six texts of the operation, three of that of an Application, three of each freeze, one of its creator, eight of the override, five
    // of the refusal, two of the replica.
    assert_eq!(html.matches("&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;&lt;/p&gt;").count(), 31);
}

#[test]
fn operations_show_holder_age_and_next_step_with_a_limit() {
    let html = page(&snapshot("web"));
    assert!(html.contains("<b>shop/web</b> <span class=\"severity\">stuck</span>"), "{html}");
    assert!(html.contains("pending-upgrade, revision 2, held by <b>web</b> for 60 min"), "{html}");
    assert!(
        html.contains("Next: <code class=\"command\">web</code> (web)") && html.contains("1,200 more are not shown."),
        "{html}"
    );
    assert!(!html.contains("may be missing"));
}

#[test]
fn operations_of_other_objects_are_shown_if_there_are_any() {
    let html = page(&snapshot("web"));
    for text in [
        "Operations of Applications <span class=\"count\">301</span>",
        "<b>Application argocd/web</b> <span class=\"severity\">stuck</span>",
        "<p>Next: <code class=\"command\">web</code></p>",
        "300 more are not shown.",
    ] {
        assert!(html.contains(text), "{text}: {html}");
    }
    let html = page(&Snapshot { carried: CarriedOperations::default(), ..snapshot("web") });
    assert!(!html.contains("Application"), "{html}");
    let gaps = vec![Gap::new("applications", "<forbidden>".to_owned())];
    let html =
        page(&Snapshot { carried: CarriedOperations { gaps, ..CarriedOperations::default() }, ..snapshot("web") });
    assert!(html.contains("Not read: applications: &lt;forbidden&gt;"), "{html}");
}

#[test]
fn an_empty_page_says_so_and_a_lost_watch_is_shown() {
    let html = page(&Snapshot::default());
    for text in [
        "No operation is in flight.",
        "operations may be missing",
        "Nothing is frozen, and no freeze is to come.",
        "The watch of the ReleaseOverrides is interrupted.",
        "Nothing was refused",
    ] {
        assert!(html.contains(text), "{text}");
    }
    let html = page(&Snapshot { overrides: Some(vec![]), in_sync: true, ..Snapshot::default() });
    assert!(html.contains("No override is in force.") && !html.contains("interrupted"), "{html}");
}

#[test]
fn freezes_show_whether_they_are_in_force_and_until_when() {
    let html = page(&snapshot("year-end"));
    for text in [
        "1 in force, 1 to come",
        "<b>year-end</b> <span class=\"severity\">in force</span>",
        "Frozen until 2027-01-02 06:00 Europe/Berlin: year-end",
        "<b>year-end</b> <span class=\"severity\">to come</span>",
        "Frozen from 2027-04-01 00:00 UTC: year-end",
        "year-end (created by year-end)</p>",
    ] {
        assert!(html.contains(text), "{text}: {html}");
    }
}

#[test]
fn an_override_is_shown_with_its_reason_and_ticket() {
    let html = page(&snapshot("CHG-7"));
    assert!(html.contains("CHG-7 (ticket CHG-7, created by CHG-7)"), "{html}");
    let mut bare = snapshot("OPS-8");
    bare.overrides.as_mut().unwrap()[0].0.spec.ticket = None;
    let html = page(&bare);
    assert!(html.contains("OPS-8 (created by OPS-8)"), "{html}");
}

#[test]
fn the_page_is_bounded_whatever_users_write() {
    let one = snapshot(&"<".repeat(100_000));
    let many = |operation: &ReleaseSummary| vec![operation.clone(); 200];
    let html = page(&Snapshot { operations: many(&one.operations[0]), in_flight: 200, ..one });
    assert!(html.len() < 2 << 20, "{}", html.len());
    let shown = html.matches("pending-upgrade").count();
    assert!(shown > 1 && html.contains(&format!("{} more are not shown.", 200 - shown)), "{shown}");
}

#[test]
fn the_policy_allows_only_the_style_and_the_script_of_the_page() {
    let policy = policy();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-") && !policy.contains("unsafe"), "{policy}");
    let html = page(&snapshot("web")).replace("href=\"/changes/", "");
    for remote in ["src=", "href=", "url("] {
        assert!(!html.contains(remote), "{remote}");
    }
}

#[test]
fn what_a_release_is_about_leads_to_its_history_and_a_strange_name_leads_nowhere() {
    let html = page(&snapshot("web"));
    for link in ["\"/changes/shop/web\"", "\"/changes/argocd/applications/web\"", "\"/changes/web/web\""] {
        assert!(html.contains(link), "{link}: {html}");
    }
    assert!(!page(&snapshot("a b")).contains("/changes/") && !page(&snapshot("..")).contains("/changes/"));
    assert!(!page(&Snapshot { replicas: None, ..snapshot("web") }).contains("/changes/"));
}

#[test]
fn the_page_names_the_cluster_its_replicas_and_what_it_could_not_read() {
    let html = page(&snapshot("web"));
    for text in [
        "<title>prod-eu: Releases",
        "Interlock · prod-eu",
        "1 of 1 ready",
        "on web · leads · shows",
        "3 times",
        "Last refusals <",
    ] {
        assert!(html.contains(text), "{text}: {html}");
    }
    let lost = Replica { leads: false, state: ReplicaState::NotReady, ..replica_of("a") };
    assert!(page(&Snapshot { replicas: Some(Ok(vec![lost])), ..snapshot("web") }).contains("None of them leads"));
    let html = page(&Snapshot {
        replicas: Some(Err("<forbidden>".to_owned())),
        unreported: Some("not <installed>".to_owned()),
        ..snapshot("web")
    });
    for text in
        ["Not read: &lt;forbidden&gt;", "Last refusals of this replica", "other replicas: not &lt;installed&gt;"]
    {
        assert!(html.contains(text), "{text}: {html}");
    }
}

#[test]
fn a_history_is_a_table_without_markup_of_users() {
    use interlock_engine::decision::TransitionKind;

    use crate::inspect::changes::{Change, ChangeSource, ChangedRelease};
    use crate::serve::page::history::FoundHistory;

    let release =
        ChangedRelease { namespace: "shop".into(), release: "web".into(), revision: Some(7), storage: "Secret" };
    let change = Change::new(NOW.parse().unwrap(), release, TransitionKind::Upgrade, ChangeSource::Record);
    let told = FoundHistory {
        changes: vec![Change { user: Some("<b>mallory".into()), ..change }],
        gaps: vec!["<gap>".into()],
    };
    let html = history(None, "shop/web", &told);
    for text in ["History of shop/web", "<td>7</td><td>upgrade</td><td>&lt;b&gt;mallory</td>", "Not read: &lt;gap&gt;"]
    {
        assert!(html.contains(text), "{text}: {html}");
    }
    assert!(history(None, "shop/web", &FoundHistory::default()).contains("keeps no change"));
}

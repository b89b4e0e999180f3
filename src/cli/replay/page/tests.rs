use interlock_engine::ways_out::WaysOut;

use super::*;
use crate::inspect::html::digest;
use crate::offline::replay::{Replayed, ReplayedContext, ReplayedViolation};

fn replayed(user: &str, namespace: &str, rule: &'static str, message: &str) -> Replayed {
    let violation = ReplayedViolation {
        rule,
        mode: "enforce",
        message: message.to_owned(),
        ways_out: WaysOut::default(),
        undecided: false,
        refuses: true,
        pointers: Vec::new(),
    };
    Replayed {
        line: 7,
        uid: String::new(),
        operation: "UPDATE".to_owned(),
        resource: "deployments.apps".to_owned(),
        namespace: namespace.to_owned(),
        name: "web".to_owned(),
        user: user.to_owned(),
        allowed: false,
        code: 403,
        violations: vec![violation],
        warnings: Vec::new(),
        patch: None,
        release: None,
        at: "2026-11-21T10:00:00Z".parse().unwrap(),
        context: ReplayedContext::default(),
    }
}

fn overview(all: &[Replayed]) -> Overview {
    let mut overview = Overview::default();
    all.iter().for_each(|replayed| overview.add(replayed));
    overview
}

/// The rows of a section, by its title.
fn rows<'h>(html: &'h str, title: &str) -> Vec<&'h str> {
    let section = html.split_once(&format!("<h2>{title}</h2>")).unwrap().1.split_once("</section>").unwrap().0;
    section.lines().filter(|line| line.starts_with("<tr><th scope=\"row\">")).collect()
}

#[test]
fn counts_and_reasons_are_by_rule_namespace_and_account() {
    let html = page(
        &overview(&[
            replayed("bob", "shop", "manual-edit", "spec.replicas is declared"),
            replayed("bob", "shop", "manual-edit", "spec.replicas is declared"),
            replayed("eve", "bank", "manual-delete", "the release declares it"),
        ]),
        "1 request that the registration does not send, not judged: 1 in namespaces.\n",
    );
    assert!(html.contains("3 requests judged") && html.contains("<b>3</b> <span>denied</span>"));
    for (title, first, second) in
        [("By rule", "manual-edit", "manual-delete"), ("By namespace", "shop", "bank"), ("By account", "bob", "eve")]
    {
        let rows = rows(&html, title);
        assert_eq!(rows.len(), 2, "{title}");
        assert!(rows[0].contains(&format!(">{first}</th><td class=\"count\">2</td>")), "{}", rows[0]);
        assert!(rows[1].contains(&format!(">{second}</th><td class=\"count\">1</td>")), "{}", rows[1]);
        assert_eq!(rows[0].matches("spec.replicas is declared").count(), 1, "the same client once");
        assert!(rows[0].contains("2026-11-21 10:00:00</time> UPDATE deployments.apps shop/web by bob"), "{}", rows[0]);
    }
    assert!(html.contains("<li>1 request that the registration does not send, not judged: 1 in namespaces.</li>"));
}

#[test]
fn nothing_that_a_request_says_becomes_markup() {
    let hostile = "<img src=x onerror=alert(1)>\"'&</td><script>alert(2)</script>\u{202e}\u{0}";
    let mut request = replayed(hostile, hostile, "manual-edit", hostile);
    (request.operation, request.resource, request.name) = (hostile.into(), hostile.into(), hostile.into());
    let html = page(&overview(&[request]), hostile);
    assert!(
        !html.contains("<img") && !html.contains("<script") && !html.contains('\u{202e}') && !html.contains('\u{0}')
    );
    assert!(html.contains("&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;&lt;/td&gt;"));
}

#[test]
fn a_page_is_bounded_and_self_contained() {
    let many: Vec<_> = (0..1_100)
        .map(|number| replayed(&format!("user-{number}"), "shop", "manual-edit", &"<".repeat(1 << 16)))
        .collect();
    let html = page(&overview(&many), "");
    assert_eq!(rows(&html, "By account").len(), 1_000);
    assert!(html.contains("100 more findings are not shown"));
    assert!(html.len() < 16 << 20, "{} bytes", html.len());
    assert_eq!(rows(&html, "By rule")[0].matches("class=\"reason\"").count(), 3);
    for part in ["src=", "href=", "url(", "@import", "style=\"", "<script"] {
        assert!(!html.contains(part), "{part}");
    }
    let style = html.split_once("<style>").unwrap().1.split_once("</style>").unwrap().0;
    assert!(html.contains(&format!("style-src 'sha256-{}'", digest(style))));
}

#[test]
fn a_replay_without_findings_says_so() {
    let html = page(&Overview::default(), "");
    assert!(html.contains("No rule would have been broken.") && !html.contains("<table") && !html.contains("<footer"));
}

//! The page of `serve --page`, over HTTP.

use ::http::{Method, StatusCode};
use serde_json::json;

use crate::harness::fixtures::review;
use crate::harness::secrets::{SECRET, record, tell_secrets};
use crate::harness::standalone::Standalone;

const LOCAL: &str = "localhost:8081";

#[tokio::test]
async fn without_the_argument_there_is_no_page() {
    let server = Standalone::start(&[], &[]);
    let answer = server.admin(Method::GET, "/", LOCAL).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    assert!(answer.text().contains("try /livez"), "{}", answer.text());
}

#[tokio::test]
async fn the_page_shows_what_is_in_flight_and_was_refused_and_no_content() {
    let policies = tempfile::tempdir().unwrap();
    let policy = "apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\nfreezes: [{name: stock, reason: 'count <all>', \
                  timeZone: UTC, from: 2026-01-01, to: 2099-01-01, releases: [api]}]\n";
    std::fs::write(policies.path().join("cluster.yaml"), policy).unwrap();
    let server = Standalone::start(&["--page", "--policies", policies.path().to_str().unwrap()], &[]);
    tell_secrets(&server, &[]).await;
    let mut write = review("UPDATE", Some(&record("deployed")), Some(&record("uninstalling")));
    for path in ["/mutate", "/validate"] {
        server.post(path, write.to_string(), &[]).await;
    }
    // Somebody starts another operation over it.
    let mut second = record("pending-upgrade");
    second["metadata"]["name"] = json!("sh.helm.release.v1.web.v2");
    second["metadata"]["labels"]["version"] = json!("2");
    write = review("CREATE", None, Some(&second));
    write["request"]["name"] = json!("sh.helm.release.v1.web.v2");
    write["request"]["userInfo"] = json!({"username": "<b>mallory"});
    server.post("/validate", write.to_string(), &[]).await;

    let answer = server.admin(Method::GET, "/", LOCAL).await;
    assert_eq!(answer.status, StatusCode::OK);
    let html = answer.text();
    for text in [
        "shop/web",
        "uninstalling, revision 1, held by",
        "&lt;b&gt;mallory",
        "No override is in force.",
        "Frozen until 2099-01-01 00:00 UTC: count &lt;all&gt;",
        "releases api",
    ] {
        assert!(html.contains(text), "no {text} in\n{html}");
    }
    assert!(!html.contains(SECRET) && !html.contains("<b>mallory"), "{html}");
    for (name, value) in [
        ("content-type", "text/html; charset=utf-8"),
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
    ] {
        assert_eq!(answer.header(name), Some(value), "{name}");
    }
    let policy = answer.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-") && !policy.contains("unsafe"), "{policy}");
    // Only the admin port has it.
    let elsewhere = server.get("/").await;
    assert_eq!(elsewhere.status, StatusCode::NOT_FOUND, "{}", elsewhere.text());
}

#[tokio::test]
async fn the_page_is_only_read_and_only_under_its_own_name() {
    let server = Standalone::start(&["--page"], &[]);
    for method in [Method::POST, Method::PUT, Method::DELETE] {
        let answer = server.admin(method.clone(), "/", LOCAL).await;
        assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED, "{method}");
    }
    let head = server.admin(Method::HEAD, "/", LOCAL).await;
    assert_eq!((head.status, head.body.len()), (StatusCode::OK, 0));
    let rebound = server.admin(Method::GET, "/", "evil.example:8081").await;
    assert_eq!(rebound.status, StatusCode::MISDIRECTED_REQUEST);
    assert!(rebound.text().contains("kubectl port-forward"), "{}", rebound.text());
    // Probes come by the address of the pod, or by any name.
    assert_eq!(server.admin(Method::GET, "/livez", "evil.example").await.status, StatusCode::OK);
}

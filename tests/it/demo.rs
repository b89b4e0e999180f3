//! `interlock demo`: what it prints, its page, and the picture of it in the documents.

use std::fmt::Write;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use ::http::Method;
use bytes::Bytes;

use crate::harness::binary::{interlock, interlock_in, repository, stdout};
use crate::harness::client::{Connection, request};

/// Set to write the picture in place of comparing it.
const WRITE: &str = "INTERLOCK_WRITE_DOCS";

/// The lines that the picture shows at a time.
const SHOWN: usize = 26;
const LINE_HEIGHT: usize = 18;
/// Seconds at the beginning and at the end.
const HOLD: f64 = 5.0;
/// Seconds for a line.
const PACE: f64 = 0.45;

#[test]
fn each_story_is_told_without_and_with_interlock() {
    let output = interlock(&["demo", "--no-page"]);
    assert!(output.status.success(), "{output:?}");
    let text = stdout(&output);
    for parts in ["/5  ", "  without Interlock\n", "  with Interlock\n"] {
        assert_eq!(text.matches(parts).count(), 5, "{parts}\n{text}");
    }
    assert_eq!(text.matches("    REFUSED  ").count(), 6, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 104), "{text}");
    assert!(text.trim_end().lines().rev().take(3).any(|line| line.starts_with("Next: ")), "{text}");
    let refused = interlock(&["demo", "--page", "127.0.0.1:0", "--no-page"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}

#[tokio::test]
async fn it_ends_with_the_page_of_the_refusals() {
    let mut child = interlock_in(".").args(["demo", "--page", "127.0.0.1:0"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let line = lines.find(|line| line.starts_with("The page")).unwrap();
    let (_, address) = line.split_once("http://").unwrap();
    let mut get = request(Method::GET, "/", None, Bytes::new());
    get.headers_mut().insert("host", "localhost".parse().unwrap());
    let page = Connection::plain(address.trim_end_matches('/').parse().unwrap()).await.send(get).await.unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    for rule in ["pending-recovery", "dropped-bundles", "duplicate-release", "manual-edit"] {
        assert!(page.text().contains(rule), "no {rule} in {}", page.text());
    }
}

/// The output as a picture that moves: it begins with the first story, and then rolls.
fn cast(text: &str) -> String {
    let lines: Vec<_> = text.lines().collect();
    let below = lines.len() - SHOWN;
    let seconds = HOLD * 2.0 + below as f64 * PACE;
    let height = SHOWN * LINE_HEIGHT + 16;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 860 {height}\" font-family=\"ui-monospace, monospace\" \
         font-size=\"14\">\n<title>interlock demo</title>\n<style>\n  text {{ white-space: pre; fill: #d8dee9 }}\n  \
         .refused {{ fill: #ff7b72; font-weight: bold }}\n  .head {{ fill: #79c0ff; font-weight: bold }}\n  \
         #all {{ animation: roll {seconds:.1}s steps(1, jump-end) infinite }}\n  @keyframes roll {{\n"
    );
    for up in 0..=below {
        let percent = (HOLD + up as f64 * PACE) * 100.0 / seconds;
        writeln!(svg, "    {percent:.2}% {{ transform: translateY(-{}px) }}", up * LINE_HEIGHT).unwrap();
    }
    writeln!(svg, "    100% {{ transform: translateY(-{}px) }}\n  }}\n</style>", below * LINE_HEIGHT).unwrap();
    writeln!(svg, "<rect width=\"860\" height=\"{height}\" rx=\"8\" fill=\"#0d1117\"/>\n<g id=\"all\">").unwrap();
    for (number, line) in lines.iter().enumerate().filter(|(_, line)| !line.is_empty()) {
        let class = match line {
            _ if line.contains("REFUSED") => " class=\"refused\"",
            _ if line.contains("/5  ") || line.ends_with("Interlock") => " class=\"head\"",
            _ => "",
        };
        let line = line.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        writeln!(svg, "<text x=\"14\" y=\"{}\"{class}>{line}</text>", (number + 1) * LINE_HEIGHT + 4).unwrap();
    }
    svg + "</g>\n</svg>\n"
}

#[test]
fn the_picture_is_what_it_prints() {
    const PICTURE: &str = "docs/demo.svg";
    let made = cast(stdout(&interlock(&["demo", "--no-page"])));
    if std::env::var_os(WRITE).is_some() {
        fs::write(repository(PICTURE), &made).unwrap();
    }
    let committed = fs::read_to_string(repository(PICTURE)).unwrap_or_default();
    assert!(committed == made, "{PICTURE} is old; {WRITE}=1 cargo test --test it demo writes it");
}

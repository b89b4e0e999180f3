use std::io::Read;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use interlock_engine::policy::Policy;

use super::*;

/// A recording of real clients, in which a person has a hostile name.
const RECORDING: &[u8] = include_bytes!("../../../tests/recordings/helm.jsonl.gz");
const HOSTILE: &str = "<script>alert(1)</script>\\u202e";

/// The report on the recording. With `text`, that of the policy in force.
fn adopted(user: &str, text: Option<&str>) -> Adopted {
    let mut lines = String::new();
    MultiGzDecoder::new(RECORDING).read_to_string(&mut lines).unwrap();
    let lines = lines.replace("\"alice\"", &format!("\"{user}\""));
    let policy = text.map_or_else(Policy::shipped, |text| Policy::parse(text, Path::new(CLUSTER_FILE)));
    let mut adoption = Adoption::new(Policies::from(policy.unwrap())).unwrap();
    let mut replay = Replay::new(adoption.judging(), true);
    block_on(async {
        for (index, line) in lines.lines().enumerate() {
            replay.line(index + 1, line).await?.iter().for_each(|replayed| adoption.add(replayed));
        }
        Ok(())
    })
    .unwrap();
    Adopted { report: adoption.report(text), cluster: None, counted: Vec::new() }
}

#[test]
fn the_page_escapes_names_and_allows_no_script() {
    let page = page::page(&adopted(HOSTILE, None), "the shipped policy", "a note <b>\n");
    assert!(page.contains("&lt;script&gt;") && !page.contains("<script>") && !page.contains('\u{202e}'));
    assert!(page.contains("default-src 'none'; style-src 'sha256-") && page.contains("a note &lt;b&gt;"));
    for section in ["What Interlock would have stopped", "By rule", "Who writes", "The policy that follows"] {
        assert!(page.contains(&format!("<h2>{section}</h2>")), "{section}");
    }
    // Seventeen findings, and three of each rule unfolded.
    assert!(page.contains("<details><summary>") && page.contains(" more of "), "{page}");
    for tag in ["section", "table", "ul", "article", "p", "details", "summary"] {
        let opened = page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
    }
}

#[test]
fn text_and_json_have_the_same_findings() {
    let adopted = adopted("alice", None);
    let text = text::text(&adopted, "the shipped policy");
    let json = serde_json::to_value(&adopted).unwrap();
    assert!(text.contains("17 would have been stopped as incidents, 0 disturbed, 0 questions to decide."), "{text}");
    assert_eq!(json["accounts"][0]["class"], "person");
    let incidents = json["incidents"].as_array().unwrap();
    assert!(incidents.len() > 10 && incidents.iter().all(|finding| finding["refused"] == true));
    for finding in incidents {
        assert!(text.contains(finding["story"].as_str().unwrap()), "{finding}");
    }
    assert!(json.get("cluster").is_none() && json["next"].is_null());
    assert!(!text::text(&self::adopted(HOSTILE, None), "").contains('\u{202e}'));
}

#[test]
fn with_a_policy_in_force_the_next_step_is_a_diff() {
    let in_force = "apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\n\n# At first.\ncap: audit\n";
    let adopted = adopted("alice", Some(in_force));
    let text = text::text(&adopted, "policies/cluster.yaml");
    // The rule that stops the most.
    assert!(text.contains("Next: Enforce manual-edit: since ") && text.contains("and stopped 8 acts."), "{text}");
    assert!(
        text.contains("-# At first.\n-cap: audit\n") && text.contains("+  record-deletion:\n+    mode: audit\n"),
        "{text}"
    );
    let page = page::page(&adopted, "policies/cluster.yaml", "");
    assert!(page.contains("<h2>The next step</h2>") && page.contains("-cap: audit\n"), "{page}");
}

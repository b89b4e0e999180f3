//! Files, merged by time.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

/// An audit event with these times of day.
fn event(id: &str, verb: &str, received: &str, ended: &str) -> Value {
    json!({
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "auditID": id, "verb": verb, "stage": "ResponseComplete",
        "requestReceivedTimestamp": format!("2026-11-21T{received}Z"), "stageTimestamp": format!("2026-11-21T{ended}Z"),
    })
}

fn write_at(id: &str, time: &str) -> Value {
    event(id, "update", time, time)
}

fn lines(values: &[Value]) -> String {
    values.iter().map(|value| format!("{value}\n")).collect()
}

struct Files(#[expect(dead_code, reason = "it is removed when it is dropped")] TempDir, Vec<PathBuf>);

impl Files {
    fn of(texts: &[String]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let write = |(index, text): (usize, &String)| {
            let path = dir.path().join(format!("{index}.log"));
            fs::write(&path, text).unwrap();
            path
        };
        let paths = texts.iter().enumerate().map(write).collect();
        Self(dir, paths)
    }

    /// The audit IDs, marks or names of the lines, in order, and the notes.
    fn read(&self) -> Result<(Vec<String>, String), String> {
        let mut source = Source::new(self.1.clone()).map_err(|error| error.to_string())?;
        let mut read = Vec::new();
        while let Some(line) = source.line().map_err(|error| error.to_string())? {
            let value: Value = serde_json::from_str(line.text).unwrap();
            let name = ["auditID", "mark", "object"].into_iter().find_map(|key| value[key].as_str().map(str::to_owned));
            read.push(name.unwrap_or_else(|| value["review"].as_str().unwrap_or("?").to_owned()));
        }
        assert_eq!(source.read(), source.size(), "the progress ends at its end");
        Ok((read, source.notes().to_string()))
    }
}

fn read(files: &[&[Value]]) -> (Vec<String>, String) {
    Files::of(&files.iter().map(|file| lines(file)).collect::<Vec<_>>()).read().unwrap()
}

#[test]
fn logs_are_merged_by_time_in_any_order_of_the_files() {
    let one = [write_at("a", "10:00:01"), write_at("c", "10:00:03"), write_at("f", "10:00:06")];
    let two = [write_at("b", "10:00:02"), write_at("d", "10:00:04")];
    let later = [write_at("g", "11:00:00")];
    let wanted: Vec<_> = ["a", "b", "c", "d", "f", "g"].map(str::to_owned).into();
    for files in [[&one[..], &two, &later], [&later, &two, &one], [&two, &later, &one]] {
        assert_eq!(read(&files), (wanted.clone(), String::new()));
    }
}

#[test]
fn lines_are_ordered_by_end_and_then_by_start() {
    let slow = event("slow", "create", "10:00:00", "10:00:05");
    let quick = event("quick", "create", "10:00:01", "10:00:01.5");
    assert_eq!(read(&[&[slow], &[quick]]).0, ["quick", "slow"]);
    let same = |id: &str, received: &str| event(id, "create", received, "10:00:09");
    assert_eq!(read(&[&[same("b", "10:00:02")], &[same("a", "10:00:01")]]).0, ["a", "b"]);
    let mut bare = write_at("bare", "10:00:03");
    bare.as_object_mut().unwrap().remove("stageTimestamp");
    assert_eq!(read(&[&[write_at("x", "10:00:04")], &[bare]]).0, ["bare", "x"]);
}

#[test]
fn lines_without_a_time_keep_their_place() {
    let object = |name: &str| json!({"object": name});
    let log = [write_at("a", "10:00:01"), object("after-a"), write_at("c", "10:00:03")];
    let other = [write_at("b", "10:00:02"), json!({"mark": "after-b"})];
    let before = [object("x"), object("y")];
    let wanted = ["x", "y", "a", "after-a", "b", "after-b", "c"];
    assert_eq!(read(&[&before, &log, &other]).0, wanted);
    assert_eq!(read(&[&other, &log, &before]).0, wanted);
    // Recordings have times of their own, or none.
    let at = |name: &str, t: f64| json!({"review": name, "t": t});
    assert_eq!(read(&[&[at("b", 2.0), at("c", 3.5)], &[at("a", 1.0), at("d", 4.0)]]).0, ["a", "b", "c", "d"]);
    let untimed = |name: &str| json!({"review": name});
    assert_eq!(read(&[&[untimed("b"), untimed("a")], &[untimed("c")]]).0, ["b", "a", "c"]);
}

#[test]
fn an_event_that_several_files_have_is_read_once() {
    let log = [write_at("a", "10:00:01"), write_at("b", "10:00:02"), write_at("c", "10:00:03")];
    let (read_once, notes) = read(&[&log, &log[1..], &[write_at("d", "10:00:04")]]);
    assert_eq!(read_once, ["a", "b", "c", "d"]);
    assert_eq!(notes, "2 events are in several of the files, and were judged once.\n");
    // Clients choose audit IDs, but not times.
    let (kept, notes) = read(&[&[write_at("a", "10:00:01")], &[write_at("a", "10:00:02"), write_at("", "10:00:02")]]);
    assert_eq!((kept.len(), notes.as_str()), (3, ""));
    // Repeated events in one log are kept.
    assert_eq!(read(&[&[log[0].clone(), log[0].clone()], &[]]).0, ["a", "a"]);
}

#[test]
fn time_that_runs_back_is_an_error_or_a_note_by_how_far() {
    let refused = Files::of(&[lines(&[write_at("a", "12:00:00"), write_at("b", "10:00:00")])]).read().unwrap_err();
    for wanted in
        ["0.log: line 2: time runs back", "by 2h", "from 2026-11-21 12:00:00 to 2026-11-21 10:00:00", "jq -sc"]
    {
        assert!(refused.contains(wanted), "{refused}");
    }
    let twice = Files::of(&[lines(&[write_at("a", "10:00:00"), write_at("b", "12:00:00")]).repeat(2)]);
    assert!(twice.read().unwrap_err().contains("line 3: time runs back"));
    let by_start = |id: &str, received: &str| event(id, "create", received, "23:00:00");
    let refused = Files::of(&[lines(&[by_start("a", "12:00:00"), by_start("b", "11:00:00")])]).read().unwrap_err();
    assert!(refused.contains("time runs back here, by 1h"), "{refused}");

    let (kept, notes) = read(&[&[write_at("a", "10:00:10"), write_at("b", "10:00:03"), write_at("c", "10:00:09")]]);
    assert_eq!(kept, ["a", "b", "c"]);
    assert!(notes.contains("0.log: time runs back 1 times, by up to 7s (line 2)"), "{notes}");
    // Requests that end together, and watches that started long ago.
    let usual = [
        event("a", "update", "10:00:00", "10:00:01.2"),
        event("b", "update", "10:00:01", "10:00:01.1"),
        event("w", "watch", "09:00:00", "10:00:01.2"),
        event("e", "create", "08:00:00", "10:00:02"),
    ];
    assert_eq!(read(&[&usual]).1, "");
}

#[test]
fn the_events_of_a_list_are_lines() {
    let mut items = [write_at("b", "10:00:02"), write_at("d", "10:00:04")];
    for item in &mut items {
        item.as_object_mut().unwrap().remove("kind");
        item.as_object_mut().unwrap().remove("apiVersion");
    }
    let list = json!({"kind": "EventList", "apiVersion": "audit.k8s.io/v1", "items": items});
    let empty = json!({"kind": "EventList", "apiVersion": "audit.k8s.io/v1", "items": null});
    let log = [write_at("a", "10:00:01"), write_at("c", "10:00:03"), write_at("e", "10:00:05")];
    assert_eq!(read(&[&log, &[empty.clone(), list.clone(), empty.clone()]]).0, ["a", "b", "c", "d", "e"]);
    assert_eq!(read(&[&[list.clone(), write_at("f", "10:00:06")]]).0, ["b", "d", "f"]);
    assert_eq!(read(&[&[empty], &[]]).0, [""; 0]);
    // Each event has the line number of its list in the file.
    let files = Files::of(&[lines(&[log[0].clone(), list])]);
    let mut source = Source::new(files.1.clone()).unwrap();
    let mut numbers = Vec::new();
    while let Some(line) = source.line().unwrap() {
        numbers.push(line.number);
    }
    assert_eq!(numbers, [1, 2, 2]);
}

#[test]
fn an_invalid_line_comes_with_a_hint() {
    let hint = |text: &str| {
        let files = Files::of(&[text.to_owned()]);
        let mut source = Source::new(files.1.clone()).unwrap();
        let mut hints = Vec::new();
        while let Some(line) = source.line().unwrap() {
            hints.push(line.hint());
        }
        hints
    };
    let complete = write_at("a", "10:00:00").to_string();
    let cut_head = hint(&format!("{}\n{complete}\n", &complete[9..]));
    assert!(cut_head[0].unwrap().contains("starts in the middle") && cut_head[1].is_none());
    let other_file = hint(&format!("# Recordings\n{complete}\n"));
    assert!(other_file[0].unwrap().contains("neither a recording nor an audit log") && other_file[1].is_none());
    let cut_tail = hint(&format!("{complete}\n{}", &complete[..40]));
    assert!(cut_tail[1].unwrap().contains("ends in the middle") && cut_tail[0].is_none());
    assert!(hint("{\n  \"kind\": \"Event\"\n}\n")[0].unwrap().contains("jq -c ."));
    assert!(hint(&format!("[{complete}]\n"))[0].unwrap().contains("jq -c '.[]'"));
    assert_eq!(hint(&complete), [None]);
}

#[test]
fn files_that_are_no_text_are_errors() {
    for (bytes, wanted) in [
        (b"{\"mark\": \"\xe9\"}\n".to_vec(), "line 1: it is not UTF-8: byte 10 of the line is 0xe9"),
        (vec![0x1f, 0x8b, 8, 0], "failed to read"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, bytes).unwrap();
        let Err(error) = Source::new(vec![path]).map(|_| ()) else { panic!("expected an error") };
        assert!(error.to_string().contains(wanted), "{error}");
    }
    assert!(Source::new(vec!["/nowhere".into()]).is_err());
}

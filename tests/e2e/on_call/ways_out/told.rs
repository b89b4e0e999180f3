//! The text of a refusal as a reader understands it: the steps that it asks for.

use regex::Regex;

/// One thing that a way out asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// A command, as printed.
    Run(String),
    /// Until the operation in flight has ended.
    Wait,
    /// Until the workloads are healthy.
    Heal,
    /// What was refused, again, until it passes.
    Retry,
    /// The printed break-glass command, and what was refused again.
    Override,
    /// The owner's next operation on the release.
    Next,
    /// What a phrase of the case describes.
    Act(usize),
}

/// What a phrase is to a reader.
enum Meaning {
    Step(Step),
    /// Another way begins.
    Or,
    /// It asks for nothing.
    Remark,
}

type Phrase = (&'static str, fn(&str) -> Meaning);

/// The phrases of ways out, as regular expressions. The first that fits counts.
const PHRASES: &[Phrase] = &[
    ("`[^`]+`", |text| Meaning::Step(Step::Run(text.trim_matches('`').to_owned()))),
    (r"(?i)wait until (that|the) operation ends or the checks pass", |_| Meaning::Step(Step::Heal)),
    (r"(?i)wait until (that|the) operation ends", |_| Meaning::Step(Step::Wait)),
    (r"(?i)check the workloads", |_| Meaning::Step(Step::Heal)),
    (r"(you|anyone) can [a-z ]+ \d+ [a-z]+ after it started", |_| Meaning::Step(Step::Retry)),
    (r"(?i)run (the|that) (operation|upgrade|install|rollback|uninstall) again", |_| Meaning::Step(Step::Next)),
    (r"(?i)let OLM try again|the next step then finishes the operation", |_| Meaning::Step(Step::Next)),
    (r"(?i)change the source of ClusterExtension [a-z0-9-]+", |_| Meaning::Step(Step::Next)),
    (r"(then continue from there|try again)", |_| Meaning::Step(Step::Retry)),
    ("ask for a ReleaseOverride", |_| Meaning::Step(Step::Override)),
    // What a reader does nothing about.
    (r"That operation counts as stuck", |_| Meaning::Remark),
    (r", so that it starts from the new(est)? (state of the release|revision)", |_| Meaning::Remark),
    (r"Do not edit records by hand|A record is never rewritten", |_| Meaning::Remark),
    (r"[A-Za-z0-9:-]+ may delete it as soon as it counts as stuck, whatever the workloads say", |_| Meaning::Remark),
    (r"A restore tool must be listed under `tools` in the cluster policy", |_| Meaning::Remark),
    (r"(?i)(change|remove) it through|delete only (its|this|the) record( [a-z0-9./-]+)?", |_| Meaning::Remark),
    (r"(?i)remove the annotation( [a-z./-]+ from the record [a-z0-9.-]+)?|change the release with", |_| {
        Meaning::Remark
    }),
    (
        r"makes Flux go on at once|: Flux does nothing for a suspended HelmRelease|Sveltos does, and writes new ones for each try|Sveltos retries within a minute",
        |_| Meaning::Remark,
    ),
    (
        r"(?i)(pin the version that is pending|pin it|annotate (this )?[A-Za-z]+( [a-z0-9/-]+)? with [a-z./-]+: [^ ]+) ?",
        |_| Meaning::Remark,
    ),
    (r"to remove the release|upgrade it with the driver that has its records", |_| Meaning::Remark),
    // A condition or a purpose begins another way.
    (r"(?i)([;,.]? or,? )?(to|if|once) [^,.`]+, ", |_| Meaning::Or),
    (r"[;,.]? ?or,? ", |_| Meaning::Or),
    (r"(?i)(and|then|with|use|see|run)\b", |_| Meaning::Remark),
    (r"[\s.,;:()]+", |_| Meaning::Remark),
];

/// The ways out of a refusal by a rule, with the case's own phrases. Everything from the first instruction to the name of the rule
/// must be understood.
#[track_caller]
pub(super) fn ways(printed: &str, rule: &str, own: &[&str]) -> Vec<Vec<Step>> {
    let printed = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    let Some((told, _)) = printed.split_once(&format!(" [{rule}]")) else {
        panic!("expected a refusal by {rule}: {printed}");
    };
    let anchored = |phrase: &str| Regex::new(&format!("^(?:{phrase})")).unwrap_or_else(|error| panic!("{error}"));
    let own: Vec<_> = own.iter().map(|phrase| anchored(phrase)).collect();
    let general: Vec<_> = PHRASES.iter().map(|(phrase, meaning)| (anchored(phrase), meaning)).collect();
    let understood = |rest: &str| {
        let of_case = own.iter().enumerate().find_map(|(number, phrase)| {
            phrase.find(rest).map(|found| (found.len(), Meaning::Step(Step::Act(number))))
        });
        of_case.or_else(|| {
            let general = general.iter().find_map(|(phrase, meaning)| phrase.find(rest).map(|found| (found, meaning)));
            general.map(|(found, meaning)| (found.len(), meaning(found.as_str())))
        })
    };
    let (mut ways, mut way, mut begun, mut rest) = (Vec::new(), Vec::new(), false, told);
    while let Some(letter) = rest.chars().next() {
        match understood(rest) {
            Some((length, meaning)) => {
                rest = &rest[length..];
                match meaning {
                    Meaning::Step(step) => {
                        begun = true;
                        way.push(step);
                    }
                    Meaning::Or if begun => ways.push(std::mem::take(&mut way)),
                    Meaning::Or | Meaning::Remark => {}
                }
            }
            // The sentence before says what is refused.
            None if !begun => rest = &rest[letter.len_utf8()..],
            None => panic!("nobody can follow {rest:?} in {told:?}"),
        }
    }
    ways.push(way);
    assert!(ways.iter().all(|way| !way.is_empty()), "it names no way out: {told}");
    ways
}

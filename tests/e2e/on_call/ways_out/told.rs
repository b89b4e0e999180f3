//! The text of a refusal as a reader understands it: the steps that it asks for.

use regex::Regex;

/// One thing that a way out asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// A command, as printed.
    Run(String),
    /// Until the operation in flight has ended.
    Wait,
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
#[derive(Clone)]
enum Meaning {
    Step(Step),
    /// Another way begins.
    Or,
    /// It asks for nothing.
    Remark,
}

/// The phrases that ask for something, as regular expressions. Of these and those below the first that fits counts.
const INSTRUCTIONS: &[(&str, Step)] = &[
    (r"wait until (that|the) operation ends", Step::Wait),
    (r"wait until the freeze ends", Step::Retry),
    (r"(you|anyone) can [a-z ]+ \d+ [a-z]+ after it started", Step::Retry),
    (r"run (the|that) (operation|upgrade|install|rollback|uninstall) again", Step::Next),
    (r"let OLM try again", Step::Next),
    (r"the next step then finishes the operation", Step::Next),
    (r"change the source of ClusterExtension [a-z0-9-]+", Step::Next),
    (r"then continue from there", Step::Retry),
    (r"try again", Step::Retry),
    (r"ask for a ReleaseOverride", Step::Override),
    (r"ask somebody who may create ReleaseOverrides in namespace [a-z0-9-]+ for one of [a-z-]+", Step::Override),
];

/// What a reader does nothing about, or what only introduces a command.
const REMARKS: &[&str] = &[
    r"controllers try again by themselves",
    r"that operation counts as stuck",
    r", so that it starts from the new(est)? (state of the release|revision)",
    r"do not edit records by hand",
    r"a record is never rewritten",
    r"wait until \d{4}-\d\d-\d\d \d\d:\d\d UTC, when the operation counts as stuck",
    r"which checks the workloads and deletes the record, or names the next step",
    r"which finishes it",
    r"[a-z0-9:-]+ may delete it as soon as it counts as stuck, whatever the workloads say",
    r"a restore tool must be listed under `tools` in the cluster policy",
    r"(change|remove) it through",
    r"change the release with",
    r"remove the annotation( [a-z./-]+ from the record [a-z0-9.-]+)?",
    r"pin it",
    r"annotate (this )?[a-z]+( [a-z0-9/-]+)? with [a-z./-]+: [^ ]+ ",
    r"suspend it first",
    r"suspend HelmRelease [a-z0-9/-]+ with",
    r"delete it with",
    r"upgrade it with the driver that has its records",
    r"to remove (the release|it)",
    r"makes Flux go on at once",
    r": Flux does nothing for a suspended HelmRelease",
    r"Sveltos does, and writes new ones for each try",
    r"Sveltos retries within a minute",
    r"The status of ClusterSummary \S+ has the details",
];

/// A condition or a purpose begins another way, and so does the word.
const ORS: &[&str] = &[r"([;,.]? or,? )?(to|if|once) [^,.`]+, ", r"[;,.]? ?or,? "];

const FILLERS: &[&str] = &[r"(and|then|with|use|see|run)\b", r"[\s.,;:()]+"];

/// What a text begins with to a reader, and how long that is.
struct Reader {
    command: Regex,
    phrases: Vec<(Regex, Meaning)>,
}

impl Reader {
    fn of(own: &[&str]) -> Self {
        let anchored =
            |phrase: &str| Regex::new(&format!("^(?i:{phrase})")).unwrap_or_else(|error| panic!("{phrase}: {error}"));
        let meant = |phrases: &[&str], meaning: Meaning| {
            phrases.iter().map(|phrase| (anchored(phrase), meaning.clone())).collect::<Vec<_>>()
        };
        let mut phrases: Vec<_> = own
            .iter()
            .enumerate()
            .map(|(number, phrase)| (anchored(phrase), Meaning::Step(Step::Act(number))))
            .collect();
        phrases.extend(INSTRUCTIONS.iter().map(|(phrase, step)| (anchored(phrase), Meaning::Step(step.clone()))));
        phrases.extend(meant(REMARKS, Meaning::Remark));
        phrases.extend(meant(ORS, Meaning::Or));
        phrases.extend(meant(FILLERS, Meaning::Remark));
        Self { command: anchored("`([^`]+)`"), phrases }
    }

    fn understand(&self, rest: &str) -> Option<(usize, Meaning)> {
        if let Some(found) = self.command.captures(rest) {
            return Some((found[0].len(), Meaning::Step(Step::Run(found[1].to_owned()))));
        }
        self.phrases.iter().find_map(|(phrase, meaning)| Some((phrase.find(rest)?.len(), meaning.clone())))
    }
}

/// The ways out of a refusal by a rule, with the case's own phrases. Everything from the first instruction to the name of the rule
/// must be understood.
#[track_caller]
pub(super) fn ways(printed: &str, rule: &str, own: &[&str]) -> Vec<Vec<Step>> {
    let printed = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    let Some((told, _)) = printed.split_once(&format!(" [{rule}]")) else {
        panic!("expected a refusal by {rule}: {printed}");
    };
    let reader = Reader::of(own);
    let (mut ways, mut way, mut begun, mut rest) = (Vec::new(), Vec::new(), false, told);
    while let Some(letter) = rest.chars().next() {
        match reader.understand(rest) {
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

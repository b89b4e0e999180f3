//! The ways out as sentences.

use std::fmt;

use super::{Step, StepKind, Way, WaysOut};
use crate::text::capitalized;

impl fmt::Display for WaysOut {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sentences: Vec<String> = Vec::new();
        let mut previous: Option<(&Way, &Step)> = None;
        for way in &self.0 {
            let is_alternative = previous.is_some_and(|(before, _)| way.is_alternative_to(before));
            for (number, step) in way.steps.iter().enumerate() {
                let link = match &way.condition {
                    _ if number > 0 => "then ".to_owned(),
                    _ if is_alternative => "or ".to_owned(),
                    Some(condition) => format!("{condition}, "),
                    None => String::new(),
                };
                let goes_on = |(before, last): (&Way, &Step)| {
                    !last.ends_sentence() && (number > 0 || is_alternative && before.steps.len() == 1)
                };
                let part = link + &step.phrase();
                match sentences.last_mut().filter(|_| previous.is_some_and(goes_on)) {
                    Some(sentence) => *sentence += &format!(", {part}"),
                    None => sentences.push(part),
                }
                previous = Some((way, step));
            }
        }
        let ended = sentences.iter().map(|text| format!("{}.", capitalized(text.trim_end_matches('.'))));
        out.write_str(&ended.collect::<Vec<_>>().join(" "))
    }
}

impl Way {
    /// Whether a reader takes either this way or the one before it. A look at something is no alternative to anything.
    fn is_alternative_to(&self, previous: &Self) -> bool {
        let mut steps = self.steps.iter().chain(&previous.steps);
        self.condition == previous.condition && !steps.any(|step| matches!(step.kind, StepKind::Look | StepKind::Note))
    }
}

impl Step {
    fn ends_sentence(&self) -> bool {
        self.kind == StepKind::Wait || self.text.contains([',', ';', ':'])
    }

    /// The step as a part of a sentence.
    fn phrase(&self) -> String {
        self.command.as_ref().map_or_else(|| self.text.clone(), |it| self.text.replace("{}", &format!("`{it}`")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> String {
        "helm uninstall web -n shop".to_owned()
    }

    fn look() -> Step {
        Step { kind: StepKind::Look, ..Step::run("see {}", command()) }
    }

    #[test]
    fn each_kind_of_step_is_a_sentence_with_its_command() {
        for (step, sentence) in [
            (Step::run("run {}", command()), "Run `helm uninstall web -n shop`."),
            (Step::run("delete it with {}", command()), "Delete it with `helm uninstall web -n shop`."),
            (look(), "See `helm uninstall web -n shop`."),
            (Step::wait("wait until the operation ends"), "Wait until the operation ends."),
            (Step::retry("try again"), "Try again."),
            (Step::of(StepKind::NextOperation, "let OLM try again"), "Let OLM try again."),
            (Step::release_override(), "Ask for a ReleaseOverride."),
            (Step::from("remove force"), "Remove force."),
            (Step::of(StepKind::Note, "It is kept. So is this."), "It is kept. So is this."),
        ] {
            let (kind, command) = (step.kind, step.command.clone());
            assert_eq!(command.is_some(), matches!(kind, StepKind::Run | StepKind::Look), "{kind:?}");
            let text = WaysOut::from(step).to_string();
            assert_eq!(text, sentence);
            assert!(command.is_none_or(|command| text.contains(&format!("`{command}`"))), "{text}");
        }
    }

    #[test]
    fn steps_are_joined_and_a_wait_or_a_reason_ends_the_sentence() {
        let run = |text: &str| Step::run(text, command());
        for (first, text) in [
            (run("run {}"), "Run `helm uninstall web -n shop`, then try again."),
            (run("annotate it ({})"), "Annotate it (`helm uninstall web -n shop`), then try again."),
            (run("run {}, which ends it"), "Run `helm uninstall web -n shop`, which ends it. Then try again."),
            (Step::wait("wait until it ends"), "Wait until it ends. Then try again."),
        ] {
            assert_eq!(WaysOut::from(Way::from(first).then(Step::retry("try again"))).to_string(), text);
        }
    }

    #[test]
    fn ways_are_alternatives_unless_they_have_conditions_of_their_own() {
        let plain = WaysOut::from("change it").or(Step::release_override()).note("It is kept.");
        assert_eq!(plain.to_string(), "Change it, or ask for a ReleaseOverride. It is kept.");
        let long = WaysOut::from(Way::from(Step::wait("wait")).then("change it")).or("leave it");
        assert_eq!(long.to_string(), "Wait. Then change it. Or leave it.");
        let either = WaysOut::default().when("to change it", "upgrade").or("roll back");
        assert_eq!(either.to_string(), "To change it, upgrade, or roll back.");
        let looked = WaysOut::default().note("Stop.").and(look()).and(either);
        assert_eq!(looked.to_string(), "Stop. See `helm uninstall web -n shop`. To change it, upgrade, or roll back.");
        let both = WaysOut::from("wait").when("to end it", "roll back");
        assert_eq!(both.to_string(), "Wait. To end it, roll back.");
        assert_eq!(WaysOut::default().to_string(), "");
    }
}

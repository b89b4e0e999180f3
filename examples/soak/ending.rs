//! How an act ended, from what the client printed.

/// The expected result of an act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expect {
    Passes,
    /// The client itself fails, and says this.
    Fails(&'static str),
    /// One of these rules refuses it.
    Refused(&'static [&'static str]),
}

/// The result of an act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ending {
    Right,
    /// A call of the webhook failed, and its entry fails closed.
    Closed {
        entry: String,
        cause: Cause,
        /// The API server's words.
        why: String,
    },
    /// Interlock could not judge it and refused it for that reason, with the client's words.
    Undecided(String),
    /// Admitted against the rules.
    Open,
    /// The client failed without a word of Interlock, with the client's words: the API server did not answer.
    Alone(String),
    /// Refused against the rules, or the client succeeded where it had to fail, with the client's words.
    Wrong(String),
}

/// Why a call of the webhook failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    /// The connection ended before the answer.
    Ended,
    /// There was no connection.
    Refused,
    Late,
    Other,
}

impl Cause {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ended => "the connection ended before the answer",
            Self::Refused => "no connection",
            Self::Late => "no answer in time",
            Self::Other => "another error",
        }
    }

    fn of(text: &str) -> Self {
        let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
        if says(&["EOF", "connection reset", "broken pipe", "unexpected EOF", "server closed idle", "context canceled"])
        {
            Self::Ended
        } else if says(&["Connection Refused", "connection refused", "No Endpoints", "proxy"]) {
            Self::Refused
        } else if says(&["deadline exceeded", "Timeout exceeded"]) {
            Self::Late
        } else {
            Self::Other
        }
    }
}

/// The API server's words before a failed call.
const FAILED: &str = "failed calling webhook \"";
/// Interlock's words if it could not judge a request.
const UNDECIDED: &str = "Could not check ";
/// helm's words if an atomic upgrade broke off in its rollback, and left that pending.
const BROKE_OFF: &str = "occurred while rolling back the release";

/// helm's words if it could not write that the upgrade has failed. Its own rollback then meets a pending record.
const LEFT_PENDING: &str = "failed to update release";

/// Judges an act by its exit and by everything that the client printed.
pub(crate) fn judge(expect: Expect, success: bool, text: &str) -> Ending {
    if success {
        return match expect {
            Expect::Passes => Ending::Right,
            Expect::Refused(_) => Ending::Open,
            Expect::Fails(what) => Ending::Wrong(format!("expected it to fail with {what:?}\n{text}")),
        };
    }
    if let Some((_, failed)) = text.split_once(FAILED) {
        let (entry, why) = failed.split_once('"').unwrap_or((failed, ""));
        return Ending::Closed { entry: entry.to_owned(), cause: Cause::of(why), why: why.to_owned() };
    }
    let denial = text.split_once("denied the request").map(|(_, denial)| denial);
    // The warnings before it may be of rules that do not refuse.
    let is_undecided = denial.is_some_and(|denial| denial.contains(UNDECIDED));
    match (expect, denial) {
        (Expect::Fails(what), None) if text.contains(what) && !text.contains(BROKE_OFF) => Ending::Right,
        (_, Some(_)) if is_undecided => Ending::Undecided(text.to_owned()),
        (Expect::Refused(rules), Some(_)) if rules.iter().any(|rule| text.contains(&format!("[{rule}]"))) => {
            Ending::Right
        }
        (Expect::Fails(_), Some(_)) if text.contains(BROKE_OFF) && text.contains(LEFT_PENDING) => {
            Ending::Alone(text.to_owned())
        }
        (_, Some(_)) => Ending::Wrong(text.to_owned()),
        (_, None) => Ending::Alone(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DENIED: &str = "admission webhook \"objects.interlock.dev\" denied the request: bob must not. [manual-edit]";
    const MANUAL_EDIT: Expect = Expect::Refused(&["manual-edit"]);

    #[test]
    fn an_act_is_right_only_if_it_ends_as_expected_and_for_the_expected_reason() {
        assert_eq!(judge(Expect::Passes, true, ""), Ending::Right);
        assert_eq!(judge(MANUAL_EDIT, false, DENIED), Ending::Right);
        assert_eq!(judge(Expect::Fails("zz"), false, "cannot create zz"), Ending::Right);
        let broke_off =
            "an error occurred while rolling back the release. original upgrade error: cannot create zz: EOF";
        assert_eq!(judge(Expect::Fails("zz"), false, broke_off), Ending::Alone(broke_off.to_owned()));
        assert_eq!(judge(MANUAL_EDIT, true, ""), Ending::Open);
        let warned = format!("Warning: interlock: {UNDECIDED}it. [protected-release]\n{DENIED}");
        assert_eq!(judge(MANUAL_EDIT, false, &warned), Ending::Right);
        let left = format!("{LEFT_PENDING}\n{BROKE_OFF}: denied the request: pending. [pending-recovery]");
        assert_eq!(judge(Expect::Fails("zz"), false, &left), Ending::Alone(left.clone()));
        for (expect, success, text) in [
            (Expect::Passes, false, DENIED),
            (Expect::Refused(&["manual-scale"]), false, DENIED),
            (Expect::Fails("zz"), false, DENIED),
            (Expect::Fails("zz"), true, "zz"),
        ] {
            assert!(matches!(judge(expect, success, text), Ending::Wrong(_)), "{expect:?} {success} {text}");
        }
    }

    #[test]
    fn a_failed_call_names_its_entry_and_its_cause() {
        let text =
            |why: &str| format!("failed calling webhook \"a.b\": failed to call webhook: Post \"https://x\": {why}");
        for (why, cause) in [
            ("EOF", Cause::Ended),
            ("read: connection reset by peer", Cause::Ended),
            ("dial tcp: connect: connection refused", Cause::Refused),
            ("context deadline exceeded", Cause::Late),
            ("x509: certificate signed by unknown authority", Cause::Other),
        ] {
            let ending = judge(Expect::Passes, false, &text(why));
            let Ending::Closed { entry, cause: found, .. } = &ending else { panic!("{ending:?}") };
            assert_eq!((entry.as_str(), *found), ("a.b", cause), "{why}");
        }
    }

    #[test]
    fn an_absent_api_server_is_not_a_verdict() {
        let away = "dial tcp: connect: connection refused";
        for expect in [Expect::Passes, MANUAL_EDIT, Expect::Fails("zz")] {
            assert_eq!(judge(expect, false, away), Ending::Alone(away.to_owned()));
        }
        let undecided = "denied the request: Could not check this: the API server did not answer. [manual-edit]";
        assert_eq!(judge(Expect::Passes, false, undecided), Ending::Undecided(undecided.to_owned()));
    }
}

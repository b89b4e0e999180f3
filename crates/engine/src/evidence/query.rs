//! Pairs every question with the type of its answer. Rules use these types. Code that only forwards uses [`Query`] and
//! [`Knowledge`].

use std::collections::BTreeMap;
use std::sync::Arc;

use super::answer::{
    Answer, CandidateRecords, Candidates, KnownLosses, NamespaceState, ReadBundles, ReadDocument, ScaledObject,
    StoredBody, Workload,
};
use super::question::*;
use crate::object::ObjectKey;
use crate::owners::Driver;
use crate::policy::Freeze;
use crate::release_override::Override;

/// A question with the type of its answer.
pub trait Question: Into<Query> {
    /// The answer, if the cluster has one.
    type Answer;

    /// Wraps the answer for forwarding.
    fn answered(&self, answer: Self::Answer) -> Answer;

    /// Like [`Question::answered`], for an object that may not exist.
    fn found(&self, answer: Option<Self::Answer>) -> Answer {
        answer.map_or(Answer::Absent, |answer| self.answered(answer))
    }

    /// Unwraps an answer; `None` if it belongs to another question.
    fn read(known: &Knowledge) -> Option<&Self::Answer>;

    /// Like [`Question::read`], by value.
    fn take(known: Knowledge) -> Option<Self::Answer>;
}

/// Pairs every question with its answer and its name.
macro_rules! questions {
    ($($question:ident => $answer:ty, $name:literal;)*) => {
        /// Any question.
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub enum Query {
            $($question($question),)*
        }

        /// The answer to any question.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Knowledge {
            $($question($answer),)*
        }

        impl Query {
            /// The name of the question, for metrics and traces.
            #[must_use]
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Self::$question(_) => $name,)*
                }
            }
        }

        $(
            impl From<$question> for Query {
                fn from(question: $question) -> Self {
                    Self::$question(question)
                }
            }

            impl Question for $question {
                type Answer = $answer;

                fn answered(&self, answer: $answer) -> Answer {
                    Answer::Known(Knowledge::$question(answer))
                }

                fn read(known: &Knowledge) -> Option<&$answer> {
                    match known {
                        Knowledge::$question(answer) => Some(answer),
                        _ => None,
                    }
                }

                fn take(known: Knowledge) -> Option<$answer> {
                    match known {
                        Knowledge::$question(answer) => Some(answer),
                        _ => None,
                    }
                }
            }
        )*
    };
}

questions! {
    History => crate::release::History, "history";
    Body => StoredBody, "body";
    Release => Vec<CandidateRecords>, "release";
    Extension => Vec<CandidateRecords>, "extension";
    Document => ReadDocument, "document";
    Parent => ScaledObject, "parent";
    HelmReleases => Candidates, "helm-releases";
    HelmReleasesIn => Vec<Driver>, "helm-releases";
    ExtensionsIn => Vec<String>, "extensions";
    Overrides => Vec<Override>, "overrides";
    Freezes => Arc<[Freeze]>, "freezes";
    FreezesIn => Arc<[Freeze]>, "freezes";
    Workloads => Vec<Option<Workload>>, "workloads";
    Leases => BTreeMap<String, String>, "leases";
    Object => String, "object";
    AppliersIn => Vec<(ObjectKey, String)>, "appliers";
    Losses => KnownLosses, "losses";
    AnyAccount => bool, "accounts";
    Bundles => ReadBundles, "bundles";
    Namespace => NamespaceState, "namespace";
    ReleasesIn => Vec<(String, CandidateRecords)>, "releases-in";
}

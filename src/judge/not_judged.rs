//! Why a review has no judgement.

use interlock_engine::decide::ReviewFailure;
use interlock_engine::review::BadReview;

/// Why a review has no judgement.
#[derive(Debug)]
pub enum NotJudged {
    /// The body is not a review, or an object of the request cannot be parsed.
    Malformed(BadReview),
    /// The rules reached no decision.
    Failed(ReviewFailure),
}

impl From<BadReview> for NotJudged {
    fn from(why: BadReview) -> Self {
        Self::Malformed(why)
    }
}

impl From<ReviewFailure> for NotJudged {
    fn from(why: ReviewFailure) -> Self {
        Self::Failed(why)
    }
}

//! The cluster for a short command: live reads, and HelmReleases from one list.

use interlock_engine::answers::read;
use interlock_engine::evidence::{Answer, Query, Question};
use interlock_engine::owners::Driver;

use super::Cluster;
use crate::world::{AnswerFuture, QueryBudget, World};

/// A cluster without watches, and its HelmReleases.
pub(crate) struct Listed {
    pub(crate) cluster: Cluster,
    /// The HelmReleases, or why they cannot be listed.
    pub(crate) drivers: Result<Vec<Driver>, String>,
}

impl World for Listed {
    fn answer_for<'w>(&'w self, query: &'w Query, budget: QueryBudget<'w>) -> AnswerFuture<'w> {
        let Query::HelmReleases(question) = query else {
            return self.cluster.answer_for(query, budget);
        };
        let answer = match &self.drivers {
            Ok(drivers) => question.answered(read::candidates(question.search(), drivers)),
            Err(why) => Answer::Unavailable(why.clone()),
        };
        Box::pin(std::future::ready(answer))
    }
}

//! What a session of the model knows about the cluster, as the reconciler of the operator reads it.

use advisor::{Answer, Facts, Query, kind::PLAN_RECORD, machine::rollout_queries};
use serde_json::json;

use crate::{cluster::ModelCluster, driver::Driver, mutation::Mutation, pool, system::RunningSession};

impl Driver {
    /// Everything that tells how far the items are.
    pub(crate) fn fetch_facts(&self, cluster: &ModelCluster, run: &mut RunningSession) -> Facts {
        let mut facts = self.fetch_for_plan(cluster, run);
        let status = run.session.config().and_then(|config| config.status.as_ref());
        let queries = status.map(|status| rollout_queries(status, &facts)).unwrap_or_default();
        for query in facts.unanswered(queries) {
            let is_forgotten = match &query {
                Query::Optional(_) => self.has(Mutation::SourcesNotRead),
                _ => self.has(Mutation::RunningNotRead),
            };
            if !is_forgotten {
                let answer = pool::answer(self.profile, &query);
                facts.insert(query, answer);
            }
        }
        facts
    }

    /// Everything that the planner wants to know.
    pub(crate) fn fetch_for_plan(&self, cluster: &ModelCluster, run: &mut RunningSession) -> Facts {
        let mut cluster = cluster.clone();
        let status = run.session.config().and_then(|config| config.status.as_ref());
        if self.has(Mutation::InputNotWatched) && status.is_some_and(|status| !status.items.is_empty()) {
            cluster.input = 1;
        }
        run.fetched_input = Some(cluster.input);
        for (at, target) in cluster.targets.iter().enumerate() {
            run.see(at, target);
        }
        let facts = cluster.facts(self.profile);
        if self.has(Mutation::RecordMisread) { misread(facts) } else { facts }
    }
}

/// The facts with records that say something else about what was there before.
fn misread(mut facts: Facts) -> Facts {
    let mut items = facts.list(&PLAN_RECORD).to_vec();
    let recorded = items.iter_mut().flat_map(|record| record["spec"]["items"].as_array_mut().into_iter().flatten());
    for leaf in recorded.flat_map(|item| item["leaves"].as_array_mut().into_iter().flatten()) {
        if leaf["before"].is_string() {
            leaf["before"] = json!("\"misread\"");
        }
    }
    facts.insert(Query::List(&PLAN_RECORD), Answer::List { version: "v1alpha1", items });
    facts
}

//! What a reconciler knows of its configuration and of the cluster. Observations of the watches are merged into it.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use advisor::{Facts, Query, session::RoundTrips};
use api::{VirtPlatformConfig, resource_version};
use kube::ResourceExt;
use tokio::time::Instant;

use crate::{
    fact_cache::{FactCache, is_watched},
    work_queue::{ConfigState, Pending, WorkQueue},
};

/// For so long after its definition has changed a kind may not be served yet.
const SETTLING: Duration = Duration::from_secs(15);

#[derive(Default)]
pub(crate) struct KnownState {
    /// The newest known version of the configuration, from the watch or from a write of the reconciler.
    pub(crate) config: Option<Arc<VirtPlatformConfig>>,
    /// Whether the watch has delivered yet whether the configuration exists.
    pub(crate) is_synced: bool,
    pub(crate) facts: FactCache,
    /// The last record that is known to be finished.
    pub(crate) closed_record: Option<String>,
    /// How long the last requests took.
    pub(crate) round_trips: RoundTrips,
    /// The uid of the configuration for which the records of earlier ones were closed; inside, `None` if none existed.
    pub(crate) successor: Option<Option<String>>,
    definitions_changed: Option<Instant>,
    /// Watches that the API server refuses, with its message until that is reported.
    forbidden: BTreeMap<Query, Option<String>>,
}

impl KnownState {
    /// Merges what the watches observed. Returns whether anything relevant has changed.
    pub(crate) fn merge(&mut self, pending: Pending) -> bool {
        let mut has_changed = false;
        for kind in pending.kinds {
            if self.facts.forget_kind(kind) {
                self.definitions_changed = Some(Instant::now());
                has_changed = true;
            }
        }
        for (query, message) in pending.forbidden {
            self.forbidden.entry(query).or_insert(Some(message));
        }
        for (query, observation) in &pending.observations {
            self.forbidden.remove(query);
            has_changed |= self.facts.merge(query, observation);
        }
        let config = match pending.config {
            Some(ConfigState::Absent) => None,
            Some(ConfigState::Present(config)) if self.is_newer(&config) => Some(config),
            Some(ConfigState::Present(_)) | None => return has_changed,
        };
        (self.config, self.is_synced) = (config, true);
        true
    }

    /// The watch also delivers the reconciler's own writes, which are known already.
    fn is_newer(&self, config: &VirtPlatformConfig) -> bool {
        let Some(known) = &self.config else { return true };
        let version = |config: &VirtPlatformConfig| config.resource_version().unwrap_or_default();
        let (old, new) = (version(known), version(config));
        let is_newer = || resource_version::compare(&new, &old).map_or(new != old, |order| order == Ordering::Greater);
        known.uid() != config.uid() || is_newer()
    }

    /// The queries that need a watch.
    pub(crate) fn watched_queries(&self) -> BTreeSet<Query> {
        self.facts.facts().queries().filter(|query| is_watched(query)).cloned().collect()
    }

    /// The facts from which a plan may be made without reading them again.
    pub(crate) fn current_facts(&self, queue: &WorkQueue) -> Facts {
        let is_current = |query: &Query| !self.forbidden.contains_key(query) && !queue.contains(query);
        self.facts.current(is_current)
    }

    pub(crate) fn is_settling(&self) -> bool {
        self.definitions_changed.is_some_and(|changed| changed.elapsed() < SETTLING)
    }

    /// Refused watches that were not reported yet. A plan itself says which optional object is missing.
    pub(crate) fn take_forbidden(&mut self) -> Vec<(Query, String)> {
        let is_optional = |query: &Query| matches!(query, Query::Optional(_));
        let unreported =
            self.forbidden.iter_mut().filter_map(|(query, message)| Some((query.clone(), message.take()?)));
        unreported.filter(|(query, _)| !is_optional(query)).collect()
    }
}

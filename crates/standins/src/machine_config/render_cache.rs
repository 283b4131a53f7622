//! The last rendering of each pool. Changes of MachineConfigs are rendered together after a delay.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use kube::ResourceExt;

use super::{MachineConfigPool, RenderError, Rendered, cache::Cache, render};

type Render = Result<Rendered, RenderError>;

#[derive(Debug, Default)]
pub(super) struct RenderCache {
    /// By name of the pool: the generation that was rendered, and the result.
    pools: BTreeMap<String, (Option<i64>, Render)>,
    /// The time of the first change that is not rendered yet.
    changed: Option<Timestamp>,
}

impl RenderCache {
    pub(super) fn of(&self, pool: &MachineConfigPool) -> Option<&Render> {
        self.pools.get(&pool.name_any()).map(|(_, render)| render)
    }

    /// A MachineConfig was created, changed or deleted.
    pub(super) fn invalidate(&mut self, now: Timestamp) {
        self.changed.get_or_insert(now);
    }

    /// Renders the pools that are due. A pool that is new or whose spec changed is always due. Returns when to call again.
    pub(super) fn refresh(&mut self, cache: &Cache, now: Timestamp, delay: Duration) -> Option<Timestamp> {
        let due = self.changed.map(|changed| changed.checked_add(delay).unwrap_or(now));
        let is_due = due.is_some_and(|due| due <= now);
        if is_due {
            self.changed = None;
        }
        self.pools.retain(|name, _| cache.pools.get(name).is_some());
        for pool in cache.pools.iter() {
            let (name, generation) = (pool.name_any(), pool.metadata.generation);
            let is_current = self.pools.get(&name).is_some_and(|(rendered, _)| *rendered == generation);
            if is_due || !is_current {
                self.pools.insert(name, (generation, render(pool, cache.configs.iter())));
            }
        }
        due.filter(|_| !is_due)
    }
}

#[cfg(test)]
mod tests {
    use kube_io::ObjectKey;
    use serde_json::json;

    use super::*;
    use crate::machine_config::test_objects::{at, machine_config, pool};

    const DELAY: Duration = Duration::from_secs(5);

    #[test]
    fn changes_are_rendered_together_after_a_delay_and_new_pools_at_once() {
        let mut cache = Cache::default();
        let mut renders = RenderCache::default();
        let worker = pool("worker", &["worker"]);
        let arguments = |renders: &RenderCache, pool| match renders.of(pool) {
            Some(Ok(rendered)) => rendered.spec["kernelArguments"].clone(),
            other => json!(format!("{other:?}")),
        };
        let config = |name: &str| machine_config(name, "worker", json!({"kernelArguments": [name]}));
        cache.configs.put(config("a"));
        cache.pools.put(worker.clone());
        assert_eq!(renders.refresh(&cache, at(0), DELAY), None);
        assert_eq!(arguments(&renders, &worker), json!(["a"]));

        for (second, name) in [(10, "b"), (12, "c")] {
            cache.configs.put(config(name));
            renders.invalidate(at(second));
            assert_eq!(renders.refresh(&cache, at(second), DELAY), Some(at(15)));
            assert_eq!(arguments(&renders, &worker), json!(["a"]));
        }
        assert_eq!(renders.refresh(&cache, at(15), DELAY), None);
        assert_eq!(arguments(&renders, &worker), json!(["a", "b", "c"]));

        let mut changed = pool("worker", &["other"]);
        changed.metadata.generation = Some(2);
        cache.pools.put(changed.clone());
        assert_eq!(renders.refresh(&cache, at(16), DELAY), None);
        assert!(renders.of(&changed).is_some_and(Result::is_err));
        cache.pools.remove(&ObjectKey { namespace: String::new(), name: "worker".into() });
        renders.refresh(&cache, at(17), DELAY);
        assert!(renders.of(&changed).is_none());
    }
}

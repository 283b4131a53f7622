//! What each pool was last rendered to. Rendering anew waits a moment, because changes seldom come alone.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use kube::ResourceExt;

use super::{MachineConfigPool, RenderError, Rendered, render, world::World};

type Render = Result<Rendered, RenderError>;

#[derive(Debug, Default)]
pub(super) struct Renders {
    pools: BTreeMap<String, (Option<i64>, Render)>,
    /// When the first change came that is not rendered yet.
    changed: Option<Timestamp>,
}

impl Renders {
    pub(super) fn of(&self, pool: &MachineConfigPool) -> Option<&Render> {
        self.pools.get(&pool.name_any()).map(|(_, render)| render)
    }

    /// Takes note that a MachineConfig came, went or changed.
    pub(super) fn outdate(&mut self, now: Timestamp) {
        self.changed.get_or_insert(now);
    }

    /// Renders what is due. Pools that are new or whose spec changed do not wait. Returns when to come back.
    pub(super) fn refresh(&mut self, world: &World, now: Timestamp, delay: Duration) -> Option<Timestamp> {
        let due = self.changed.map(|changed| changed.checked_add(delay).unwrap_or(now));
        let is_due = due.is_some_and(|due| due <= now);
        if is_due {
            self.changed = None;
        }
        self.pools.retain(|name, _| world.pools.get(name).is_some());
        for pool in world.pools.iter() {
            let (name, generation) = (pool.name_any(), pool.metadata.generation);
            let is_current = self.pools.get(&name).is_some_and(|(rendered, _)| *rendered == generation);
            if is_due || !is_current {
                self.pools.insert(name, (generation, render(pool, world.configs.iter())));
            }
        }
        due.filter(|_| !is_due)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::mco::test_objects::{at, machine_config, pool};

    const DELAY: Duration = Duration::from_secs(5);

    #[test]
    fn changes_are_rendered_together_after_a_moment_and_new_pools_at_once() {
        let mut world = World::default();
        let mut renders = Renders::default();
        let worker = pool("worker", &["worker"]);
        let arguments = |renders: &Renders, pool| match renders.of(pool) {
            Some(Ok(rendered)) => rendered.spec["kernelArguments"].clone(),
            other => json!(format!("{other:?}")),
        };
        let config = |name: &str| machine_config(name, "worker", json!({"kernelArguments": [name]}));
        world.configs.put(config("a"));
        world.pools.put(worker.clone());
        assert_eq!(renders.refresh(&world, at(0), DELAY), None);
        assert_eq!(arguments(&renders, &worker), json!(["a"]));

        for (second, name) in [(10, "b"), (12, "c")] {
            world.configs.put(config(name));
            renders.outdate(at(second));
            assert_eq!(renders.refresh(&world, at(second), DELAY), Some(at(15)));
            assert_eq!(arguments(&renders, &worker), json!(["a"]));
        }
        assert_eq!(renders.refresh(&world, at(15), DELAY), None);
        assert_eq!(arguments(&renders, &worker), json!(["a", "b", "c"]));

        let mut changed = pool("worker", &["other"]);
        changed.metadata.generation = Some(2);
        world.pools.put(changed.clone());
        assert_eq!(renders.refresh(&world, at(16), DELAY), None);
        assert!(renders.of(&changed).is_some_and(Result::is_err));
        world.pools.remove("worker");
        renders.refresh(&world, at(17), DELAY);
        assert!(renders.of(&changed).is_none());
    }
}

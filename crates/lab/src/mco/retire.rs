//! Which rendered configs nobody needs any more.
//!
//! The real operator keeps them all. A lab that runs for weeks would drown in them, so of its own the stand-in keeps
//! those in use and the newest few of each pool.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;

use super::{Machine, MachineConfig, MachineConfigPool, names, render::is_rendered_for};

/// How many that are not in use are kept per pool, for whoever compares.
const KEPT: usize = 10;

/// The names of everything that a pool or a node refers to.
pub(super) fn in_use<'a>(
    pools: impl IntoIterator<Item = &'a MachineConfigPool>,
    nodes: impl IntoIterator<Item = &'a Node>,
) -> BTreeSet<&'a str> {
    let mut used = BTreeSet::new();
    for pool in pools {
        used.insert(pool.spec.configuration.name.as_str());
        used.extend(pool.status.as_ref().map(|status| status.configuration.name.as_str()));
    }
    for machine in nodes.into_iter().map(Machine::of) {
        used.extend(machine.current());
        used.extend(machine.desired());
    }
    used
}

/// The names of a pool's rendered configs that can go.
pub(super) fn superfluous<'a>(
    pool: &str,
    configs: impl IntoIterator<Item = &'a MachineConfig>,
    used: &BTreeSet<&str>,
) -> Vec<String> {
    let is_ours = |config: &&MachineConfig| config.labels().get(names::STAND_IN_LABEL).is_some_and(|it| it == "true");
    let is_spare = |config: &&MachineConfig| {
        let name = config.name_any();
        is_rendered_for(&name, pool) && !used.contains(name.as_str())
    };
    let mut spare: Vec<_> = configs.into_iter().filter(is_ours).filter(is_spare).collect();
    spare.sort_by_key(|config| (config.creation_timestamp().map(|time| time.0), config.name_any()));
    spare.truncate(spare.len().saturating_sub(KEPT));
    spare.into_iter().map(ResourceExt::name_any).collect()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde_json::json;

    use super::*;
    use crate::mco::test_objects::{NodeBuilder, at, machine_config, pool};

    fn name(number: usize) -> String {
        format!("rendered-worker-{number:032x}")
    }

    fn rendered(number: usize) -> MachineConfig {
        let mut config = machine_config(&name(number), "", json!({}));
        config.labels_mut().insert(names::STAND_IN_LABEL.into(), "true".into());
        // Made in the opposite order of their names.
        config.metadata.creation_timestamp = Some(Time(at(1000 - i64::try_from(number).unwrap())));
        config
    }

    #[test]
    fn of_its_own_the_oldest_that_nobody_uses_go() {
        let mut configs: Vec<_> = (0..16).map(rendered).collect();
        configs.push(machine_config(&name(100), "", json!({})));
        configs.push(machine_config("99-worker", "worker", json!({})));
        let mut pool = pool("worker", &["worker"]);
        pool.spec.configuration.name = name(15);
        let node = NodeBuilder::new("a").annotated(&name(14), &name(13), "Working").build();
        let used = in_use([&pool], [&node]);
        // 16 of ours, three in use, ten kept: the three oldest of the rest.
        assert_eq!(superfluous("worker", &configs, &used), [name(12), name(11), name(10)]);
        assert_eq!(superfluous("other", &configs, &used), [""; 0]);
        assert_eq!(superfluous("worker", &configs[..12], &used), [name(11), name(10)]);
        assert_eq!(superfluous("worker", &configs[..10], &used), [""; 0]);
    }
}

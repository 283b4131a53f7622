//! Rendered configs that can be deleted.
//! The real operator keeps all of them. The stand-in keeps those in use and the newest ten of each pool, because a lab may
//! run for weeks.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;

use super::{Machine, MachineConfig, MachineConfigPool, render::is_rendered_for};
use crate::STAND_IN_LABEL;

/// How many configs that are not in use are kept per pool, for comparison.
const KEPT: usize = 10;

/// The names of the configs that a pool or a node refers to.
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

/// The names of a pool's rendered configs that can be deleted.
pub(super) fn unused<'a>(
    pool: &str,
    configs: impl IntoIterator<Item = &'a MachineConfig>,
    used: &BTreeSet<&str>,
) -> Vec<String> {
    let is_ours = |config: &&MachineConfig| config.labels().get(STAND_IN_LABEL).is_some_and(|it| it == "true");
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
    use crate::machine_config::test_objects::{NodeBuilder, at, machine_config, pool};

    fn name(number: usize) -> String {
        format!("rendered-worker-{number:032x}")
    }

    fn rendered(number: usize) -> MachineConfig {
        let mut config = machine_config(&name(number), "", json!({}));
        config.labels_mut().insert(STAND_IN_LABEL.into(), "true".into());
        // The creation times are in the opposite order of the names.
        config.metadata.creation_timestamp = Some(Time(at(1000 - i64::try_from(number).unwrap())));
        config
    }

    #[test]
    fn the_oldest_of_its_own_configs_that_are_not_in_use_are_deleted() {
        let mut configs: Vec<_> = (0..16).map(rendered).collect();
        configs.push(machine_config(&name(100), "", json!({})));
        configs.push(machine_config("99-worker", "worker", json!({})));
        let mut pool = pool("worker", &["worker"]);
        pool.spec.configuration.name = name(15);
        let node = NodeBuilder::new("a").annotated(&name(14), &name(13), "Working").build();
        let used = in_use([&pool], [&node]);
        // 16 of ours, three in use, ten kept: the three oldest of the rest.
        assert_eq!(unused("worker", &configs, &used), [name(12), name(11), name(10)]);
        assert_eq!(unused("other", &configs, &used), [""; 0]);
        assert_eq!(unused("worker", &configs[..12], &used), [name(11), name(10)]);
        assert_eq!(unused("worker", &configs[..10], &used), [""; 0]);
    }
}

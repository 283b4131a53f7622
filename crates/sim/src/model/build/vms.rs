//! The VMs of a model, with their groups, classes and loads.

use std::collections::{BTreeMap, BTreeSet};

use super::{Builder, MOST_VMS, Result, invalid, nodes::requests};
use crate::{
    model::{Class, Group, VmRecord},
    rng::{Purpose, Rng},
    scenario::{Load, VmGroup},
};

/// The most cells of the table of classes and nodes.
const MOST_CLASS_CELLS: usize = 50_000_000;

impl Builder<'_> {
    pub(super) fn vms(&mut self) -> Result<()> {
        let mut names = BTreeSet::new();
        let mut classes: BTreeMap<(&BTreeMap<String, String>, &[String]), u32> = BTreeMap::new();
        let mut anti_affinities: BTreeMap<&str, u32> = BTreeMap::new();
        for (position, group) in self.scenario.vms.iter().enumerate() {
            let field = format!("vms[{position}]");
            check_vm(group, &field)?;
            if !names.insert(&group.name) {
                return invalid(format!("{field}.name"), format!("there are already VMs called {}", group.name));
            }
            let count = group.count.unwrap_or(1);
            if count == 0 || self.model.vms.len() + count as usize > MOST_VMS {
                return invalid(
                    format!("{field}.count"),
                    format!("{count} is not a number of VMs from 1 to {MOST_VMS} in all"),
                );
            }
            let demands = (&group.affinity.nodes, group.tolerations.as_slice());
            let class = match classes.get(&demands) {
                Some(class) => *class,
                None => {
                    let class = self.model.classes.len() as u32;
                    if (self.model.classes.len() + 1) * self.model.nodes.len() > MOST_CLASS_CELLS {
                        return invalid(
                            format!("{field}.affinity"),
                            "there are too many different selectors and tolerations",
                        );
                    }
                    self.model.classes.push(Class::new(group, &self.specs));
                    classes.insert(demands, class);
                    class
                }
            };
            let next = anti_affinities.len() as u32;
            let anti_affinity =
                group.affinity.apart.as_deref().map(|word| *anti_affinities.entry(word).or_insert(next));
            let start_nodes = self.start_nodes(group, &field)?;
            if group.migratable && group.not_migratable_because.is_some() {
                return invalid(
                    format!("{field}.notMigratableBecause"),
                    "it can be migrated: `migratable` is not false",
                );
            }
            self.vm_group(group, count, class, anti_affinity, &start_nodes, &field)?;
        }
        Ok(())
    }

    fn start_nodes(&self, group: &VmGroup, field: &str) -> Result<Vec<u32>> {
        let mut nodes_of_group = Vec::new();
        for (at, name) in group.on.iter().enumerate() {
            let Some(nodes) = self.by_name.get(name) else {
                return invalid(format!("{field}.on[{at}]"), self.no_node(name));
            };
            if nodes.iter().any(|node| !self.model.nodes[*node as usize].present) {
                return invalid(format!("{field}.on[{at}]"), format!("{name} is not there from the beginning"));
            }
            nodes_of_group.extend(nodes);
        }
        Ok(nodes_of_group)
    }

    fn vm_group(
        &mut self,
        group: &VmGroup,
        count: u32,
        class: u32,
        anti_affinity: Option<u32>,
        start_nodes: &[u32],
        field: &str,
    ) -> Result<()> {
        let first = self.model.vms.len() as u32;
        let number = self.model.groups.len() as u32;
        let shapes = [
            self.shape(&group.cpu, &format!("{field}.cpu"))?,
            self.shape(&group.memory_use, &format!("{field}.memoryUse"))?,
        ];
        for ordinal in 0..count {
            let vm = first + ordinal;
            let mut rng = Rng::keyed(self.scenario.seed, Purpose::Model, u64::from(vm), 0);
            let mut factor = [factor(&group.cpu, &mut rng), factor(&group.memory_use, &mut rng)];
            factor[0] *= rng.between(1.0 - group.vary, 1.0 + group.vary);
            let node = (!start_nodes.is_empty()).then(|| start_nodes[ordinal as usize % start_nodes.len()]);
            self.model.vms.push(VmRecord { group: number, node, shape: shapes, factor });
        }
        self.model.groups.push(Group {
            name: group.name.clone(),
            numbered: group.count.is_some(),
            first,
            count,
            cores: group.cores,
            memory: group.memory.0 as f64,
            noise: group.noise,
            dirty_rate: group.dirty_rate.bytes_per_second(),
            priority: group.priority,
            migratable: group.migratable,
            not_migratable_because: group.not_migratable_because.clone(),
            requests: requests(group.requests, &format!("{field}.requests"))?,
            class,
            anti_affinity,
        });
        if shapes != [0, 0] || group.noise > 0.0 {
            let varying: Vec<_> = (first..first + count).map(|vm| self.model.load_of(vm)).collect();
            self.model.varying.extend(varying);
        }
        Ok(())
    }
}

/// The factor of a VM's load. Loads that change over time have the factor 1.
fn factor(load: &Load, rng: &mut Rng) -> f64 {
    match load {
        Load::Constant(value) => *value,
        Load::Between([low, high]) => rng.between(*low, *high),
        _ => 1.0,
    }
}

fn check_vm(group: &VmGroup, field: &str) -> Result<()> {
    if group.name.is_empty() {
        return invalid(format!("{field}.name"), "it is empty: a VM needs a name");
    }
    if !(group.cores > 0.0 && group.cores <= 100_000.0) {
        return invalid(format!("{field}.cores"), format!("{} is not a number of cores above 0", group.cores));
    }
    if group.memory.0 == 0 {
        return invalid(format!("{field}.memory"), "0 is not an amount of memory above 0");
    }
    for (key, value) in [("vary", group.vary), ("noise", group.noise)] {
        if !(0.0..=1.0).contains(&value) {
            return invalid(format!("{field}.{key}"), format!("{value} is not a share from 0 to 1"));
        }
    }
    Ok(())
}

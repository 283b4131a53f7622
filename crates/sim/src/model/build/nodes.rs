//! The nodes of a model, from the groups of a scenario and from the groups that its events add.

use super::{Builder, MOST_NODES, Result, invalid};
use crate::{
    model::{Node, Stated},
    scenario::{Load, NodeGroup, OwnLoad, Requests},
};

impl<'a> Builder<'a> {
    pub(super) fn nodes(&mut self) -> Result<()> {
        if self.scenario.nodes.is_empty() {
            return invalid("nodes", "it is empty: a cluster has at least one node");
        }
        for (position, group) in self.scenario.nodes.iter().enumerate() {
            self.node_group(group, &format!("nodes[{position}]"), true)?;
        }
        for (position, event) in self.scenario.events.iter().enumerate() {
            if let Some(group) = &event.add {
                self.node_group(group, &format!("events[{position}].add"), false)?;
            }
        }
        Ok(())
    }

    fn node_group(&mut self, group: &'a NodeGroup, field: &str, present: bool) -> Result<()> {
        let count = group.count.unwrap_or(1);
        if count == 0 || self.model.nodes.len() + count as usize > MOST_NODES {
            return invalid(
                format!("{field}.count"),
                format!("{count} is not a number of nodes from 1 to {MOST_NODES} in all"),
            );
        }
        if !(group.cores > 0.0 && group.cores <= 100_000.0) {
            return invalid(format!("{field}.cores"), format!("{} is not a number of cores above 0", group.cores));
        }
        if group.memory.0 == 0 {
            return invalid(format!("{field}.memory"), "0 is not an amount of memory above 0");
        }
        let measured = group.measured.map(|measured| {
            let names = ["cpu", "cpuPressure", "memory", "memoryPressure"].map(|name| format!("measured.{name}"));
            names.into_iter().zip(measured.signals())
        });
        for (name, value) in measured.into_iter().flatten() {
            if !(0.0..=1.0).contains(&value) {
                return invalid(format!("{field}.{name}"), format!("{value} is not a number from 0 to 1"));
            }
        }
        let reserved = requests(group.reserved, &format!("{field}.reserved"))?.map(|amount| amount.unwrap_or(0));
        let own_load = self.own_load(group, field)?;
        let mut members = Vec::new();
        for ordinal in 1..=count {
            let name = if group.count.is_some() { format!("{}-{ordinal}", group.name) } else { group.name.clone() };
            if name.is_empty() {
                return invalid(format!("{field}.name"), "it is empty: a node needs a name");
            }
            let number = self.model.nodes.len() as u32;
            members.push(number);
            if self.by_name.insert(name.clone(), vec![number]).is_some() {
                return invalid(format!("{field}.name"), format!("there is already a node {name}"));
            }
            self.specs.push(group);
            self.own_loads.push(own_load);
            self.model.nodes.push(Node {
                name,
                cores: group.cores,
                memory: group.memory.0 as f64,
                max_vms: group.max_vms,
                reserved,
                cordoned: group.cordoned,
                present,
            });
        }
        if group.count.is_some() && self.by_name.insert(group.name.clone(), members).is_some() {
            return invalid(format!("{field}.name"), format!("there is already a node or a group {}", group.name));
        }
        Ok(())
    }

    /// What is stated about the load of nodes, once it is known where VMs start.
    pub(super) fn stated(&mut self) {
        if self.specs.iter().all(|group| group.own_load.is_none() && group.measured.is_none()) {
            return;
        }
        self.model.stated = self
            .specs
            .iter()
            .zip(&self.own_loads)
            .map(|(group, (own, shape))| Stated {
                own: *own,
                shape: *shape,
                signals: group.measured.map(|measured| measured.signals()),
                starts_empty: true,
            })
            .collect();
        let varying = (0..).zip(&self.own_loads).filter(|(_, (_, shape))| *shape != [0, 0]);
        self.model.varying_nodes = varying.map(|(number, _)| number).collect();
        for node in self.model.vms.iter().filter_map(|vm| vm.node) {
            self.model.stated[node as usize].starts_empty = false;
        }
    }

    /// What a node of a group uses itself: cores and bytes, which the values of these shapes are multiplied with.
    fn own_load(&mut self, group: &NodeGroup, field: &str) -> Result<([f64; 2], [u32; 2])> {
        let OwnLoad { cpu, memory } = &group.own_load;
        let (mut own, mut shape) = ([0.0; 2], [0; 2]);
        let loads = [(cpu, "cpu", group.cores), (memory, "memory", group.memory.0 as f64)];
        for (kind, (load, name, size)) in loads.into_iter().enumerate() {
            let field = format!("{field}.ownLoad.{name}");
            let highest = load.highest();
            if !(0.0..=1.0).contains(&highest) {
                return invalid(field, format!("{highest} is not a number from 0 to 1"));
            }
            shape[kind] = self.shape(load, &field)?;
            own[kind] = match load {
                Load::Constant(value) => value * size,
                Load::Between(_) => return invalid(field, "what a node uses itself is not drawn: state a number"),
                _ => size,
            };
        }
        Ok((own, shape))
    }
}

/// Thousandths of a core, and bytes.
pub(super) fn requests(requests: Requests, field: &str) -> Result<[Option<u64>; 2]> {
    if let Some(cores) = requests.cpu.filter(|cores| !(0.0..=100_000.0).contains(cores)) {
        return invalid(format!("{field}.cpu"), format!("{cores} is not a number of cores from 0 on"));
    }
    Ok([requests.cpu.map(|cores| (cores * 1000.0) as u64), requests.memory.map(|memory| memory.0)])
}

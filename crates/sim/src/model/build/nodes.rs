//! The nodes of a model, from the groups of a scenario and from the groups that its events add.

use super::{Builder, MOST_NODES, Result, invalid};
use crate::{model::Node, scenario::NodeGroup};

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
            self.model.nodes.push(Node {
                name,
                cores: group.cores,
                memory: group.memory.0 as f64,
                max_vms: group.max_vms,
                cordoned: group.cordoned,
                present,
            });
        }
        if group.count.is_some() && self.by_name.insert(group.name.clone(), members).is_some() {
            return invalid(format!("{field}.name"), format!("there is already a node or a group {}", group.name));
        }
        Ok(())
    }
}

//! The first placement of VMs for which the scenario names no node.

use std::collections::BTreeSet;

use super::Builder;
use crate::model::Node;

impl Builder<'_> {
    /// Places each VM without a node as a scheduler would: on the node with the least memory requested.
    pub(super) fn place_vms(&mut self) {
        let model = &mut self.model;
        let mut requested: Vec<f64> = model.nodes.iter().map(|node| node.reserved[1] as f64).collect();
        let mut vm_counts = vec![0_u32; model.nodes.len()];
        for vm in &model.vms {
            if let Some(node) = vm.node {
                requested[node as usize] += model.groups[vm.group as usize].requested_memory();
                vm_counts[node as usize] += 1;
            }
        }
        let share = |requested: f64, node: &Node| (requested / node.memory * 1e12) as u64;
        let open = model.nodes.iter().enumerate().filter(|(_, node)| node.present && !node.cordoned);
        let mut order: BTreeSet<(u64, u32)> =
            open.map(|(number, node)| (share(requested[number], node), number as u32)).collect();
        // The nodes of each anti-affinity number.
        let mut occupied: BTreeSet<(u32, u32)> = BTreeSet::new();
        for vm in &mut model.vms {
            let group = &model.groups[vm.group as usize];
            if let (Some(node), Some(anti_affinity)) = (vm.node, group.anti_affinity) {
                occupied.insert((anti_affinity, node));
            }
            if vm.node.is_some() {
                continue;
            }
            let class = &model.classes[group.class as usize];
            let fits = |(_, number): &&(u64, u32)| {
                let node = &model.nodes[*number as usize];
                requested[*number as usize] + group.requested_memory() <= node.memory
                    && vm_counts[*number as usize] < node.max_vms
                    && class.allows(*number)
                    && group.anti_affinity.is_none_or(|anti_affinity| !occupied.contains(&(anti_affinity, *number)))
            };
            let Some(entry) = order.iter().find(fits).copied() else { continue };
            let number = entry.1 as usize;
            requested[number] += group.requested_memory();
            vm_counts[number] += 1;
            occupied.extend(group.anti_affinity.map(|anti_affinity| (anti_affinity, entry.1)));
            vm.node = Some(entry.1);
            order.remove(&entry);
            order.insert((share(requested[number], &model.nodes[number]), entry.1));
        }
    }
}

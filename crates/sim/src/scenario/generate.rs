//! Generated scenarios of any size: nodes of the reference's size with random loads, and VMs that cause them.

use super::{Load, NodeGroup, Scenario, ScenarioError, VmGroup};
use crate::{
    model::{MOST_NODES, MOST_VMS},
    rng::{Purpose, Rng},
    units::{Bytes, Span},
};

/// A cluster whose nodes have a CPU use from 0.2 to 0.95 and a memory use from 0.2 to 0.8, shared by unequal VMs. With
/// `unsteady`, the load of one VM of each node changes in every step.
pub fn generate(nodes: u32, vms: u32, seed: u64, unsteady: bool) -> Result<Scenario, ScenarioError> {
    if !(1..=MOST_NODES as u32).contains(&nodes) {
        return Err(ScenarioError::new("nodes", format!("{nodes} is not a number from 1 to {MOST_NODES}")));
    }
    if vms as usize > MOST_VMS {
        return Err(ScenarioError::new("vms", format!("{vms} is not a number from 0 to {MOST_VMS}")));
    }
    let mut groups = Vec::new();
    for node in 0..nodes {
        let mut rng = Rng::keyed(seed, Purpose::Model, u64::from(node), 1);
        let (cpu, memory) = (rng.between(0.2, 0.95), rng.between(0.2, 0.8));
        // The first nodes get the remainder, one VM each.
        let count = vms / nodes + u32::from(node < vms % nodes);
        if count == 0 {
            continue;
        }
        let group = VmGroup {
            count: Some(count),
            cores: 2.0,
            memory: Bytes(4 << 30),
            cpu: Load::Constant(rounded(cpu * 16.0 / f64::from(count))),
            memory_use: Load::Constant(rounded(memory * 32.0 / f64::from(count))),
            vary: 0.5,
            on: vec![format!("node-{}", node + 1)],
            ..VmGroup::new(&format!("vm-{}", node + 1))
        };
        if unsteady {
            groups.push(VmGroup {
                count: None,
                noise: 0.5,
                ..VmGroup { name: format!("unsteady-{}", node + 1), ..group.clone() }
            });
            if count == 1 {
                continue;
            }
        }
        groups.push(VmGroup { count: Some(count - u32::from(unsteady)), ..group });
    }
    let node = NodeGroup { count: Some(nodes), max_vms: 1000, ..NodeGroup::reference("node") };
    Ok(Scenario {
        description: format!("{nodes} nodes with {vms} VMs, generated with seed {seed}."),
        seed,
        duration: Span(6000),
        ..Scenario::new(&format!("generated-{nodes}x{vms}"), vec![node], groups)
    })
}

/// Few digits keep the file readable and exact.
fn rounded(value: f64) -> f64 {
    libm::round(value * 10_000.0) / 10_000.0
}

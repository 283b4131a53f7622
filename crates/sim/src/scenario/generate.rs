//! Scenarios of any size: nodes of the reference's size with loads drawn between wide bounds, and VMs to match.

use super::{Load, NodeGroup, Scenario, ScenarioError, VmGroup};
use crate::{
    model::{MOST_NODES, MOST_VMS},
    rng::{Purpose, Rng},
    units::{Bytes, Span},
};

/// A cluster of `nodes` nodes with `vms` VMs in all. Each node's CPU use is drawn from 0.2 to 0.95 and its memory use from
/// 0.2 to 0.8, and shared out among its VMs, which differ by up to a half. `unsteady` lets one VM of each node change its
/// load in every step.
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
        // The remainder goes to the first nodes, one each.
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

/// Few digits, so that the file is readable and means exactly what was generated.
fn rounded(value: f64) -> f64 {
    libm::round(value * 10_000.0) / 10_000.0
}

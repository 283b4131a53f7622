//! Placements with an uneven load.

use lab::play::{NewVm, Placement};
use sim::Rng;

const NODES: usize = 5;

fn guest(number: usize, cpu_use: f64) -> NewVm {
    NewVm { name: format!("vm-{number:03}"), cores: 1.0, memory_bytes: 2 << 30, cpu_use, memory_use: 0.5 }
}

fn node(number: usize) -> Option<String> {
    Some(format!("kwok-node-{}", number + 1))
}

/// 100 VMs of a core and 2 GiB, 80 of them on two of five nodes.
pub(crate) fn placement_skew(seed: u64) -> Placement {
    let mut rng = Rng::new(seed);
    let homes = [40, 40, 7, 7, 6].into_iter().enumerate().flat_map(|(home, count)| std::iter::repeat_n(home, count));
    Placement(homes.enumerate().map(|(number, home)| (guest(number, rng.between(0.1, 1.0)), node(home))).collect())
}

/// 20 VMs on each node; those on two nodes have a high CPU use.
pub(crate) fn use_skew(seed: u64) -> Placement {
    let mut rng = Rng::new(seed);
    let guests = (0..NODES * 20).map(|number| {
        let home = number / 20;
        let (low, high) = if home < 2 { (0.7, 1.0) } else { (0.1, 0.4) };
        (guest(number, rng.between(low, high)), node(home))
    });
    Placement(guests.collect())
}

/// 20 VMs of 8 cores. Each uses a fifth of a node or more, so the node that gets one becomes the busiest.
pub(crate) fn big_guests(seed: u64) -> Placement {
    let mut rng = Rng::new(seed);
    let guests = (0..20).map(|number| {
        let home = number % 2;
        (NewVm { cores: 8.0, memory_bytes: 8 << 30, ..guest(number, rng.between(0.6, 1.0)) }, node(home))
    });
    Placement(guests.collect())
}

/// Four equally busy nodes, and an empty one.
pub(crate) fn four_hot_nodes() -> Placement {
    let share = 0.74;
    let guests = (0..4 * 32).map(|number| (NewVm { memory_bytes: 1 << 30, ..guest(number, share) }, node(number / 32)));
    Placement(guests.collect())
}

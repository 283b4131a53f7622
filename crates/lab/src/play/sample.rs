//! The first VMs of a lab, with load and places that leave something to balance.

use sim::Rng;

use super::{NewVm, Placement};
use crate::{Error, kwok::node_name, up::Options};

/// A node takes 110 pods; the rest is for migrations.
const MOST_PER_NODE: usize = 90;
const GIBIBYTE: u64 = 1 << 30;
/// The share of a node's memory that VMs may request, so that there is room for migrations.
const MEMORY_SHARE: f64 = 0.6;

impl Placement {
    /// `count` VMs. A third of the nodes, rounded up, has twice as many VMs as the others, with a higher load.
    pub fn sample(count: usize, options: &Options) -> Result<Placement, Error> {
        let nodes = options.nodes as usize;
        let hot = nodes.div_ceil(3).min(nodes.saturating_sub(1));
        let most = nodes * MOST_PER_NODE;
        if count > most {
            let problem =
                format!("{count} VMs do not fit on {nodes} nodes: at most {most} do; ask for fewer or for more nodes");
            return Err(Error::Asset(problem));
        }
        let homes = homes(count, nodes, hot);
        let fullest = (0..nodes).map(|node| homes.iter().filter(|home| **home == node).count()).max().unwrap_or(0);
        let fullest = fullest.max(1) as f64;
        let cores = [4.0, 2.0, 1.0, 0.5].into_iter().find(|cores| cores * fullest <= f64::from(options.cores));
        let memory = (options.memory_bytes as f64 * MEMORY_SHARE / fullest) as u64;
        let memory_bytes = (memory.min(4 * GIBIBYTE) >> 20 << 20).max(1 << 20);
        let mut rng = Rng::new(1);
        let vm = |(number, home): (usize, usize)| {
            let (low, high) = if home < hot { (0.6, 1.0) } else { (0.1, 0.5) };
            let cpu_use = rng.between(low, high);
            let memory_use = rng.between(0.4, 0.8);
            let name = format!("vm-{:03}", number + 1);
            let vm = NewVm { name, cores: cores.unwrap_or(0.25), memory_bytes, cpu_use, memory_use };
            (vm, Some(node_name(home as u32 + 1)))
        };
        Ok(Placement(homes.into_iter().enumerate().map(vm).collect()))
    }
}

/// The number of each VM's node, from 0.
fn homes(count: usize, nodes: usize, hot: usize) -> Vec<usize> {
    // Hot nodes occur twice in each round, until they are full.
    let round: Vec<usize> = (0..nodes).chain(0..hot).collect();
    let mut taken = vec![0; nodes];
    let mut homes: Vec<usize> = Vec::with_capacity(count);
    for node in round.iter().cycle() {
        if homes.len() == count {
            break;
        }
        if taken[*node] < MOST_PER_NODE {
            taken[*node] += 1;
            homes.push(*node);
        }
    }
    homes.sort_unstable();
    homes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(placement: &Placement, node: &str) -> f64 {
        let on = placement.0.iter().filter(|(_, home)| home.as_deref() == Some(node));
        on.map(|(vm, _)| vm.cores * vm.cpu_use).sum()
    }

    #[test]
    fn two_of_five_nodes_have_most_of_the_load_and_none_has_more_than_it_can_bear() {
        let placement = Placement::sample(50, &Options::default()).unwrap();
        assert_eq!(placement.0.len(), 50);
        let loads: Vec<f64> = (1..=5).map(|node| load(&placement, &node_name(node)) / 32.0).collect();
        assert!(loads[..2].iter().all(|load| (0.5..1.0).contains(load)), "{loads:?}");
        assert!(loads[2..].iter().all(|load| (0.05..0.3).contains(load)), "{loads:?}");
    }

    #[test]
    fn any_number_fits_up_to_what_the_nodes_take() {
        for (nodes, count) in [(1, 0), (1, 1), (1, 90), (2, 3), (5, 450), (7, 100), (30, 50)] {
            let options = Options { nodes, ..Options::default() };
            let placement = Placement::sample(count, &options).unwrap();
            assert_eq!(placement.0.len(), count, "{nodes}");
            for node in 1..=nodes {
                let name = node_name(node);
                let on: Vec<_> = placement.0.iter().filter(|(_, home)| home.as_ref() == Some(&name)).collect();
                assert!(on.len() <= MOST_PER_NODE, "{nodes} nodes, {count} VMs: {}", on.len());
                let memory: u64 = on.iter().map(|(vm, _)| vm.memory_bytes).sum();
                assert!(memory <= options.memory_bytes, "{nodes} nodes, {count} VMs: {memory}");
            }
        }
        let problem = Placement::sample(451, &Options::default()).unwrap_err().to_string();
        assert!(problem.starts_with("451 VMs do not fit on 5 nodes: at most 450 do"), "{problem}");
    }
}

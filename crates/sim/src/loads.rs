//! The load of every VM over time, for whoever plays a scenario on something real: no nodes are scored and nothing moves.

use crate::{
    load::Tasks,
    rng::Rng,
    units::Rate,
    world::{Happening, Target, World},
};

/// A VM of a scenario, as it is at first.
#[derive(Debug, Clone, PartialEq)]
pub struct Guest {
    pub name: String,
    pub cores: f64,
    pub memory_bytes: u64,
    /// The number of the node that it starts on, if the scenario says so.
    pub node: Option<u32>,
}

impl World {
    pub fn guest(&self, vm: u32) -> Guest {
        let group = self.group(vm);
        Guest {
            name: self.vm_name(vm),
            cores: group.cores,
            memory_bytes: group.memory as u64,
            node: self.vms[vm as usize].node,
        }
    }

    /// Whether any load changes over time.
    pub fn is_steady(&self) -> bool {
        self.varying.is_empty() && self.tasks.is_empty()
    }

    /// At what rate a VM writes to its memory.
    pub fn dirty_rate(&self, vm: u32) -> Rate {
        Rate((self.group(vm).dirty_rate * 8.0) as u64)
    }

    /// What happens to nodes, and in which step, in order of time. Nodes that are closed from the beginning come first.
    pub fn happenings(&self) -> Vec<(u64, Happening)> {
        let closed = (0..).zip(&self.nodes).filter(|(_, node)| node.cordoned && node.present);
        closed.map(|(number, _)| (0, Happening::Cordon(number))).chain(self.events.iter().copied()).collect()
    }

    /// The cores and bytes of a node.
    pub fn node_size(&self, node: u32) -> (f64, u64) {
        let node = &self.nodes[node as usize];
        (node.cores, node.memory as u64)
    }
}

/// Load as a function of world, seed and step. Tasks for VMs of certain nodes go by the nodes that VMs start on; where the
/// scenario names none, any VM may get them.
#[derive(Debug)]
pub struct Loads<'w> {
    world: &'w World,
    seed: u64,
    step: u64,
    tasks: Tasks,
    shares: Vec<[f64; 2]>,
}

impl<'w> Loads<'w> {
    /// At step 0.
    pub fn new(world: &'w World, seed: u64) -> Self {
        let mut loads =
            Loads { world, seed, step: 0, tasks: Tasks::default(), shares: vec![[0.0; 2]; world.vms.len()] };
        loads.look();
        loads
    }

    pub fn step(&self) -> u64 {
        self.step
    }

    /// The shares of its cores and its memory that each VM uses at this step.
    pub fn shares(&self) -> &[[f64; 2]] {
        &self.shares
    }

    /// Goes on to a later step; an earlier one changes nothing.
    pub fn advance(&mut self, to: u64) {
        while self.step < to {
            if self.world.tasks.is_empty() {
                self.step = to;
            } else {
                self.step += 1;
            }
            self.look();
        }
    }

    fn look(&mut self) {
        let world = self.world;
        let (time, clock) = (self.step * world.step, world.clock(self.step));
        let values: Vec<f64> = world.shapes.iter().map(|shape| shape.at(time, clock)).collect();
        if !self.tasks.is_idle(world) {
            let homes = Homes { world, shares: &self.shares };
            self.tasks.step(world, self.seed, self.step, &mut Vec::new(), |number, rng| {
                homes.pick(world.tasks[number].target, rng)
            });
        }
        for vm in 0..world.vms.len() as u32 {
            let of = world.load_of(vm);
            let tasks = if world.tasks.is_empty() { [0.0; 2] } else { self.tasks.load(vm) };
            self.shares[vm as usize] = of.shares(&values, of.noise_at(self.seed, self.step), tasks);
        }
    }
}

/// Where VMs start, and what they used at the last step.
struct Homes<'a> {
    world: &'a World,
    shares: &'a [[f64; 2]],
}

impl Homes<'_> {
    fn pick(&self, target: Target, rng: &mut Rng) -> Option<u32> {
        let any = |rng: &mut Rng| (!self.world.vms.is_empty()).then(|| rng.below(self.world.vms.len()) as u32);
        let count = match target {
            Target::Any => return any(rng),
            Target::Group(group) => {
                let group = &self.world.groups[group as usize];
                return Some(group.first + rng.below(group.count as usize) as u32);
            }
            Target::Hottest(count) | Target::Random(count) => count as usize,
        };
        let mut used = vec![0.0; self.world.nodes.len()];
        for (vm, shares) in self.world.vms.iter().zip(self.shares) {
            if let Some(node) = vm.node {
                let cores = self.world.groups[vm.group as usize].cores;
                used[node as usize] += shares[0] * cores / self.world.nodes[node as usize].cores;
            }
        }
        let mut nodes: Vec<usize> = (0..used.len()).collect();
        if matches!(target, Target::Hottest(_)) {
            nodes.sort_by(|a, b| used[*b].total_cmp(&used[*a]));
            nodes.truncate(count.max(1));
        }
        let node = nodes[rng.below(nodes.len())] as u32;
        let vms: Vec<u32> =
            (0..).zip(&self.world.vms).filter(|(_, vm)| vm.node == Some(node)).map(|(at, _)| at).collect();
        if vms.is_empty() { any(rng) } else { Some(vms[rng.below(vms.len())]) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Run, Settings,
        scenario::{Target, shipped},
    };

    #[test]
    fn loads_are_those_of_a_run_wherever_tasks_do_not_depend_on_nodes() {
        let mut compared = 0;
        for mut scenario in shipped::all() {
            scenario.tasks.retain(|task| matches!(task.target, Target::Any | Target::Vms(_)));
            let world = World::new(&scenario).unwrap();
            let mut run = Run::new(&world, Settings::new(&scenario).unwrap(), 7);
            let mut loads = Loads::new(&world, 7);
            for step in 0..world.steps().min(40) {
                loads.advance(step);
                run.step();
                for (vm, shares) in (0..).zip(loads.shares()) {
                    let guest = world.group(vm);
                    let expected = [shares[0] * guest.cores, shares[1] * guest.memory];
                    assert_eq!(run.usage(vm), expected, "{} step {step} VM {vm}", scenario.name);
                    compared += 1;
                }
            }
        }
        assert!(compared > 10_000, "{compared}");
    }

    #[test]
    fn steps_may_be_skipped_and_are_the_same_when_they_are_not() {
        for name in ["hotspot", "week"] {
            let world = World::new(&shipped::find(name).unwrap()).unwrap();
            let (mut each, mut skipping) = (Loads::new(&world, 3), Loads::new(&world, 3));
            for step in 1..=30 {
                each.advance(step);
            }
            skipping.advance(30);
            assert_eq!(each.shares(), skipping.shares(), "{name}");
            skipping.advance(10);
            assert_eq!(skipping.step(), 30);
        }
    }

    #[test]
    fn a_guest_says_its_name_its_size_and_where_it_starts() {
        let world = World::new(&shipped::find("hotspot").unwrap()).unwrap();
        let guest = world.guest(96);
        assert_eq!((guest.name.as_str(), guest.cores, guest.memory_bytes), ("busy-1", 4.0, 8 << 30));
        assert_eq!(guest.node.map(|node| world.node_name(node)), Some("worker-3"));
        assert!(!world.is_steady());
    }

    fn with_tasks(tasks: &str) -> World {
        let text = format!(
            "{{name: t, step: 1s, duration: 100s, nodes: [{{name: cold}}, {{name: hot}}], \
             vms: [{{name: idle, cpu: 0.1, on: [cold]}}, {{name: busy, cpu: 0.4, on: [hot]}}], tasks: [{tasks}]}}"
        );
        World::new(&crate::scenario::parse(&text).unwrap()[0]).unwrap()
    }

    /// Holds L40.
    #[test]
    fn tasks_for_the_hottest_node_go_there_and_not_to_the_first() {
        let world = with_tasks("{name: t, every: 1s, cpu: 0.1, seconds: 1, target: {hottestNodes: 1}}");
        let mut loads = Loads::new(&world, 1);
        for step in 1..20 {
            loads.advance(step);
            let tenths: Vec<f64> = loads.shares().iter().map(|[cpu, _]| (cpu * 10.0).round()).collect();
            assert_eq!(tenths, [1.0, 5.0], "step {step}");
        }
    }

    /// Holds L41 and L42.
    #[test]
    fn as_many_tasks_come_as_were_drawn_and_their_load_goes_with_them() {
        let world = with_tasks("{name: t, every: 50s, count: 3, cpu: 0.1, seconds: 10, target: {vms: busy}}");
        let mut loads = Loads::new(&world, 1);
        let mut busy = |step| {
            loads.advance(step);
            (loads.shares()[1][0] * 10.0).round()
        };
        assert_eq!([1, 9, 10, 49, 50, 59, 60].map(&mut busy), [7.0, 7.0, 4.0, 4.0, 7.0, 7.0, 4.0]);
    }

    #[test]
    fn what_happens_to_nodes_is_told_in_order_with_those_that_are_closed_first() {
        let world = World::new(&shipped::find("drain").unwrap()).unwrap();
        let told = world.happenings();
        assert_eq!(told[0], (20, Happening::Drain(0)), "ten minutes in steps of half a minute");
        assert_eq!(told.last(), Some(&(360, Happening::Join(10))));
        assert_eq!((world.node_name(10), world.node_size(10)), ("spare", (64.0, 512 << 30)));
        assert_eq!([0, 100].map(|vm| world.dirty_rate(vm).to_string()), ["800Mbps", "3Gbps"]);
        let closed = "{name: t, nodes: [{name: a}, {name: b, cordoned: true}], vms: []}";
        let closed = World::new(&crate::scenario::parse(closed).unwrap()[0]).unwrap();
        assert_eq!(closed.happenings(), [(0, Happening::Cordon(1))]);
    }
}

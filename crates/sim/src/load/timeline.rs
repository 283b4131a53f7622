//! The load of every VM over time without a run: no node is scored and no VM moves. The lab plays scenarios with it.

use super::Tasks;
use crate::{
    model::{ClusterModel, TaskTarget},
    rng::Rng,
    scenario::Condition,
};

/// Load as a function of model, seed, step and the nodes of VMs, which are those that they start on until others are told. If no VM
/// is on the nodes of a task, any VM may get it.
#[derive(Debug)]
pub struct LoadTimeline<'m> {
    model: &'m ClusterModel,
    seed: u64,
    step: u64,
    tasks: Tasks,
    shares: Vec<[f64; 2]>,
    /// By VM: its node.
    nodes: Vec<Option<u32>>,
}

impl<'m> LoadTimeline<'m> {
    /// At step 0.
    pub fn new(model: &'m ClusterModel, seed: u64) -> Self {
        let shares = vec![[0.0; 2]; model.vms.len()];
        let nodes = model.vms.iter().map(|vm| vm.node).collect();
        let mut timeline = LoadTimeline { model, seed, step: 0, tasks: Tasks::default(), shares, nodes };
        timeline.update();
        timeline
    }

    pub fn step(&self) -> u64 {
        self.step
    }

    /// The shares of its cores and its memory that each VM uses at this step.
    pub fn shares(&self) -> &[[f64; 2]] {
        &self.shares
    }

    /// Sets on which node each VM runs, by their numbers in the model. It matters only where the load depends on nodes.
    pub fn set_nodes(&mut self, nodes: impl IntoIterator<Item = Option<u32>>) {
        for (known, node) in self.nodes.iter_mut().zip(nodes) {
            *known = node.filter(|node| (*node as usize) < self.model.nodes.len());
        }
    }

    /// Advances to a later step. An earlier step changes nothing.
    pub fn advance(&mut self, to: u64) {
        while self.step < to {
            if self.model.tasks.is_empty() {
                self.step = to;
            } else {
                self.step += 1;
            }
            self.update();
        }
    }

    fn update(&mut self) {
        let model = self.model;
        let (time, clock) = (self.step * model.step, model.clock(self.step));
        let values: Vec<f64> = model.shapes.iter().map(|shape| shape.at(time, clock)).collect();
        if !model.tasks.is_empty() {
            let known = KnownNodes { model, shares: &self.shares, nodes: &self.nodes };
            let holds = |condition: &Condition| condition.holds(&known.used(0), &known.used(1));
            self.tasks.step(model, self.seed, self.step, &mut Vec::new(), holds, |number, rng| {
                known.pick(model.tasks[number].target, rng)
            });
        }
        for vm in 0..model.vms.len() as u32 {
            let of = model.load_of(vm);
            let tasks = if model.tasks.is_empty() { [0.0; 2] } else { self.tasks.load(vm) };
            self.shares[vm as usize] = of.shares(&values, of.noise_at(self.seed, self.step), tasks);
        }
    }
}

/// The nodes of VMs, and what VMs used at the last step.
struct KnownNodes<'a> {
    model: &'a ClusterModel,
    shares: &'a [[f64; 2]],
    nodes: &'a [Option<u32>],
}

impl KnownNodes<'_> {
    /// The shares of their cores, or of their memory, that nodes use.
    fn used(&self, kind: usize) -> Vec<f64> {
        let mut used = vec![0.0; self.model.nodes.len()];
        for ((vm, shares), node) in self.model.vms.iter().zip(self.shares).zip(self.nodes) {
            if let Some(node) = node {
                let (group, of) = (&self.model.groups[vm.group as usize], &self.model.nodes[*node as usize]);
                used[*node as usize] += shares[kind] * [group.cores, group.memory][kind] / [of.cores, of.memory][kind];
            }
        }
        used
    }

    fn pick(&self, target: TaskTarget, rng: &mut Rng) -> Option<u32> {
        let any = |rng: &mut Rng| (!self.model.vms.is_empty()).then(|| rng.below(self.model.vms.len()) as u32);
        let count = match target {
            TaskTarget::Any => return any(rng),
            TaskTarget::Group(group) => {
                let group = &self.model.groups[group as usize];
                return Some(group.first + rng.below(group.count as usize) as u32);
            }
            TaskTarget::Hottest(count) | TaskTarget::Coldest(count) | TaskTarget::Random(count) => count as usize,
        };
        let used = self.used(0);
        let mut nodes: Vec<usize> = (0..used.len()).collect();
        if !matches!(target, TaskTarget::Random(_)) {
            nodes.sort_by(|a, b| used[*b].total_cmp(&used[*a]));
            if matches!(target, TaskTarget::Coldest(_)) {
                nodes.reverse();
            }
            nodes.truncate(count.max(1));
        }
        let node = nodes[rng.below(nodes.len())] as u32;
        let vms: Vec<u32> =
            (0..).zip(self.nodes).filter(|(_, known)| **known == Some(node)).map(|(at, _)| at).collect();
        if vms.is_empty() { any(rng) } else { Some(vms[rng.below(vms.len())]) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Run, RunSettings,
        scenario::{Target, shipped},
    };

    #[test]
    fn the_timeline_has_the_loads_of_a_run_where_tasks_do_not_depend_on_nodes() {
        let mut compared = 0;
        for mut scenario in shipped::all() {
            scenario.tasks.retain(|task| matches!(task.target, Target::Any | Target::Vms(_)));
            let model = ClusterModel::new(&scenario).unwrap();
            let mut run = Run::new(&model, RunSettings::new(&scenario).unwrap(), 7);
            let mut timeline = LoadTimeline::new(&model, 7);
            for step in 0..model.steps().min(40) {
                timeline.advance(step);
                run.step();
                for (vm, shares) in (0..).zip(timeline.shares()) {
                    let group = model.group(vm);
                    let expected = [shares[0] * group.cores, shares[1] * group.memory];
                    assert_eq!(run.usage(vm), expected, "{} step {step} VM {vm}", scenario.name);
                    compared += 1;
                }
            }
        }
        assert!(compared > 10_000, "{compared}");
    }

    #[test]
    fn skipped_steps_do_not_change_the_loads() {
        for name in ["hotspot", "week"] {
            let model = ClusterModel::new(&shipped::find(name).unwrap()).unwrap();
            let (mut each, mut skipping) = (LoadTimeline::new(&model, 3), LoadTimeline::new(&model, 3));
            for step in 1..=30 {
                each.advance(step);
            }
            skipping.advance(30);
            assert_eq!(each.shares(), skipping.shares(), "{name}");
            skipping.advance(10);
            assert_eq!(skipping.step(), 30);
        }
    }

    fn with_tasks(tasks: &str) -> ClusterModel {
        let text = format!(
            "{{name: t, step: 1s, duration: 100s, nodes: [{{name: cold}}, {{name: hot}}], \
             vms: [{{name: idle, cpu: 0.1, on: [cold]}}, {{name: busy, cpu: 0.4, on: [hot]}}], tasks: [{tasks}]}}"
        );
        ClusterModel::new(&crate::scenario::parse(&text).unwrap()[0]).unwrap()
    }

    /// Holds L40 (first node only).
    #[test]
    fn tasks_for_the_hottest_node_go_there_and_not_to_the_first() {
        let model = with_tasks("{name: t, every: 1s, cpu: 0.1, seconds: 1, target: {hottestNodes: 1}}");
        let mut timeline = LoadTimeline::new(&model, 1);
        for step in 1..20 {
            timeline.advance(step);
            let tenths: Vec<f64> = timeline.shares().iter().map(|[cpu, _]| (cpu * 10.0).round()).collect();
            assert_eq!(tenths, [1.0, 5.0], "step {step}");
        }
    }

    #[test]
    fn tasks_with_a_condition_come_while_a_node_meets_it() {
        // The load of `busy` rises to 0.8 of its core until step 50 and falls again; its node has 2 cores.
        let text = "{name: t, step: 1s, duration: 100s, nodes: [{name: cold, cores: 2}, {name: hot, cores: 2}], vms: [\
             {name: idle, cores: 1, cpu: 0.1, on: [cold]}, \
             {name: busy, cores: 1, cpu: {points: [[0s, 0], [50s, 0.8], [100s, 0]]}, on: [hot]}], \
             tasks: [{name: t, every: 1s, cpu: 0.5, seconds: 1, target: {vms: idle}, when: {nodeCpuAbove: 0.35}}]}";
        let model = ClusterModel::new(&crate::scenario::parse(text).unwrap()[0]).unwrap();
        assert!(model.depends_on_nodes());
        let with_task = |timeline: &LoadTimeline<'_>| timeline.shares()[0][0] > 0.5;
        let mut timeline = LoadTimeline::new(&model, 1);
        let mut found = Vec::new();
        for step in 1..100 {
            timeline.advance(step);
            if with_task(&timeline) {
                found.push(step);
            }
        }
        let (first, last) = (found[0], found[found.len() - 1]);
        assert_eq!(found, (first..=last).collect::<Vec<u64>>());
        assert!((44..=47).contains(&first) && (55..=58).contains(&last), "{first} to {last}");

        let mut moved = LoadTimeline::new(&model, 1);
        moved.set_nodes([Some(0), None]);
        moved.advance(50);
        assert!(!with_task(&moved), "the busy VM runs nowhere");
        let mut invalid = LoadTimeline::new(&model, 1);
        invalid.set_nodes([Some(7), Some(1)]);
        invalid.advance(50);
        assert!(with_task(&invalid), "a node that the model does not have is none");
    }

    #[test]
    fn tasks_for_the_coldest_node_go_there() {
        let model = with_tasks("{name: t, every: 1s, cpu: 0.1, seconds: 1, target: {coldestNodes: 1}}");
        let mut timeline = LoadTimeline::new(&model, 1);
        timeline.advance(5);
        let tenths: Vec<f64> = timeline.shares().iter().map(|[cpu, _]| (cpu * 10.0).round()).collect();
        assert_eq!(tenths, [2.0, 4.0]);
    }

    /// Holds L41 (number cut to one) and L42 (load stays).
    #[test]
    fn as_many_tasks_come_as_were_drawn_and_their_load_goes_with_them() {
        let model = with_tasks("{name: t, every: 50s, count: 3, cpu: 0.1, seconds: 10, target: {vms: busy}}");
        let mut timeline = LoadTimeline::new(&model, 1);
        let mut busy = |step| {
            timeline.advance(step);
            (timeline.shares()[1][0] * 10.0).round()
        };
        assert_eq!([1, 9, 10, 49, 50, 59, 60].map(&mut busy), [7.0, 7.0, 4.0, 4.0, 7.0, 7.0, 4.0]);
    }
}

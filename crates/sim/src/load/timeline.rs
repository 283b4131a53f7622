//! The load of every VM over time without a run: no node is scored and no VM moves. The lab plays scenarios with it.

use super::Tasks;
use crate::{
    model::{ClusterModel, TaskTarget},
    rng::Rng,
};

/// Load as a function of model, seed and step. Tasks for VMs of certain nodes use the nodes that VMs start on; without
/// such a VM, any VM may get the task.
#[derive(Debug)]
pub struct LoadTimeline<'m> {
    model: &'m ClusterModel,
    seed: u64,
    step: u64,
    tasks: Tasks,
    shares: Vec<[f64; 2]>,
}

impl<'m> LoadTimeline<'m> {
    /// At step 0.
    pub fn new(model: &'m ClusterModel, seed: u64) -> Self {
        let mut timeline =
            LoadTimeline { model, seed, step: 0, tasks: Tasks::default(), shares: vec![[0.0; 2]; model.vms.len()] };
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
            let start = StartNodes { model, shares: &self.shares };
            self.tasks.step(model, self.seed, self.step, &mut Vec::new(), |number, rng| {
                start.pick(model.tasks[number].target, rng)
            });
        }
        for vm in 0..model.vms.len() as u32 {
            let of = model.load_of(vm);
            let tasks = if model.tasks.is_empty() { [0.0; 2] } else { self.tasks.load(vm) };
            self.shares[vm as usize] = of.shares(&values, of.noise_at(self.seed, self.step), tasks);
        }
    }
}

/// The nodes that VMs start on, and what VMs used at the last step.
struct StartNodes<'a> {
    model: &'a ClusterModel,
    shares: &'a [[f64; 2]],
}

impl StartNodes<'_> {
    fn pick(&self, target: TaskTarget, rng: &mut Rng) -> Option<u32> {
        let any = |rng: &mut Rng| (!self.model.vms.is_empty()).then(|| rng.below(self.model.vms.len()) as u32);
        let count = match target {
            TaskTarget::Any => return any(rng),
            TaskTarget::Group(group) => {
                let group = &self.model.groups[group as usize];
                return Some(group.first + rng.below(group.count as usize) as u32);
            }
            TaskTarget::Hottest(count) | TaskTarget::Random(count) => count as usize,
        };
        let mut used = vec![0.0; self.model.nodes.len()];
        for (vm, shares) in self.model.vms.iter().zip(self.shares) {
            if let Some(node) = vm.node {
                let cores = self.model.groups[vm.group as usize].cores;
                used[node as usize] += shares[0] * cores / self.model.nodes[node as usize].cores;
            }
        }
        let mut nodes: Vec<usize> = (0..used.len()).collect();
        if matches!(target, TaskTarget::Hottest(_)) {
            nodes.sort_by(|a, b| used[*b].total_cmp(&used[*a]));
            nodes.truncate(count.max(1));
        }
        let node = nodes[rng.below(nodes.len())] as u32;
        let vms: Vec<u32> =
            (0..).zip(&self.model.vms).filter(|(_, vm)| vm.node == Some(node)).map(|(at, _)| at).collect();
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

//! Turns a scenario into a world and refuses what makes no sense, with the field that says it.

use std::collections::{BTreeMap, BTreeSet};

use super::{Class, Group, Happening, Node, Target, Task, Vm, World};
use crate::{
    load::Shape,
    rng::{Purpose, Rng},
    scenario::{self, Amount, Load, NodeGroup, Scenario, ScenarioError, TaskGroup, VmGroup},
};

pub(crate) const MOST_NODES: usize = 100_000;
pub(crate) const MOST_VMS: usize = 2_000_000;
const MOST_STEPS: u64 = 1_000_000;
/// Constraints are kept per class and node.
const MOST_CLASS_CELLS: usize = 50_000_000;
/// A share of what a VM has. Files of the reference may ask for more than all of it.
const HIGHEST_LOAD: f64 = 32.0;

type Result<T> = std::result::Result<T, ScenarioError>;

fn refuse<T>(field: impl Into<String>, message: impl Into<String>) -> Result<T> {
    Err(ScenarioError::new(field, message))
}

impl World {
    pub fn new(scenario: &Scenario) -> Result<Self> {
        let mut builder = Builder::new(scenario)?;
        builder.nodes()?;
        builder.vms()?;
        builder.tasks()?;
        builder.events()?;
        builder.settle();
        Ok(builder.world)
    }
}

struct Builder<'a> {
    scenario: &'a Scenario,
    world: World,
    /// Numbers of the nodes of each group, and of each node by itself.
    by_name: BTreeMap<String, Vec<u32>>,
    /// The group of each node.
    specs: Vec<&'a NodeGroup>,
}

impl<'a> Builder<'a> {
    fn new(scenario: &'a Scenario) -> Result<Self> {
        if scenario.name.is_empty() {
            return refuse("name", "it is empty: a scenario needs a name");
        }
        if !(1..=86_400).contains(&scenario.step.0) {
            return refuse("step", format!("{} is not a length from 1s to 1d", scenario.step));
        }
        let steps = scenario.steps();
        if !(1..=MOST_STEPS).contains(&steps) {
            return refuse(
                "duration",
                format!("{} is {steps} steps of {}: 1 to {MOST_STEPS} were expected", scenario.duration, scenario.step),
            );
        }
        let world = World {
            name: scenario.name.clone(),
            step: scenario.step.0,
            steps,
            start: scenario.start.0 * 60,
            nodes: Vec::new(),
            groups: Vec::new(),
            vms: Vec::new(),
            shapes: vec![Shape::Constant],
            varying: Vec::new(),
            tasks: Vec::new(),
            events: Vec::new(),
            classes: Vec::new(),
            aparts: 0,
        };
        Ok(Self { scenario, world, by_name: BTreeMap::new(), specs: Vec::new() })
    }

    fn nodes(&mut self) -> Result<()> {
        if self.scenario.nodes.is_empty() {
            return refuse("nodes", "it is empty: a cluster has at least one node");
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
        if count == 0 || self.world.nodes.len() + count as usize > MOST_NODES {
            return refuse(
                format!("{field}.count"),
                format!("{count} is not a number of nodes from 1 to {MOST_NODES} in all"),
            );
        }
        if !(group.cores > 0.0 && group.cores <= 100_000.0) {
            return refuse(format!("{field}.cores"), format!("{} is not a number of cores above 0", group.cores));
        }
        if group.memory.0 == 0 {
            return refuse(format!("{field}.memory"), "0 is not an amount of memory above 0");
        }
        let mut members = Vec::new();
        for ordinal in 1..=count {
            let name = if group.count.is_some() { format!("{}-{ordinal}", group.name) } else { group.name.clone() };
            if name.is_empty() {
                return refuse(format!("{field}.name"), "it is empty: a node needs a name");
            }
            let number = self.world.nodes.len() as u32;
            members.push(number);
            if self.by_name.insert(name.clone(), vec![number]).is_some() {
                return refuse(format!("{field}.name"), format!("there is already a node {name}"));
            }
            self.specs.push(group);
            self.world.nodes.push(Node {
                name,
                cores: group.cores,
                memory: group.memory.0 as f64,
                max_vms: group.max_vms,
                cordoned: group.cordoned,
                present,
            });
        }
        if group.count.is_some() && self.by_name.insert(group.name.clone(), members).is_some() {
            return refuse(format!("{field}.name"), format!("there is already a node or a group {}", group.name));
        }
        Ok(())
    }

    fn vms(&mut self) -> Result<()> {
        let mut names = BTreeSet::new();
        let mut classes: BTreeMap<(&BTreeMap<String, String>, &[String]), u32> = BTreeMap::new();
        let mut aparts: BTreeMap<String, u32> = BTreeMap::new();
        for (position, group) in self.scenario.vms.iter().enumerate() {
            let field = format!("vms[{position}]");
            check_vm(group, &field)?;
            if !names.insert(&group.name) {
                return refuse(format!("{field}.name"), format!("there are already VMs called {}", group.name));
            }
            let count = group.count.unwrap_or(1);
            if count == 0 || self.world.vms.len() + count as usize > MOST_VMS {
                return refuse(
                    format!("{field}.count"),
                    format!("{count} is not a number of VMs from 1 to {MOST_VMS} in all"),
                );
            }
            let demands = (&group.affinity.nodes, group.tolerations.as_slice());
            let class = match classes.get(&demands) {
                Some(class) => *class,
                None => {
                    let class = self.world.classes.len() as u32;
                    if (self.world.classes.len() + 1) * self.world.nodes.len() > MOST_CLASS_CELLS {
                        return refuse(
                            format!("{field}.affinity"),
                            "there are too many different selectors and tolerations",
                        );
                    }
                    self.world.classes.push(Class::new(group, &self.specs));
                    classes.insert(demands, class);
                    class
                }
            };
            let next = aparts.len() as u32;
            let apart = group.affinity.apart.as_ref().map(|word| *aparts.entry(word.clone()).or_insert(next));
            let homes = self.homes(group, &field)?;
            self.vm_group(group, count, class, apart, &homes, &field)?;
        }
        self.world.aparts = aparts.len();
        Ok(())
    }

    fn homes(&self, group: &VmGroup, field: &str) -> Result<Vec<u32>> {
        let mut homes = Vec::new();
        for (at, name) in group.on.iter().enumerate() {
            let Some(nodes) = self.by_name.get(name) else {
                return refuse(format!("{field}.on[{at}]"), self.no_node(name));
            };
            if nodes.iter().any(|node| !self.world.nodes[*node as usize].present) {
                return refuse(format!("{field}.on[{at}]"), format!("{name} is not there from the beginning"));
            }
            homes.extend(nodes);
        }
        Ok(homes)
    }

    fn vm_group(
        &mut self,
        group: &VmGroup,
        count: u32,
        class: u32,
        apart: Option<u32>,
        homes: &[u32],
        field: &str,
    ) -> Result<()> {
        let first = self.world.vms.len() as u32;
        let number = self.world.groups.len() as u32;
        let shapes = [
            self.shape(&group.cpu, &format!("{field}.cpu"))?,
            self.shape(&group.memory_use, &format!("{field}.memoryUse"))?,
        ];
        for ordinal in 0..count {
            let vm = first + ordinal;
            let mut rng = Rng::keyed(self.scenario.seed, Purpose::World, u64::from(vm), 0);
            let mut factor = [factor(&group.cpu, &mut rng), factor(&group.memory_use, &mut rng)];
            factor[0] *= rng.between(1.0 - group.vary, 1.0 + group.vary);
            let node = (!homes.is_empty()).then(|| homes[ordinal as usize % homes.len()]);
            self.world.vms.push(Vm { group: number, node, shape: shapes, factor });
        }
        self.world.groups.push(Group {
            name: group.name.clone(),
            numbered: group.count.is_some(),
            first,
            count,
            cores: group.cores,
            memory: group.memory.0 as f64,
            noise: group.noise,
            dirty_rate: group.dirty_rate.bytes_per_second(),
            priority: group.priority,
            migratable: group.migratable,
            class,
            apart,
        });
        if shapes != [0, 0] || group.noise > 0.0 {
            let varying: Vec<_> = (first..first + count).map(|vm| self.world.load_of(vm)).collect();
            self.world.varying.extend(varying);
        }
        Ok(())
    }

    /// The number of the shape of a load; equal shapes share it.
    fn shape(&mut self, load: &Load, field: &str) -> Result<u32> {
        let level = |value: f64, field: String| {
            if (0.0..=HIGHEST_LOAD).contains(&value) {
                Ok(())
            } else {
                refuse(field, format!("{value} is not a load: a share from 0 to 1 was expected"))
            }
        };
        let shape = match load {
            Load::Constant(value) => {
                level(*value, field.to_owned())?;
                return Ok(0);
            }
            Load::Between([low, high]) => {
                level(*low, format!("{field}.between"))?;
                level(*high, format!("{field}.between"))?;
                if low > high {
                    return refuse(format!("{field}.between"), format!("{low} is above {high}"));
                }
                return Ok(0);
            }
            Load::Ramp(ramp) => {
                level(ramp.from, format!("{field}.ramp.from"))?;
                level(ramp.to, format!("{field}.ramp.to"))?;
                if ramp.end < ramp.start {
                    return refuse(
                        format!("{field}.ramp.end"),
                        format!("{} is before the start, {}", ramp.end, ramp.start),
                    );
                }
                Shape::Points(vec![(ramp.start.0, ramp.from), (ramp.end.0, ramp.to)])
            }
            Load::Daily(daily) => {
                level(daily.low, format!("{field}.daily.low"))?;
                level(daily.high, format!("{field}.daily.high"))?;
                level(daily.weekend, format!("{field}.daily.weekend"))?;
                Shape::Daily(daily.clone())
            }
            Load::Points(points) => {
                if points.is_empty() {
                    return refuse(format!("{field}.points"), "it is empty: at least one point was expected");
                }
                for (at, (time, value)) in points.iter().enumerate() {
                    level(*value, format!("{field}.points[{at}]"))?;
                    if at > 0 && points[at - 1].0 >= *time {
                        return refuse(
                            format!("{field}.points[{at}]"),
                            format!("{time} is not after the point before"),
                        );
                    }
                }
                Shape::Points(points.iter().map(|(time, value)| (time.0, *value)).collect())
            }
        };
        let found = self.world.shapes.iter().position(|known| *known == shape);
        Ok(found.unwrap_or_else(|| {
            self.world.shapes.push(shape);
            self.world.shapes.len() - 1
        }) as u32)
    }

    fn tasks(&mut self) -> Result<()> {
        for (position, task) in self.scenario.tasks.iter().enumerate() {
            let field = format!("tasks[{position}]");
            let target = match &task.target {
                scenario::Target::Any => Target::Any,
                scenario::Target::HottestNodes(count) => Target::Hottest(*count),
                scenario::Target::RandomNodes(count) => Target::Random(*count),
                scenario::Target::Vms(name) => match self.world.groups.iter().position(|group| group.name == *name) {
                    Some(group) => Target::Group(group as u32),
                    None => return refuse(format!("{field}.target.vms"), format!("there are no VMs called {name}")),
                },
            };
            check_task(task, &field)?;
            self.world.tasks.push(Task {
                every: (task.every.0 / self.world.step).max(1),
                count: task.count.clone(),
                target,
                cpu: task.cpu.clone(),
                memory: task.memory.clone(),
                seconds: task.seconds.clone(),
                window: task.window.clone(),
            });
        }
        Ok(())
    }

    fn events(&mut self) -> Result<()> {
        for (position, event) in self.scenario.events.iter().enumerate() {
            let field = format!("events[{position}]");
            let step = event.at.0.div_ceil(self.world.step);
            type Make = fn(u32) -> Happening;
            let named: [(&str, &Option<String>, Make); 5] = [
                ("cordon", &event.cordon, Happening::Cordon),
                ("uncordon", &event.uncordon, Happening::Uncordon),
                ("drain", &event.drain, Happening::Drain),
                ("fail", &event.fail, Happening::Fail),
                ("recover", &event.recover, Happening::Recover),
            ];
            let given = named.iter().filter(|(_, name, _)| name.is_some()).count() + usize::from(event.add.is_some());
            if given != 1 {
                return refuse(
                    field,
                    format!(
                        "it has {given} actions: exactly one of cordon, uncordon, drain, fail, recover and add was expected"
                    ),
                );
            }
            for (action, name, make) in named {
                let Some(name) = name else { continue };
                let Some(nodes) = self.by_name.get(name) else {
                    return refuse(format!("{field}.{action}"), self.no_node(name));
                };
                self.world.events.extend(nodes.iter().map(|node| (step, make(*node))));
            }
            if let Some(group) = &event.add {
                let nodes = &self.by_name[&group.name];
                self.world.events.extend(nodes.iter().map(|node| (step, Happening::Join(*node))));
            }
        }
        self.world.events.sort_by_key(|(step, _)| *step);
        Ok(())
    }

    /// VMs without a place get one, as a scheduler would: where the least memory is asked for.
    fn settle(&mut self) {
        let world = &mut self.world;
        let mut asked = vec![0.0; world.nodes.len()];
        let mut hosted = vec![0_u32; world.nodes.len()];
        for vm in &world.vms {
            if let Some(node) = vm.node {
                asked[node as usize] += world.groups[vm.group as usize].memory;
                hosted[node as usize] += 1;
            }
        }
        let share = |asked: f64, node: &Node| (asked / node.memory * 1e12) as u64;
        let open = world.nodes.iter().enumerate().filter(|(_, node)| node.present && !node.cordoned);
        let mut order: BTreeSet<(u64, u32)> =
            open.map(|(number, node)| (share(asked[number], node), number as u32)).collect();
        let mut neighbours: BTreeSet<(u32, u32)> = BTreeSet::new();
        for vm in &mut world.vms {
            let group = &world.groups[vm.group as usize];
            if let (Some(node), Some(apart)) = (vm.node, group.apart) {
                neighbours.insert((apart, node));
            }
            if vm.node.is_some() {
                continue;
            }
            let class = &world.classes[group.class as usize];
            let fits = |(_, number): &&(u64, u32)| {
                let node = &world.nodes[*number as usize];
                asked[*number as usize] + group.memory <= node.memory
                    && hosted[*number as usize] < node.max_vms
                    && class.allows(*number)
                    && group.apart.is_none_or(|apart| !neighbours.contains(&(apart, *number)))
            };
            let Some(entry) = order.iter().find(fits).copied() else { continue };
            let number = entry.1 as usize;
            asked[number] += group.memory;
            hosted[number] += 1;
            neighbours.extend(group.apart.map(|apart| (apart, entry.1)));
            vm.node = Some(entry.1);
            order.remove(&entry);
            order.insert((share(asked[number], &world.nodes[number]), entry.1));
        }
    }

    fn no_node(&self, name: &str) -> String {
        let names: Vec<&str> = self.by_name.keys().take(8).map(String::as_str).collect();
        let more = if self.by_name.len() > names.len() { ", …" } else { "" };
        format!("there is no node or group {name}; there are {}{more}", names.join(", "))
    }
}

/// The part of a load that belongs to the VM, not to its shape.
fn factor(load: &Load, rng: &mut Rng) -> f64 {
    match load {
        Load::Constant(value) => *value,
        Load::Between([low, high]) => rng.between(*low, *high),
        _ => 1.0,
    }
}

fn check_vm(group: &VmGroup, field: &str) -> Result<()> {
    if group.name.is_empty() {
        return refuse(format!("{field}.name"), "it is empty: a VM needs a name");
    }
    if !(group.cores > 0.0 && group.cores <= 100_000.0) {
        return refuse(format!("{field}.cores"), format!("{} is not a number of cores above 0", group.cores));
    }
    if group.memory.0 == 0 {
        return refuse(format!("{field}.memory"), "0 is not an amount of memory above 0");
    }
    for (key, value) in [("vary", group.vary), ("noise", group.noise)] {
        if !(0.0..=1.0).contains(&value) {
            return refuse(format!("{field}.{key}"), format!("{value} is not a share from 0 to 1"));
        }
    }
    Ok(())
}

fn check_task(task: &TaskGroup, field: &str) -> Result<()> {
    if task.every.0 == 0 {
        return refuse(format!("{field}.every"), "0s is not a length of time above 0");
    }
    for (key, amount, highest) in [
        ("count", &task.count, 10_000.0),
        ("cpu", &task.cpu, 1.0),
        ("memory", &task.memory, 1.0),
        ("seconds", &task.seconds, 1e9),
    ] {
        let (low, high) = match amount {
            Amount::Fixed(value) => (*value, *value),
            Amount::Between([low, high]) => (*low, *high),
            Amount::Normal(normal) => (normal.min, normal.max),
            Amount::Exponential(exponential) => (exponential.min, exponential.max),
        };
        let finite = match amount {
            Amount::Normal(normal) => {
                normal.mean.is_finite() && normal.deviation >= 0.0 && normal.deviation.is_finite()
            }
            Amount::Exponential(exponential) => exponential.mean > 0.0 && exponential.mean.is_finite(),
            _ => true,
        };
        if !(finite && low >= 0.0 && low <= high && high <= highest) {
            return refuse(format!("{field}.{key}"), format!("{low} to {high} is not a range within 0 to {highest}"));
        }
    }
    Ok(())
}

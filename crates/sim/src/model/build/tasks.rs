//! The tasks of a model.

use super::{Builder, Result, invalid};
use crate::{
    model::{Task, TaskTarget},
    scenario::{self, Amount, TaskGroup},
};

impl Builder<'_> {
    pub(super) fn tasks(&mut self) -> Result<()> {
        for (position, task) in self.scenario.tasks.iter().enumerate() {
            let field = format!("tasks[{position}]");
            let target = match &task.target {
                scenario::Target::Any => TaskTarget::Any,
                scenario::Target::HottestNodes(count) => TaskTarget::Hottest(*count),
                scenario::Target::ColdestNodes(count) => TaskTarget::Coldest(*count),
                scenario::Target::RandomNodes(count) => TaskTarget::Random(*count),
                scenario::Target::Vms(name) => match self.model.groups.iter().position(|group| group.name == *name) {
                    Some(group) => TaskTarget::Group(group as u32),
                    None => return invalid(format!("{field}.target.vms"), format!("there are no VMs called {name}")),
                },
            };
            check_task(task, &field)?;
            self.model.tasks.push(Task {
                every: (task.every.0 / self.model.step).max(1),
                count: task.count.clone(),
                target,
                cpu: task.cpu.clone(),
                memory: task.memory.clone(),
                seconds: task.seconds.clone(),
                window: task.window.clone(),
                when: task.when.clone(),
            });
        }
        Ok(())
    }
}

fn check_task(task: &TaskGroup, field: &str) -> Result<()> {
    if task.every.0 == 0 {
        return invalid(format!("{field}.every"), "0s is not a length of time above 0");
    }
    if let Some(condition) = &task.when {
        if condition.parts().next().is_none() {
            let fields = "nodeCpuAbove, nodeCpuBelow, nodeMemoryAbove and nodeMemoryBelow";
            return invalid(
                format!("{field}.when"),
                format!("it states nothing: at least one of {fields} was expected"),
            );
        }
        if let Some((name, bound)) = condition.parts().find(|(_, bound)| !(0.0..=1.0).contains(bound)) {
            return invalid(format!("{field}.when.{name}"), format!("{bound} is not a share from 0 to 1"));
        }
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
            return invalid(format!("{field}.{key}"), format!("{low} to {high} is not a range within 0 to {highest}"));
        }
    }
    Ok(())
}

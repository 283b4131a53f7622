//! Builds a model from a scenario. A scenario that makes no sense is an error that names the field.

mod events;
mod nodes;
mod placement;
mod shapes;
mod tasks;
mod vms;

use std::collections::BTreeMap;

use super::ClusterModel;
use crate::{
    load::Shape,
    scenario::{NodeGroup, Scenario, ScenarioError},
};

pub(crate) const MOST_NODES: usize = 100_000;
pub(crate) const MOST_VMS: usize = 2_000_000;
/// A scenario has no more steps.
pub const MOST_STEPS: u64 = 1_000_000;

type Result<T> = std::result::Result<T, ScenarioError>;

fn invalid<T>(field: impl Into<String>, message: impl Into<String>) -> Result<T> {
    Err(ScenarioError::new(field, message))
}

impl ClusterModel {
    pub fn new(scenario: &Scenario) -> Result<Self> {
        let mut builder = Builder::new(scenario)?;
        builder.nodes()?;
        builder.vms()?;
        builder.tasks()?;
        builder.events()?;
        builder.place_vms();
        builder.stated();
        Ok(builder.model)
    }
}

struct Builder<'a> {
    scenario: &'a Scenario,
    model: ClusterModel,
    /// The numbers of the nodes of each group, and the number of each node.
    by_name: BTreeMap<String, Vec<u32>>,
    /// The group of each node.
    specs: Vec<&'a NodeGroup>,
    /// By node: what it uses itself, and the shapes of that.
    own_loads: Vec<([f64; 2], [u32; 2])>,
}

impl<'a> Builder<'a> {
    fn new(scenario: &'a Scenario) -> Result<Self> {
        if scenario.name.is_empty() {
            return invalid("name", "it is empty: a scenario needs a name");
        }
        if !(1..=86_400).contains(&scenario.step.0) {
            return invalid("step", format!("{} is not a length from 1s to 1d", scenario.step));
        }
        let steps = scenario.steps();
        if !(1..=MOST_STEPS).contains(&steps) {
            return invalid(
                "duration",
                format!("{} is {steps} steps of {}: 1 to {MOST_STEPS} were expected", scenario.duration, scenario.step),
            );
        }
        let model = ClusterModel {
            name: scenario.name.clone(),
            step: scenario.step.0,
            steps,
            start: scenario.start.0 * 60,
            nodes: Vec::new(),
            stated: Vec::new(),
            groups: Vec::new(),
            vms: Vec::new(),
            shapes: vec![Shape::Constant],
            varying: Vec::new(),
            varying_nodes: Vec::new(),
            tasks: Vec::new(),
            events: Vec::new(),
            classes: Vec::new(),
        };
        Ok(Self { scenario, model, by_name: BTreeMap::new(), specs: Vec::new(), own_loads: Vec::new() })
    }

    fn no_node(&self, name: &str) -> String {
        let names: Vec<&str> = self.by_name.keys().take(8).map(String::as_str).collect();
        let more = if self.by_name.len() > names.len() { ", …" } else { "" };
        format!("there is no node or group {name}; there are {}{more}", names.join(", "))
    }
}

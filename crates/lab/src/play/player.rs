//! Plays a scenario on a running lab, step by step.

use std::time::{Duration, Instant};

use kube::Client;
use sim::ClusterModel;

use super::{
    LoadSchedule, NodeAction, NodeSchedule, OpenNodes, Placement, dirty_rates::set_dirty_rates, load::nodes_of_vms,
    node_sizes, set_utilization,
};
use crate::Error;

/// A scenario that is played on a lab.
#[allow(missing_debug_implementations, reason = "a client has none")]
pub struct Player<'w> {
    client: Client,
    model: &'w ClusterModel,
    /// How many times faster than the clock the scenario goes.
    speed: f64,
    load: LoadSchedule<'w>,
    nodes: NodeSchedule<'w>,
    /// The names of the lab's nodes, in the order of their numbers.
    node_names: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The scenario is over.
    Finished,
    LabEnded,
}

impl<'w> Player<'w> {
    /// Fails if the lab is too small for the scenario. Returns the VMs to create as well.
    pub async fn new(
        client: &Client,
        model: &'w ClusterModel,
        seed: u64,
        speed: f64,
    ) -> Result<(Self, Placement), Error> {
        let load = LoadSchedule::new(model, seed);
        let sizes = node_sizes(client).await?;
        let placement = load.placement(&sizes)?;
        let nodes = NodeSchedule::of(model, client).await?;
        let node_names = sizes.into_iter().map(|node| node.name).collect();
        Ok((Player { client: client.clone(), model, speed, load, nodes, node_names }, placement))
    }

    /// Creates the VMs that do not exist yet. Returns how many were created, or none if `interrupt` ended first: then all
    /// nodes are open again.
    pub async fn create_vms(
        &self,
        placement: Placement,
        interrupt: impl Future<Output = ()>,
    ) -> Result<Option<usize>, Error> {
        let open = OpenNodes::of(&self.client).await?;
        tokio::select! {
            created = placement.create_missing(&self.client) => created.map(Some),
            () = interrupt => {
                // Some nodes are cordoned while VMs are placed.
                open.uncordon().await?;
                Ok(None)
            }
        }
    }

    /// Annotates the VMs that write to their memory at a rate of their own. Returns how many annotations changed.
    pub async fn set_dirty_rates(&self) -> Result<usize, Error> {
        set_dirty_rates(&self.client, self.model).await
    }

    /// Whether neither the load changes nor anything happens to nodes.
    pub fn is_steady(&self) -> bool {
        self.model.is_steady() && !self.nodes.is_eventful()
    }

    /// How long the scenario takes by the clock.
    pub fn duration(&self) -> Duration {
        Duration::from_secs(self.model.steps() * self.model.step_seconds()).div_f64(self.speed)
    }

    /// Plays the scenario to its end, as long as the lab is alive. `report` gets the second of the scenario and what happened.
    pub async fn run<E: From<Error>>(
        &mut self,
        is_alive: impl Fn() -> bool,
        mut report: impl FnMut(u64, &str) -> Result<(), E>,
    ) -> Result<Ending, E> {
        let began = Instant::now();
        let step_length = Duration::from_secs(self.model.step_seconds()).div_f64(self.speed);
        let mut step = 0;
        self.apply_node_events(step, &mut report).await?;
        while step < self.model.steps() {
            // Steps that were missed are skipped: the load follows the clock.
            step = step_at(began.elapsed(), step_length).max(step + 1).min(self.model.steps());
            tokio::time::sleep_until((began + step_length.mul_f64(step as f64)).into()).await;
            if !is_alive() {
                return Ok(Ending::LabEnded);
            }
            self.apply_node_events(step, &mut report).await?;
            if self.model.depends_on_nodes() {
                self.load.set_nodes(&nodes_of_vms(&self.client).await?, &self.node_names);
            }
            let changes = self.load.changes(step);
            if !changes.is_empty() {
                report(self.seconds(step), &format!("{} VMs changed", changes.len()))?;
                let uses = changes.into_iter().map(|(name, [cpu, memory])| (name, [Some(cpu), Some(memory)]));
                set_utilization(&self.client, uses.collect()).await?;
            }
        }
        Ok(Ending::Finished)
    }

    async fn apply_node_events<E: From<Error>>(
        &mut self,
        step: u64,
        report: &mut impl FnMut(u64, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        for event in self.nodes.due(step) {
            if event.apply(&self.client).await? {
                report(self.seconds(step), &event.to_string())?;
            }
        }
        Ok(())
    }

    fn seconds(&self, step: u64) -> u64 {
        step * self.model.step_seconds()
    }

    /// Makes all nodes exist and take pods again.
    pub async fn restore_nodes(&mut self) -> Result<(), Error> {
        for event in self.nodes.restore() {
            NodeAction::apply(&event, &self.client).await?;
        }
        Ok(())
    }

    /// The nodes that the scenario left cordoned, and those that it left failed.
    pub fn left_behind(&self) -> [Vec<String>; 2] {
        self.nodes.left_behind()
    }
}

/// The last step that has begun.
fn step_at(elapsed: Duration, step: Duration) -> u64 {
    (elapsed.as_secs_f64() / step.as_secs_f64().max(f64::MIN_POSITIVE)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_follow_the_clock() {
        let step = Duration::from_millis(1500);
        for (elapsed, expected) in [(0, 0), (1499, 0), (1500, 1), (15_001, 10)] {
            assert_eq!(step_at(Duration::from_millis(elapsed), step), expected);
        }
    }
}

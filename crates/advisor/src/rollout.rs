//! How far a change of a MachineConfig is on its way to the nodes, according to its pools.
//! Right after a write, a pool still reports the state of the configuration before. So `Updated` counts only if the pool has rendered
//! this change.

#[cfg(test)]
mod tests;

use api::virt_platform_config::RolloutState;
use serde_json::Value;

use crate::{
    Facts,
    pools::Pool,
    rendered_config::{self, Content},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rollout {
    Done(String),
    /// The pools that are waited for.
    Waiting(Vec<PoolWait>),
    /// Nothing is known about the pools yet.
    Unknown(String),
}

/// A pool that is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolWait {
    pub pool: String,
    pub state: RolloutState,
    /// How many of its nodes are updated, and how many it has.
    pub updated: Option<i32>,
    pub total: Option<i32>,
    /// Why it does not get on, and which node is the reason, if the pool says so.
    pub cause: Option<String>,
    /// All of this in words.
    pub message: String,
}

/// A pool, and a MachineConfig as its nodes are to get it.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    pub pool: Pool<'a>,
    /// None if it is to be absent from the pool.
    pub config: Option<&'a Value>,
}

/// The progress of the rollout of a MachineConfig of this name over all of its pools. `before` returns what a pool had rendered before
/// the change, if that included other content of the config. `facts` have the rendered configs that the pools are to run.
pub fn rollout<'a>(
    name: &str,
    expected: &[Expected<'_>],
    facts: &Facts,
    before: impl Fn(&str) -> Option<&'a str>,
) -> Rollout {
    let (mut done, mut waiting) = (Vec::new(), Vec::new());
    for expected in expected {
        let pool = expected.pool;
        match of_pool(pool, is_taken_over(name, *expected, facts, before(pool.name()))) {
            Ok(message) => done.push(message),
            Err(wait) => waiting.push(wait),
        }
    }
    if waiting.is_empty() { Rollout::Done(done.join("; ")) } else { Rollout::Waiting(waiting) }
}

/// A pool that should exist, and does not.
pub fn pool_missing(name: &str) -> PoolWait {
    let message = format!("MachineConfigPool '{name}' not found");
    PoolWait {
        pool: name.to_owned(),
        state: RolloutState::Pending,
        updated: None,
        total: None,
        cause: Some(message.clone()),
        message,
    }
}

/// The text for a pool that has the change on all of its nodes, or else what it is waited for.
fn of_pool(pool: Pool<'_>, is_taken_over: bool) -> Result<String, PoolWait> {
    let (name, is_pending) = (pool.name(), !is_taken_over);
    let status = &pool.object()["status"];
    let known = |count: &str| status[count].as_i64();
    let count = |count: &str| known(count).unwrap_or(0);
    let (machines, updated, ready) = (count("machineCount"), count("updatedMachineCount"), count("readyMachineCount"));
    let counts = format!("(Updated: {updated}/{machines}, Ready: {ready}/{machines})");
    let small =
        |number: Option<i64>| number.and_then(|number| i32::try_from(number).ok()).filter(|number| *number >= 0);
    let waits = |state: RolloutState, cause: Option<String>, message: String| {
        let (updated, total) = (small(known("updatedMachineCount")), small(known("machineCount")));
        Err(PoolWait { pool: name.to_owned(), state, updated, total, cause, message })
    };
    let says = |text: String| format!("MachineConfigPool '{name}' {text}");
    if status.as_object().is_none_or(serde_json::Map::is_empty) {
        return waits(RolloutState::Pending, None, says("status not available".into()));
    }
    if let Some((state, cause)) = trouble(status) {
        let degraded = count("degradedMachineCount");
        let text = match &cause {
            Some(cause) => format!("is degraded: {cause}"),
            None if degraded > 0 => format!("is degraded ({degraded} degraded machines)"),
            None => "is degraded".to_owned(),
        };
        let cause = cause.or_else(|| (degraded > 0).then(|| format!("{degraded} degraded machines")));
        return waits(state, cause, says(text));
    }
    if status["conditions"].as_array().is_none_or(Vec::is_empty) {
        return waits(RolloutState::Pending, None, says("conditions not available".into()));
    }
    let is = |kind: &str| condition(status, kind).is_some();
    if pool.is_paused() && (is_pending || !is("Updated")) {
        let cause = Some("the pool is paused (spec.paused)".to_owned());
        return waits(
            RolloutState::Paused,
            cause,
            says(format!("is paused {counts}; resume it to roll out the change")),
        );
    }
    if is("Updating") {
        return waits(RolloutState::Updating, None, says(format!("is updating {counts}")));
    }
    if is_pending || !is("Updated") {
        return waits(RolloutState::Pending, None, says(format!("is processing changes {counts}")));
    }
    if updated == machines && ready == machines {
        return Ok(says(format!("is ready (all {machines} nodes updated)")));
    }
    let message = format!("Waiting for MachineConfigPool '{name}' to stabilize {counts}");
    waits(RolloutState::Updating, None, message)
}

/// Why a pool is degraded. The messages of its conditions name the node or the config; the number of degraded machines does not.
fn trouble(status: &Value) -> Option<(RolloutState, Option<String>)> {
    let holds = |kind: &&str| condition(status, kind).is_some();
    let kinds = ["RenderDegraded", "NodeDegraded", "ImageBuildDegraded", "Degraded"];
    let is_degraded = kinds.iter().any(holds) || status["degradedMachineCount"].as_i64().unwrap_or(0) > 0;
    if !is_degraded {
        return None;
    }
    let state = if holds(&"RenderDegraded") { RolloutState::RenderDegraded } else { RolloutState::Degraded };
    let mut causes: Vec<&str> = Vec::new();
    for message in kinds.iter().filter_map(|kind| condition(status, kind)?["message"].as_str()) {
        if !message.is_empty() && !causes.contains(&message) {
            causes.push(message);
        }
    }
    Some((state, (!causes.is_empty()).then(|| causes.join("; "))))
}

/// A condition of a pool, if it is True.
fn condition<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    conditions.find(|condition| condition["type"] == kind && condition["status"] == "True")
}

/// Whether the pool has rendered the change, and its nodes run that, as of its newest spec.
fn is_taken_over(name: &str, expected: Expected<'_>, facts: &Facts, before: Option<&str>) -> bool {
    let Expected { pool, config } = expected;
    let object = pool.object();
    let observed = object.pointer("/status/observedGeneration");
    let current = observed.is_none() || observed == object.pointer("/metadata/generation");
    let rendered_anew = before.is_none() || pool.target() != before;
    let target = pool.target_config().and_then(|target| facts.object(&target));
    // A file with other content may be overridden by another config, and then this is as far as it gets.
    let has_content =
        |config: &Value| target.is_none_or(|target| rendered_config::content(target, None, config) != Content::Missing);
    pool.target_includes(name) == config.is_some()
        && config.is_none_or(has_content)
        && rendered_anew
        && current
        && pool.target() == pool.rendered()
}

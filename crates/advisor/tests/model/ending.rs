//! The end if nothing more happens: sessions run until they settle, and pools roll out, until another session changes nothing. Then
//! the status has to be true.

use std::sync::Arc;

use advisor::Profile as _;
use api::virt_platform_config::{Action, Item, ItemState, Phase};
use serde_json::{Value, json};

use crate::{cluster::Target, hashed::digest, memo::Memo, profile::Part, scenario::is_open, system::System};

/// More steps than this are an endless loop.
const MAX_STEPS: usize = 300;

#[derive(Debug, Clone)]
pub(crate) struct Ending {
    /// The number of steps to the end.
    pub(crate) steps: usize,
    /// The final state without versions and times; or why there is no end, or a wrong one.
    pub(crate) result: Result<Arc<str>, Arc<str>>,
}

impl Memo {
    pub(crate) fn ending(&self, system: &System) -> Ending {
        let mut path = Vec::new();
        let mut system = system.clone();
        system.cluster.forget_previous();
        let mut ending = loop {
            // What the watch has delivered does not matter: in the end it has delivered everything.
            let key = digest((&system.cluster, &system.run, &system.kept_plan, system.day));
            if let Some(known) = self.known_ending(key) {
                break known;
            }
            if path.len() > MAX_STEPS {
                break Ending { steps: 0, result: Err(format!("no rest after {MAX_STEPS} steps").into()) };
            }
            path.push(key);
            let next = match &system.run {
                Some(_) => self.undisturbed(&system).map(|(next, _)| next),
                None => self.another_session(&system),
            };
            match next {
                Some(next) => system = next,
                None => break Ending { steps: 0, result: self.check_end(&system).map_err(Into::into) },
            }
        };
        for key in path.into_iter().rev() {
            ending.steps += 1;
            self.keep_ending(key, ending.clone());
        }
        ending
    }

    /// The system after another session. None if that session changes nothing.
    fn another_session(&self, idle: &System) -> Option<System> {
        let mut system = self.start_session(idle, false);
        for _ in 0..MAX_STEPS {
            let Some((next, is_done)) = self.undisturbed(&system) else { break };
            system = next;
            if is_done {
                return Some(system);
            }
        }
        if system.run.is_none() && idle.cluster.is_rolling() {
            system.cluster.roll_out();
            return Some(system);
        }
        // A session that does not settle continues, until there are too many steps.
        system.run.is_some().then_some(system)
    }

    /// Whether the phase is a stable one and the status is true.
    fn check_end(&self, system: &System) -> Result<Arc<str>, String> {
        let config = &system.cluster.config;
        let status = config.status.clone().unwrap_or_default();
        let phase = status.phase.ok_or("no phase")?;
        if status.observed_generation != config.metadata.generation {
            return Err(format!("the spec was not noticed: {phase}"));
        }
        if (phase == Phase::Ignored) != (config.spec.action == Action::Ignore) {
            return Err(format!("{phase}, and the action is {}", config.spec.action));
        }
        // A target that was deleted during its rollout never arrives at the nodes. The condition Drifted says so.
        let is_drifted = status.conditions.iter().any(|it| it.type_ == Phase::Drifted.as_str() && it.status == "True");
        let is_lost = phase == Phase::InProgress && is_drifted && status.items.iter().all(|it| !is_unwritten(it));
        // A change of nodes waits for its window. What has to be written before it is written.
        let unwritten = status.items.iter().find(|it| is_unwritten(it));
        let is_held = phase == Phase::InProgress
            && unwritten.is_some_and(|it| it.name == Part::Nodes.name())
            && !is_open(config.spec.approval.as_ref(), system.day);
        if matches!(phase, Phase::Pending | Phase::Drafting | Phase::InProgress) && !is_lost && !is_held {
            return Err(format!("{phase} is not a stable phase"));
        }
        if phase == Phase::Completed {
            self.check_completed(system, &status.items)?;
        }
        let items: Vec<Value> = status.items.iter().map(essence).collect();
        let marks: Vec<_> = status.conditions.iter().map(|it| (&it.type_, &it.status)).collect();
        let targets: Vec<String> = system.cluster.targets.iter().map(Target::held).collect();
        Ok(json!([phase, status.plan_digest, status.inputs, items, marks, targets]).to_string().into())
    }

    fn check_completed(&self, system: &System, items: &[Item]) -> Result<(), String> {
        let facts = system.cluster.facts(self.driver.profile);
        let planner =
            self.driver.profile.resolve(system.cluster.config.spec.options.as_ref()).map_err(|it| it.to_string())?;
        let draft = planner.plan(&facts);
        for item in items {
            if item.state != ItemState::Completed {
                return Err(format!("completed, and {} is {}", item.name, item.state));
            }
        }
        for (part, target) in self.driver.profile.parts.iter().zip(&system.cluster.targets) {
            let live = target.object();
            let intended = draft.intents.iter().find(|intent| intent.name == part.name());
            let wanted = match intended.map(|intent| &intent.change) {
                Some(advisor::Change::Apply { fields, .. }) => part.managed(Some(fields)),
                Some(advisor::Change::Delete) => "absent".into(),
                None => part.managed(live),
            };
            if part.managed(live) != wanted {
                return Err(format!("completed, and {} is not as intended", part.name()));
            }
        }
        Ok(())
    }
}

/// The part of an item that has to be the same in the end. Messages and times may differ.
fn essence(item: &Item) -> Value {
    json!([item.name, item.operation, item.state, item.desired_state, item.removes, item.applied_fingerprint])
}

fn is_unwritten(item: &Item) -> bool {
    item.applied_fingerprint.is_none()
}

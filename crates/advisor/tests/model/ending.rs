//! The end if nothing more happens: sessions run until they settle, and pools roll out, until another session changes nothing. Then
//! the status has to be true.

use std::sync::Arc;

use advisor::{Profile as _, fields::owns_anything};
use api::{
    names::field_manager,
    virt_platform_config::{Action, Item, ItemState, Phase, VirtPlatformConfigStatus},
};
use serde_json::{Value, json};

use crate::{hashed::digest, memo::Memo, profile::Part, scenario::is_open, system::System, target::Target};

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
                break Ending { steps: 0, result: Err(format!("it did not settle in {MAX_STEPS} steps").into()) };
            }
            path.push(key);
            let next = match &system.run {
                Some(_) => Ok(self.undisturbed(&system).map(|(next, _)| next)),
                None => self.another_session(&system),
            };
            match next {
                Ok(Some(next)) => system = next,
                Err(why) => break Ending { steps: 0, result: Err(why.into()) },
                Ok(None) => break Ending { steps: 0, result: self.check_end(&system).map_err(Into::into) },
            }
        };
        for key in path.into_iter().rev() {
            ending.steps += 1;
            self.keep_ending(key, ending.clone());
        }
        ending
    }

    /// The system after another session, or after the nodes have moved. None if nothing changes any more.
    fn another_session(&self, idle: &System) -> Result<Option<System>, String> {
        let mut system = self.start_session(idle, false);
        for _ in 0..MAX_STEPS {
            let Some((next, is_done)) = self.undisturbed(&system) else { break };
            system = next;
            if is_done {
                return Ok(Some(system));
            }
        }
        if system.run.is_none() && idle.cluster.is_rolling() {
            self.check_rolling(idle)?;
            system.cluster.roll_out();
            return Ok(Some(system));
        }
        // A session that does not settle continues, until there are too many steps.
        Ok(system.run.is_some().then_some(system))
    }

    /// What has to be told while nodes do not run what they are to run: they are waited for, and if none of them moves for a day,
    /// which is longer than any limit, a person has to know.
    fn check_rolling(&self, idle: &System) -> Result<(), String> {
        let phase = |system: &System| system.cluster.config.status.as_ref().and_then(|status| status.phase);
        if phase(idle) == Some(Phase::Completed) {
            return Err("completed, and the nodes are not".into());
        }
        let mut later = idle.clone();
        later.day += 1;
        later = self.start_session(&later, false);
        for _ in 0..MAX_STEPS {
            let Some((next, _)) = self.undisturbed(&later) else { break };
            later = next;
        }
        let status = later.cluster.config.status.clone().unwrap_or_default();
        let is_awaited = |system: &System| {
            let items = system.cluster.config.status.iter().flat_map(|status| &status.items);
            let mut nodes = items.filter(|item| item.name == Part::Nodes.name());
            phase(system) == Some(Phase::InProgress)
                && nodes.any(|item| item.state == ItemState::InProgress && !is_unwritten(item))
        };
        // What is written on the second day has had no time yet.
        let is_awaited = is_awaited(idle) && is_awaited(&later);
        let holds = |kind: &str| status.conditions.iter().any(|it| it.type_ == kind && it.status == "True");
        match (is_awaited, holds("Stalled"), holds("Reconciling")) {
            (true, false, _) => Err("no node has moved for a day, and nobody is told".into()),
            (_, true, true) => Err("stalled and reconciling".into()),
            _ => Ok(()),
        }
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
        // A change of nodes waits for its window. What has to be written before it is written.
        let unwritten = status.items.iter().find(|it| is_unwritten(it));
        let is_held = phase == Phase::InProgress
            && unwritten.is_some_and(|it| it.name == Part::Nodes.name())
            && !is_open(config.spec.approval.as_ref(), system.day);
        if matches!(phase, Phase::Pending | Phase::Drafting | Phase::InProgress) && !is_held {
            return Err(format!("{phase} is not a stable phase"));
        }
        // A plan whose target was changed on its way goes on when the target is set back.
        let is_overtaken = phase == Phase::Drifted && status.items.iter().any(|it| it.state == ItemState::InProgress);
        let is_unfinished = system.cluster.records.iter().any(|record| !record.is_finished);
        if phase != Phase::InProgress && !is_overtaken && is_unfinished {
            return Err(format!("{phase}, and the record of the plan is not finished"));
        }
        match (phase, &config.spec.restore) {
            (Phase::Completed, None) => self.check_completed(system, &status.items)?,
            (Phase::Completed, Some(_)) => self.check_restored(system)?,
            (Phase::Drifted, Some(_)) => return Err("drifted, and nothing is managed".into()),
            _ => {}
        }
        let items: Vec<Value> = status.items.iter().map(essence).collect();
        let marks: Vec<_> = status.conditions.iter().map(|it| (&it.type_, &it.status)).collect();
        let targets: Vec<String> = system.cluster.targets.iter().map(Target::held).collect();
        Ok(json!([phase, status.plan_digest, status.inputs, items, marks, targets]).to_string().into())
    }

    /// The configuration owns no field any more, and says so.
    fn check_restored(&self, system: &System) -> Result<(), String> {
        let status = system.cluster.config.status.clone().unwrap_or_default();
        if !status.conditions.iter().any(|it| it.status == "True" && it.reason == "Restored") || is_drifted(&status) {
            return Err("restored, and nothing says so".into());
        }
        let manager = field_manager(self.driver.profile.about().name);
        let is_owner = |target: &Target| target.object().is_some_and(|object| owns_anything(object, &manager));
        let owned = self.driver.profile.parts.iter().zip(&system.cluster.targets).find(|(_, target)| is_owner(target));
        owned.map_or(Ok(()), |(part, _)| Err(format!("restored, and {} is still managed", part.name())))
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

fn is_drifted(status: &VirtPlatformConfigStatus) -> bool {
    status.conditions.iter().any(|it| it.type_ == Phase::Drifted.as_str() && it.status == "True")
}

fn is_unwritten(item: &Item) -> bool {
    item.applied_fingerprint.is_none()
}

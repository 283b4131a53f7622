//! Where it all ends when nothing more happens: sessions are run to their rest, pools roll out, until one more session
//! changes nothing. What the status says then has to be true.

use std::sync::Arc;

use advisor::Profile as _;
use api::virt_platform_config::{Action, Item, ItemState, Phase};
use serde_json::{Value, json};

use crate::{cluster::Target, hashed::digest, memory::Memory, operator::Core};

/// More steps than this are a circle.
const ENOUGH: usize = 300;

#[derive(Debug, Clone)]
pub(crate) struct Ending {
    /// How many steps away.
    pub(crate) steps: usize,
    /// What is there, without versions and times; or why there is no end, or not a good one.
    pub(crate) result: Result<Arc<str>, Arc<str>>,
}

impl Memory {
    pub(crate) fn ending(&self, core: &Core) -> Ending {
        let mut path = Vec::new();
        let mut core = core.clone();
        core.cluster.forget_past();
        let mut ending = loop {
            // What a watch has brought does not matter: in the end it has brought everything.
            let key = digest((&core.cluster, &core.run, &core.kept));
            if let Some(known) = self.known_ending(key) {
                break known;
            }
            if path.len() > ENOUGH {
                break Ending { steps: 0, result: Err(format!("no rest after {ENOUGH} steps").into()) };
            }
            path.push(key);
            let next = match &core.run {
                Some(_) => self.undisturbed(&core).map(|(next, _)| next),
                None => self.one_more(&core),
            };
            match next {
                Some(next) => core = next,
                None => break Ending { steps: 0, result: self.judge(&core).map_err(Into::into) },
            }
        };
        for key in path.into_iter().rev() {
            ending.steps += 1;
            self.keep_ending(key, ending.clone());
        }
        ending
    }

    /// The state after another session. None when that changes nothing.
    fn one_more(&self, idle: &Core) -> Option<Core> {
        let mut core = self.begin(idle, false);
        for _ in 0..ENOUGH {
            let Some((next, is_done)) = self.undisturbed(&core) else { break };
            core = next;
            if is_done {
                return Some(core);
            }
        }
        if core.run.is_none() && idle.cluster.is_rolling() {
            core.cluster.roll_out();
            return Some(core);
        }
        // A session that does not come to rest is gone on with, until there were too many steps.
        core.run.is_some().then_some(core)
    }

    /// Whether what rests is a stable phase that tells the truth.
    fn judge(&self, core: &Core) -> Result<Arc<str>, String> {
        let config = &core.cluster.config;
        let status = config.status.clone().unwrap_or_default();
        let phase = status.phase.ok_or("no phase")?;
        if status.observed_generation != config.metadata.generation {
            return Err(format!("the spec was not noticed: {phase}"));
        }
        if (phase == Phase::Ignored) != (config.spec.action == Action::Ignore) {
            return Err(format!("{phase}, and the action is {}", config.spec.action));
        }
        // What was deleted while its rollout was waited for never arrives. That much is said at once.
        let is_drifted = status.conditions.iter().any(|it| it.type_ == Phase::Drifted.as_str() && it.status == "True");
        let is_lost = phase == Phase::InProgress && is_drifted && status.items.iter().all(|it| !is_unwritten(it));
        if matches!(phase, Phase::Pending | Phase::Drafting | Phase::InProgress) && !is_lost {
            return Err(format!("{phase} is not a stable phase"));
        }
        if phase == Phase::Completed {
            self.judge_completed(core, &status.items)?;
        }
        let items: Vec<Value> = status.items.iter().map(essence).collect();
        let marks: Vec<_> = status.conditions.iter().map(|it| (&it.type_, &it.status)).collect();
        let targets: Vec<String> = core.cluster.targets.iter().map(Target::held).collect();
        Ok(json!([phase, status.plan_digest, status.inputs, items, marks, targets]).to_string().into())
    }

    fn judge_completed(&self, core: &Core, items: &[Item]) -> Result<(), String> {
        let facts = core.cluster.facts(self.stage.toy);
        let planner = self.stage.toy.resolve(core.cluster.config.spec.options.as_ref()).map_err(|it| it.to_string())?;
        let draft = planner.plan(&facts);
        for item in items {
            if item.state != ItemState::Completed {
                return Err(format!("completed, and {} is {}", item.name, item.state));
            }
        }
        for (part, target) in self.stage.toy.parts.iter().zip(&core.cluster.targets) {
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

/// What matters of an item in the end. Words and times may differ.
fn essence(item: &Item) -> Value {
    json!([item.name, item.operation, item.state, item.desired_state, item.removes, item.applied_fingerprint])
}

fn is_unwritten(item: &Item) -> bool {
    item.applied_fingerprint.is_none()
}

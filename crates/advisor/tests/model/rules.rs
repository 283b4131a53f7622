//! The properties that hold in every state that can be reached.

use api::virt_platform_config::Phase;
use stateright::Property;

use crate::{
    cluster::Target,
    history::Broken,
    operator::Fate,
    profile::Part,
    world::{State, World},
};

pub(crate) const WRITES: [(&str, Broken); 9] = [
    ("1. nothing is written unless action is Apply at the generation that was confirmed", Broken::NotApproved),
    ("1. what is written is what the status says is being written", Broken::NotAsRecorded),
    ("1. at most the item recorded before an edit is written after it", Broken::KeptOnUnheard),
    ("2. a plan redrafted for its inputs waits for a newer generation", Broken::NotReviewedAgain),
    ("3. no change made since the plan was drawn up is written over", Broken::WrittenOver),
    ("an approval of another plan writes nothing", Broken::OtherPlanApproved),
    ("under Abort nothing is written after a failure", Broken::NotAborted),
    ("what is written follows from what the session itself has seen", Broken::FromMemory),
    ("only what was there is recorded as applied", Broken::NeverApplied),
];
pub(crate) const REST: &str = "5. without further events it comes to rest, stays there, and tells the truth";
/// What has to be possible, or else the rules hold for lack of occasion.
pub(crate) const OCCASIONS: [&str; 4] = [
    "an item is written after an edit that its session has not heard of",
    "a plan that was redrafted for its inputs is applied in the end",
    "drift is reverted",
    "a write goes through and nobody has heard of it",
];
pub(crate) const SAME_END: &str = "A4. a crash or a lost answer does not change the end";

pub(crate) fn properties() -> Vec<Property<World>> {
    macro_rules! unbroken {
        ($($at:literal)*) => { vec![$(Property::always(WRITES[$at].0, |_, state: &State| state.broken != Some(WRITES[$at].1))),*] };
    }
    let mut properties = unbroken!(0 1 2 3 4 5 6 7 8);
    properties.push(Property::always(REST, |world: &World, state: &State| {
        state.broken.is_some() || world.memory.ending(&state.core).result.is_ok()
    }));
    properties.push(Property::always(SAME_END, ends_the_same));
    properties.push(Property::sometimes(OCCASIONS[0], |_, state: &State| state.history.unheard.is_some()));
    properties.push(Property::sometimes(OCCASIONS[1], |_, state: &State| {
        state.history.redrafted_at.is_some() && state.phase() == Some(Phase::Completed)
    }));
    properties.push(Property::sometimes(OCCASIONS[2], |_, state: &State| {
        let reverts = state.core.cluster.config.status.as_ref().map_or(0, |status| status.reverts.len());
        reverts > 0 && state.phase() == Some(Phase::Completed)
    }));
    properties.push(Property::sometimes(OCCASIONS[3], |world, state: &State| {
        let held = |(part, target): (&Part, &Target)| part.managed(target.object.as_deref());
        let first = world.scenario.toy.parts.iter().zip(&state.core.cluster.targets).map(held).next();
        let is_unheard = state.core.run.is_none() && state.phase() == Some(Phase::InProgress);
        is_unheard && first.is_some_and(|held| held == "\"for 1\"") && state.is_unwritten(0)
    }));
    properties
}

/// Whatever becomes of the next request, and if the process dies before it: if nothing else happens, the end is the same.
/// After an event in the midst of a session that need not be so: who begins anew sees the world after it.
fn ends_the_same(world: &World, state: &State) -> bool {
    let memory = &world.memory;
    if state.broken.is_some() || !state.core.run.as_ref().is_some_and(|run| run.is_alone) {
        return true;
    }
    let end = memory.ending(&state.core);
    let crashed = memory.ending(&memory.stage.drop_run(&state.core, false));
    let unheard = memory.step(&state.core, Fate::Unheard).map(|step| memory.ending(&step.0));
    crashed.result == end.result && unheard.is_none_or(|unheard| unheard.result == end.result)
}

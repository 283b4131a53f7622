//! The properties that hold in every state that can be reached.

use stateright::Property;

use crate::{
    history::Broken,
    operator::Fate,
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
    properties
}

/// Whatever becomes of the next request, and if the process dies before it: if nothing else happens, the end is the same.
/// After an event in the midst of a session that need not be so: who begins anew sees the world after it.
fn ends_the_same(world: &World, state: &State) -> bool {
    let memory = &world.memory;
    let Some(run) = state.core.run.as_ref().filter(|run| run.is_alone && state.broken.is_none()) else { return true };
    let _ = run;
    let end = memory.ending(&state.core);
    let crashed = memory.ending(&memory.stage.drop_run(&state.core));
    let unheard = memory.step(&state.core, Fate::Unheard).map(|step| memory.ending(&step.0));
    crashed.result == end.result && unheard.is_none_or(|unheard| unheard.result == end.result)
}

//! The properties that hold in every state that can be reached.

use api::virt_platform_config::Phase;
use stateright::Property;

use crate::{
    history::Broken,
    world::{State, World},
};

/// What every single step has to keep.
pub(crate) const RULES: [(&str, Broken); 10] = [
    ("1. nothing is written unless action is Apply at the generation that was confirmed", Broken::NotApproved),
    ("1. what is written is what the status says is being written", Broken::NotAsRecorded),
    ("1. at most the item recorded before an edit is written after it", Broken::KeptOnUnheard),
    ("2. a plan redrafted for its inputs waits for a newer generation", Broken::NotReviewedAgain),
    ("3. no change made since the plan was drawn up is written over", Broken::WrittenOver),
    ("an approval of another plan writes nothing", Broken::OtherPlanApproved),
    ("under Abort nothing is written after a failure", Broken::NotAborted),
    ("what is written follows from what the session itself has seen", Broken::FromMemory),
    ("only what was there is recorded as applied", Broken::NeverApplied),
    ("A4. a crash or a lost answer does not change the end", Broken::OtherEnd),
];
pub(crate) const REST: &str = "5. without further events it comes to rest, stays there, and tells the truth";

/// What has to be possible, or else the rules hold for lack of occasion.
pub(crate) const OCCASIONS: [&str; 4] = [
    "an item is written after an edit that its session has not heard of",
    "a plan that was redrafted for its inputs is applied in the end",
    "drift is reverted",
    "a write goes through and nobody has heard of it",
];

/// All rules, or those that contain one of some words.
pub(crate) fn properties(words: Option<&[&str]>) -> Vec<Property<World>> {
    macro_rules! unbroken {
        ($($at:literal)*) => { vec![$(Property::always(RULES[$at].0, |_, state: &State| state.broken != Some(RULES[$at].1))),*] };
    }
    let mut properties = unbroken!(0 1 2 3 4 5 6 7 8 9);
    properties.push(Property::always(REST, |world: &World, state: &State| {
        state.broken.is_some() || world.memory.ending(&state.core).result.is_ok()
    }));
    if let Some(words) = words {
        properties.retain(|property| matches(words, property.name));
        return properties;
    }
    properties.push(Property::sometimes(OCCASIONS[0], |_, state: &State| state.history.unheard.is_some()));
    properties.push(Property::sometimes(OCCASIONS[1], |_, state: &State| {
        state.history.redrafted_at.is_some() && state.phase() == Some(Phase::Completed)
    }));
    properties.push(Property::sometimes(OCCASIONS[2], |_, state: &State| {
        let reverts = state.core.cluster.config.status.as_ref().map_or(0, |status| status.reverts.len());
        reverts > 0 && state.phase() == Some(Phase::Completed)
    }));
    properties.push(Property::sometimes(OCCASIONS[3], |_, state: &State| {
        let is_unheard = state.core.run.is_none() && state.phase() == Some(Phase::InProgress);
        is_unheard && state.is_unwritten(0) && state.core.cluster.targets[0].held() == "\"for 1\""
    }));
    properties
}

pub(crate) fn matches(words: &[&str], rule: &str) -> bool {
    words.iter().any(|word| rule.contains(word))
}

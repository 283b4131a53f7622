//! The properties that hold in every state that can be reached.

use api::virt_platform_config::Phase;
use stateright::Property;

use crate::{
    history::Violation,
    operator_model::{OperatorModel, State},
};

/// The rules for every single step.
pub(crate) const RULES: [(&str, Violation); 17] = [
    ("1. nothing is written unless action is Apply at the generation that was confirmed", Violation::NotApproved),
    ("1. what is written is what the status says is being written", Violation::NotAsRecorded),
    ("1. at most the item recorded before an edit is written after it", Violation::WrittenAfterEdit),
    ("2. a plan redrafted for its inputs waits for a newer generation", Violation::NotReviewedAgain),
    ("3. no change made since the plan was made is written over", Violation::Overwritten),
    ("an approval of another plan writes nothing", Violation::OtherPlanApproved),
    ("under Abort nothing is written after a failure", Violation::NotAborted),
    ("what is written follows from what the session itself has seen", Violation::FromOldFacts),
    ("only what was there is recorded as applied", Violation::NeverApplied),
    ("a rejected plan writes nothing", Violation::Rejected),
    ("nothing is written before its time", Violation::TooEarly),
    ("no reboot is started outside of its window or after the end of its approval", Violation::OutsideWindow),
    ("nothing is written before its plan is on record", Violation::NotRecorded),
    ("a plan that begins or ends a restore waits for somebody who has read it", Violation::RestoreNotRead),
    ("a restore writes only what was there originally", Violation::NotOriginal),
    ("A4. a crash or a lost answer does not change the end", Violation::DifferentEnd),
    ("1. nothing is written after a stop before the configuration is confirmed", Violation::WrittenAfterStop),
];
pub(crate) const REST: &str = "5. without further events it comes to rest, stays there, and tells the truth";

/// What has to be reachable: otherwise the rules would hold only because it never happens.
pub(crate) const REACHABLE: [&str; 9] = [
    "an item is written after an edit that its session has not heard of",
    "a plan that was redrafted for its inputs is applied in the end",
    "drift is reverted",
    "a write goes through and nobody has heard of it",
    "an approved plan waits for its time",
    "a reboot waits for its window",
    "a plan is rejected",
    "what was there originally is restored",
    "the profile is applied again after a restore",
];

/// All rules, or those that contain one of some words.
pub(crate) fn properties(words: Option<&[&str]>) -> Vec<Property<OperatorModel>> {
    macro_rules! kept {
        ($($at:literal)*) => { vec![$(Property::always(RULES[$at].0, |_, state: &State| state.violation != Some(RULES[$at].1))),*] };
    }
    let mut properties = kept!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
    properties.push(Property::always(REST, |model: &OperatorModel, state: &State| {
        state.violation.is_some() || model.memo.ending(&state.system).result.is_ok()
    }));
    if let Some(words) = words {
        properties.retain(|property| matches(words, property.name));
        return properties;
    }
    properties.push(Property::sometimes(REACHABLE[0], |_, state: &State| state.history.written_after_edit.is_some()));
    properties.push(Property::sometimes(REACHABLE[1], |_, state: &State| {
        state.history.redrafted_at.is_some() && state.phase() == Some(Phase::Completed)
    }));
    properties.push(Property::sometimes(REACHABLE[2], |_, state: &State| {
        let reverts = state.system.cluster.config.status.as_ref().map_or(0, |status| status.reverts.len());
        reverts > 0 && state.phase() == Some(Phase::Completed)
    }));
    properties.push(Property::sometimes(REACHABLE[3], |_, state: &State| {
        let is_unheard = state.system.run.is_none() && state.phase() == Some(Phase::InProgress);
        is_unheard && state.is_unwritten(0) && state.system.cluster.targets[0].held() == "\"for 1\""
    }));
    properties.push(Property::sometimes(REACHABLE[4], |_, state: &State| state.phase() == Some(Phase::Scheduled)));
    properties.push(Property::sometimes(REACHABLE[5], |_, state: &State| {
        let status = state.system.cluster.config.status.as_ref();
        let mut messages = status.iter().flat_map(|status| &status.items).filter_map(|item| item.message.as_ref());
        messages.any(|message| message.starts_with("Waits for its window"))
    }));
    properties.push(Property::sometimes(REACHABLE[6], |_, state: &State| {
        let status = state.system.cluster.config.status.as_ref();
        let mut conditions = status.iter().flat_map(|status| &status.conditions);
        conditions.any(|condition| condition.type_ == "ReviewRequired" && condition.reason == "Rejected")
    }));
    properties.push(Property::sometimes(REACHABLE[7], |_, state: &State| {
        let status = state.system.cluster.config.status.as_ref();
        status.is_some_and(|status| status.restore.is_some()) && state.phase() == Some(Phase::Completed)
    }));
    properties.push(Property::sometimes(REACHABLE[8], |_, state: &State| {
        let cluster = &state.system.cluster;
        let is_applied = cluster.config.spec.restore.is_none() && state.phase() == Some(Phase::Completed);
        is_applied && cluster.records.len() > 2
    }));
    properties
}

pub(crate) fn matches(words: &[&str], rule: &str) -> bool {
    words.iter().any(|word| rule.contains(word))
}

//! Plans beside the autopilot: items that it manages are left out, and the plan says who manages what and how to opt out.

use api::virt_platform_config::{Risk, TargetRef};

use super::{Asset, AutopilotState, MANAGER, PAUSED, excluded, input, opt_out};
use crate::{Change, Draft, Facts, Intent, LeftOut, ObjectRef, fields::Path, intent::risk};

/// The name of the risk, and the reason of a review because applied items are left out.
pub const AUTOPILOT_MANAGES: &str = "AutopilotManages";

/// The draft of one item that the autopilot may manage as well.
pub fn beside(draft: Draft, asset: &Asset, facts: &Facts) -> Draft {
    let Some(intent) = draft.intents.first() else { return draft };
    let is_same_object = intent.target == asset.object;
    // Nobody fights over objects of different names. One that is there already stays managed.
    let is_there = !is_same_object && facts.object(&intent.target).is_some();
    match AutopilotState::of(asset, &touched(intent), facts) {
        AutopilotState::Manages(evidence) if !is_there => left_out(intent, asset, &evidence, facts),
        state => {
            let risks = draft.risks.into_iter().chain(may_manage(&state, asset, facts)).collect();
            Draft { risks, ..draft }
        }
    }
}

/// The fields that an intent manages or removes.
fn touched(intent: &Intent) -> Vec<String> {
    let removed: &[Path] = match &intent.change {
        Change::Apply { remove, .. } => remove,
        Change::Delete => &[],
    };
    intent.managed.iter().map(ToString::to_string).chain(removed.iter().map(Path::to_string)).collect()
}

fn left_out(intent: &Intent, asset: &Asset, evidence: &str, facts: &Facts) -> Draft {
    let (what, object) = (asset.what, &asset.object);
    let is_absent = asset.live(facts).is_none();
    let advice = match is_absent {
        // One command for all absent objects of the plan follows.
        true => "It has not created it yet.".to_owned(),
        false => {
            format!(
                "To plan it here instead, tell the autopilot to leave it alone: {}",
                opt_out(&target(object, facts))
            )
        }
    };
    let why = format!("{MANAGER} manages {what} by {object} ({evidence}), so this plan leaves it out. {advice}");
    let left_out = LeftOut { item: intent.name.clone(), why: why.clone(), absent: is_absent.then(|| object.clone()) };
    Draft { notes: vec![why], left_out: vec![left_out], ..Draft::default() }
}

/// The risk of an item that stays in the plan.
fn may_manage(state: &AutopilotState, asset: &Asset, facts: &Facts) -> Option<Risk> {
    let (what, object) = (asset.what, &asset.object);
    let how = match state {
        AutopilotState::Uninvolved | AutopilotState::OptedOut => return None,
        AutopilotState::Manages(evidence) => format!("also manages {what}, by {object} ({evidence}). Nodes get both"),
        AutopilotState::WritesOthers(evidence) => format!(
            "also writes {object} ({evidence}). It owns none of the fields of this plan now; if it takes one, that is drift \
             and is not reverted"
        ),
        AutopilotState::Paused(evidence) => format!(
            "manages {what} by {object} ({evidence}) and has paused itself there, because somebody else writes it too. When \
             the annotation {PAUSED} is removed, it takes its fields back"
        ),
    };
    let command = match asset.live(facts) {
        Some(_) => opt_out(&target(object, facts)),
        None => excluded::exclude(facts, &[object]),
    };
    Some(risk(AUTOPILOT_MANAGES, format!("{MANAGER} {how}. To keep it away: {command}")))
}

fn target(object: &ObjectRef, facts: &Facts) -> TargetRef {
    object.target(facts.version(object.kind).unwrap_or_default())
}

/// The whole draft of a profile: the switch of the autopilot is an input, and one command excludes all absent objects.
pub fn concluded(mut draft: Draft, facts: &Facts) -> Draft {
    let absent: Vec<&ObjectRef> = draft.left_out.iter().filter_map(|left| left.absent.as_ref()).collect();
    if !absent.is_empty() {
        let names: Vec<_> = absent.iter().map(ToString::to_string).collect();
        let command = excluded::exclude(facts, &absent);
        draft.notes.push(format!("To keep {MANAGER} from creating {}: {command}", names.join(" and ")));
    }
    draft.inputs.extend(input(facts));
    draft
}

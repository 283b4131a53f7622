//! The conditions of each phase: always the same types in the same order, with the texts of the workflow guide.
//! As Kubernetes demands, a time changes only with the status, every condition names its generation, and no condition stays True
//! after its phase.

use api::virt_platform_config::Phase;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// The order in which conditions are listed.
const ORDER: [Phase; 9] = [
    Phase::Ignored,
    Phase::Drafting,
    Phase::InProgress,
    Phase::ReviewRequired,
    Phase::Completed,
    Phase::Drifted,
    Phase::PrerequisiteFailed,
    Phase::Failed,
    Phase::Pending,
];

/// Only listed from the first time that they are True.
const RARE: [Phase; 3] = [Phase::Scheduled, Phase::CompletedWithErrors, Phase::CompletedWithUpgrade];

const IGNORED: &str = "Configuration is ignored - no management actions will be performed. Resources remain in their \
                       current state and are now under manual control. Change action to 'DryRun' or 'Apply' to resume \
                       operator management.";
const MANAGED: &str = "Configuration is being managed";
const NOT_APPLICABLE: &str = "Not applicable - configuration is ignored";
const DRAFTED: &str = "Plan generation completed";
const APPLYING: &str = "Applying plan configuration";
const NOT_APPLYING: &str = "Plan is not being applied";
const IN_SYNC: &str = "Configuration successfully applied and in sync";
const NO_DRIFT: &str = "Configuration is in sync with desired state";
const DRIFT: &str = "Configuration has drifted from desired state";
const SOME_FAILED: &str = "Plan completed but some items failed";

/// The reason of drift that was not tried to be reverted.
pub const DRIFT_DETECTED: &str = "DriftDetected";

/// One condition of a phase: whether it is True, the reason, and the message.
type Wording<'a> = (bool, &'a str, &'a str);

/// Why a phase was entered. Most phases have fixed texts and need none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Explanation {
    pub message: String,
    /// The reason of the phase's own condition, if it is not the usual one.
    pub reason: Option<&'static str>,
}

impl Explanation {
    pub fn with_reason(reason: &'static str, message: impl Into<String>) -> Self {
        Explanation { message: message.into(), reason: Some(reason) }
    }
}

impl<T: Into<String>> From<T> for Explanation {
    fn from(message: T) -> Self {
        Explanation { message: message.into(), reason: None }
    }
}

/// What phase `current` says in the condition of phase `about`. `message` explains why the phase was entered.
fn wording<'a>(current: Phase, about: Phase, message: &'a str) -> Wording<'a> {
    use Phase::*;
    if current == Ignored {
        return if about == Ignored { (true, "Ignored", IGNORED) } else { (false, "Ignored", NOT_APPLICABLE) };
    }
    match (current, about) {
        (_, Ignored) => (false, "NotIgnored", MANAGED),

        (Pending, Pending) => (true, "Pending", message),
        (Pending, _) => (false, "NotIgnored", MANAGED),

        (Drafting, Drafting) => (true, "Drafting", "Generating plan from profile"),
        (Drafting, InProgress) => (false, "NotInProgress", NOT_APPLYING),
        (Drafting, _) => (false, "NotDrafting", DRAFTED),

        (PrerequisiteFailed, PrerequisiteFailed) => (true, "PrerequisiteFailed", message),
        (PrerequisiteFailed, _) => (false, "PrerequisitesFailed", message),

        (ReviewRequired, ReviewRequired) => (true, "ReviewRequired", message),
        (ReviewRequired, Drafting) => (false, "NotDrafting", DRAFTED),
        (ReviewRequired, InProgress) => (false, "NotInProgress", NOT_APPLYING),
        (ReviewRequired, Completed) => (false, "NotCompleted", "Plan not yet applied"),
        (ReviewRequired, Drifted) => (false, "NoDrift", NO_DRIFT),
        (ReviewRequired, _) => (false, "ReviewRequired", message),

        (Scheduled, Scheduled) => (true, "Scheduled", message),
        (Scheduled, Drafting) => (false, "NotDrafting", DRAFTED),
        (Scheduled, InProgress) => (false, "NotInProgress", NOT_APPLYING),
        (Scheduled, Completed) => (false, "NotCompleted", "Plan not yet applied"),
        (Scheduled, Drifted) => (false, "NoDrift", NO_DRIFT),
        (Scheduled, _) => (false, "Scheduled", message),

        (InProgress, InProgress) => (true, "InProgress", APPLYING),
        (InProgress, Drafting) => (false, "NotDrafting", DRAFTED),
        (InProgress, _) => (false, "InProgress", APPLYING),

        (CompletedWithErrors, CompletedWithErrors) => (true, "CompletedWithErrors", message),
        (CompletedWithErrors, _) => (false, "CompletedWithErrors", SOME_FAILED),

        (CompletedWithUpgrade, CompletedWithUpgrade) => (true, "CompletedWithUpgrade", message),
        (Completed | CompletedWithUpgrade, Completed) => (true, "Completed", IN_SYNC),
        (Completed | CompletedWithUpgrade, Drafting) => (false, "NotDrafting", DRAFTED),
        (Completed | CompletedWithUpgrade, InProgress) => (false, "NotInProgress", "Plan application completed"),
        (Completed | CompletedWithUpgrade, Drifted) => (false, "NoDrift", NO_DRIFT),
        (Completed | CompletedWithUpgrade, PrerequisiteFailed) => (false, "Completed", "All prerequisites met"),
        (Completed | CompletedWithUpgrade, Failed) => (false, "Completed", "No failures occurred"),
        (Completed | CompletedWithUpgrade, _) => (false, "NotCompleted", IN_SYNC),

        (Failed, Failed) => (true, "Failed", message),
        (Failed, _) => (false, "Failed", message),

        (Drifted, Drifted) => (true, DRIFT_DETECTED, if message.is_empty() { DRIFT } else { message }),
        (Drifted, Completed) => (false, "ConfigurationDrifted", "Configuration is no longer in sync - drift detected"),
        (Drifted, _) => (false, DRIFT_DETECTED, DRIFT),

        (Ignored, _) => (false, "Ignored", NOT_APPLICABLE),
    }
}

/// The conditions of a phase, given those before it. Conditions of other types are kept, at the end.
pub fn conditions(
    before: &[Condition],
    phase: Phase,
    explanation: &Explanation,
    generation: i64,
    now: &Time,
) -> Vec<Condition> {
    let known = |about: &Phase| before.iter().any(|condition| condition.type_ == about.as_str());
    // A configuration that was ignored from the start has never been pending.
    let listed = ORDER.into_iter().filter(|about| *about != Phase::Pending || phase != Phase::Ignored || known(about));
    let rare = RARE.into_iter().filter(|about| *about == phase || known(about));
    let mut conditions: Vec<Condition> = listed
        .chain(rare)
        .map(|about| {
            let (holds, reason, message) = wording(phase, about, &explanation.message);
            let (reason, message) = match explanation.reason.filter(|_| about == phase) {
                Some(reason) => (reason, explanation.message.as_str()),
                None => (reason, message),
            };
            condition(before, about.as_str(), holds, reason, message, generation, now)
        })
        .collect();
    let ours = |kind: &str| ORDER.iter().chain(&RARE).any(|about| about.as_str() == kind);
    let kept = before.iter().filter(|condition| !ours(&condition.type_));
    conditions.extend(kept.map(|kept| Condition { observed_generation: Some(generation), ..kept.clone() }));
    conditions
}

/// One condition. Its time is kept unless its status changes.
pub fn condition(
    before: &[Condition],
    kind: &str,
    holds: bool,
    reason: &str,
    message: &str,
    generation: i64,
    now: &Time,
) -> Condition {
    with_status(before, kind, if holds { "True" } else { "False" }, reason, message, generation, now)
}

/// One condition, whose status may be Unknown.
pub(super) fn with_status(
    before: &[Condition],
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
    generation: i64,
    now: &Time,
) -> Condition {
    let same = before.iter().find(|condition| condition.type_ == kind && condition.status == status);
    Condition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        observed_generation: Some(generation),
        last_transition_time: same.map_or_else(|| now.clone(), |condition| condition.last_transition_time.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Time {
        Time(k8s_openapi::jiff::Timestamp::from_second(second).unwrap())
    }

    /// `Type=Status/Reason/Message`, in order.
    fn lines(conditions: &[Condition]) -> Vec<String> {
        conditions.iter().map(|c| format!("{}={}/{}/{}", c.type_, c.status, c.reason, c.message)).collect()
    }

    const REVIEW: &str = "Plan ready for review. Change action to 'Apply' to execute.";

    #[test]
    fn an_ignored_profile_as_the_guide_prints_it() {
        let ignored = lines(&conditions(&[], Phase::Ignored, &"".into(), 1, &at(0)));
        assert_eq!(ignored[0], format!("Ignored=True/Ignored/{IGNORED}"));
        let others =
            ["Drafting", "InProgress", "ReviewRequired", "Completed", "Drifted", "PrerequisiteFailed", "Failed"];
        let expected: Vec<_> = others.iter().map(|kind| format!("{kind}=False/Ignored/{NOT_APPLICABLE}")).collect();
        assert_eq!(ignored[1..], expected);
    }

    /// W28 (condition conventions): a phase that was left does not go on.
    #[test]
    fn a_plan_in_review_as_the_guide_prints_it_but_no_longer_pending() {
        assert_eq!(
            lines(&conditions(&[], Phase::ReviewRequired, &REVIEW.into(), 2, &at(0))),
            [
                "Ignored=False/NotIgnored/Configuration is being managed",
                "Drafting=False/NotDrafting/Plan generation completed",
                "InProgress=False/NotInProgress/Plan is not being applied",
                &format!("ReviewRequired=True/ReviewRequired/{REVIEW}"),
                "Completed=False/NotCompleted/Plan not yet applied",
                "Drifted=False/NoDrift/Configuration is in sync with desired state",
                &format!("PrerequisiteFailed=False/ReviewRequired/{REVIEW}"),
                &format!("Failed=False/ReviewRequired/{REVIEW}"),
                &format!("Pending=False/ReviewRequired/{REVIEW}"),
            ]
        );
    }

    #[test]
    fn a_completed_plan_as_the_guide_prints_it() {
        assert_eq!(
            lines(&conditions(&[], Phase::Completed, &"All items applied successfully".into(), 3, &at(0))),
            [
                "Ignored=False/NotIgnored/Configuration is being managed",
                "Drafting=False/NotDrafting/Plan generation completed",
                "InProgress=False/NotInProgress/Plan application completed",
                "ReviewRequired=False/NotCompleted/Configuration successfully applied and in sync",
                "Completed=True/Completed/Configuration successfully applied and in sync",
                "Drifted=False/NoDrift/Configuration is in sync with desired state",
                "PrerequisiteFailed=False/Completed/All prerequisites met",
                "Failed=False/Completed/No failures occurred",
                "Pending=False/NotCompleted/Configuration successfully applied and in sync",
            ]
        );
    }

    /// W28 (condition conventions): each says which generation it is about.
    #[test]
    fn exactly_one_phase_condition_holds_and_completed_also_with_an_upgrade() {
        for phase in Phase::ALL.iter().copied() {
            let conditions = conditions(&[], phase, &"message".into(), 1, &at(0));
            let mut holding: Vec<_> =
                conditions.iter().filter(|c| c.status == "True").map(|c| c.type_.as_str()).collect();
            holding.sort_unstable();
            let expected = match phase {
                Phase::CompletedWithUpgrade => vec!["Completed", "CompletedWithUpgrade"],
                phase => vec![phase.as_str()],
            };
            assert_eq!(holding, expected);
            assert!(conditions.iter().all(|c| !c.reason.is_empty() && c.observed_generation == Some(1)), "{phase}");
        }
    }

    /// W28 (condition conventions): as Kubernetes means it.
    #[test]
    fn time_moves_only_when_a_status_flips_and_what_was_left_is_cleared() {
        let review = conditions(&[], Phase::ReviewRequired, &REVIEW.into(), 1, &at(10));
        let failed =
            conditions(&review, Phase::CompletedWithErrors, &"Plan completed with some errors".into(), 2, &at(20));
        let find = |conditions: &[Condition], kind: &str| {
            let found = conditions.iter().find(|condition| condition.type_ == kind).unwrap();
            (found.status.clone(), found.last_transition_time.clone())
        };
        assert_eq!(find(&failed, "ReviewRequired"), ("False".into(), at(20)), "flipped");
        assert_eq!(find(&failed, "Drafting"), ("False".into(), at(10)), "reworded, not flipped");
        assert_eq!(find(&failed, "CompletedWithErrors"), ("True".into(), at(20)));
        let pending = conditions(&failed, Phase::Pending, &"Retrying after spec change".into(), 3, &at(30));
        assert_eq!(find(&pending, "CompletedWithErrors"), ("False".into(), at(30)), "cleared when left");
    }

    #[test]
    fn conditions_of_other_types_are_kept_at_the_end() {
        let other = condition(&[], "InputDependencyDrift", true, "InputChanged", "why", 1, &at(5));
        let after = conditions(std::slice::from_ref(&other), Phase::Completed, &"".into(), 2, &at(9));
        assert_eq!(after.last(), Some(&Condition { observed_generation: Some(2), ..other }));
    }
}

//! What a person has to answer before a plan is approved, and the edit of the configuration that approves or rejects it.

use api::{
    VirtPlatformConfig,
    virt_platform_config::{ForecastSummary, Item, ItemState, Phase, Rejection},
};
use serde_json::{Value, json};

pub use times::{NamedTimes, Times, told as start_told};

use crate::{blast_radius::NamedRisk, machine::PLAN_STALE};

mod times;

/// What to do about a plan that is out of date.
pub const RENEW: &str =
    "have the plan made again: set action to Ignore and back to DryRun, or edit the spec; then read it";

/// Why the plan of a configuration cannot be decided about.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Undecidable {
    #[error(
        "{0} has no plan: set its action to DryRun, and the operator makes one; if it does not, `virt-advisor doctor` says why"
    )]
    NoPlan(String),
    #[error("{0} was edited, and the operator has not looked at the edit yet: wait a moment, and read the plan again")]
    Unseen(String),
    #[error("the plan {named} of {name} is not the current one any more, which is {current}: read it, then decide")]
    Stale { name: String, named: String, current: String },
    #[error("no plan of {name} waits for an approval: its phase is {phase}. {hint}")]
    NotWaiting { name: String, phase: &'static str, hint: &'static str },
    #[error(
        "the plan of {0} is out of date, because what it changes has changed since, and it will not be applied: {renew}",
        renew = RENEW
    )]
    OutOfDate(String),
}

/// The digest of the plan that waits for a decision. `named` is the digest that the person has read.
pub fn plan_to_decide<'a>(config: &'a VirtPlatformConfig, named: Option<&str>) -> Result<&'a str, Undecidable> {
    let name = || config.spec.profile.to_string();
    let status = config.status.as_ref().filter(|status| !status.items.is_empty());
    let Some((status, digest)) = status.and_then(|status| Some((status, status.plan_digest.as_deref()?))) else {
        return Err(Undecidable::NoPlan(name()));
    };
    if status.observed_generation != config.metadata.generation {
        return Err(Undecidable::Unseen(name()));
    }
    if let Some(named) = named.filter(|named| *named != digest) {
        return Err(Undecidable::Stale { name: name(), named: named.into(), current: digest.into() });
    }
    let phase = status.phase.unwrap_or(Phase::Pending);
    let hint = match phase {
        Phase::ReviewRequired | Phase::Scheduled => return Ok(digest),
        Phase::InProgress => "It is being applied; a rollout stops when its pools are paused",
        Phase::Completed | Phase::CompletedWithErrors => "It was applied",
        Phase::CompletedWithUpgrade => "It was applied. Set the action to DryRun for the plan of this version",
        Phase::Drifted => {
            "It was applied, and somebody has changed what it manages: `virt-advisor drift` shows what to do"
        }
        Phase::Failed => "It was given up. Edit the configuration, or set its action to DryRun, for a new plan",
        Phase::Ignored => "Set its action to DryRun for a plan",
        Phase::Pending | Phase::Drafting | Phase::PrerequisiteFailed => "`virt-advisor status` shows what it waits for",
    };
    Err(Undecidable::NotWaiting { name: name(), phase: phase.as_str(), hint })
}

/// The digest of the plan that can be approved: it waits for a decision, and the operator would apply it.
pub fn plan_to_approve<'a>(config: &'a VirtPlatformConfig, named: Option<&str>) -> Result<&'a str, Undecidable> {
    let digest = plan_to_decide(config, named)?;
    if is_out_of_date(config) { Err(Undecidable::OutOfDate(config.spec.profile.to_string())) } else { Ok(digest) }
}

/// Whether the operator says that what the plan changes has changed since, so that it does not apply it.
pub fn is_out_of_date(config: &VirtPlatformConfig) -> bool {
    let review = config.status.as_ref().and_then(|status| status.true_condition(Phase::ReviewRequired.as_str()));
    review.is_some_and(|review| review.reason == PLAN_STALE)
}

/// The digest of the plan that can be turned down: it waits for a decision, or not all of it is written yet.
pub fn plan_to_reject<'a>(config: &'a VirtPlatformConfig, named: Option<&str>) -> Result<&'a str, Undecidable> {
    let is_unwritten = |item: &Item| {
        item.applied_fingerprint.is_none() && matches!(item.state, ItemState::Pending | ItemState::InProgress)
    };
    let under_way = config
        .status
        .as_ref()
        .filter(|status| status.phase == Some(Phase::InProgress) && status.items.iter().any(is_unwritten));
    match (plan_to_decide(config, named), under_way.and_then(|status| status.plan_digest.as_deref())) {
        (Err(Undecidable::NotWaiting { .. }), Some(digest)) => Ok(digest),
        (decided, _) => decided,
    }
}

/// What an approver is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// Whether it is approved although somebody has rejected it, and why they did.
    Rejection { reason: Option<String> },
    /// Whether a risk is accepted.
    Risk(NamedRisk),
    /// Whether an item may overwrite what somebody has changed since: its name, and the changed fields.
    Item { name: String, fields: Vec<String> },
}

impl Question {
    /// The name by which it is accepted.
    pub fn name(&self) -> &str {
        match self {
            Question::Rejection { .. } => "the rejection",
            Question::Risk(risk) => &risk.name,
            Question::Item { name, .. } => name,
        }
    }
}

/// What is left to ask: a rejection, risks, and items that overwrite changes of others, that nobody has accepted so far.
pub fn questions(config: &VirtPlatformConfig, risks: Vec<NamedRisk>, accepted: &Accepted) -> Vec<Question> {
    let items = config.status.iter().flat_map(|status| &status.items);
    let changed = items.filter(|item| !item.changed_since.is_empty() && !accepted.items.contains(&item.name));
    let changed = changed.map(|item| Question::Item { name: item.name.clone(), fields: item.changed_since.clone() });
    let risks = risks.into_iter().filter(|risk| !accepted.risks.contains(&risk.name));
    let rejected = rejection_of_plan(config).filter(|_| !accepted.rejection);
    let rejected = rejected.map(|rejection| Question::Rejection { reason: rejection.reason.clone() });
    rejected.into_iter().chain(risks.map(Question::Risk)).chain(changed).collect()
}

/// The rejection of the plan that waits. One of an earlier plan does not count.
fn rejection_of_plan(config: &VirtPlatformConfig) -> Option<&Rejection> {
    let rejection = config.spec.approval.as_ref()?.rejected.as_ref()?;
    let digest = config.status.as_ref()?.plan_digest.as_deref();
    (digest == Some(rejection.plan_digest.as_str())).then_some(rejection)
}

/// What an approver has accepted: risks and items by name, each once, as the API server wants them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accepted {
    pub risks: Vec<String>,
    pub items: Vec<String>,
    /// The plan is approved although somebody has rejected it.
    pub rejection: bool,
}

impl Accepted {
    pub fn new(risks: &[String], items: &[String], rejection: bool) -> Self {
        let mut accepted = Accepted { rejection, ..Accepted::default() };
        risks.iter().for_each(|name| add(&mut accepted.risks, name));
        items.iter().for_each(|name| add(&mut accepted.items, name));
        accepted
    }

    pub fn add(&mut self, question: &Question) {
        match question {
            Question::Rejection { .. } => self.rejection = true,
            Question::Risk(risk) => add(&mut self.risks, &risk.name),
            Question::Item { name, .. } => add(&mut self.items, name),
        }
    }
}

fn add(names: &mut Vec<String>, name: &str) {
    if !names.iter().any(|known| known == name) {
        names.push(name.to_owned());
    }
}

/// What an approver says besides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Approver {
    pub name: String,
    pub reason: Option<String>,
    pub times: Times,
    /// The forecast that was read.
    pub forecast: Option<ForecastSummary>,
}

/// The merge patch that approves a plan. It keeps the mode and the window, which outlive a plan, and a rejection of another plan. It
/// fails if the configuration has changed since it was read.
pub fn approval(config: &VirtPlatformConfig, digest: &str, approver: &Approver, accepted: &Accepted) -> Value {
    let list = |names: &[String]| if names.is_empty() { Value::Null } else { json!(names) };
    let mut approval = json!({
        "planDigest": digest,
        "approvedBy": approver.name,
        "reason": approver.reason,
        "notBefore": approver.times.not_before.map(|time| time.to_string()),
        "notAfter": approver.times.not_after.map(|time| time.to_string()),
        "acceptedRisks": list(&accepted.risks),
        "acceptedItems": list(&accepted.items),
        // That of an earlier plan is taken away.
        "forecast": approver.forecast,
    });
    if accepted.rejection && rejection_of_plan(config).is_some() {
        approval["rejected"] = Value::Null;
    }
    edit(config, json!({"action": "Apply", "approval": approval}))
}

/// The merge patch that turns a plan down. It stops a plan that is approved already.
pub fn rejection(config: &VirtPlatformConfig, digest: &str, reason: Option<&str>) -> Value {
    edit(config, json!({"approval": {"rejected": {"planDigest": digest, "reason": reason}}}))
}

/// The merge patch that asks for the plan that takes back what was applied. Nothing is applied before it is approved.
pub fn undo(config: &VirtPlatformConfig, record: &str) -> Value {
    edit(config, json!({"action": "DryRun", "restore": {"record": record}}))
}

fn edit(config: &VirtPlatformConfig, spec: Value) -> Value {
    json!({"metadata": {"resourceVersion": config.metadata.resource_version}, "spec": spec})
}

#[cfg(test)]
mod tests {
    use api::{
        VirtPlatformConfigSpec,
        virt_platform_config::{Approval, Item, Profile, VirtPlatformConfigStatus},
    };

    use super::*;

    fn config(phase: Phase) -> VirtPlatformConfig {
        let mut config = VirtPlatformConfig::new("example-profile", VirtPlatformConfigSpec::new(Profile::Example));
        config.metadata.generation = Some(3);
        config.metadata.resource_version = Some("17".into());
        let item = Item { name: "i".into(), changed_since: vec!["spec.a".into()], ..Item::default() };
        config.status = Some(VirtPlatformConfigStatus {
            phase: Some(phase),
            observed_generation: Some(3),
            plan_digest: Some("current".into()),
            items: vec![Item { name: "other".into(), ..Item::default() }, item],
            ..VirtPlatformConfigStatus::default()
        });
        config
    }

    #[test]
    fn only_the_plan_that_was_read_and_waits_can_be_decided_about() {
        let decided = |change: fn(&mut VirtPlatformConfig), named| {
            let mut config = config(Phase::ReviewRequired);
            change(&mut config);
            plan_to_decide(&config, named).map(str::to_owned).map_err(|error| error.to_string())
        };
        assert_eq!(decided(|_| {}, None), Ok("current".into()));
        assert_eq!(decided(|_| {}, Some("current")), Ok("current".into()));
        for (case, change, named, part) in [
            ("another digest", (|_| {}) as fn(&mut VirtPlatformConfig), Some("old"), "which is current"),
            ("an edit", |config| config.metadata.generation = Some(4), None, "has not looked at the edit"),
            ("no status", |config| config.status = None, None, "has no plan"),
            ("no items", |config| config.status.as_mut().unwrap().items.clear(), None, "has no plan"),
            (
                "applied",
                |config| config.status.as_mut().unwrap().phase = Some(Phase::Completed),
                None,
                "It was applied",
            ),
            (
                "drifted",
                |config| config.status.as_mut().unwrap().phase = Some(Phase::Drifted),
                None,
                "virt-advisor drift",
            ),
        ] {
            let error = decided(change, named).unwrap_err();
            assert!(error.contains(part), "{case}: {error}");
        }
    }

    #[test]
    fn a_plan_can_be_rejected_until_all_of_it_is_written() {
        let mut config = config(Phase::InProgress);
        assert!(plan_to_decide(&config, None).is_err());
        assert_eq!(plan_to_reject(&config, None), Ok("current"));
        assert!(plan_to_reject(&config, Some("old")).is_err());
        for item in &mut config.status.as_mut().unwrap().items {
            item.applied_fingerprint = Some("x".into());
        }
        let error = plan_to_reject(&config, None).unwrap_err().to_string();
        assert!(error.contains("a rollout stops when its pools are paused"), "{error}");
    }

    #[test]
    fn every_risk_and_every_lost_change_is_asked_about_once() {
        let risk = |name: &str| NamedRisk { name: name.into(), message: "m".into(), evidence: Vec::new() };
        let mut accepted = Accepted::new(&["A".into(), "A".into()], &[], false);
        let config = config(Phase::ReviewRequired);
        let asked = |accepted: &Accepted| questions(&config, vec![risk("A"), risk("B")], accepted);
        let open = asked(&accepted);
        assert_eq!(open.iter().map(Question::name).collect::<Vec<_>>(), ["B", "i"]);
        open.iter().for_each(|question| accepted.add(question));
        assert_eq!(asked(&accepted), []);
        assert_eq!(accepted, Accepted::new(&["A".into(), "B".into()], &["i".into()], false), "each is named once");
    }

    #[test]
    fn a_rejection_is_a_question_and_is_taken_back_only_on_purpose() {
        let rejected = |digest: &str| {
            let mut config = config(Phase::ReviewRequired);
            let rejected = Some(Rejection { plan_digest: digest.into(), reason: Some("not before the audit".into()) });
            config.spec.approval = Some(Approval { rejected, ..Approval::default() });
            config
        };
        let question = Question::Rejection { reason: Some("not before the audit".into()) };
        let asked = |config: &VirtPlatformConfig, accepted: &Accepted| {
            questions(config, Vec::new(), accepted).contains(&question)
        };
        let patch = |config: &VirtPlatformConfig, accepted: &Accepted| {
            let patch = approval(config, "current", &Approver::default(), accepted);
            patch["spec"]["approval"].as_object().unwrap().get("rejected").cloned()
        };
        let mut accepted = Accepted::default();
        assert!(asked(&rejected("current"), &accepted));
        assert_eq!(patch(&rejected("current"), &accepted), None);
        accepted.add(&question);
        assert!(!asked(&rejected("current"), &accepted));
        assert_eq!(patch(&rejected("current"), &accepted), Some(Value::Null));
        assert!(!asked(&rejected("old"), &Accepted::default()), "the rejection of another plan does not count");
        assert_eq!(patch(&rejected("old"), &accepted), None, "and it stays");
    }

    #[test]
    fn a_plan_that_is_out_of_date_is_not_approved_but_can_be_rejected() {
        let mut config = config(Phase::ReviewRequired);
        assert_eq!(plan_to_approve(&config, None), Ok("current"));
        let condition = json!({
            "type": "ReviewRequired", "status": "True", "reason": PLAN_STALE, "message": "",
            "lastTransitionTime": "2026-01-05T08:00:00Z",
        });
        config.status.as_mut().unwrap().conditions = vec![serde_json::from_value(condition).unwrap()];
        let error = plan_to_approve(&config, None).unwrap_err();
        assert_eq!(error, Undecidable::OutOfDate("example-profile".into()));
        assert!(error.to_string().contains("set action to Ignore and back to DryRun"), "{error}");
        assert_eq!(plan_to_reject(&config, None), Ok("current"));
    }

    #[test]
    fn an_edit_holds_for_the_version_that_was_read_only() {
        let config = config(Phase::ReviewRequired);
        let approver = Approver { name: "jane".into(), reason: Some("CHG-1".into()), ..Approver::default() };
        let accepted = Accepted::new(&["A".into()], &[], false);
        let expected = json!({
            "metadata": {"resourceVersion": "17"},
            "spec": {"action": "Apply", "approval": {
                "planDigest": "d", "approvedBy": "jane", "reason": "CHG-1", "notBefore": null, "notAfter": null,
                "acceptedRisks": ["A"], "acceptedItems": null, "forecast": null,
            }},
        });
        assert_eq!(approval(&config, "d", &approver, &accepted), expected);
        assert_eq!(
            rejection(&config, "d", None)["spec"],
            json!({"approval": {"rejected": {"planDigest": "d", "reason": null}}})
        );
        assert_eq!(undo(&config, "original")["spec"], json!({"action": "DryRun", "restore": {"record": "original"}}));
    }
}

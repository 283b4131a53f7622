//! Configurations that wait for a person, with what that person can do.

use std::collections::BTreeMap;

use advisor::{
    approving::RENEW,
    machine::{
        APPROVAL_REQUIRED, DRIFT_DETECTED, EXPIRED, MISMATCH, NO_PROGRESS, NOT_ACCEPTED, PLAN_DIFFERS, PLAN_STALE,
        REJECTED, REMEDIATION_STALLED_REASON, RESTORED, RISKS_NOT_ACCEPTED, STALLED, WINDOW_INVALID,
    },
};
use api::virt_platform_config::Phase;
use kube_io::RequestError;
use serde_json::Value;

use super::finding::Finding;

const CHECK: &str = "configurations";

/// So much of a condition's message is shown; all of it is in the status.
const MESSAGE_LENGTH: usize = 240;

/// The reasons that are named after their phases.
const REVIEW: &str = Phase::ReviewRequired.as_str();
const ERRORS: &str = Phase::CompletedWithErrors.as_str();

/// A person has to decide something, and nothing is broken.
const DECISIONS: [&str; 10] = [
    APPROVAL_REQUIRED,
    EXPIRED,
    MISMATCH,
    NOT_ACCEPTED,
    PLAN_STALE,
    REJECTED,
    RESTORED,
    REVIEW,
    RISKS_NOT_ACCEPTED,
    WINDOW_INVALID,
];

pub(super) fn configurations(configs: &Result<Vec<Value>, RequestError>) -> Vec<Finding> {
    let configs = match configs {
        Ok(configs) => configs,
        Err(error) if error.class.is_absent() => return vec![Finding::ok(CHECK, "there are none")],
        Err(error) => return vec![Finding::unknown(CHECK, "they may not be listed", error)],
    };
    let mut findings: Vec<Finding> = configs.iter().filter_map(stalled).collect();
    findings.extend(configs.iter().filter_map(unseen));
    if findings.is_empty() {
        findings.push(Finding::ok(CHECK, phases(configs)));
    }
    findings
}

/// `Completed 1, Ignored 2`
fn phases(configs: &[Value]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for config in configs {
        *counts.entry(config["status"]["phase"].as_str().unwrap_or("without a status")).or_default() += 1;
    }
    let counts: Vec<_> = counts.into_iter().map(|(phase, count)| format!("{count} {phase}")).collect();
    if counts.is_empty() { "there are none".into() } else { format!("none needs a person ({})", counts.join(", ")) }
}

fn stalled(config: &Value) -> Option<Finding> {
    let conditions = config["status"]["conditions"].as_array()?;
    let condition = conditions.iter().find(|known| known["type"] == STALLED && known["status"] == "True")?;
    let [reason, message] = ["reason", "message"].map(|field| condition[field].as_str().unwrap_or_default());
    let name = config["metadata"]["name"].as_str().unwrap_or_default();
    let phase = config["status"]["phase"].as_str().unwrap_or_default();
    let message = format!("{name} is {phase} ({reason}): {}", cut(message));
    let remedy = remedy(reason, name);
    // A plan that was given up does not go on by a decision about it.
    Some(match DECISIONS.contains(&reason) && phase != Phase::Failed.as_str() {
        true => Finding::warning(CHECK, message, remedy),
        false => Finding::problem(CHECK, message, remedy),
    })
}

/// What to do, by the reason of the condition.
fn remedy(reason: &str, name: &str) -> String {
    let show = format!("kubectl get vpcfg {name} -o yaml");
    match reason {
        APPROVAL_REQUIRED | EXPIRED | MISMATCH | REVIEW => {
            format!("read the plan ({show}), and approve it by its digest: docs/approvals.md")
        }
        PLAN_STALE => RENEW.into(),
        RESTORED => "take spec.restore out of the spec to apply the profile again, or leave it as it is".into(),
        NOT_ACCEPTED => format!("name the items in spec.approval.acceptedItems if their changes may be lost: {show}"),
        RISKS_NOT_ACCEPTED => {
            format!("read the risks ({show}, status.risks), then accept them: virt-advisor approve {name}")
        }
        WINDOW_INVALID => format!("correct spec.approval.window: {show}"),
        REJECTED => "change the options, or take spec.approval.rejected back".into(),
        DRIFT_DETECTED | REMEDIATION_STALLED_REASON => {
            format!(
                "see who changed what ({show}, status.items[].driftedBy), then agree with them: docs/troubleshooting.md"
            )
        }
        PLAN_DIFFERS => {
            "edit the spec for a new plan, and review that: what would be applied now is not what was approved".into()
        }
        NO_PROGRESS | ERRORS => {
            format!("see which item and which pool ({show}, status.items): docs/troubleshooting.md")
        }
        _ => format!("do what the message says, or read docs/troubleshooting.md; all of it: {show}"),
    }
}

/// The status is about an earlier spec: the operator has not looked yet, or does not run.
fn unseen(config: &Value) -> Option<Finding> {
    let name = config["metadata"]["name"].as_str().unwrap_or_default();
    let (spec, status) = (&config["metadata"]["generation"], &config["status"]["observedGeneration"]);
    (spec.is_i64() && spec != status).then(|| {
        let message = format!("{name} was changed, and the operator has not acted on it");
        Finding::warning(CHECK, message, "wait a minute and look again; then see what is said about the operator above")
    })
}

fn cut(message: &str) -> String {
    match message.char_indices().nth(MESSAGE_LENGTH) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use kube_io::Class;
    use serde_json::json;

    use super::*;
    use crate::doctor::finding::Level;

    fn config(phase: &str, stalled: Option<&str>, observed: i64) -> Value {
        let conditions: Vec<_> = stalled
            .iter()
            .map(|reason| json!({"type": "Stalled", "status": "True", "reason": reason, "message": "why"}))
            .collect();
        json!({"metadata": {"name": "p", "generation": 2}, "status": {"phase": phase, "observedGeneration": observed, "conditions": conditions}})
    }

    #[test]
    fn a_configuration_that_waits_for_a_person_is_told_with_what_to_do() {
        for (case, config, level) in [
            ("in effect", config("Completed", None, 2), Level::Ok),
            ("waits for an approval", config("ReviewRequired", Some("ApprovalRequired"), 2), Level::Warning),
            ("would overwrite a change", config("ReviewRequired", Some("PlanStale"), 2), Level::Warning),
            ("was approved and would have overwritten it", config("Failed", Some("PlanStale"), 2), Level::Problem),
            ("has a window that cannot be read", config("ReviewRequired", Some("WindowInvalid"), 2), Level::Warning),
            ("failed", config("Failed", Some("Failed"), 2), Level::Problem),
            ("a rollout that stands still", config("InProgress", Some("NoProgress"), 2), Level::Problem),
            ("of a reason that is new", config("Failed", Some("Whatever"), 2), Level::Problem),
            ("not looked at", config("Completed", None, 1), Level::Warning),
        ] {
            let findings = configurations(&Ok(vec![config]));
            assert_eq!(findings.len(), 1, "{case}: {findings:?}");
            assert_eq!(findings[0].level, level, "{case}: {findings:?}");
            assert_eq!(findings[0].remedy.is_some(), level != Level::Ok, "{case}: {findings:?}");
        }
    }

    /// The status says the same; an approval would only fail.
    #[test]
    fn a_plan_that_is_out_of_date_is_made_again_and_not_approved() {
        let remedy = remedy("PlanStale", "p");
        assert!(remedy.contains("Ignore and back to DryRun") && !remedy.contains("digest"), "{remedy}");
    }

    #[test]
    fn drift_that_waits_for_another_plan_leads_to_that_plan() {
        let findings = configurations(&Ok(vec![config("Drifted", Some("PlanDiffers"), 2)]));
        assert!(findings[0].remedy.as_ref().unwrap().contains("for a new plan"), "{findings:?}");
    }

    #[test]
    fn without_trouble_one_line_counts_the_phases() {
        let configs = [config("Ignored", None, 2), config("Completed", None, 2), config("Ignored", None, 2)];
        let findings = configurations(&Ok(configs.to_vec()));
        assert_eq!(findings, [Finding::ok(CHECK, "none needs a person (1 Completed, 2 Ignored)")]);
        let error = |class| RequestError::other("reading".into(), "no".into(), class);
        assert_eq!(
            configurations(&Err(error(Class::KindMissing)))[0].level,
            Level::Ok,
            "the definitions are told already"
        );
        assert_eq!(configurations(&Err(error(Class::Forbidden)))[0].level, Level::Unknown);
    }

    #[test]
    fn a_long_message_is_cut() {
        assert_eq!(cut(&"ä".repeat(300)).chars().count(), MESSAGE_LENGTH + 1);
        assert_eq!(cut("short"), "short");
    }
}

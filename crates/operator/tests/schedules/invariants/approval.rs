//! What the spec must say for a write: the plan is approved, and its time has come.

use std::time::Duration;

use advisor::start_time::{StartTime, start_time};
use api::virt_platform_config::{Approval, Item};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// The operator reads the target between its last look at the clock and the write, a bounded number of times.
const DELAY: Duration = Duration::from_secs(120);

/// The spec approves the plan with this digest.
pub(super) fn agrees(spec: &Value, digest: &str, item: &Item) -> Result<(), String> {
    let approval = &spec["approval"];
    if spec["action"] != "Apply" {
        return Err(format!("action is {}", spec["action"]));
    }
    match approval["planDigest"].as_str() {
        Some(approved) if approved != digest => return Err("another plan was approved".into()),
        None if approval["mode"] == "Reviewed" => return Err("nobody has named the plan".into()),
        _ => {}
    }
    if approval["rejected"]["planDigest"] == digest {
        return Err("the plan was rejected".into());
    }
    let accepted = approval["acceptedItems"].as_array().into_iter().flatten();
    if !item.changed_since.is_empty() && !accepted.into_iter().any(|name| *name == item.name.as_str()) {
        return Err("nobody has accepted that a change of somebody else gets lost".into());
    }
    Ok(())
}

/// The risks of a plan that was approved with this spec, where plans are reviewed, are accepted by name.
pub(super) fn accepts_risks(config: &Value) -> Result<(), String> {
    let (approval, granted) = (&config["spec"]["approval"], &config["status"]["approval"]);
    let is_of_this_spec = granted["generation"] == config["metadata"]["generation"];
    let mut risks = config["status"]["risks"].as_array().into_iter().flatten();
    let is_accepted =
        |risk: &Value| approval["acceptedRisks"].as_array().is_some_and(|names| names.contains(&risk["name"]));
    match approval["mode"] == "Reviewed" && is_of_this_spec && !risks.all(is_accepted) {
        true => Err("nobody has accepted the risks of the plan".into()),
        false => Ok(()),
    }
}

/// Nothing is written before the time of the plan, and nothing that reboots nodes outside of its window.
pub(super) fn is_its_time(spec: &Value, item: &Item, sent: Timestamp) -> Result<(), String> {
    let Ok(approval) = serde_json::from_value::<Approval>(spec["approval"].clone()) else { return Ok(()) };
    if approval.not_before.as_ref().is_some_and(|time| time.0 > sent) {
        return Err("the plan was not to be started yet".into());
    }
    let reboots = item.impact_detail.as_ref().is_some_and(|detail| detail.reboot);
    let was_open = |ago: u64| {
        let ago = SignedDuration::from_secs(i64::try_from(ago).unwrap_or_default());
        start_time(Some(&approval), sent - ago) == StartTime::Now
    };
    match reboots && !(0..=DELAY.as_secs()).step_by(5).any(was_open) {
        true => Err("the nodes are not to be rebooted at this time".into()),
        false => Ok(()),
    }
}

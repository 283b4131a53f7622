//! Whether a configuration has come to rest in a phase that fits its spec, its targets and the plan that would be made now.

use advisor::{
    Plan, drift, rendered_config,
    start_time::{StartTime, start_time},
};
use api::{
    VirtPlatformConfig,
    names::field_manager,
    virt_platform_config::{Item, ORIGINAL, Phase},
};
use k8s_openapi::jiff::Timestamp;
use operator::PlanError;
use serde_json::{Value, json};

use super::{TARGETS, holding};
use crate::{
    api::{kinds::named, store::Key},
    cluster::ModelCluster,
};

/// A configuration at the end of a run.
pub(super) struct End<'a> {
    pub(super) cluster: &'a ModelCluster,
    pub(super) now: Timestamp,
    pub(super) config: &'a VirtPlatformConfig,
    pub(super) object: &'a Value,
}

pub(super) fn fits(end: &End<'_>, plan: &Result<Plan, PlanError>) -> Result<(), String> {
    let (spec, status) = (&end.object["spec"], &end.object["status"]);
    let phase = end.config.status.as_ref().and_then(|status| status.phase).ok_or("it has no phase")?;
    if status["observedGeneration"] != end.object["metadata"]["generation"] {
        return Err("its newest spec was not acted on".into());
    }
    if (spec["action"] == "Ignore") != (phase == Phase::Ignored) {
        return Err(format!("{} and {phase:?}", spec["action"]));
    }
    if phase == Phase::Ignored {
        return Ok(());
    }
    // A restored configuration manages nothing, so nothing of the cluster matters to it.
    if !spec["restore"].is_null() && phase == Phase::Completed {
        return is_restored(end);
    }
    let reasons = holding(status);
    let reason = |kind: &str| reasons[kind].as_str().unwrap_or_default().to_owned();
    let plan = match plan {
        Ok(plan) => plan,
        Err(PlanError::Request(error)) => return Err(format!("no plan could be made: {error}")),
        // A failed plan waits for a person, whatever is missing. So does a restored one in part.
        Err(_) if matches!(phase, Phase::PrerequisiteFailed | Phase::Failed) => return Ok(()),
        Err(_) if !spec["restore"].is_null() && phase == Phase::CompletedWithErrors => return Ok(()),
        Err(error) => return Err(format!("{phase:?}, and {error}")),
    };
    let items = || end.config.status.iter().flat_map(|status| &status.items);
    let drifted = items().any(|item| is_drifted(item, plan));
    // The impact may have changed since: then the plan is made again when it is approved.
    let is_current = items().count() == plan.items.len() && items().all(|item| is_planned(item, plan));
    let is_ours = |item: &&Item| is_drifted(item, plan) && is_planned(item, plan);
    match phase {
        Phase::Failed | Phase::CompletedWithErrors => Ok(()),
        Phase::ReviewRequired if reason("ReviewRequired") == "PlanStale" => Ok(()),
        // Why a plan is not approved is reported before a changed target.
        Phase::ReviewRequired if is_told_why(end, &reason("ReviewRequired")) => Ok(()),
        Phase::ReviewRequired if !plan.has_changes() => Err("there is nothing to review".into()),
        Phase::ReviewRequired if !is_current => Err("the plan is not the current one".into()),
        Phase::ReviewRequired if spec["action"] == "Apply" => {
            let waits = !reason("InputDependencyDrift").is_empty();
            waits.then_some(()).ok_or_else(|| "it was approved".into())
        }
        Phase::ReviewRequired => Ok(()),
        Phase::Scheduled if !matches!(start(end), StartTime::At(_)) => Err("its time is not to come".into()),
        Phase::Scheduled if refusal(end).is_some() => Err("nobody agrees to it".into()),
        Phase::Scheduled if !plan.has_changes() => Err("there is nothing to wait for".into()),
        Phase::Scheduled if !is_current => Err("the plan is not the current one".into()),
        Phase::Scheduled => Ok(()),
        Phase::Completed if drifted => Err("it has drifted".into()),
        Phase::Completed if plan.has_changes() && !end.cluster.was_stale => Err("something is left to do".into()),
        Phase::Completed if items().any(|item| is_on_its_way(end.cluster, item)) => {
            Err("the nodes do not run it".into())
        }
        Phase::Completed => Ok(()),
        Phase::Drifted if !spec["restore"].is_null() => Err("a restored configuration manages nothing".into()),
        Phase::Drifted if !drifted => Err("nothing has drifted".into()),
        Phase::Drifted => {
            // If a plan that is made now would differ, a person has to decide.
            let nothing = items().find(is_ours).is_none();
            let gives_up = reason("Drifted") == "RemediationStalled" || !is_aggressive(end) || nothing;
            gives_up.then_some(()).ok_or_else(|| "it should have been reverted".into())
        }
        Phase::InProgress if items().any(|item| waits_for_window(end, item)) => Ok(()),
        Phase::InProgress => {
            let pool = plan
                .facts
                .list(&advisor::kind::MACHINE_CONFIG_POOL)
                .iter()
                .any(|pool| pool["metadata"]["name"] == "worker");
            (!pool).then_some(()).ok_or_else(|| "nothing keeps it from ending".into())
        }
        other => Err(format!("{other:?} is no phase to rest in")),
    }
}

/// Everything is given back: the configuration shows no drift, and after a restore of the original it owns no field.
fn is_restored(end: &End<'_>) -> Result<(), String> {
    let (spec, status) = (&end.object["spec"], &end.object["status"]);
    if status["restore"] != spec["restore"] {
        return Err("another plan than the one that restores was applied".into());
    }
    let reasons = holding(status);
    if reasons["Completed"] != "Restored" || !reasons["Drifted"].is_null() {
        return Err("it does not say that it manages nothing".into());
    }
    let manager = field_manager(spec["profile"].as_str().unwrap_or_default());
    let owns = |object: &Value| {
        let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
        entries.into_iter().flatten().any(|entry| entry["manager"] == manager && entry["operation"] == "Apply")
    };
    // What the operator has no right to delete stays, and a note says so.
    let notes = status["notes"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let is_left = notes.into_iter().any(|note| note.ends_with("delete it by hand"));
    let targets = TARGETS.iter().flat_map(|plural| end.cluster.store.list(plural));
    match targets.filter(|(_, object)| owns(object)).map(|(key, _)| key.to_string()).next() {
        Some(key) if spec["restore"]["record"] == ORIGINAL && !is_left => Err(format!("it has not given up {key}")),
        _ => Ok(()),
    }
}

fn start(end: &End<'_>) -> StartTime {
    start_time(end.config.spec.approval.as_ref(), end.now)
}

/// Why the spec does not approve the plan in the status, as the reason of the condition.
fn refusal(end: &End<'_>) -> Option<&'static str> {
    let (approval, digest) = (&end.object["spec"]["approval"], &end.object["status"]["planDigest"]);
    let accepted = approval["acceptedItems"].as_array().cloned().unwrap_or_default();
    let is_accepted = |item: &Item| {
        let is_open = !item.changed_since.is_empty() && item.applied_fingerprint.is_none();
        !is_open || accepted.contains(&item.name.as_str().into())
    };
    let mut items = end.config.status.iter().flat_map(|status| &status.items);
    let accepted_risks = approval["acceptedRisks"].as_array().cloned().unwrap_or_default();
    let mut risks = end.config.status.iter().flat_map(|status| &status.risks);
    let is_open = |name: &str| !accepted_risks.contains(&name.into());
    // A plan that was started is past its risks.
    let asks = approval["mode"] == "Reviewed" && end.object["status"]["approval"]["planDigest"] != *digest;
    match &approval["planDigest"] {
        _ if approval["rejected"]["planDigest"] == *digest => Some("Rejected"),
        Value::Null if approval["mode"] == "Reviewed" => Some("ApprovalRequired"),
        Value::String(_) if approval["planDigest"] != *digest => Some("ApprovalMismatch"),
        _ if !items.all(is_accepted) => Some("NotAccepted"),
        _ => (asks && risks.any(|risk| is_open(&risk.name))).then_some("RisksNotAccepted"),
    }
}

/// Whether the reason of a review is the right one for a plan that is not approved.
fn is_told_why(end: &End<'_>, reason: &str) -> bool {
    let of_time = match start(end) {
        StartTime::Expired(_) => Some("ApprovalExpired"),
        StartTime::Invalid(_) => Some("WindowInvalid"),
        StartTime::Now | StartTime::At(_) => None,
    };
    end.object["spec"]["action"] == "Apply" && refusal(end).or(of_time) == Some(reason)
}

/// Whether an item that reboots nodes is not written because its window is closed.
fn waits_for_window(end: &End<'_>, item: &Item) -> bool {
    let reboots = item.impact_detail.as_ref().is_some_and(|detail| detail.reboot);
    reboots && item.applied_fingerprint.is_none() && matches!(start(end), StartTime::At(_))
}

fn is_drifted(item: &Item, plan: &Plan) -> bool {
    let live = plan.facts.target(&item.target_ref).flatten();
    item.applied_fingerprint.as_ref().is_some_and(|baseline| *baseline != drift::fingerprint(item, live))
}

/// Whether the worker pool does not run what an item has applied.
fn is_on_its_way(cluster: &ModelCluster, item: &Item) -> bool {
    let get = |plural: &str, name: &str| cluster.store.get(&Key::new(named(plural), "", name)).cloned();
    let pool = get("machineconfigpools", "worker");
    let rendered =
        pool.as_ref().and_then(|pool| get("machineconfigs", pool.pointer("/status/configuration/name")?.as_str()?));
    let desired = item.desired_state.as_ref().filter(|_| item.target_ref.kind == "MachineConfig");
    rendered.zip(desired).is_some_and(|(rendered, desired)| {
        rendered_config::content(&rendered, None, &json!(desired)) == rendered_config::Content::Missing
    })
}

/// Whether a plan that is made now has the same item.
fn is_planned(item: &Item, plan: &Plan) -> bool {
    plan.items.iter().any(|planned| {
        let new = &planned.item;
        (&new.name, &new.target_ref, new.operation, &new.desired_state, &new.removes)
            == (&item.name, &item.target_ref, item.operation, &item.desired_state, &item.removes)
    })
}

/// Whether the operator reverts drift by itself.
fn is_aggressive(end: &End<'_>) -> bool {
    let spec = &end.object["spec"];
    spec["action"] == "Apply" && spec["bypassOptimisticLock"] == true && refusal(end).is_none()
}

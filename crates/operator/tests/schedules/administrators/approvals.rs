//! Administrators who decide about a plan: they approve it, at once or for a time, reject it, or ask for the way back.

use http::Method;
use serde_json::{Value, json};

use super::{configure, profile};
use crate::{api::kinds::RECORDS, cluster::Server, random::Random};

/// The digest of the current plan, another one, or none.
fn digest(server: &Server, profile: &str, random: &mut Random) -> Value {
    let current = server.cluster().config(profile).map(|config| config["status"]["planDigest"].clone());
    match random.below(5) {
        0 => "0".repeat(64).into(),
        1 | 2 => current.unwrap_or_default(),
        _ => Value::Null,
    }
}

/// An approval with these members and no others: a merge patch would keep the others.
fn approval(members: Value) -> Value {
    let mut approval = json!({
        "planDigest": null, "mode": null, "notBefore": null, "notAfter": null, "window": null, "rejected": null,
        "acceptedItems": null, "acceptedRisks": null,
    });
    if let (Some(all), Value::Object(members)) = (approval.as_object_mut(), members) {
        all.extend(members);
    }
    approval
}

/// The names of the items whose targets somebody has changed since, with half of the approvals.
fn accepted(server: &Server, profile: &str, random: &mut Random) -> Value {
    let config = server.cluster().config(profile).cloned();
    let items = config.iter().flat_map(|config| config["status"]["items"].as_array().into_iter().flatten());
    let changed = items.filter(|item| item["changedSince"].is_array());
    let names: Vec<Value> = changed.map(|item| item["name"].clone()).collect();
    if names.is_empty() || random.permille(500) { Value::Null } else { names.into() }
}

/// The names of the risks of the plan, with half of the approvals.
fn accepted_risks(server: &Server, profile: &str, random: &mut Random) -> Value {
    let config = server.cluster().config(profile).cloned();
    let risks = config.iter().flat_map(|config| config["status"]["risks"].as_array().into_iter().flatten());
    let names: Vec<Value> = risks.map(|risk| risk["name"].clone()).collect();
    if names.is_empty() || random.permille(500) { Value::Null } else { names.into() }
}

pub(super) fn approve(server: &Server, random: &mut Random) {
    let profile = profile(random);
    let mode = *random.pick(&[None, None, None, None, Some("Immediate"), Some("Reviewed")]);
    let members = json!({
        "planDigest": digest(server, profile, random), "mode": mode, "acceptedItems": accepted(server, profile, random),
        "acceptedRisks": accepted_risks(server, profile, random),
    });
    let policy = *random.pick(&["Abort", "Abort", "Continue"]);
    let wait = *random.pick(&[None, None, None, Some("2m")]);
    let bypass = random.permille(250);
    let spec = json!({
        "action": "Apply", "approval": approval(members), "bypassOptimisticLock": bypass, "failurePolicy": policy,
        "waitTimeout": wait,
    });
    configure(server, profile, spec);
}

/// Approves a plan for a time: from a time on, until a time, or in the hours of a window.
pub(super) fn schedule(server: &Server, random: &mut Random) {
    let profile = profile(random);
    const FAR: i64 = 10 * 24 * 3600;
    let from = *random.pick(&[None, Some(-600), Some(20), Some(90), Some(400), Some(FAR)]);
    let until = *random.pick(&[None, None, Some(15), Some(60), Some(300)]);
    let until = until.map(|seconds| from.filter(|from| *from > 0).unwrap_or_default() + seconds);
    // A run begins at midnight of a Thursday in UTC, and lasts less than five hours.
    let windows = [
        json!({"start": "00:00", "duration": "24h"}),
        json!({"start": "00:05", "duration": "3m"}),
        json!({"start": "00:10", "duration": "30m", "days": ["Thursday", "Friday"]}),
        json!({"start": "01:20", "duration": "1h", "timeZone": "Europe/Berlin"}),
        json!({"start": "22:00", "duration": "1h", "days": ["Sunday"], "timeZone": "America/New_York"}),
        json!({"start": "22:00", "duration": "1h", "timeZone": "Nowhere/None"}),
    ];
    let window = if random.permille(400) { random.pick(&windows).clone() } else { Value::Null };
    let members = json!({
        "planDigest": digest(server, profile, random), "window": window,
        "notBefore": from.map(|seconds| server.time_in(seconds)),
        "notAfter": until.map(|seconds| server.time_in(seconds)),
        "acceptedItems": accepted(server, profile, random),
    });
    configure(server, profile, json!({"action": "Apply", "approval": approval(members)}));
}

pub(super) fn reject(server: &Server, random: &mut Random) {
    let profile = profile(random);
    let rejected = match digest(server, profile, random) {
        Value::Null => Value::Null,
        digest => json!({"planDigest": digest, "reason": "not before the audit"}),
    };
    configure(server, profile, json!({"approval": {"rejected": rejected}}));
}

/// Asks for the way back, with half of the edits under an approval that holds already.
pub(super) fn restore(server: &Server, random: &mut Random) {
    let profile = profile(random);
    let names: Vec<String> = {
        let cluster = server.cluster();
        let records = cluster.store.list(RECORDS).map(|(key, _)| key.name.clone());
        records.filter(|name| name.starts_with(profile)).collect()
    };
    let record = match random.below(8) {
        0 => format!("{profile}-99"),
        1..=3 if !names.is_empty() => random.pick(&names).clone(),
        _ => "original".to_owned(),
    };
    let mut spec = json!({"restore": {"record": record}});
    if random.permille(500) {
        spec["action"] = (*random.pick(&["DryRun", "Apply"])).into();
    }
    configure(server, profile, spec);
}

pub(super) fn stop_restoring(server: &Server, random: &mut Random) {
    configure(server, profile(random), json!({"restore": null}));
}

/// Deletes a record, as people with all rights can.
pub(super) fn delete_record(server: &Server, random: &mut Random) {
    let names: Vec<String> = server.cluster().store.list(RECORDS).map(|(key, _)| key.name.clone()).collect();
    if !names.is_empty() {
        let uri = format!("/apis/advisor.kubevirt.io/v1alpha1/{RECORDS}/{}", random.pick(&names));
        server.request_as("admin", Method::DELETE, &uri, "", &Value::Null);
    }
}

//! The validation rules that the operator relies on: nobody changes what a record says about a plan, nor how the plan ended.

use api::{virt_platform_config::Profile, virt_platform_plan_record::number};
use serde_json::Value;

use super::kinds::{RECORDS, Resource};

/// The rule that a new or changed object breaks. A rule that compares with the stored object is not applied to a new one.
pub(super) fn broken(resource: &Resource, old: Option<&Value>, new: &Value) -> Option<&'static str> {
    if resource.plural != RECORDS {
        return None;
    }
    let profile = serde_json::from_value::<Profile>(new["spec"]["profile"].clone()).ok();
    let name = new["metadata"]["name"].as_str().unwrap_or_default();
    if profile.and_then(|profile| number(profile, name)).is_none_or(|number| number == 0) {
        return Some("spec.profile: the name of a record must be its profile, a dash and a number");
    }
    let old = old?;
    if old["spec"] != new["spec"] {
        return Some("spec: a record is immutable: its spec cannot be changed");
    }
    let is_final = old["status"]["finishedAt"].is_string();
    (is_final && old["status"] != new["status"]).then_some("status: the plan has finished: its record is final")
}

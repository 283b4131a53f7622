//! Applies plans with their records, and restores what they changed.

use api::{
    VirtPlatformConfig, VirtPlatformConfigSpec, VirtPlatformConfigStatus, VirtPlatformPlanRecord,
    virt_platform_config::{Profile as ProfileName, RecordRef, Restore},
    virt_platform_plan_record::name,
};
use k8s_openapi::jiff::Timestamp;
use serde_json::json;

use super::TestCluster;
use crate::{Plan, Planner, Verb, profiles, record::plan_record, restore};

/// The profile of this name, as a spec names it.
fn named(profile: &str) -> ProfileName {
    *ProfileName::ALL.iter().find(|known| known.as_str() == profile).unwrap()
}

/// The record of a plan.
pub fn recorded(plan: &Plan, number: u32) -> VirtPlatformPlanRecord {
    let profile = named(plan.profile);
    let reference = RecordRef { name: name(profile, number), plan_digest: plan.digest.clone(), created: false };
    let mut config = VirtPlatformConfig::new(plan.profile, VirtPlatformConfigSpec::new(profile));
    config.status = Some(VirtPlatformConfigStatus { record: Some(reference), ..VirtPlatformConfigStatus::default() });
    plan_record(&config, plan, "v1", Timestamp::UNIX_EPOCH).unwrap()
}

/// Plans to restore the state before a record.
pub fn restoring(profile: &str, record: &str) -> Box<dyn Planner> {
    let mut spec = VirtPlatformConfigSpec::new(named(profile));
    spec.restore = Some(Restore { record: record.to_owned() });
    restore::planner(profiles::find(profile).unwrap(), &spec).unwrap()
}

impl TestCluster {
    /// Applies a whole plan, after its record.
    pub fn apply_recorded(&mut self, plan: &Plan, number: u32) {
        self.put(json!(recorded(plan, number)));
        for planned in plan.items.iter().filter(|planned| !matches!(planned.verb, Verb::Unchanged | Verb::Refused)) {
            self.carry_out(planned);
        }
    }

    /// The plan that restores the state before a record.
    pub fn restore_plan(&self, profile: &str, record: &str) -> Plan {
        self.plan_by(profiles::find(profile).unwrap().about(), restoring(profile, record).as_ref())
    }
}

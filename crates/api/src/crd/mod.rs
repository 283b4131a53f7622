//! The CustomResourceDefinitions, and their committed files. The derived schemas are cleaned up, so that they read and behave like
//! hand-written ones.

mod reference;
mod tidy;
mod yaml;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

use crate::{VirtPlatformConfig, VirtPlatformPlanRecord, VirtualMachine};

pub use yaml::yaml;

/// The definition of VirtPlatformConfig.
pub fn virt_platform_config() -> CustomResourceDefinition {
    tidy::tidied(VirtPlatformConfig::crd())
}

/// The definition of VirtPlatformPlanRecord.
pub fn virt_platform_plan_record() -> CustomResourceDefinition {
    tidy::tidied_record(VirtPlatformPlanRecord::crd())
}

/// The definition of VirtualMachine.
pub fn virtual_machine() -> CustomResourceDefinition {
    tidy::tidied(VirtualMachine::crd())
}

/// All definitions, ready to be installed.
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![virt_platform_config(), virt_platform_plan_record(), virtual_machine()]
}

/// The generated files: path from the root of the repository, and content.
pub fn files() -> Vec<(&'static str, String)> {
    vec![
        ("config/crd/advisor.kubevirt.io_virtplatformconfigs.yaml", yaml(&virt_platform_config())),
        ("config/crd/advisor.kubevirt.io_virtplatformplanrecords.yaml", yaml(&virt_platform_plan_record())),
        ("config/crd/simulation.node-classifier.io_virtualmachines.yaml", yaml(&virtual_machine())),
        ("docs/api.md", reference::reference(&crds())),
    ]
}

#[cfg(test)]
mod tests;

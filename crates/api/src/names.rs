//! Names that several programs use. They are visible to users: changing one would orphan objects and field ownership in existing
//! clusters.

/// API group of [`VirtPlatformConfig`](crate::VirtPlatformConfig).
pub const ADVISOR_GROUP: &str = "advisor.kubevirt.io";

/// API group of the lab's [`VirtualMachine`](crate::VirtualMachine).
pub const SIMULATION_GROUP: &str = "simulation.node-classifier.io";

/// The one version both groups serve and store.
pub const VERSION: &str = "v1alpha1";

/// Field manager of the operator's writes to its own kind. In earlier versions it was also the one of all profiles, and objects that
/// were applied then keep it.
pub const FIELD_MANAGER: &str = "virt-advisor-operator";

/// Field manager of every server-side apply for one profile. It owns the managed fields, so the reviewed dry run and the apply must use
/// the same one.
pub fn field_manager(profile: &str) -> String {
    format!("{FIELD_MANAGER}/{profile}")
}

/// Annotation with one sentence on what the profile does.
pub const DESCRIPTION_ANNOTATION: &str = "advisor.kubevirt.io/description";

/// Annotation with the disruption an administrator should expect from the profile.
pub const IMPACT_SUMMARY_ANNOTATION: &str = "advisor.kubevirt.io/impact-summary";

/// Annotation, `"true"` on objects that the operator created to advertise a profile.
pub const AUTO_CREATED_ANNOTATION: &str = "advisor.kubevirt.io/auto-created";

/// Label of a record: the profile whose plan it is.
pub const PROFILE_LABEL: &str = "advisor.kubevirt.io/profile";

/// Label that groups profiles by what they tune, for example `scheduling` or `density`.
pub const CATEGORY_LABEL: &str = "advisor.kubevirt.io/category";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{VirtPlatformConfig, VirtualMachine, bounds, virt_platform_config::Profile};
    use kube::Resource;

    #[test]
    fn the_derived_kinds_use_the_shared_group_names() {
        assert_eq!(VirtPlatformConfig::group(&()), ADVISOR_GROUP);
        assert_eq!(VirtualMachine::group(&()), SIMULATION_GROUP);
        assert_eq!(VirtPlatformConfig::version(&()), VERSION);
        assert_eq!(VirtualMachine::version(&()), VERSION);
    }

    #[test]
    fn every_profile_has_a_field_manager_of_its_own_that_kubernetes_takes() {
        for profile in Profile::ALL {
            let manager = field_manager(profile.as_str());
            assert!(manager.len() <= bounds::MANAGER && manager != FIELD_MANAGER, "{manager}");
            assert!(manager.ends_with(profile.as_str()), "{manager}");
        }
    }
}

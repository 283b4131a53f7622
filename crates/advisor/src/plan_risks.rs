//! Risks that show in the items of a plan, whatever the profile.

use api::virt_platform_config::{Item, Risk, TakeOver};

use crate::intent::risk;

pub(crate) const TAKES_OVER_FIELDS: &str = "TakesOverFields";
pub(crate) const TAKES_OVER: &str =
    "Others manage these fields now. If they keep applying their own values, both overwrite each other";

pub(crate) const REBOOTS_CONTROL_PLANE: &str = "RebootsControlPlane";
/// The pool of the control plane, in every OpenShift cluster.
pub(crate) const CONTROL_PLANE_POOL: &str = "master";

/// The risks of a plan with these items.
pub(crate) fn of_items<'a>(items: impl Iterator<Item = &'a Item> + Clone) -> Vec<Risk> {
    let taken = taken_over(items.clone());
    let takes_over =
        (!taken.is_empty()).then(|| risk(TAKES_OVER_FIELDS, format!("{TAKES_OVER}: {}", taken.join("; "))));
    let mut rebooted = items.filter_map(|item| item.impact_detail.as_ref()).filter(|detail| detail.reboot);
    let reboots = rebooted.any(|detail| detail.pools.iter().any(|pool| pool.name == CONTROL_PLANE_POOL));
    let reboots = reboots.then(|| {
        risk(
            REBOOTS_CONTROL_PLANE,
            format!("Nodes of the control plane reboot: MachineConfigPool {CONTROL_PLANE_POOL}"),
        )
    });
    takes_over.into_iter().chain(reboots).collect()
}

/// Which fields change hands, object by object and manager by manager.
pub(crate) fn taken_over<'a>(items: impl Iterator<Item = &'a Item>) -> Vec<String> {
    let of_item = |item: &Item| {
        let target = format!("{} {}", item.target_ref.kind, item.target_ref.name);
        let told = |by: &TakeOver| format!("{target}: {} from {}", by.fields.join(", "), by.manager);
        item.takes_over.iter().map(told).collect::<Vec<_>>()
    };
    items.flat_map(of_item).collect()
}

#[cfg(test)]
mod tests {
    use api::virt_platform_config::{ImpactDetail, PoolImpact, TargetRef};

    use super::*;

    fn item(reboot: bool, pool: &str, takes_over: &[(&str, &[&str])]) -> Item {
        let pool = PoolImpact { name: pool.into(), ..PoolImpact::default() };
        let take_over = |(manager, fields): &(&str, &[&str])| TakeOver {
            manager: (*manager).into(),
            fields: fields.iter().map(|field| (*field).to_owned()).collect(),
        };
        Item {
            target_ref: TargetRef { kind: "KubeDescheduler".into(), name: "cluster".into(), ..TargetRef::default() },
            impact_detail: Some(ImpactDetail { reboot, pools: vec![pool] }),
            takes_over: takes_over.iter().map(take_over).collect(),
            ..Item::default()
        }
    }

    #[test]
    fn the_control_plane_counts_only_if_it_reboots() {
        let names = |item: Item| of_items([&item].into_iter()).into_iter().map(|risk| risk.name).collect::<Vec<_>>();
        assert_eq!(names(item(true, "master", &[])), [REBOOTS_CONTROL_PLANE]);
        assert_eq!(names(item(false, "master", &[])), [] as [&str; 0]);
        assert_eq!(names(item(true, "worker", &[])), [] as [&str; 0]);
    }

    #[test]
    fn fields_that_change_hands_are_named_with_who_has_them_now() {
        let item = item(false, "worker", &[("helm", &["spec.mode", "spec.profiles"]), ("kubectl-edit", &["spec.x"])]);
        let risks = of_items([&item].into_iter());
        let expected = "KubeDescheduler cluster: spec.mode, spec.profiles from helm; KubeDescheduler cluster: spec.x from \
                        kubectl-edit";
        assert_eq!(risks, [risk(TAKES_OVER_FIELDS, format!("{TAKES_OVER}: {expected}"))]);
    }
}

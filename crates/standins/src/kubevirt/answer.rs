//! What KubeVirt's webhook answers to the eviction of a pod. KubeVirt's own words, because tools look for them.

use kube::{ResourceExt, api::DynamicObject};

use super::{
    instance_view::InstanceView,
    launcher::{DOMAIN, Launcher},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Allow,
    /// 429, with this message.
    Deny(String),
    /// The guest is to leave this node: its VirtualMachineInstance is marked, and the eviction is denied with this message.
    Evacuate {
        node: String,
        message: String,
    },
}

/// The name of the guest in a pod. None for pods without one, and for pods that have ended.
pub(super) fn guest_in(pod: &DynamicObject) -> Option<&str> {
    let is_launcher = pod.labels().get("kubevirt.io").is_some_and(|value| value == "virt-launcher");
    let has_ended =
        ["Succeeded", "Failed"].iter().any(|phase| pod.data.pointer("/status/phase").is_some_and(|it| it == phase));
    pod.annotations().get(DOMAIN).filter(|_| is_launcher && !has_ended).map(String::as_str)
}

/// The answer to the eviction of a guest's pod. `strategy` is that of KubeVirt.
pub(super) fn answer(pod: &DynamicObject, instance: &DynamicObject, strategy: Option<&str>) -> Answer {
    let (pod, guest) = (Launcher(pod), InstanceView(instance));
    let key = guest.key();
    let evacuation = format!("Eviction triggered evacuation of VMI \"{}/{}\"", key.namespace, key.name);
    match (guest.strategy(strategy), guest.is_migratable()) {
        ("LiveMigrate", false) => {
            Answer::Deny(format!("VMI {} is configured with an eviction strategy but is not live-migratable", key.name))
        }
        ("LiveMigrate" | "LiveMigrateIfPossible", true) | ("External", _) => match (guest.evacuation(), pod.node()) {
            (Some(_), _) => Answer::Deny(format!("Evacuation in progress: {evacuation}")),
            (None, node) if node != guest.node() => Answer::Deny("Eviction request for target Pod".to_owned()),
            (None, node) => Answer::Evacuate { node: node.unwrap_or_default().to_owned(), message: evacuation },
        },
        _ => Answer::Allow,
    }
}

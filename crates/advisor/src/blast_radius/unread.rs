//! What could not be read, and what is not known because of that.

use serde::Serialize;

use super::{Observed, Reading};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Unread {
    pub what: &'static str,
    pub why: String,
    /// What is not known without it.
    pub consequence: &'static str,
}

pub(super) fn unread(observed: &Observed) -> Vec<Unread> {
    let mut found = Vec::new();
    let mut check = |what: &'static str, why: Option<&str>, consequence: &'static str| {
        found.extend(why.map(|why| Unread { what, why: why.to_owned(), consequence }));
    };
    check("MachineConfigPools", why(&observed.pools), "which nodes reboot, and how many at a time");
    check("Nodes", why(&observed.nodes), "which nodes reboot, and in which order");
    check("VirtualMachineInstances", why(&observed.instances), "which virtual machines are on these nodes");
    check("VirtualMachines", why(&observed.machines), "whether a guest that is shut down is started again");
    check("KubeVirt", why(&observed.platform), "its eviction strategy, and how many migrations run at a time");
    check("VirtualMachineInstanceMigrations", why(&observed.migrations), "how long migrations took");
    check("Pods", why(&observed.pods), "what is free on other nodes, and which pods a budget covers");
    check("PodDisruptionBudgets", why(&observed.budgets), "which other pods hold a drain up");
    check("Events", why(&observed.reboots), "how long reboots took");
    check("InFlightOperations", why(&observed.operations), "what else is going on");
    found
}

fn why<T>(reading: &Reading<T>) -> Option<&str> {
    match reading {
        Reading::Unreadable(why) => Some(why),
        Reading::Read(_) | Reading::NotServed => None,
    }
}

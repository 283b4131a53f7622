//! At what rate VMs write to their memory: an annotation of those that differ from what is usual in the lab.

use std::collections::BTreeMap;

use api::VirtualMachine;
use futures::{StreamExt, TryStreamExt, stream};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::json;
use sim::{ClusterModel, units::Rate};

use super::doing;
use crate::{launcher, up::Error, vm};

const AT_ONCE: usize = 16;

/// Tells the VMs of a world at what rate they write. Returns how many had to be told.
pub async fn set_dirty_rates(client: &Client, world: &ClusterModel) -> Result<usize, Error> {
    let vms: Api<VirtualMachine> = Api::default_namespaced(client.clone());
    let there = vms.list_metadata(&ListParams::default()).await.map_err(doing("listing VirtualMachines".into()))?;
    let said: BTreeMap<String, Option<String>> =
        there.iter().map(|vm| (vm.name_any(), vm.annotations().get(launcher::DIRTY_RATE).cloned())).collect();
    let changes = changes(world, &said);
    let count = changes.len();
    let tell = |(name, rate): (String, Option<String>)| {
        let vms = vms.clone();
        async move {
            let patch = Patch::Merge(json!({"metadata": {"annotations": {launcher::DIRTY_RATE: rate}}}));
            let told = vms.patch_metadata(&name, &PatchParams::default(), &patch).await;
            told.map(drop).map_err(doing(format!("annotating VirtualMachine {name}")))
        }
    };
    stream::iter(changes).map(tell).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    Ok(count)
}

/// The annotations to set or remove, given those that the VMs have.
fn changes(world: &ClusterModel, said: &BTreeMap<String, Option<String>>) -> Vec<(String, Option<String>)> {
    let usual = vm::VmControllerSettings::default().dirty_rate;
    let wanted = |vm: u32| Some(world.dirty_rate(vm)).filter(|rate| *rate != usual).map(megabits);
    let all = (0..world.vm_count() as u32).map(|vm| (world.vm_name(vm), wanted(vm)));
    all.filter(|(name, rate)| said.get(name).is_some_and(|said| said != rate)).collect()
}

fn megabits(rate: Rate) -> String {
    (rate.0 as f64 / 1e6).to_string()
}

#[cfg(test)]
mod tests {
    use sim::scenario::parse;

    use super::*;

    #[test]
    fn vms_that_write_at_another_rate_are_told_once_and_others_lose_what_they_were_told_before() {
        let text = "{name: t, nodes: [{name: n}], vms: [{name: fast, dirtyRate: 3Gbps}, {name: slow, dirtyRate: 500kbps}, \
                    {name: usual}, {name: gone, dirtyRate: 1Gbps}]}";
        let world = ClusterModel::new(&parse(text).unwrap()[0]).unwrap();
        let said = |pairs: [(&str, Option<&str>); 3]| {
            pairs.map(|(name, rate)| (name.to_owned(), rate.map(str::to_owned))).into_iter().collect::<BTreeMap<_, _>>()
        };
        let found = changes(&world, &said([("fast", None), ("slow", Some("9")), ("usual", Some("7"))]));
        let expected = [("fast", Some("3000")), ("slow", Some("0.5")), ("usual", None)];
        assert_eq!(found, expected.map(|(name, rate)| (name.to_owned(), rate.map(str::to_owned))));
        assert_eq!(changes(&world, &said([("fast", Some("3000")), ("slow", Some("0.5")), ("usual", None)])), []);
    }
}

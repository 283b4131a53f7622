//! The rates at which VMs write to their memory: an annotation of the VMs that differ from the default of the lab.

use std::collections::BTreeMap;

use api::VirtualMachine;
use futures::{StreamExt, TryStreamExt, stream};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::json;
use sim::{ClusterModel, units::Rate};

use super::CONCURRENCY;
use crate::{Error, error::Context, launcher, vm};

/// Annotates the VMs of a cluster model. Returns how many annotations changed.
pub(super) async fn set_dirty_rates(client: &Client, model: &ClusterModel) -> Result<usize, Error> {
    let vms: Api<VirtualMachine> = Api::default_namespaced(client.clone());
    let existing = vms.list_metadata(&ListParams::default()).await.context(|| "listing VirtualMachines".into())?;
    let current: BTreeMap<String, Option<String>> =
        existing.iter().map(|vm| (vm.name_any(), vm.annotations().get(launcher::DIRTY_RATE).cloned())).collect();
    let changes = changes(model, &current);
    let count = changes.len();
    let annotate = |(name, rate): (String, Option<String>)| {
        let vms = vms.clone();
        async move {
            let patch = Patch::Merge(json!({"metadata": {"annotations": {launcher::DIRTY_RATE: rate}}}));
            let patched = vms.patch_metadata(&name, &PatchParams::default(), &patch).await;
            patched.map(drop).context(|| format!("annotating VirtualMachine {name}"))
        }
    };
    stream::iter(changes).map(annotate).buffer_unordered(CONCURRENCY).try_collect::<()>().await?;
    Ok(count)
}

/// The annotations to set or remove, given those that the VMs have.
fn changes(model: &ClusterModel, current: &BTreeMap<String, Option<String>>) -> Vec<(String, Option<String>)> {
    let default = vm::VmControllerSettings::default().dirty_rate;
    let wanted = |vm: u32| Some(model.dirty_rate(vm)).filter(|rate| *rate != default).map(megabits);
    let all = (0..model.vm_count() as u32).map(|vm| (model.vm_name(vm), wanted(vm)));
    all.filter(|(name, rate)| current.get(name).is_some_and(|current| current != rate)).collect()
}

fn megabits(rate: Rate) -> String {
    (rate.0 as f64 / 1e6).to_string()
}

#[cfg(test)]
mod tests {
    use sim::scenario::parse;

    use super::*;

    #[test]
    fn vms_that_write_at_another_rate_are_annotated_once_and_others_lose_their_annotation() {
        let text = "{name: t, nodes: [{name: n}], vms: [{name: fast, dirtyRate: 3Gbps}, {name: slow, dirtyRate: 500kbps}, \
                    {name: usual}, {name: gone, dirtyRate: 1Gbps}]}";
        let model = ClusterModel::new(&parse(text).unwrap()[0]).unwrap();
        let current = |pairs: [(&str, Option<&str>); 3]| {
            pairs.map(|(name, rate)| (name.to_owned(), rate.map(str::to_owned))).into_iter().collect::<BTreeMap<_, _>>()
        };
        let found = changes(&model, &current([("fast", None), ("slow", Some("9")), ("usual", Some("7"))]));
        let expected = [("fast", Some("3000")), ("slow", Some("0.5")), ("usual", None)];
        assert_eq!(found, expected.map(|(name, rate)| (name.to_owned(), rate.map(str::to_owned))));
        assert_eq!(changes(&model, &current([("fast", Some("3000")), ("slow", Some("0.5")), ("usual", None)])), []);
    }
}

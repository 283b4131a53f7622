//! A line per node while a pool is updated: in place on a terminal, one line per change elsewhere.

use std::{
    collections::BTreeMap,
    future::Future,
    io::{IsTerminal, Write},
    time::{Duration, Instant},
};

use anyhow::Context;
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams},
    core::GroupVersionKind,
};
use standins::machine_config::names;

const POLL: Duration = Duration::from_millis(100);
const TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until the worker pool has all of its nodes and is updated.
pub(super) async fn at_rest(client: &Client, nodes: usize) -> anyhow::Result<()> {
    let kind = GroupVersionKind::gvk("machineconfiguration.openshift.io", "v1", "MachineConfigPool");
    let pools: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&kind));
    let rested = async {
        loop {
            let status = pools.get("worker").await?.data["status"].clone();
            if ["machineCount", "updatedMachineCount", "readyMachineCount"].iter().all(|count| status[count] == nodes) {
                return anyhow::Ok(());
            }
            tokio::time::sleep(POLL).await;
        }
    };
    tokio::time::timeout(TIMEOUT, rested).await.context("the worker pool did not settle")?
}

/// Shows the nodes until `end`.
pub(super) async fn follow(client: &Client, end: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let mut lines = Lines { in_place: std::io::stdout().is_terminal(), start: Instant::now(), shown: BTreeMap::new() };
    let watched = async {
        let nodes: Api<Node> = Api::all(client.clone());
        let mut before = BTreeMap::new();
        loop {
            let now = nodes.list(&ListParams::default()).await?;
            let first = before.is_empty();
            for node in &now {
                let target = annotation(node, names::DESIRED_CONFIG);
                if first {
                    before.insert(node.name_any(), annotation(node, names::CURRENT_CONFIG));
                }
                let done =
                    annotation(node, names::CURRENT_CONFIG) == target && before.get(&node.name_any()) != Some(&target);
                lines.set(&node.name_any(), state(node, done));
            }
            lines.show(lines.start.elapsed())?;
            tokio::time::sleep(POLL).await;
        }
    };
    println!();
    tokio::select! {
        ended = end => ended?,
        watched = watched => return watched,
    }
    // The last node is updated a moment before the plan is completed.
    lines.finish()
}

fn annotation(node: &Node, name: &str) -> String {
    node.annotations().get(name).cloned().unwrap_or_default()
}

/// What happens to a node, as a sign and a word.
fn state(node: &Node, done: bool) -> &'static str {
    let cordoned = node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or_default();
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let ready = conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True");
    match (done, ready, cordoned) {
        (true, true, false) => UPDATED,
        (true, ..) => "[####.] coming back",
        (false, false, _) => "[###..] rebooting",
        (false, true, true) => "[##...] cordoned, draining",
        (false, true, false) => "[.....] waiting",
    }
}

const UPDATED: &str = "[#####] updated";

struct Lines {
    in_place: bool,
    start: Instant,
    shown: BTreeMap<String, (&'static str, bool)>,
}

impl Lines {
    fn set(&mut self, node: &str, state: &'static str) {
        let changed = self.shown.get(node).is_none_or(|(known, _)| *known != state);
        let entry = self.shown.entry(node.to_owned()).or_insert((state, true));
        *entry = (state, entry.1 || changed);
    }

    fn finish(&mut self) -> anyhow::Result<()> {
        let nodes: Vec<String> = self.shown.keys().cloned().collect();
        nodes.iter().for_each(|node| self.set(node, UPDATED));
        Ok(self.show(self.start.elapsed())?)
    }

    fn show(&mut self, elapsed: Duration) -> std::io::Result<()> {
        let changed = self.shown.values().any(|(_, changed)| *changed);
        let first = self.shown.values().all(|(_, changed)| *changed);
        let mut out = std::io::stdout().lock();
        if self.in_place && changed && !first {
            write!(out, "\x1b[{}A", self.shown.len())?;
        }
        for (node, (state, changed_line)) in &mut self.shown {
            if self.in_place && changed {
                writeln!(out, "\x1b[2K{node}  {state}")?;
            } else if *changed_line {
                writeln!(out, "{:>5.1} s  {node}  {state}", elapsed.as_secs_f64())?;
            }
            *changed_line = false;
        }
        out.flush()
    }
}

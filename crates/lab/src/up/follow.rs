//! A scenario's load on a running lab: its VMs, and what they use as time goes by.

use api::VirtualMachine;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::json;
use sim::{ClusterModel, LoadTimeline};

use super::{Error, Guest, Placement, error::Doing, population::ratio};

/// A change that is smaller is not worth a write: the descheduler counts in whole percent of a node.
const VISIBLE: f64 = 0.02;
/// How many VMs are edited at a time.
const AT_ONCE: usize = 16;

/// A world that is being played on a lab.
#[derive(Debug)]
pub struct Follower<'w> {
    world: &'w ClusterModel,
    loads: LoadTimeline<'w>,
    /// What each VM was told last.
    told: Vec<[f64; 2]>,
}

impl<'w> Follower<'w> {
    /// At the beginning; nothing has been told yet.
    pub fn new(world: &'w ClusterModel, seed: u64) -> Self {
        let loads = LoadTimeline::new(world, seed);
        let told = loads.shares().to_vec();
        Follower { world, loads, told }
    }

    /// The VMs with what they use at first. The world's first node is the first of `rooms`, and so on.
    pub fn placement(&self, rooms: &[Room]) -> Result<Placement, Error> {
        let scenario = self.world.name();
        let mut asked = vec![0; rooms.len()];
        let mut guests = Vec::new();
        for (vm, shares) in (0..).zip(&self.told) {
            let sim::Vm { name, cores, memory_bytes, node } = self.world.vm(vm);
            if let Some(node) = node {
                let Some(asked) = asked.get_mut(node as usize) else {
                    let (wanted, found) = (self.world.node_count(), rooms.len());
                    return Err(Error::Asset(format!(
                        "scenario {scenario} has {wanted} nodes and the lab {found}: start it with --nodes {wanted}"
                    )));
                };
                *asked += memory_bytes;
            }
            let home = node.and_then(|node| rooms.get(node as usize)).map(|room| room.name.clone());
            let [cpu_use, memory_use] = *shares;
            guests.push((Guest { name, cores, memory_bytes, cpu_use, memory_use }, home));
        }
        let gibibytes = |bytes: u64| bytes.div_ceil(1 << 30);
        for (room, asked) in rooms.iter().zip(asked) {
            if asked > room.memory_bytes {
                return Err(Error::Asset(format!(
                    "scenario {scenario} puts VMs of {}Gi on {}, which has {}Gi: start the lab with --memory {}Gi",
                    gibibytes(asked),
                    room.name,
                    room.memory_bytes >> 30,
                    gibibytes(asked).next_power_of_two()
                )));
            }
        }
        Ok(Placement(guests))
    }

    /// The VMs whose use at a step differs visibly from what they were told last, which is this from now on.
    pub fn changes(&mut self, step: u64) -> Vec<(String, [f64; 2])> {
        self.loads.advance(step);
        let mut changes = Vec::new();
        for (vm, (told, now)) in (0..).zip(self.told.iter_mut().zip(self.loads.shares())) {
            if told.iter().zip(now).any(|(told, now)| (told - now).abs() >= VISIBLE) {
                *told = *now;
                changes.push((self.world.vm_name(vm), *now));
            }
        }
        changes
    }
}

impl Placement {
    /// Creates those VMs that are not there yet, each where it starts, and tells the others what they use. Returns how many
    /// were created.
    pub async fn join(self, client: &Client) -> Result<usize, Error> {
        let vms: Api<VirtualMachine> = Api::default_namespaced(client.clone());
        let there = vms.list(&ListParams::default()).await.doing(|| "listing VirtualMachines".into())?;
        let is_there = |name: &str| there.iter().any(|vm| vm.name_any() == name);
        let (old, new): (Vec<_>, Vec<_>) = self.0.into_iter().partition(|(guest, _)| is_there(&guest.name));
        let uses = old.into_iter().map(|(guest, _)| (guest.name, [Some(guest.cpu_use), Some(guest.memory_use)]));
        edit(client, uses.collect()).await?;
        let count = new.len();
        Placement(new).settle(client).await?;
        Ok(count)
    }
}

/// Sets what VMs use, as shares of their cores and their memory; what is not given stays.
pub async fn edit(client: &Client, uses: Vec<(String, [Option<f64>; 2])>) -> Result<(), Error> {
    let vms: Api<VirtualMachine> = Api::default_namespaced(client.clone());
    stream::iter(uses)
        .map(|(name, [cpu, memory])| {
            let vms = vms.clone();
            async move {
                let mut utilization = serde_json::Map::new();
                for (what, share) in [("cpu", cpu), ("memory", memory)] {
                    utilization.extend(share.map(|share| (what.to_owned(), json!(ratio(share)))));
                }
                let patch = Patch::Merge(json!({"spec": {"utilization": utilization}}));
                match vms.patch(&name, &PatchParams::default(), &patch).await {
                    // Somebody has deleted it, who then does not want it to be busy either.
                    Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
                    result => result.map(drop).doing(|| format!("setting the use of VirtualMachine {name}")),
                }
            }
        })
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await
}

/// A node, and how much fits on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    pub name: String,
    pub memory_bytes: u64,
}

/// The lab's nodes, in the order of their numbers.
pub async fn rooms(client: &Client) -> Result<Vec<Room>, Error> {
    let api: Api<Node> = Api::all(client.clone());
    let found = api.list(&ListParams::default()).await.doing(|| "listing nodes".into())?;
    let room = |node: &Node| {
        let size = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
        // The lab writes plain bytes.
        let memory = size.and_then(|size| size.get("memory")?.0.parse().ok());
        Room { name: node.name_any(), memory_bytes: memory.unwrap_or(u64::MAX) }
    };
    let mut rooms: Vec<Room> = found.iter().map(room).collect();
    rooms.sort_by_key(|room| by_number(&room.name));
    Ok(rooms)
}

/// Has `node-10` come after `node-9`.
pub(crate) fn by_number(name: &str) -> (String, u64, String) {
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (stem, number) = name.split_at(name.len() - digits);
    (stem.to_owned(), number.parse().unwrap_or(0), name.to_owned())
}

/// Whether a name is as a pattern says, where `*` is any text and `?` is any character.
pub fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut seen) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while seen < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, seen));
                at += 1;
            }
            Some(c) if *c == '?' || *c == name[seen] => (at, seen) = (at + 1, seen + 1),
            _ => match star {
                Some((before, until)) => {
                    star = Some((before, until + 1));
                    (at, seen) = (before + 1, until + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use sim::scenario::{parse, shipped};

    use super::*;

    fn world(text: &str) -> ClusterModel {
        ClusterModel::new(&parse(text).unwrap()[0]).unwrap()
    }

    #[test]
    fn patterns_are_those_of_a_shell() {
        for (pattern, name, expected) in [
            ("vm-0*", "vm-001", true),
            ("vm-0*", "vm-101", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*a*b", "xxaxxab", true),
            ("*a*b", "xxaxxa", false),
            ("vm", "vm-1", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn nodes_are_in_the_order_of_their_numbers() {
        let mut names = ["n-10", "n-9", "a", "n-1"];
        names.sort_by_key(|name| by_number(name));
        assert_eq!(names, ["a", "n-1", "n-9", "n-10"]);
    }

    #[test]
    fn only_visible_changes_are_told_and_small_ones_add_up() {
        let world = world(
            "{name: t, step: 1s, duration: 100s, nodes: [{name: n}], vms: [\
             {name: slow, cpu: {ramp: {from: 0, to: 1, start: 0s, end: 100s}}}, {name: still, cpu: 0.5}]}",
        );
        let mut follower = Follower::new(&world, 0);
        assert_eq!(follower.changes(1), []);
        assert_eq!(follower.changes(2).len(), 1, "two hundredths in two steps");
        let [(name, [cpu, _])] = &follower.changes(50)[..] else { panic!("one VM changes") };
        assert_eq!((name.as_str(), (cpu * 100.0).round()), ("slow", 50.0));
    }

    #[test]
    fn vms_start_on_the_node_with_the_same_number() {
        let world = ClusterModel::new(&shipped::find("hotspot").unwrap()).unwrap();
        let rooms = |count: u32, memory_bytes: u64| -> Vec<Room> {
            (1..=count).map(|number| Room { name: format!("kwok-node-{number}"), memory_bytes }).collect()
        };
        let follower = Follower::new(&world, 0);
        let placement = follower.placement(&rooms(8, 256 << 30)).unwrap();
        let (guest, home) = placement.0.iter().find(|(guest, _)| guest.name == "busy-1").unwrap();
        assert_eq!((guest.cores, guest.memory_bytes, guest.cpu_use), (4.0, 8 << 30, 0.1));
        assert_eq!(home.as_deref(), Some("kwok-node-3"));
        let problem = |rooms: &[Room]| follower.placement(rooms).unwrap_err().to_string();
        assert_eq!(
            problem(&rooms(5, 256 << 30)),
            "scenario hotspot has 8 nodes and the lab 5: start it with --nodes 8"
        );
        assert_eq!(
            problem(&rooms(8, 128 << 30)),
            "scenario hotspot puts VMs of 160Gi on kwok-node-3, which has 128Gi: start the lab with --memory 256Gi"
        );
    }
}

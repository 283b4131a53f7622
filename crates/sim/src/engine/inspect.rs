//! What a run tells about a VM: whether it waits for its migration, whether it stays after one, and where it could go.

use super::{Run, place};

/// Whether a VM could go to another node now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Destination {
    Possible,
    /// Labels, taints and cordons allow no other node.
    NotAllowed,
    /// On each allowed node is a VM from which it is kept apart.
    KeptApart,
    /// No allowed node has room for what it requests.
    NoRoom,
}

impl Run<'_> {
    /// The VMs that were evicted and whose migrations have not begun.
    pub fn waiting(&self) -> impl Iterator<Item = u32> {
        self.migrations.waiting.iter().map(|waiting| waiting.vm)
    }

    pub(crate) fn is_cooling_down(&self, vm: u32) -> bool {
        self.guard.is_cooling_down(vm, self.step)
    }

    pub(crate) fn destination_of(&self, vm: u32) -> Destination {
        let (group, request, source) = (self.model.group(vm), self.state.request(vm), self.state.node_of(vm));
        let class = &self.model.classes[group.class as usize];
        let mut best = Destination::NotAllowed;
        for node in self.state.slots().iter().copied().filter(|node| *node != source) {
            if !self.state.is_open(node) || !class.allows(node) {
                continue;
            }
            let apart = group
                .anti_affinity
                .is_some_and(|number| place::is_taken(self.model, &self.state, &self.migrations, number, node));
            if apart {
                best = if best == Destination::NotAllowed { Destination::KeptApart } else { best };
                continue;
            }
            let (size, requested) = (&self.model.nodes[node as usize], self.state.requested(node));
            let has_room = requested.memory + request.memory <= size.memory as u64
                && requested.cpu + request.cpu <= (size.cores * 1000.0) as u64
                && self.state.vm_count(node) < size.max_vms;
            if has_room {
                return Destination::Possible;
            }
            best = Destination::NoRoom;
        }
        best
    }
}

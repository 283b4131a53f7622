//! Evictions: by the rules of the reference, or by the rules of the real descheduler.

use balance::{
    Bucket, Semantics,
    descheduler::{self, Eviction, EvictionResponse, Limits, Pod},
};

use super::{
    Run,
    migrations::Waiting,
    place::{ATTEMPTS, has_room, random_under_utilized},
};
use crate::{
    history::Cause,
    rng::{Purpose, Rng},
    scenario::{MigrationModel, Placement},
};

/// The number of over-utilized nodes that are found without sorting all. More are needed only when VMs cannot leave.
const FIRST_SOURCES: usize = 8;

impl Run<'_> {
    pub(super) fn evict(&mut self) {
        if self.settings.placement == Placement::Scheduler && self.settings.soft_taints {
            self.placer.taint(&self.state, &self.buckets, self.model.nodes.len());
        }
        if self.settings.limits.total == 0 {
            return;
        }
        match self.settings.classifier.semantics {
            Semantics::Reference => self.evict_like_the_reference(),
            Semantics::Descheduler => self.evict_like_the_descheduler(),
        }
        self.start_waiting();
    }

    /// Moves random VMs from over-utilized nodes, by falling score, to random under-utilized nodes. The buckets do not
    /// change within the step.
    fn evict_like_the_reference(&mut self) {
        if self.buckets.count(Bucket::Over) == 0 || self.buckets.count(Bucket::Under) == 0 {
            if self.guard.holds_nodes() {
                self.sources_in_order();
            }
            return;
        }
        let mut rng = Rng::keyed(self.seed, Purpose::Decision, self.step, 0);
        let most = self.settings.limits.total;
        let mut moved = 0;
        if !self.guard.holds_nodes() {
            let (sources, found) = self.first_sources();
            for slot in &sources[..found] {
                moved += self.evict_from(*slot, most - moved, &mut rng);
                if moved >= most {
                    return;
                }
            }
            if self.buckets.count(Bucket::Over) <= FIRST_SOURCES {
                return;
            }
        }
        self.sources_in_order();
        let skip = if self.guard.holds_nodes() { 0 } else { FIRST_SOURCES };
        let sources = std::mem::take(&mut self.sources);
        for slot in sources.iter().skip(skip) {
            moved += self.evict_from(*slot, most - moved, &mut rng);
            if moved >= most {
                break;
            }
        }
        self.sources = sources;
    }

    /// The over-utilized nodes with the highest scores, in one pass. Of nodes with equal scores the first come first.
    fn first_sources(&self) -> ([usize; FIRST_SOURCES], usize) {
        const CHUNK: usize = 32;
        let mut best = [(f64::NEG_INFINITY, 0_usize); FIRST_SOURCES];
        let mut least = f64::NEG_INFINITY;
        for (number, chunk) in self.scores.values().chunks(CHUNK).enumerate() {
            // Most chunks have no better score. This check is vectorized.
            if !chunk.iter().fold(false, |any, score| any | (*score > least)) {
                continue;
            }
            for (at, score) in chunk.iter().enumerate() {
                if *score > least {
                    let position = best.partition_point(|(known, _)| *known >= *score);
                    best[position..].rotate_right(1);
                    best[position] = (*score, number * CHUNK + at);
                    least = best[FIRST_SOURCES - 1].0;
                }
            }
        }
        let buckets = self.buckets.of();
        let found = best.partition_point(|(score, slot)| *score >= 0.0 && buckets[*slot] == Bucket::Over);
        (best.map(|(_, slot)| slot), found)
    }

    /// Sets the sources: all over-utilized nodes that no guard holds back, in order.
    fn sources_in_order(&mut self) {
        self.buckets.sources(&self.scores, &mut self.sources);
        if self.guard.holds_nodes() {
            self.totals.blocked.held_back +=
                self.guard.hold_back(&self.state, &self.buckets, &self.scores, &mut self.sources);
        }
    }

    /// Evicts as many VMs from a node as the limits allow, and returns the number.
    fn evict_from(&mut self, slot: usize, most: u32, rng: &mut Rng) -> u32 {
        let node = self.state.slots()[slot];
        let most = most.min(self.settings.limits.per_node);
        let mut moved = 0;
        while moved < most {
            let Some((vm, to)) = self.choose_migration(node, rng) else {
                self.count_blocked(node);
                break;
            };
            self.begin_migration(vm, node, Some(to));
            moved += 1;
        }
        moved
    }

    /// A VM of the node and its destination. Pairs are drawn until one fits. After too many draws the destination is
    /// the under-utilized node with the most free memory, and the VM one that fits there.
    fn choose_migration(&mut self, node: u32, rng: &mut Rng) -> Option<(u32, u32)> {
        let count = self.state.vms(node).len();
        if count == 0 {
            return None;
        }
        let scheduled = self.settings.placement == Placement::Scheduler;
        for _ in 0..if scheduled { 8 } else { ATTEMPTS } {
            let to = if scheduled {
                None
            } else {
                self.state.slots().get(random_under_utilized(&self.buckets, rng)?).copied()
            };
            let vm = self.state.vms(node)[rng.below(count)];
            if !self.is_movable(vm) {
                continue;
            }
            let to = match to {
                None => self.placer.schedule(self.model, &self.state, &self.migrations, vm, node, rng),
                Some(to) => has_room(self.model, &self.state, &self.migrations, vm, to).then_some(to),
            };
            if let Some(to) = to {
                return Some((vm, to));
            }
        }
        if scheduled {
            return None;
        }
        let to = self.destination_with_most_memory()?;
        let fits = |vm: &&u32| self.is_movable(**vm) && has_room(self.model, &self.state, &self.migrations, **vm, to);
        let fitting: Vec<u32> = self.state.vms(node).iter().filter(fits).copied().collect();
        fitting.get(rng.below(fitting.len())).map(|vm| (*vm, to))
    }

    fn destination_with_most_memory(&self) -> Option<u32> {
        let mut best: Option<(f64, u32)> = None;
        for slot in self.buckets.nodes(Bucket::Under) {
            let node = self.state.slots()[slot];
            let free = self.model.nodes[node as usize].memory - self.state.memory_used(node);
            if self.state.is_open(node) && best.is_none_or(|(most, _)| free > most) {
                best = Some((free, node));
            }
        }
        best.map(|(_, node)| node)
    }

    /// A random under-utilized node that has room for the VM.
    pub(super) fn random_destination(&self, vm: u32, rng: &mut Rng) -> Option<u32> {
        for _ in 0..ATTEMPTS {
            let node = self.state.slots()[random_under_utilized(&self.buckets, rng)?];
            if has_room(self.model, &self.state, &self.migrations, vm, node) {
                return Some(node);
            }
        }
        self.destination_with_most_memory()
            .filter(|node| has_room(self.model, &self.state, &self.migrations, vm, *node))
    }

    fn is_movable(&self, vm: u32) -> bool {
        self.model.group(vm).migratable && !self.guard.is_cooling_down(vm, self.step) && !self.migrations.involves(vm)
    }

    fn count_blocked(&mut self, node: u32) {
        let migratable = |vm: &u32| self.model.group(*vm).migratable;
        let blocked = &mut self.totals.blocked;
        let vms = self.state.vms(node);
        if !vms.iter().any(migratable) {
            blocked.not_migratable += 1;
        } else if vms.iter().filter(|vm| migratable(vm)).all(|vm| self.guard.is_cooling_down(*vm, self.step)) {
            blocked.cooling_down += 1;
        } else {
            blocked.no_room += 1;
        }
    }

    /// Moves the VM at once, or queues its migration.
    fn begin_migration(&mut self, vm: u32, from: u32, to: Option<u32>) {
        match (self.settings.migration.model, to) {
            (MigrationModel::Instant, Some(to)) => {
                self.totals.sent(self.state.usage(vm)[1], Cause::Eviction);
                self.relocate(vm, to, Cause::Eviction);
            }
            _ => {
                // A scheduler chooses the node when the migration starts, because the node may be full by then.
                let to = to.filter(|_| self.settings.placement == Placement::Random);
                let waiting = Waiting { vm, from, to, cause: Cause::Eviction, since: self.now() };
                self.migrations.waiting.push(waiting);
            }
        }
    }

    fn evict_like_the_descheduler(&mut self) {
        let (under, over) = (self.buckets.count(Bucket::Under), self.buckets.count(Bucket::Over));
        self.sources_in_order();
        if !descheduler::acts(self.state.slots().len(), under, over) {
            return;
        }
        let limits = Limits {
            total: Some(self.settings.limits.total as usize),
            per_node: Some(self.settings.limits.per_node as usize),
            plugin_per_node: (!self.settings.one_per_node).then_some(self.settings.limits.per_node as usize),
        };
        let (sources, mut cycle) = (std::mem::take(&mut self.sources), std::mem::take(&mut self.cycle));
        cycle.run(&sources, &limits, &mut DeschedulerView(self));
        self.sources = sources;
        // Accepted VMs are in flight during the whole cycle and arrive after it.
        for (vm, to) in std::mem::take(&mut self.migrations.arrivals) {
            self.state.remove_arrival(vm, to);
            self.totals.sent(self.state.usage(vm)[1], Cause::Eviction);
            self.relocate(vm, to, Cause::Eviction);
        }
        self.cycle = cycle;
    }
}

/// The run as the descheduler sees it: nodes are slots, and pods are VMs.
struct DeschedulerView<'a, 'm>(&'a mut Run<'m>);

impl descheduler::ClusterView for DeschedulerView<'_, '_> {
    fn pods(&self, slot: usize, into: &mut Vec<Pod>) {
        let run = &self.0;
        let node = run.state.slots()[slot];
        let aware = run.guard.is_migration_aware();
        // By class of VMs: whether a destination's taints are tolerated.
        let mut known: Vec<(u32, bool)> = Vec::new();
        for vm in run.state.vms(node) {
            let group = run.model.group(*vm);
            let tolerates = known.iter().find(|(class, _)| *class == group.class).map(|(_, answer)| *answer);
            let tolerates_a_destination = tolerates.unwrap_or_else(|| {
                let class = &run.model.classes[group.class as usize];
                let fits = |slot: usize| {
                    let node = run.state.slots()[slot];
                    class.allows(node) && class.unwanted(node) == 0
                };
                let answer = run.buckets.nodes(Bucket::Under).any(fits);
                known.push((group.class, answer));
                answer
            });
            let held = run.guard.stays(*vm, run.step) || (aware && run.migrations.is_running(*vm));
            into.push(Pod {
                priority: group.priority,
                evictable: !held,
                tolerates_a_destination,
                in_flight: run.migrations.involves(*vm),
                ..Pod::new(*vm as usize)
            });
        }
        // The descheduler's order of equal pods is random.
        let mut rng = Rng::keyed(run.seed, Purpose::Order, run.step, u64::from(node));
        for end in (1..into.len()).rev() {
            into.swap(end, rng.below(end + 1));
        }
    }

    fn in_flight(&self, slot: usize) -> usize {
        self.0.migrations.in_flight(Some(self.0.state.slots()[slot]), self.0.now())
    }

    fn in_flight_total(&self) -> usize {
        self.0.migrations.in_flight(None, self.0.now())
    }

    fn evict(&mut self, eviction: Eviction) -> EvictionResponse {
        let run = &mut *self.0;
        let (vm, node) = (eviction.pod as u32, run.state.slots()[eviction.node]);
        if !run.model.group(vm).migratable {
            run.totals.blocked.not_migratable += 1;
            return EvictionResponse::Rejected;
        }
        if run.guard.is_deferred(vm, run.step) {
            run.totals.blocked.cooling_down += 1;
            return EvictionResponse::Rejected;
        }
        if run.settings.migration.model == MigrationModel::PreCopy {
            run.begin_migration(vm, node, None);
            return EvictionResponse::Accepted;
        }
        match run.destination(vm, node, Cause::Eviction) {
            Some(to) => {
                run.state.add_arrival(vm, to);
                run.migrations.arrivals.push((vm, to));
                EvictionResponse::Accepted
            }
            None => {
                run.totals.blocked.no_room += 1;
                EvictionResponse::Rejected
            }
        }
    }
}

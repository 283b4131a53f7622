//! The memory copies that run: the simulator's model, driven by the clock.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube_io::ObjectKey;
use sim::{
    precopy::{self, Copying, Network, Transfer},
    scenario::MigrationModel,
};

use super::{VmControllerSettings, VmSpec};

/// How far the copying of a VM's memory has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyProgress {
    NotStarted,
    Copying,
    Copied,
    /// The VM writes faster than its memory is copied.
    NotConverging,
    /// The target is gone, and what was copied with it.
    TargetLost,
}

#[derive(Debug)]
struct RunningCopy {
    key: ObjectKey,
    from: u32,
    to: u32,
    copying: Copying,
}

impl Transfer for RunningCopy {
    fn route(&self) -> (u32, u32) {
        (self.from, self.to)
    }

    fn copying(&self) -> &Copying {
        &self.copying
    }

    fn copying_mut(&mut self) -> &mut Copying {
        &mut self.copying
    }
}

#[derive(Debug)]
pub(super) struct Copies {
    running: Vec<RunningCopy>,
    ended: BTreeMap<ObjectKey, CopyProgress>,
    nodes: BTreeMap<String, u32>,
    now: Timestamp,
}

impl Copies {
    pub(super) fn new(now: Timestamp) -> Copies {
        Copies { running: Vec::new(), ended: BTreeMap::new(), nodes: BTreeMap::new(), now }
    }

    pub(super) fn progress(&self, key: &ObjectKey) -> CopyProgress {
        let is_running = || self.running.iter().any(|running| running.key == *key);
        match self.ended.get(key) {
            Some(progress) => *progress,
            None if is_running() => CopyProgress::Copying,
            None => CopyProgress::NotStarted,
        }
    }

    /// Call [`Copies::advance`] before, so that the copies that run share the network from now on.
    pub(super) fn start(
        &mut self,
        key: ObjectKey,
        from: &str,
        to: &str,
        spec: &VmSpec,
        settings: &VmControllerSettings,
    ) {
        if settings.migration.model == MigrationModel::Instant {
            self.ended.insert(key, CopyProgress::Copied);
            return;
        }
        let rate = spec.dirty_rate.unwrap_or(settings.dirty_rate).bytes_per_second();
        let copying = Copying::new(spec.bytes_in_use, rate, spec.bytes as f64, &settings.migration);
        let (from, to) = (self.number(from), self.number(to));
        self.running.push(RunningCopy { key, from, to, copying });
    }

    pub(super) fn forget(&mut self, key: &ObjectKey) {
        self.ended.remove(key);
        self.running.retain(|running| running.key != *key);
    }

    pub(super) fn lose_target(&mut self, key: &ObjectKey) {
        self.forget(key);
        self.ended.insert(key.clone(), CopyProgress::TargetLost);
    }

    /// Advances all copies to `now`. Returns the VMs whose copy has ended.
    pub(super) fn advance(&mut self, now: Timestamp, settings: &VmControllerSettings) -> Vec<ObjectKey> {
        let passed = now.duration_since(self.now).as_secs_f64() * settings.time_scale;
        self.now = self.now.max(now);
        let mut ended = Vec::new();
        let network = Network::of(&settings.migration);
        precopy::advance(&mut self.running, network, self.nodes.len(), passed, |running, copied| {
            ended.push((running.key.clone(), if copied { CopyProgress::Copied } else { CopyProgress::NotConverging }));
        });
        self.ended.extend(ended.iter().cloned());
        ended.into_iter().map(|(key, _)| key).collect()
    }

    /// Seconds by the clock until the next copy ends.
    pub(super) fn next_end(&self, settings: &VmControllerSettings) -> Option<f64> {
        let end = precopy::next_end(&self.running, Network::of(&settings.migration), self.nodes.len())?;
        Some(end / settings.time_scale)
    }

    fn number(&mut self, node: &str) -> u32 {
        let next = self.nodes.len() as u32;
        *self.nodes.entry(node.to_owned()).or_insert(next)
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use sim::units::Rate;

    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey { namespace: "default".to_owned(), name: name.to_owned() }
    }

    /// 1 GB is in use. At 8 Gbit/s the copy takes a second if the VM writes nothing.
    fn spec(dirty_rate: u64) -> VmSpec {
        VmSpec {
            running: true,
            cores: 1.0,
            bytes: 2 << 30,
            cpu: "1".into(),
            memory: "2Gi".into(),
            cpu_utilization: "0.5".into(),
            memory_utilization: "0.5".into(),
            bytes_in_use: 1e9,
            dirty_rate: Some(Rate(dirty_rate)),
        }
    }

    fn settings(time_scale: f64) -> VmControllerSettings {
        let mut settings = VmControllerSettings { time_scale, ..VmControllerSettings::default() };
        settings.migration.bandwidth = Rate(8_000_000_000);
        settings
    }

    fn after(seconds: f64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs_f64(seconds)
    }

    fn near(found: Option<f64>, expected: f64) -> bool {
        found.is_some_and(|found| (found - expected).abs() < 1e-6)
    }

    #[test]
    fn migrations_that_share_a_node_share_its_bandwidth_until_one_of_them_ends() {
        let settings = settings(1.0);
        let mut copies = Copies::new(after(0.0));
        copies.start(key("a"), "n1", "n2", &spec(0), &settings);
        assert!(near(copies.next_end(&settings), 1.0));
        assert_eq!(copies.advance(after(0.5), &settings), []);
        copies.start(key("b"), "n1", "n3", &spec(0), &settings);
        copies.start(key("c"), "n4", "n5", &spec(0), &settings);
        assert!(near(copies.next_end(&settings), 1.0), "half of it at half the rate; the third uses another network");
        let mut ended = copies.advance(after(1.51), &settings);
        ended.sort();
        assert_eq!(ended, [key("a"), key("c")]);
        assert_eq!(
            [copies.progress(&key("a")), copies.progress(&key("b"))],
            [CopyProgress::Copied, CopyProgress::Copying]
        );
        assert!(near(copies.next_end(&settings), 0.49), "the rest at the full rate");
    }

    #[test]
    fn time_goes_as_many_times_faster_as_the_scale_says() {
        let settings = settings(20.0);
        let mut copies = Copies::new(after(0.0));
        copies.start(key("a"), "n1", "n2", &spec(4_000_000_000), &settings);
        assert!(near(copies.next_end(&settings), 0.1), "2 s, for half of the network copies what the VM writes");
        assert_eq!(copies.advance(after(0.11), &settings), [key("a")]);
    }

    #[test]
    fn a_vm_that_writes_faster_than_the_network_carries_is_given_up() {
        let settings = settings(1.0);
        let mut copies = Copies::new(after(0.0));
        copies.start(key("a"), "n1", "n2", &spec(9_000_000_000), &settings);
        assert!(near(copies.next_end(&settings), 150.0), "the progress timeout");
        assert_eq!(copies.advance(after(151.0), &settings), [key("a")]);
        assert_eq!(copies.progress(&key("a")), CopyProgress::NotConverging);
        copies.forget(&key("a"));
        assert_eq!(copies.progress(&key("a")), CopyProgress::NotStarted);
    }

    #[test]
    fn a_clock_that_goes_back_copies_nothing_twice() {
        let settings = settings(1.0);
        let mut copies = Copies::new(after(10.0));
        copies.start(key("a"), "n1", "n2", &spec(0), &settings);
        copies.advance(after(10.5), &settings);
        copies.advance(after(3.0), &settings);
        copies.advance(after(10.5), &settings);
        assert!(near(copies.next_end(&settings), 0.5));
    }
}

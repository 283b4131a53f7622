//! An import: VMs with their samples come one after the other, then those of nodes, and the scenario is written meanwhile.

use std::io::{self, Write};

use super::{
    Grid, Order, Recording,
    node_use::{NodeUse, load},
    summary::Summary,
    write::{Head, ScenarioWriter},
};
use crate::{
    scenario::{Load, NodeGroup, Rebalancing, VmGroup},
    units::{ClockTime, Span},
};

/// How a cluster is imported.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub name: String,
    pub description: String,
    pub grid: Grid,
    pub order: Order,
    /// How many times faster than the clock the cluster runs, if it is a lab.
    pub time_scale: f64,
    /// The longest step of the scenario.
    pub step: Span,
    pub rebalancing: Rebalancing,
}

/// A VM of the cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedVm {
    /// Everything but its loads and where it runs.
    pub group: VmGroup,
    /// The number of the node that it runs on.
    pub node: Option<usize>,
    /// The shares of its cores and its memory that its object says it uses.
    pub stated: Option<[f64; 2]>,
}

/// A cluster that is being imported.
#[derive(Debug)]
pub struct Import<W> {
    settings: Settings,
    /// The time between samples in the scenario.
    every: Span,
    nodes: Vec<NodeUse>,
    /// VMs whose CPU or memory use is not known.
    waiting: Vec<(ImportedVm, [Option<Load>; 2])>,
    summary: Summary,
    out: ScenarioWriter<W>,
}

impl<W: Write> Import<W> {
    pub fn new(settings: Settings, nodes: Vec<NodeGroup>, out: W) -> io::Result<Self> {
        let Grid { end, step, count } = settings.grid;
        let every = Span(((step as f64 * settings.time_scale) as u64).max(1));
        let begin = if settings.order == Order::Forecast { end } else { settings.grid.start() };
        let head = Head {
            name: &settings.name,
            description: &settings.description,
            step: Span(settings.step.0.clamp(1, every.0)),
            // A snapshot lasts as long as a scenario that says nothing about it.
            duration: if count > 1 { Span(every.0 * count as u64) } else { Span(6000) },
            start: ClockTime(begin % 86_400 / 60),
            rebalancing: &settings.rebalancing,
        };
        let out = ScenarioWriter::new(out, &head)?;
        let summary = Summary { nodes: nodes.len(), ..Summary::default() };
        let nodes = nodes.into_iter().map(|group| NodeUse::new(group, count)).collect();
        Ok(Self { settings, every, nodes, waiting: Vec::new(), summary, out })
    }

    /// The recording of a node's signal, by its number in `balance::Signal::ALL`.
    pub fn signal(&mut self, node: usize, signal: usize) -> Option<&mut Recording> {
        self.nodes.get_mut(node).map(|node| &mut node.signals[signal])
    }

    /// Counts what a VM used that is gone now, so that it is not taken for use of the node itself.
    pub fn gone(&mut self, recordings: &[Recording; 2]) {
        self.count_on_nodes(recordings, None);
    }

    fn count_on_nodes(&mut self, recordings: &[Recording; 2], present: Option<usize>) {
        for (kind, recording) in recordings.iter().enumerate() {
            for (position, value, node) in recording.samples() {
                if let Some(node) = node.or(present).and_then(|node| self.nodes.get_mut(node)) {
                    node.add(kind, position, value);
                }
            }
        }
    }

    /// Adds a VM with the cores and the bytes that it used.
    pub fn vm(&mut self, vm: ImportedVm, mut recordings: [Recording; 2]) -> io::Result<()> {
        self.summary.vms += 1;
        self.summary.vms_without_node += usize::from(vm.node.is_none());
        if !vm.group.migratable {
            let cause = vm.group.not_migratable_because.clone().unwrap_or_else(|| "no cause given".to_owned());
            *self.summary.not_migratable.entry(cause).or_default() += 1;
        }
        let count = self.settings.grid.count;
        let sizes = [vm.group.cores, vm.group.memory.0 as f64];
        if let Some(stated) = vm.stated
            && recordings.iter().any(Recording::is_empty)
        {
            self.summary.stated += 1;
            for (kind, recording) in recordings.iter_mut().enumerate() {
                if recording.is_empty() {
                    *recording = Recording::constant(count, stated[kind] * sizes[kind]);
                }
            }
        }
        self.count_on_nodes(&recordings, vm.node);
        self.summary.moved += usize::from(recordings.iter().any(Recording::moved));
        let mut loads = [None, None];
        let (mut younger, mut ended) = (false, false);
        for (kind, recording) in recordings.into_iter().enumerate() {
            if recording.is_empty() {
                if let Some(node) = vm.node.and_then(|node| self.nodes.get_mut(node)) {
                    node.unknown[kind] += sizes[kind];
                }
                continue;
            }
            let filled = recording.fill();
            self.summary.recorded(&filled, self.settings.grid.step);
            (younger, ended) = (younger || filled.before > 0, ended || filled.after > 0);
            let shares = filled.values.iter().map(|value| f64::from(*value) / sizes[kind]).collect();
            loads[kind] = Some(load(self.settings.order.arrange(shares), self.every, self.settings.order));
        }
        self.summary.younger += usize::from(younger);
        self.summary.ended += usize::from(ended);
        match loads {
            [Some(cpu), Some(memory)] => self.write(vm, [cpu, memory]),
            loads => {
                self.waiting.push((vm, loads));
                Ok(())
            }
        }
    }

    fn write(&mut self, vm: ImportedVm, [cpu, memory_use]: [Load; 2]) -> io::Result<()> {
        let on = vm.node.and_then(|node| self.nodes.get(node)).map(|node| node.group.name.clone());
        self.out.vm(&VmGroup { cpu, memory_use, on: on.into_iter().collect(), ..vm.group })
    }

    /// Writes what is left: VMs whose use is guessed, and nodes with what they use themselves.
    pub fn finish(mut self) -> io::Result<(W, Summary)> {
        let Settings { grid, order, .. } = self.settings;
        let names: Vec<String> = self.nodes.iter().map(|node| node.group.name.clone()).collect();
        let mut guesses = Vec::new();
        let mut nodes = Vec::new();
        for node in std::mem::take(&mut self.nodes) {
            let (guess, group) = node.finish(grid, order, self.every, &mut self.summary);
            guesses.push(guess);
            nodes.push(group);
        }
        for (vm, loads) in std::mem::take(&mut self.waiting) {
            let nowhere = [None, None];
            let guess = vm.node.and_then(|node| guesses.get(node)).unwrap_or(&nowhere);
            let assumed = [vm.group.cpu.clone(), vm.group.memory_use.clone()];
            let mut is_assumed = false;
            let mut chosen = assumed.clone();
            for (kind, load) in loads.into_iter().enumerate() {
                chosen[kind] = match (load, &guess[kind]) {
                    (Some(load), _) => load,
                    (None, Some(guess)) => {
                        self.summary.guessed[kind] += 1;
                        guess.clone()
                    }
                    (None, None) => {
                        is_assumed = true;
                        assumed[kind].clone()
                    }
                };
            }
            self.summary.assumed += usize::from(is_assumed);
            let on = vm.node.and_then(|node| names.get(node)).cloned();
            let [cpu, memory_use] = chosen;
            self.out.vm(&VmGroup { cpu, memory_use, on: on.into_iter().collect(), ..vm.group })?;
        }
        Ok((self.out.finish(&nodes)?, self.summary))
    }
}

//! The nodes at some steps of a run, computed by a replay.

use balance::Bucket;
use serde::Serialize;

use crate::{engine::Run, history::History, model::ClusterModel, settings::RunSettings};

/// The most points of a report.
const MOST_POINTS: usize = 60_000;
const MOST_FRAMES: usize = 120;

/// All nodes at a step, in columns.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Frame {
    pub(crate) step: u64,
    pub(crate) seconds: u64,
    /// The numbers of the nodes.
    pub(crate) nodes: Vec<u32>,
    pub(crate) cpu: Vec<f32>,
    pub(crate) memory: Vec<f32>,
    pub(crate) cpu_pressure: Vec<f32>,
    pub(crate) memory_pressure: Vec<f32>,
    pub(crate) score: Vec<f32>,
    /// 0 under, 1 appropriate, 2 over.
    pub(crate) bucket: Vec<u8>,
    pub(crate) vms: Vec<u32>,
    pub(crate) average: f32,
    pub(crate) lower: f32,
    pub(crate) upper: f32,
}

pub(crate) fn frames(model: &ClusterModel, settings: &RunSettings, seed: u64, history: &History) -> Vec<Frame> {
    let steps = history.samples().len().saturating_sub(1) as u64;
    let most = (MOST_POINTS / model.node_count().max(1)).clamp(2, MOST_FRAMES) as u64;
    let wanted = |step: u64| steps <= most || step * most / steps != (step + 1) * most / steps || step == 0;
    let mut run = Run::replay(model, *settings, seed, history);
    let mut frames = Vec::new();
    for step in 0..steps {
        run.step_and_inspect(|run| {
            if wanted(step) {
                frames.push(frame(model, run, step));
            }
        });
    }
    run.observe();
    frames.push(frame(model, &run, steps));
    frames
}

pub fn frame(model: &ClusterModel, run: &Run<'_>, step: u64) -> Frame {
    let short = |values: &[f64]| values.iter().map(|value| (libm::round(value * 1e4) / 1e4) as f32).collect();
    let signals = run.signals();
    let buckets = run.buckets();
    Frame {
        step,
        seconds: step * model.step_seconds(),
        nodes: run.nodes().to_vec(),
        cpu: short(&signals.cpu_usage),
        memory: short(&signals.memory_usage),
        cpu_pressure: short(&signals.cpu_pressure),
        memory_pressure: short(&signals.memory_pressure),
        score: short(run.scores().values()),
        bucket: buckets.of().iter().map(|bucket| *bucket as u8).collect(),
        vms: run.nodes().iter().map(|node| run.vms(*node).len() as u32).collect(),
        average: buckets.average() as f32,
        lower: buckets.lower() as f32,
        upper: buckets.upper() as f32,
    }
}

impl Frame {
    pub(crate) fn bucket(&self, at: usize) -> Bucket {
        Bucket::ALL[usize::from(self.bucket[at]).min(2)]
    }
}

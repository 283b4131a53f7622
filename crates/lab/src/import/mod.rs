//! A scenario from a live cluster: objects from its API server, loads from its Prometheus or from `metrics.k8s.io`.
//!
//! What the answers mean is decided in `objects`, `metrics` and `sim::import`, which ask nobody.

mod constraints;
mod lists;
mod load;
mod metrics;
mod metrics_api;
pub mod objects;
mod prometheus;
mod report;
mod requirements;

use std::io::Write;

use jiff::Timestamp;
use kube::Client;
use sim::{
    import::{Grid, Import, Names, Order, Settings, Summary, anonymize},
    scenario::{MigrationModel, Placement, Rebalancing, Semantics},
    units::Span,
};

pub use lists::{Selectors, identity, list};
pub use load::LoadNotes;
pub use metrics::{Found, Origin, Quantity};
pub use objects::Objects;
pub use prometheus::PrometheusClient;
pub use report::text;

use crate::Error;

/// What to import, and how.
#[derive(Debug, Clone)]
pub struct Request {
    /// The name of the scenario.
    pub name: String,
    pub span: Span,
    pub step: Span,
    /// The longest step of the scenario.
    pub scenario_step: Span,
    pub order: Order,
    /// What identifies the cluster, if names are replaced.
    pub anonymize: Option<String>,
    /// How many times faster than the clock the cluster runs, if it is a lab.
    pub time_scale: f64,
}

/// What an import found.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub summary: Summary,
    /// One for each quantity.
    pub metrics: Vec<Found>,
    pub notes: LoadNotes,
    /// What the objects say that a scenario cannot.
    pub objects: Vec<String>,
    /// The kind that stands for VMs.
    pub kind: &'static str,
    pub span_seconds: u64,
    pub step_seconds: u64,
    pub end: Timestamp,
}

/// Where loads come from.
#[allow(missing_debug_implementations, reason = "a client has none")]
pub enum Loads<'a> {
    Prometheus(&'a PrometheusClient),
    /// `metrics.k8s.io` of the cluster.
    Snapshot(&'a Client),
}

/// Writes the scenario of these objects. `progress` gets how many of how many VMs are done.
pub async fn import<W: Write>(
    objects: Objects,
    loads: Loads<'_>,
    request: &Request,
    out: W,
    progress: impl FnMut(usize, usize),
) -> Result<(W, Report), Error> {
    let (grid, clock) = match &loads {
        Loads::Prometheus(client) => {
            let clock = client.clock().await?;
            (Grid::new(clock.now as u64, request.span.0, request.step.0), Some(clock))
        }
        Loads::Snapshot(_) => (Grid::new(Timestamp::now().as_second().cast_unsigned(), 0, request.step.0), None),
    };
    let Objects { nodes, vms, kind, notes: said } = objects;
    let keys = load::Keys::new(&nodes, &vms);
    let mut groups: Vec<_> = nodes.iter().map(|node| node.group.clone()).collect();
    let mut imported: Vec<_> = vms.iter().map(|vm| vm.vm.clone()).collect();
    if let Some(cluster) = &request.anonymize {
        anonymize(&Names::new(cluster), &mut groups, &mut imported);
    }
    let settings = Settings {
        name: request.name.clone(),
        description: description(request, grid),
        grid,
        order: request.order,
        time_scale: request.time_scale,
        step: request.scenario_step,
        rebalancing: rebalancing(request),
    };
    let mut import = Import::new(settings, groups, out).map_err(Error::Write)?;
    let (metrics, notes) = match loads {
        Loads::Prometheus(client) => {
            load::from_prometheus(client, &keys, grid, clock, imported, &mut import, progress).await?
        }
        Loads::Snapshot(client) => metrics_api::snapshot(client, &keys, imported, &mut import).await?,
    };
    let (out, summary) = import.finish().map_err(Error::Write)?;
    let end = Timestamp::from_second(grid.end.cast_signed()).unwrap_or(Timestamp::UNIX_EPOCH);
    let (span_seconds, step_seconds) = (grid.step * (grid.count as u64 - 1), grid.step);
    Ok((out, Report { summary, metrics, notes, objects: said, kind, span_seconds, step_seconds, end }))
}

fn description(request: &Request, grid: Grid) -> String {
    let at = |seconds: u64| Timestamp::from_second(seconds.cast_signed()).unwrap_or(Timestamp::UNIX_EPOCH);
    match (grid.count, request.order) {
        (1, _) => format!("A cluster as it was at {}.", at(grid.end)),
        (_, Order::Forecast) => {
            format!("A cluster as it was at {}, with the load since {} again.", at(grid.end), at(grid.start()))
        }
        (_, Order::Replay) => {
            format!("A cluster as it was at {}, with its load from {} on.", at(grid.end), at(grid.start()))
        }
    }
}

/// As a descheduler and a scheduler of OpenShift do it, with KubeVirt's migrations.
fn rebalancing(request: &Request) -> Rebalancing {
    let mut rebalancing = Rebalancing {
        semantics: Semantics::Descheduler,
        placement: Placement::Scheduler,
        interval: Some(request.scenario_step),
        ..Rebalancing::default()
    };
    rebalancing.migration.model = MigrationModel::PreCopy;
    rebalancing
}

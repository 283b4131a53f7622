//! `spec.approval.forecast`: what the approver expected of the plan. The whole forecast is a file of theirs.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::bounds;

/// Figures of a forecast.
pub(crate) const FIGURES: usize = 16;
/// Names of nodes in a summary.
pub(crate) const HOT_NODES: usize = 20;
/// Characters of a number in decimal notation.
const NUMBER: usize = 32;

/// The summary of a forecast that the approver has read. The operator does not interpret it; the record of the
/// plan keeps it, so that it can be compared with what happened.
///
/// All fields are always written, so that a new summary replaces an old one as a whole.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ForecastSummary {
    /// The digest of the plan that the forecast is about. The record of another plan does not keep it.
    #[schemars(length(max = 128))]
    #[x_kube(validation = (
        "self.matches('^[0-9a-f]{64}$')",
        "must be a plan digest as in status.planDigest: 64 digits from 0-9 and a-f"
    ))]
    pub plan_digest: String,

    /// When the forecast was made.
    pub made_at: Time,

    /// The scenario whose cluster and load the forecast assumes.
    #[schemars(length(min = 1, max = bounds::NAME))]
    pub scenario: String,

    /// SHA-256 of the file of the scenario.
    #[schemars(length(max = 128))]
    pub scenario_digest: String,

    /// How many runs were simulated.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub seeds: i32,

    /// How far the forecast looks, in seconds.
    #[schemars(range(min = 1, max = 31_536_000))]
    pub horizon_seconds: i64,

    /// The percentage of runs in which nothing moves any more at the end.
    #[schemars(range(min = 0, max = 100))]
    pub settles_percent: i32,

    /// What is expected, with intervals.
    #[schemars(
        length(max = FIGURES),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub figures: Vec<ForecastFigure>,

    /// Nodes that stay hot, the most certain first.
    #[schemars(
        length(max = HOT_NODES),
        inner(length(min = 1, max = bounds::NAME)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub hot_nodes: Vec<String>,

    /// How many virtual machines cannot move.
    #[schemars(range(min = 0))]
    pub stuck_vms: i32,
}

/// A figure with the interval that holds nine of ten simulated runs. Numbers are decimal, such as 0.034 or 12.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ForecastFigure {
    /// What it is, for example SpreadAtRest or MigrationsFirstHour.
    #[schemars(length(min = 1, max = 64))]
    pub name: String,

    /// The median.
    #[schemars(length(min = 1, max = NUMBER))]
    pub expected: String,

    /// The lower end of the interval.
    #[schemars(length(min = 1, max = NUMBER))]
    pub low: String,

    /// The upper end of the interval.
    #[schemars(length(min = 1, max = NUMBER))]
    pub high: String,
}

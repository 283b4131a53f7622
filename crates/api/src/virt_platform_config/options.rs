//! The options of each profile, as a union: at most the member of the profile is set. Defaults are in the schema, so that
//! `kubectl get -o yaml` shows them.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::NodeLabelSelector;
use crate::string_enum::string_enum;

/// The options union. Empty means the same as absent: the profile's defaults.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Options {
    /// Settings of the profile load-aware-rebalancing; only valid with that profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_aware: Option<LoadAwareOptions>,

    /// Settings of the profile virt-higher-density; only valid with that profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virt_higher_density: Option<VirtHigherDensityOptions>,
}

string_enum! {
    /// When the descheduler acts.
    #[derive(Default)]
    pub enum DeschedulerMode {
        /// Evict.
        #[default]
        Automatic = "Automatic",
        /// Only simulate.
        Predictive = "Predictive",
    }
}

string_enum! {
    /// How far from the average a node must be to count as busy or idle.
    #[derive(Default)]
    pub enum DeviationThresholds {
        /// 10 percent both ways.
        Low = "Low",
        /// 20 percent both ways.
        Medium = "Medium",
        /// 30 percent both ways.
        High = "High",
        /// Any node below the average may receive; busy means 10 percent above it.
        #[default]
        AsymmetricLow = "AsymmetricLow",
        /// Any node below the average may receive; busy means 20 percent above it.
        AsymmetricMedium = "AsymmetricMedium",
        /// Any node below the average may receive; busy means 30 percent above it.
        AsymmetricHigh = "AsymmetricHigh",
    }
}

/// Options of `load-aware-rebalancing`.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadAwareOptions {
    /// Seconds between two runs of the descheduler, from 60 to 86400. Default: 60. Shorter intervals
    /// follow the load more closely and migrate more often.
    #[serde(default = "default_interval")]
    #[schemars(range(min = 60, max = 86400))]
    pub descheduling_interval_seconds: i32,

    /// What the descheduler does with the virtual machines it picks. Default: Automatic.
    ///
    /// - Automatic: evicts them, so that they are live-migrated to less busy nodes.
    /// - Predictive: only simulates and reports; nothing is migrated.
    #[serde(default)]
    pub mode: DeschedulerMode,

    /// Whether worker nodes shall report pressure stall information (PSI), which lets the descheduler see
    /// contention and not just use. Default: true, which adds the kernel argument psi=1 by a MachineConfig:
    /// the worker nodes reboot one after another. With false no MachineConfig is needed, and one that this
    /// profile created earlier is planned for removal, which again means reboots.
    #[serde(default = "yes", rename = "enablePSIMetrics")]
    pub enable_psi_metrics: bool,

    /// How far the load of a node must be from the average before virtual machines are moved.
    /// Default: AsymmetricLow. Has no effect where the installed descheduler does not know the setting.
    ///
    /// - Low, Medium, High: a node is busy 10, 20 or 30 percent above the average, and idle the same
    ///   distance below it. Only idle nodes receive virtual machines.
    /// - AsymmetricLow, AsymmetricMedium, AsymmetricHigh: the same for busy nodes, but every node below
    ///   the average may receive virtual machines.
    #[serde(default)]
    pub dev_deviation_thresholds: DeviationThresholds,

    /// The most virtual machines evicted in one run across the cluster, from 1 to 1000. Default: the
    /// HyperConverged setting liveMigrationConfig.parallelMigrationsPerCluster, so that no more are evicted
    /// than can migrate at the same time; the plan follows when that setting changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub eviction_limit_total: Option<i32>,

    /// The most virtual machines evicted in one run from one node, from 1 to 100. Default: the
    /// HyperConverged setting liveMigrationConfig.parallelOutboundMigrationsPerNode; the plan follows when
    /// that setting changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub eviction_limit_node: Option<i32>,
}

impl Default for LoadAwareOptions {
    fn default() -> Self {
        Self {
            descheduling_interval_seconds: default_interval(),
            mode: DeschedulerMode::default(),
            enable_psi_metrics: true,
            dev_deviation_thresholds: DeviationThresholds::default(),
            eviction_limit_total: None,
            eviction_limit_node: None,
        }
    }
}

/// Options of `virt-higher-density`.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(
        "!has(self.memoryToRequestRatio) || self.memoryToRequestRatio <= 120 || (has(self.enableSwap) && self.enableSwap)")
    .message("memoryToRequestRatio > 120 requires enableSwap=true")
    .field_path(".memoryToRequestRatio"))]
pub struct VirtHigherDensityOptions {
    /// Whether the kubelet of worker nodes may let virtual machines use swap. Default: true, which deploys a
    /// MachineConfig: the worker nodes reboot one after another, and each needs a partition labeled
    /// CNV_SWAP. With false no such MachineConfig is needed, and one that this profile created earlier is
    /// planned for removal, which again means reboots.
    #[serde(default = "yes")]
    pub enable_swap: bool,

    /// Kernel samepage merging (KSM): identical memory pages of virtual machines on a node are stored once,
    /// at the price of some CPU time. If virtHigherDensity is set and this field is not, KSM is off. If
    /// spec.options is not set at all, KSM is on for all nodes. No reboots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ksm_configuration: Option<KsmConfiguration>,

    /// Memory that virtual machines see, in percent of the memory requested for them on the node, from 100
    /// (no overcommitment) to 300. Values above 120 require enableSwap=true. Default: 150 with swap and 120
    /// without. Applies to virtual machines when they are started or migrated; no reboots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 300))]
    pub memory_to_request_ratio: Option<i32>,
}

impl VirtHigherDensityOptions {
    /// The ratio in effect. It depends on another field, so the schema cannot fill it in: a fixed default of
    /// 150 would make `enableSwap: false` alone invalid.
    pub fn effective_memory_to_request_ratio(&self) -> i32 {
        self.memory_to_request_ratio.unwrap_or(if self.enable_swap { 150 } else { 120 })
    }
}

impl Default for VirtHigherDensityOptions {
    fn default() -> Self {
        Self { enable_swap: true, ksm_configuration: None, memory_to_request_ratio: None }
    }
}

/// Where kernel samepage merging runs.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KsmConfiguration {
    /// Whether KSM is on. Default: true when ksmConfiguration is set. False turns KSM off explicitly,
    /// whatever nodeLabelSelector says.
    #[serde(default = "yes")]
    pub enabled: bool,

    /// The nodes on which KSM runs. Default: all nodes; an empty selector means the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_label_selector: Option<NodeLabelSelector>,
}

impl Default for KsmConfiguration {
    fn default() -> Self {
        Self { enabled: true, node_label_selector: None }
    }
}

fn default_interval() -> i32 {
    60
}

fn yes() -> bool {
    true
}

//! How a scenario rebalances its cluster. `settings` resolves the names of algorithms and modes.

use balance::CoolDown;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Loads;
use crate::units::{Rate, Span};

/// How load is classified, what is evicted, and how VMs get elsewhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Rebalancing {
    /// One of the 20 algorithms by name, or `k3` for the amplified one; `rebalance-lab sim algorithms` lists them.
    pub algorithm: String,
    /// The threshold mode: low, medium, high, asym-low, asym-medium or asym-high.
    pub mode: String,
    /// The pressure model: reference or continuous.
    pub pressure: String,
    /// Where the first signals come from, if nodes state measured ones.
    pub loads: Loads,
    /// Whose rules say what is over- and under-utilized and what is evicted.
    pub semantics: Semantics,
    /// How often it is looked at; every step, without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Span>,
    /// Over how long signals are averaged before nodes are scored; not at all, without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Span>,
    /// How old the newest signals are when nodes are scored: scrapes and rules have their intervals. Nothing, without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag: Option<Span>,
    pub limits: Limits,
    pub placement: Placement,
    /// Whether nodes that are not under-utilized get taints that make the scheduler prefer others.
    pub soft_taints: bool,
    /// How many times more virtual than real cores a node may promise: a VM requests its cores divided by this.
    pub cpu_overcommit: f64,
    pub migration: MigrationSettings,
    pub guards: Guards,
}

impl Default for Rebalancing {
    fn default() -> Self {
        Self {
            algorithm: "k3".to_owned(),
            mode: "asym-low".to_owned(),
            pressure: "reference".to_owned(),
            loads: Loads::default(),
            semantics: Semantics::Reference,
            interval: None,
            window: None,
            lag: None,
            limits: Limits::default(),
            placement: Placement::Random,
            soft_taints: true,
            cpu_overcommit: 10.0,
            migration: MigrationSettings::default(),
            guards: Guards::default(),
        }
    }
}

/// Whose rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Semantics {
    /// The reference simulator's: exact scores, random VMs.
    #[default]
    Reference,
    /// LowNodeUtilization's: whole percent, clamped bounds, VMs by priority, evictions in flight counted.
    Descheduler,
}

/// How many evictions at once.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Limits {
    /// In the whole cluster, each time; with the descheduler's semantics those in flight are counted.
    pub total: u32,
    /// From one node, each time.
    pub per_node: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { total: 5, per_node: 2 }
    }
}

/// Who chooses the node that a VM goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Placement {
    /// An under-utilized node at random whose memory suffices, as the reference does.
    #[default]
    Random,
    /// Like a scheduler: requests, taints and affinity, then least allocated, balanced, and few taints.
    Scheduler,
}

/// How a VM gets from one node to another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "Migration")]
pub struct MigrationSettings {
    pub model: MigrationModel,
    /// What each node's network carries, in each direction.
    pub bandwidth: Rate,
    /// How many migrations may leave a node at a time.
    pub per_node: u32,
    /// How many migrations may run at a time.
    pub cluster: u32,
    /// A migration is given up after this many seconds per GiB of the VM's memory.
    pub timeout_per_gib: u32,
    /// A migration that makes no progress is given up after this time.
    pub progress_timeout: Span,
    /// The share of migrations that fail for other reasons.
    #[schemars(range(min = 0, max = 1))]
    pub failure_rate: f64,
}

impl Default for MigrationSettings {
    fn default() -> Self {
        Self {
            model: MigrationModel::Instant,
            bandwidth: Rate(10_000_000_000),
            per_node: 2,
            cluster: 5,
            timeout_per_gib: 800,
            progress_timeout: Span(150),
            failure_rate: 0.0,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum MigrationModel {
    /// It takes no time, as in the reference.
    #[default]
    Instant,
    /// Memory is copied while the VM keeps writing to it; the bandwidth is shared.
    PreCopy,
}

/// What keeps VMs from moving to and fro.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Guards {
    /// How long a VM stays where it arrived.
    pub cool_down: Span,
    /// Doubles the cool-down with every migration of the same VM, up to 24 times the first.
    pub back_off: bool,
    /// A node must have been over-utilized this many times in a row before VMs leave it; 0 and 1 mean at once.
    pub sustained: u32,
    /// A node that was not over-utilized becomes so only when its score is this much above the threshold.
    #[schemars(range(min = 0, max = 1))]
    pub hysteresis: f64,
    /// What the descheduler's plugin KubevirtMigrationAware does; `{}` stands for its defaults. Nothing, without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub migration_aware: Option<MigrationAware>,
}

/// KubevirtMigrationAware: no eviction while a VM migrates, nor for a cool-down afterwards. It is `coolDown`, or as long as the
/// last migration took if that is more, doubled for each further migration within the window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct MigrationAware {
    /// The least cool-down; the plugin's migrationCooldown.
    pub cool_down: Span,
    /// The greatest cool-down; the plugin's maxMigrationCooldown.
    pub max_cool_down: Span,
    /// How long a migration is remembered; the plugin's migrationHistoryWindow.
    pub history_window: Span,
}

impl MigrationAware {
    /// The rules in a few words.
    pub fn describe(self) -> String {
        let Self { cool_down, max_cool_down, history_window } = self;
        format!("cool-down from {cool_down} to {max_cool_down} by the migrations of {history_window}")
    }
}

impl Default for MigrationAware {
    fn default() -> Self {
        let CoolDown { least, greatest, window } = CoolDown::SECONDS;
        Self { cool_down: Span(least), max_cool_down: Span(greatest), history_window: Span(window) }
    }
}

impl From<MigrationAware> for CoolDown {
    /// In seconds.
    fn from(rules: MigrationAware) -> Self {
        let MigrationAware { cool_down, max_cool_down, history_window } = rules;
        CoolDown { least: cool_down.0, greatest: max_cool_down.0, window: history_window.0 }
    }
}

//! `VirtPlatformConfig`: what an administrator wants of a profile (`spec`), and the plan that the operator has made for it (`status`).
//! One object per profile, named after it.

#![allow(unreachable_pub, reason = "KubeSchema repeats each struct inside a function")]

mod approval;
mod forecast;
mod item;
mod maintenance_window;
mod node_label_selector;
mod options;
mod spec;
mod status;
mod wait_timeout;

pub use approval::{Approval, ApprovalMode, GrantedApproval, Rejection};
pub use forecast::{ForecastFigure, ForecastSummary};
pub use item::{
    DriftedBy, ImpactDetail, Item, ItemState, Operation, PoolImpact, PoolRollout, RolloutState, TakeOver, TargetRef,
};
pub use maintenance_window::{MaintenanceWindow, Weekday};
pub use node_label_selector::{NodeLabelSelector, SelectorOperator, SelectorRequirement};
pub use options::{
    DeschedulerMode, DeviationThresholds, KsmConfiguration, LoadAwareOptions, Options, VirtHigherDensityOptions,
};
pub use spec::{Action, FailurePolicy, ORIGINAL, Profile, Restore, VirtPlatformConfig, VirtPlatformConfigSpec};
pub use status::{Phase, PlanInput, RecordRef, Risk, Severity, VirtPlatformConfigStatus};
pub use wait_timeout::WaitTimeout;

#[cfg(test)]
mod tests;

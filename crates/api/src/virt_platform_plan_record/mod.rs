//! `VirtPlatformPlanRecord`: what one applied plan was, what was there before it (`spec`), and how it ended (`status`). One object per
//! applied plan, named after its profile and a number. It outlives the configuration.

#![allow(unreachable_pub, reason = "KubeSchema repeats each struct inside a function")]

mod approval;
mod item;
mod name;
mod spec;
mod status;

pub use approval::RecordedApproval;
pub use item::{Leaf, RecordedItem};
pub use name::{name, number};
pub use spec::{VirtPlatformPlanRecord, VirtPlatformPlanRecordSpec};
pub use status::{ItemOutcome, Outcome, PoolReboot, VirtPlatformPlanRecordStatus};

#[cfg(test)]
mod tests;

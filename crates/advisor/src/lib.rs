//! The domain of the advisor: it makes a plan from a profile, its options and facts about a cluster, and decides when to apply it.
//! Nothing here performs I/O.

#[cfg(doctest)]
#[doc = include_str!("../../../docs/profile-development-guide.md")]
#[derive(Debug)]
pub struct WritingAProfile;

pub mod access;
pub mod admission;
pub mod advertise;
pub mod approving;
pub mod autopilot;
pub mod blast_radius;
pub mod demand;
pub mod diff;
pub mod drift;
pub mod facts;
pub mod field_manager;
pub mod fields;
pub mod fingerprint;
pub mod goal;
pub mod hyper_converged;
pub mod impact;
pub mod intent;
pub mod kernel_arguments;
pub mod kind;
#[cfg(any(test, feature = "test-util"))]
pub mod kstatus;
pub mod kube_descheduler;
pub mod kubelet;
pub mod machine;
pub mod machine_config;
pub mod monitoring;
pub mod object_text;
pub mod ownership;
pub mod plan;
mod plan_risks;
pub mod pools;
pub mod profile;
pub mod profile_conflict;
pub mod profiles;
pub mod record;
pub mod rendered_config;
pub mod restore;
pub mod rollout;
pub mod rollout_view;
pub mod schema;
mod selector;
pub mod session;
pub mod start_time;
#[cfg(any(test, feature = "test-util"))]
pub mod test_cluster;
mod truncate;
pub mod waiting;
pub mod writing;

pub use access::Access;
pub use facts::{Answer, Facts, Query};
pub use intent::{Change, Draft, Intent, LeftOut, risk};
pub use kind::{Kind, ObjectRef};
pub use plan::{Plan, PlannedItem, Preview, PreviewOutcome, Refusal, Verb};
pub use profile::{Effect, InvalidOptions, Planner, Profile, ProfileInfo, Requirement};
